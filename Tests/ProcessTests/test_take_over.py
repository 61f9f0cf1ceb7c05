"""Section 3.1.4: a client identifier has one connection, the newest."""

import threading

import pytest

from harness import wire
from harness.raw_client import ConnectionClosed, RawClient
from harness.wire import Connack, Will


@pytest.mark.parametrize(
    "clean_session",
    [
        True,
        pytest.param(
            False,
            marks=pytest.mark.mosquitto_deviates("keeps the will back when the session goes on"),
        ),
    ],
)
def test_the_old_connection_closes_and_the_new_one_works(clean_session, client, names):
    """[MQTT-3.1.4-2] and the will of the old one is published, once."""
    topic, will = names.topic(), names.topic("will")
    watcher = client("watcher")
    watcher.subscribe((will, 0))
    old = client("device", clean_session=clean_session, will=Will(will, b"old"))
    new = client("device", clean_session=clean_session, will=Will(will, b"new"))
    assert old.await_closed() == []
    new.subscribe((topic, 1))
    watcher.publish(topic, b"x", qos=1)
    assert new.take_message().payload == b"x"
    assert [message.payload for message in watcher.messages_so_far()] == [b"old"]
    client("device").disconnect()  # Ends the stored session.


def test_the_session_moves_with_its_messages(raw, client, names):
    """Messages that the old connection had not acknowledged go to the new one."""
    topic = names.topic()
    old = client("device", clean_session=False)
    old.subscribe((topic, 1))
    client("pub").publish(topic, b"x", qos=1)
    first = old.receive_publish()
    new = raw()
    assert new.connect(names.client("device"), clean_session=False) == Connack(True, 0)
    again = new.receive_publish()
    assert (again.payload, again.packet_id, again.dup) == (b"x", first.packet_id, True)
    client("device")  # Ends the stored session.


def test_late_words_of_the_old_connection_change_nothing(client, names):
    """Its packets, already under way, come after the take-over."""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    old = client("device", clean_session=False)
    old.subscribe((topic, 1))
    new = client("device", clean_session=False)
    try:
        old.send(wire.unsubscribe(9, topic), wire.publish(topic, b"ghost"), wire.DISCONNECT)
    except (BrokenPipeError, ConnectionResetError):
        pass  # The broker was faster.
    old.await_closed()
    watcher.publish(topic, b"x", qos=1)
    assert new.take_message().payload == b"x"
    assert [message.payload for message in watcher.messages_so_far()] == [b"x"]
    client("device")  # Ends the stored session.


@pytest.mark.parametrize("clean_session", [True, False])
def test_of_racing_connections_one_survives(clean_session, broker, client, names):
    """Eight at once with one identifier: all but one close, and that one is whole."""
    topic = names.topic()
    racers = [RawClient(broker.address) for _ in range(8)]
    barrier = threading.Barrier(len(racers))

    def race(one: RawClient) -> None:
        barrier.wait()
        one.send(wire.connect(names.client("racer"), clean_session=clean_session))

    threads = [threading.Thread(target=race, args=(one,)) for one in racers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    survivors = []
    for one in racers:
        try:
            one.expect(Connack)
            one.subscribe((topic, 1))
            survivors.append(one)
        except (ConnectionClosed, BrokenPipeError, ConnectionResetError):
            one.close()
    # A racer that answered before the last CONNECT was read has been closed since.
    client("pub").publish(topic, b"x", qos=1)
    received = [one for one in survivors if was_delivered(one)]
    assert len(received) == 1
    received[0].ping()
    for one in survivors:
        one.close()
    client("racer")  # Ends the stored session.


def was_delivered(one: RawClient) -> bool:
    try:
        return one.take_message().payload == b"x"
    except (ConnectionClosed, BrokenPipeError, ConnectionResetError):
        return False
