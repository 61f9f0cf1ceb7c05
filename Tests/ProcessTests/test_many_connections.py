"""A thousand clients at once."""

import subprocess
import sys

import pytest

from harness import wire
from harness.waiting import eventually
from harness.wire import Connack, Publish, Suback

COUNT = 1_000


def test_a_thousand_connections(broker, raw, client, names):
    """All accepted, each subscribed, one message to all, one from each, all closed again."""
    shared, own = names.topic("all"), names.topic("own")
    before = broker.open_descriptors()
    connections = [raw() for _ in range(COUNT)]
    for number, connection in enumerate(connections):
        connection.send(
            wire.connect(names.client(f"c{number}")),
            wire.subscribe(1, (shared, 1), (f"{own}/{number}", 1)),
        )
    for connection in connections:
        assert connection.expect(Connack) == Connack(False, 0)
        assert connection.expect(Suback) == Suback(1, (1, 1))

    office = client("office")
    office.publish(shared, b"to all", qos=1)
    for connection in connections:
        assert connection.take_message().payload == b"to all"

    # Each writes to its neighbour.
    for number, connection in enumerate(connections):
        neighbour = f"{own}/{(number + 1) % COUNT}"
        connection.send(wire.publish(neighbour, str(number).encode()))
    for number, connection in enumerate(connections):
        expected = str((number - 1) % COUNT).encode()
        assert connection.take_message() == Publish(f"{own}/{number}", expected)

    for connection in connections:
        connection.reset()
    # The one of the office may still be there.
    eventually(
        lambda: broker.open_descriptors() <= before + 2, "the broker to close its descriptors"
    )


@pytest.mark.measures("memory")
def test_connections_that_come_and_go_leave_nothing(broker, raw, names):
    """Two thousand short lives: neither descriptors nor memory grow with them."""

    def lives(count: int) -> None:
        for number in range(count):
            connection = raw()
            connection.send(
                wire.connect(names.client(str(number))),
                wire.subscribe(1, (names.topic(str(number)), 0)),
            )
            connection.expect(Connack)
            connection.expect(Suback)
            if number % 2:
                connection.disconnect()
            else:
                connection.reset()

    lives(500)
    descriptors, resident = broker.open_descriptors(), broker.resident_bytes()
    lives(2_000)
    eventually(
        lambda: broker.open_descriptors() <= descriptors, "the broker to close its descriptors"
    )
    grown = broker.resident_bytes() - resident
    assert grown < 4 * 1024 * 1024, f"{grown} bytes more after 2,000 connections"


CHURN = """
import collections, socket, sys, time
host, port, hello = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
held, waiting, end = collections.deque(), collections.deque(), time.monotonic() + 2
while time.monotonic() < end:
    newcomer = socket.create_connection((host, port))
    newcomer.sendall(hello)
    held.append(newcomer)
    waiting.append(newcomer)
    if len(waiting) > 50:
        try:
            waiting.popleft().recv(4)
        except ConnectionResetError:
            pass
    if len(held) > 300:
        held.popleft().close()
"""


@pytest.mark.measures("descriptors of a broker that keeps pace")
def test_clients_that_come_and_go_faster_than_sockets_close_use_up_no_descriptors(start_broker):
    """Two processes whose clients take one identifier from each other, as fast as they can.

    At most 50 of each wait for CONNACK, so that what is counted is what the broker has not closed, and
    not what it has not come to yet.
    """
    broker = start_broker()
    before = broker.open_descriptors()
    hello = wire.connect("the-same").hex()
    host, port = broker.address
    churns = [
        subprocess.Popen([sys.executable, "-c", CHURN, host, str(port), hello]) for _ in range(2)
    ]
    most = 0
    while any(churn.poll() is None for churn in churns):
        most = max(most, broker.open_descriptors() - before)
    assert all(churn.returncode == 0 for churn in churns)
    # Connections under way, 300 held by each process, and at most 128 that have ended.
    assert most < 1_000
    eventually(
        lambda: broker.open_descriptors() <= before + 2, "the broker to close its descriptors"
    )
