"""Sections 3.1 and 3.2: accepted and rejected CONNECTs, and deadlines."""

import time

import pytest

from harness import wire
from harness.wire import Connack, Publish, Suback

UNACCEPTABLE_LEVEL, IDENTIFIER_REJECTED = 1, 2


@pytest.mark.hermesd("mosquitto reads levels loosely")
@pytest.mark.parametrize("level", [0, 1, 2, 3, 6, 0x84, 255])
def test_other_protocol_levels_are_refused_with_a_reason(level, raw, names):
    """[MQTT-3.1.2-2] a version 5 client learns that it has to step down."""
    connection = raw()
    payload = wire.string(names.client())
    if level == 5:
        payload = b"\0" + payload  # no properties
    connection.send(wire.connect_with_flags(2, payload, protocol_level=level))
    assert connection.await_closed() == [Connack(False, UNACCEPTABLE_LEVEL)]


def test_mqtt_3_1_clients_are_served(raw, client, names):
    old = raw()
    assert old.connect(names.client(), protocol_name="MQIsdp", protocol_level=3) == Connack(
        False, 0
    )
    assert old.subscribe((names.topic(), 1)) == (1,)
    client("pub").publish(names.topic(), b"hello", qos=1)
    assert old.take_message().payload == b"hello"


def test_empty_client_identifiers_are_made_up(raw, names):
    """[MQTT-3.1.3-6] each its own, so that none takes another over."""
    first, second = raw(), raw()
    for connection in (first, second):
        assert connection.connect("") == Connack(False, 0)
        connection.subscribe((names.topic(), 0))
    first.publish(names.topic(), b"x")
    for connection in (first, second):
        assert connection.messages_so_far() == [Publish(names.topic(), b"x")]


def test_an_empty_client_identifier_needs_a_clean_session(raw):
    """[MQTT-3.1.3-8]"""
    connection = raw()
    connection.send(wire.connect("", clean_session=False))
    assert connection.await_closed() == [Connack(False, IDENTIFIER_REJECTED)]


@pytest.mark.parametrize(
    "client_id",
    [
        "0123456789abcdefABCDEFg", "x" * 1_000, "with space", "sl/ash", "+#", "\u00fcml\u00e4ut",
        "\U0001f4f1", "\ufeffbom",
    ],
)
def test_client_identifiers_may_be_long_and_odd(client_id, raw):
    """[MQTT-3.1.3-5] and beyond."""
    connection = raw()
    assert connection.connect(client_id) == Connack(False, 0)
    connection.disconnect()


def test_client_identifiers_are_compared_byte_by_byte(raw, names):
    """Neither case nor Unicode form is folded."""
    connections = []
    for spelling in ("\u00e9", "e\u0301", "E\u0301"):
        connection = raw()
        connection.connect(names.client(spelling))
        connections.append(connection)
    for connection in connections:
        connection.ping()


def test_packets_may_follow_connect_at_once(raw, names):
    """Section 3.1.4: a client need not wait for the CONNACK."""
    connection = raw()
    topic = names.topic()
    connection.send(
        wire.connect(names.client()), wire.subscribe(1, (topic, 0)), wire.publish(topic, b"x"),
        wire.PINGREQ,
    )
    assert connection.receive() == Connack(False, 0)
    assert connection.receive() == Suback(1, (0,))
    assert connection.receive() == Publish(topic, b"x")
    assert connection.receive() == wire.Pingresp()


@pytest.mark.parametrize("refused", ["level", "identifier"])
def test_nothing_after_a_refused_connect_is_processed(refused, raw, client, names):
    """[MQTT-3.1.4-5]"""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    connection = raw()
    connect = {
        "level": wire.connect(names.client(), protocol_level=9),
        "identifier": wire.connect("", clean_session=False),
    }[refused]
    connection.send(connect, wire.publish(topic, b"sneaked in"))
    connection.await_closed()
    assert watcher.messages_so_far() == []


@pytest.mark.hermesd("mosquitto has no CONNECT deadline to set")
@pytest.mark.parametrize("sends", ["nothing", "half a CONNECT", "a byte now and then"])
def test_the_connect_deadline(sends, start_broker, raw, client, names):
    """Single bytes do not extend the deadline."""
    broker = start_broker(connect_timeout="1s")
    accepted = client("accepted", broker)
    connection = raw(broker)
    begin = time.monotonic()
    connect = wire.connect(names.client("late"))
    if sends == "half a CONNECT":
        connection.send(connect[: len(connect) // 2])
    elif sends == "a byte now and then":
        _trickle(connection, connect[:-1], every=0.1)
    assert connection.await_closed(5) == []
    assert 0.9 < time.monotonic() - begin < 2.5
    accepted.ping()


def _trickle(connection, data, every):
    """Sends a byte at a time until the broker closes or the data end."""
    for byte in data:
        connection.socket.settimeout(every)
        try:
            connection.socket.send(bytes([byte]))
            # Paces the bytes: readable before its time means closed.
            if connection.socket.recv(1) == b"":
                return
        except TimeoutError:
            continue
        except OSError:
            return


def test_idle_peers_do_not_keep_others_out(raw, client):
    """A hundred sockets that never say a word, and one client that does."""
    for _ in range(100):
        raw()
    client("working").ping()
