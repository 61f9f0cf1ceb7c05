"""What is sent first: a client's answer does not wait until others' backlogs have left.

Each test lets messages pile up for many receivers that do not read, and asks how many of their bytes
the broker had sent when another client had its PINGRESP: their sockets hold them. A line in which
every receiver sends all it has at its place would have sent everything.
"""

from __future__ import annotations

import array
import fcntl
import statistics
import termios

import pytest

from harness import wire
from harness.raw_client import RawClient
from harness.wire import Suback

pytestmark = pytest.mark.hermesd("the line of sends is a rule of Hermes")

ROUNDS = 15


def unread_bytes(client: RawClient) -> int:
    """Bytes that the client's socket holds."""
    count = array.array("i", [0])
    fcntl.ioctl(client.socket, termios.FIONREAD, count)
    return count[0]


def receivers_of(broker, raw, topics: int, each: int) -> list[RawClient]:
    clients = []
    for topic in range(topics):
        for number in range(each):
            client = raw(broker)
            client.connect(f"receiver-{topic}-{number}")
            client.send(wire.subscribe(1, (f"t/{topic}", 0)))
            client.await_packet(Suback)
            clients.append(client)
    return clients


@pytest.mark.parametrize(
    ("topics", "each", "messages"),
    [(1, 64, 300), (1, 50, 300), (10, 60, 30)],
    ids=["one topic of 64", "one topic of 50", "ten topics of 60"],
)
def test_an_answer_goes_before_the_backlogs_of_many(start_broker, raw, topics, each, messages):
    broker = start_broker()
    receivers = receivers_of(broker, raw, topics, each)
    quiet, publisher = raw(broker), raw(broker)
    quiet.connect("quiet")
    publisher.connect("publisher")
    burst = [
        wire.publish(f"t/{topic}", b"x" * 200) for _ in range(messages) for topic in range(topics)
    ]
    size = len(receivers) * sum(map(len, burst)) // topics
    shares = []
    for _ in range(ROUNDS):
        publisher.send(*burst)
        quiet.ping()
        shares.append(sum(map(unread_bytes, receivers)) / size)
        for receiver in receivers:
            left = size // len(receivers)
            while left:
                left -= len(receiver.socket.recv(left))
    # The messages of a turn that had begun before the PINGREQ came are sent before it.
    assert statistics.median(shares) < 0.75, shares
