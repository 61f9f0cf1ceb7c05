"""Payloads from nothing to the packet limit."""

import hashlib

import pytest

from harness import wire
from harness.command_line_clients import mosquitto_pub
from harness.wire import Publish

KIBI = 1024
MAXIMUM_PACKET = 1024 * KIBI


def pattern(size: int) -> bytes:
    """Bytes without a period that a lost or repeated block could hide in."""
    blocks = range(size // 32 + 1)
    return b"".join(hashlib.sha256(block.to_bytes(4, "big")).digest() for block in blocks)[:size]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_256_kib_with_command_line_clients(qos, broker, names, mosquitto_sub, tmp_path):
    topic, payload = names.topic("large"), pattern(256 * KIBI)
    file = tmp_path / "payload"
    file.write_bytes(payload)
    subscriber = mosquitto_sub("-t", topic, "-q", str(qos))
    mosquitto_pub(broker, "-t", topic, "-q", str(qos), "-f", str(file))
    message = subscriber.take()
    assert (message.payload == payload, message.qos) == (True, qos)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_256_kib_with_paho(qos, names, paho_client):
    topic, payload = names.topic("large"), pattern(256 * KIBI)
    subscriber, publisher = paho_client(names.client("sub")), paho_client(names.client("pub"))
    subscriber.subscribe((topic, qos))
    for _ in range(3):
        publisher.publish(topic, payload, qos)
    for _ in range(3):
        message = subscriber.take()
        assert (message.payload == payload, message.qos) == (True, qos)


def test_256_kib_retained_and_queued(client, names):
    topic, payload = names.topic("large"), pattern(256 * KIBI)
    phone = client("phone", clean_session=False)
    phone.subscribe((topic, 1))
    phone.disconnect()
    office = client("office")
    office.publish(topic, payload, qos=1, retain=True)
    late = client("late")
    late.subscribe((topic, 1))
    assert late.take_message().payload == payload
    assert client("phone", clean_session=False).take_message().payload == payload
    office.publish(topic, b"", qos=1, retain=True)
    client("phone")  # Ends the stored session.


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize(
    "remaining", [127, 128, 16_383, 16_384, MAXIMUM_PACKET - 4],
)
def test_every_form_of_the_remaining_length(remaining, qos, client, names):
    """The packet ends exactly where its remaining length takes another byte (section 2.2.3)."""
    topic = names.topic("edge")
    payload = pattern(remaining - 2 - len(topic) - (2 if qos else 0))
    subscriber, publisher = client("sub"), client("pub")
    subscriber.subscribe((topic, qos))
    publisher.publish(topic, payload, qos=qos)
    message = subscriber.take_messages(1)[0]
    assert message.payload == payload


def test_an_empty_payload(client, names):
    subscriber = client("sub")
    subscriber.subscribe((names.topic(), 0))
    client("pub").publish(names.topic(), b"")
    assert subscriber.messages_so_far() == [Publish(names.topic(), b"")]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_packet_beyond_the_limit_closes_its_connection(qos, client, names):
    topic = names.topic("large")
    watcher, publisher = client("watcher"), client("pub")
    watcher.subscribe((topic, 0))
    packet = wire.publish(
        topic, pattern(MAXIMUM_PACKET), qos=qos, packet_id=1 if qos else None
    )
    # The header alone tells; the broker need not wait for the rest.
    publisher.send(packet[:100])
    assert publisher.await_closed() == []
    assert watcher.messages_so_far() == []


@pytest.mark.mosquitto_deviates("counts the remaining length, not the packet")
def test_the_limit_can_be_set(start_broker, client, names):
    broker = start_broker(max_packet_bytes=2_000)
    topic = names.topic()
    subscriber, publisher = client("sub", broker), client("pub", broker)
    subscriber.subscribe((topic, 0))
    fitting = wire.publish(topic, pattern(2_000 - 5 - len(topic)))
    assert len(fitting) == 2_000
    publisher.send(fitting)
    publisher.ping()
    assert len(subscriber.messages_so_far()) == 1
    publisher.send(wire.publish(topic, pattern(2_001 - 5 - len(topic))))
    assert publisher.await_closed() == []
    assert subscriber.messages_so_far() == []


def test_the_longest_topic(client, names):
    """65,535 bytes, of few levels."""
    topic = names.topic("x" * (65_535 - len(names.topic(""))))
    subscriber = client("sub")
    assert subscriber.subscribe((topic, 0)) == (0,)
    client("pub").publish(topic, b"far")
    assert subscriber.messages_so_far() == [Publish(topic, b"far")]
