"""TCP carries a stream: packets arrive in any pieces."""

import socket

import pytest

from harness import wire
from harness.raw_client import RawClient
from harness.wire import Connack, Pingresp, Puback, Publish, Suback


@pytest.fixture
def conversation(names):
    """Bytes of a complete short connection, and their answers."""
    topic = names.topic("framing")
    sent = b"".join(
        [
            wire.connect(
                names.client(), will=wire.Will(names.topic("will"), b"w" * 20), keep_alive=60
            ),
            wire.subscribe(1, (topic, 1)),
            wire.publish(topic, b"zero"),
            wire.publish(topic, b"p" * 130, qos=1, packet_id=2),
            wire.PINGREQ,
        ]
    )
    return sent, topic


def check(connection: RawClient, topic: str) -> None:
    """Every answer once; those to different requests may interleave."""
    assert connection.receive() == Connack(False, 0)
    assert connection.receive() == Suback(1, (1,))
    assert connection.receive() == Publish(topic, b"zero")
    rest = [connection.receive() for _ in range(3)]
    assert Puback(2) in rest and Pingresp() in rest
    assert Publish(topic, b"p" * 130, 1, packet_id=1) in rest
    connection.disconnect()


def test_one_byte_at_a_time(conversation, raw):
    sent, topic = conversation
    connection = raw()
    for byte in sent:
        connection.send(bytes([byte]))
    check(connection, topic)


def test_cut_at_every_position(conversation, raw):
    sent, topic = conversation
    for position in range(1, len(sent)):
        connection = raw()
        connection.send(sent[:position])
        connection.send(sent[position:])
        check(connection, topic)


def test_many_packets_in_one_write(client, names):
    """Ten thousand packets in a row, of which the last is a piece."""
    topic = names.topic()
    subscriber, publisher = client("sub"), client("pub")
    subscriber.subscribe((topic, 0))
    last = wire.publish(topic, b"9999")
    publisher.send(
        *(wire.publish(topic, str(number).encode()) for number in range(9_999)), last[:-2]
    )
    publisher.send(last[-2:])
    for number in range(10_000):
        assert subscriber.receive_publish().payload == str(number).encode()


def test_padded_remaining_lengths_are_read(client, names):
    """Section 2.2.3 limits the length to four bytes and does not ask for the shortest."""
    connection = client("padded")
    connection.send(bytes.fromhex("c08000" "c0808000" "c080808000"))
    for _ in range(3):
        assert connection.expect(Pingresp) == Pingresp()


def test_a_half_closed_client_is_read_to_its_end(raw, client, names):
    """Bytes before the FIN are processed."""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    connection = raw()
    connection.send(
        wire.connect(names.client()),
        *(wire.publish(topic, str(number).encode()) for number in range(100)),
    )
    connection.socket.shutdown(socket.SHUT_WR)
    connection.await_closed()
    assert [int(watcher.receive_publish().payload) for _ in range(100)] == list(range(100))


def test_a_peer_cut_off_in_mid_packet_leaves_nothing(raw, client, names):
    """At every position of a PUBLISH, by FIN and by RST: never half a message."""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    packet = wire.publish(topic, b"half", qos=1, packet_id=1)
    for position in range(1, len(packet)):
        for end in (RawClient.close, RawClient.reset):
            connection = raw()
            connection.connect(names.client())
            connection.send(packet[:position])
            end(connection)
    # A take-over of the last one: by then the broker has seen all of them end.
    client("client")
    assert watcher.messages_so_far() == []
