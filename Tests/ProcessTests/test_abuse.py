"""Inputs that have broken other brokers: each is rejected, and the broker continues."""

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.wire import Connack, Publish, Pubrec, Suback

MEBI = 1024 * 1024


@pytest.mark.hermesd("mosquitto waits for the rest of a large CONNECT")
@pytest.mark.parametrize(
    "header",
    ["10ffffff7f", "1080808001", "30ffffff7f", "82ffffff7f", "c0ffffff7f", "d0ffffff7f"],
)
def test_a_large_first_packet_is_refused_by_its_header(header, raw, broker):
    """CVE-2017-7651, CVE-2023-0809: no large allocation before a client is accepted."""
    before = broker.resident_bytes()
    connections = [raw() for _ in range(50)]
    for connection in connections:
        connection.send(bytes.fromhex(header))
    for connection in connections:
        assert connection.await_closed() == []
    assert broker.resident_bytes() - before < 4 * MEBI


@pytest.mark.measures("memory")
def test_malformed_connects_leak_nothing(raw, broker):
    """CVE-2017-7654."""
    connect = wire.connect("leak", will=wire.Will("w", b"m" * 1000), user_name="u", password=b"p")

    def attempts(count):
        for number in range(count):
            connection = raw()
            connection.send(connect[:-1] if number % 2 else connect + b"\xff")
            connection.close()

    attempts(500)
    before = broker.resident_bytes()
    attempts(2_000)
    raw().connect("after-the-leaks")
    assert broker.resident_bytes() - before < 4 * MEBI


@pytest.mark.hermesd("mosquitto takes topics of any depth")
@pytest.mark.parametrize("levels", [129, 32_768, 65_535])
def test_deep_topics(levels, client, names):
    """CVE-2019-11779, CVE-2021-33176: no recursion, and a limit of 128 levels."""
    topic = "/" * (levels - 1)
    subscriber = client("sub")
    assert subscriber.subscribe((topic, 0), ("+/" * 100 + "#", 0)) == (0x80, 0)
    assert subscriber.subscribe((names.topic("fine"), 0)) == (0,)
    subscriber.unsubscribe(topic)
    publisher = client("pub")
    publisher.send(wire.publish(topic, b"x"))
    assert publisher.await_closed() == []
    subscriber.ping()


def test_128_levels_are_fine(client, names):
    prefix = names.topic("")
    topic = prefix + "/" * (128 - 1 - prefix.count("/"))
    subscriber = client("sub")
    assert subscriber.subscribe((topic, 0)) == (0,)
    client("pub").publish(topic, b"deep")
    assert subscriber.messages_so_far() == [Publish(topic, b"deep")]


@pytest.mark.hermesd("mosquitto keeps any number")
def test_qos_2_messages_that_are_never_released(client, names):
    """CVE-2023-28366: 1,000 of them, then the connection closes; the log names the limit."""
    hoarder = client("hoarder")
    for identifier in range(1, 1_001):
        hoarder.send(wire.publish(names.topic(), b"x", qos=2, packet_id=identifier))
    for identifier in range(1, 1_001):
        assert hoarder.expect(Pubrec) == Pubrec(identifier)
    hoarder.send(wire.publish(names.topic(), b"x", qos=2, packet_id=1_001))
    assert hoarder.await_closed() == []


@pytest.mark.parametrize("topic", ["$", "$$", "$x", "$SYS", "$SYSTEM/x", "$share", "$share/x"])
def test_dollar_topics(topic, client):
    """CVE-2018-12543: publishing to any of these topics ends at most the publisher's connection."""
    publisher = client("pub")
    publisher.send(wire.publish(topic, b"x"), wire.PINGREQ)
    witness = client("witness")
    witness.ping()


def test_a_sequence_that_crashed_a_broker(raw, client, names):
    """CVE-2024-8376: all packets in unusual orders, also after DISCONNECT."""
    connect = wire.connect(names.client("x"), clean_session=False)
    packets = {
        "C": connect, "D": wire.DISCONNECT, "S": wire.subscribe(1, (names.topic("#"), 2)),
        "U": wire.unsubscribe(2, names.topic("#")),
        "P": wire.publish(names.topic("a"), b"x", qos=2, retain=True, packet_id=3),
        "R": wire.pubrel(3),
    }
    for order in ("CSPD", "CSUPD", "CDSUP", "CPSPRPD", "CUSUSP", "CSPDC", "CPPPRRR", "CSUPRUSD"):
        connection = raw()
        connection.send(*(packets[letter] for letter in order))
        assert connection.expect(Connack).return_code == 0
        connection.close()
    client("x").ping()


def test_a_subscription_storm(client, names):
    """The same filters made and removed over and over leave nothing behind."""
    one = client("storm")
    filters = [(names.topic(f"{number}/+/#"), number % 3) for number in range(200)]
    for identifier in range(1, 101):
        one.send(
            wire.subscribe(identifier, *filters),
            wire.unsubscribe(identifier, *(name for name, _ in filters)),
        )
    for identifier in range(1, 101):
        assert one.expect(Suback).packet_id == identifier
        assert one.expect(wire.Unsuback).packet_id == identifier
    one.publish(names.topic("1/x/y"), b"x")
    assert one.messages_so_far() == []


@pytest.mark.hermesd("mosquitto carries out as many as fit a packet")
def test_an_unsubscribe_of_very_many_filters(client, broker, names):
    """UNSUBACK could not name the remaining filters, so the connection closes before any change."""
    other = client("other")
    one = client("one")
    assert one.subscribe((names.topic("x"), 0)) == (0,)
    one.send(wire.unsubscribe(7, *([names.topic("x")] * 10_000)))
    assert one.expect(wire.Unsuback).packet_id == 7
    start = len(broker.log.lines)
    one.send(wire.unsubscribe(8, *(["x"] * 10_001)))
    assert one.await_closed() == []
    broker.log.await_match(
        "Connection closed at a limit.*reason=unsubscribe_filters", start=start)
    other.ping()


@pytest.mark.hermesd("the counters are those of its API")
def test_counters_return_to_what_they_were(start_broker, raw, names):
    """After all kinds of ends: no session, subscription or connection is left."""
    broker = start_broker()
    api = AdminAPI(broker)
    for number in range(300):
        connection = raw(broker)
        connection.connect(
            names.client(str(number)), clean_session=True,
            will=wire.Will(names.topic("will"), b"x", qos=number % 3),
        )
        connection.subscribe((names.topic("#"), number % 3))
        connection.send(wire.publish(names.topic("x"), b"x", qos=1, packet_id=1))
        if number % 3 == 0:
            connection.disconnect()
        elif number % 3 == 1:
            connection.reset()
        else:
            connection.send(b"\xf0\x00")
            connection.close()
    last = raw(broker)
    last.connect("last")
    last.disconnect()
    status = api.status()
    for counter in ("connections", "sessions", "subscriptions", "retained", "queued", "in_flight"):
        assert status[counter] == 0, f"{counter}: {status[counter]}"
