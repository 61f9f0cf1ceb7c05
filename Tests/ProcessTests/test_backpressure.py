"""Buffers are bounded, and no client waits for another."""

import select
import time

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import assert_names_known_limits
from harness.raw_client import RawClient
from harness.waiting import Deadline

MEBI = 1024 * 1024
RESPONSIVE = 1.0
"""Seconds that a round trip of another client may take meanwhile; usually under 10 ms."""


class Bystander:
    """Another client, whose round trips are timed."""

    def __init__(self, connection: RawClient) -> None:
        self._connection = connection
        self.slowest = 0.0

    def look(self) -> None:
        begin = time.monotonic()
        self._connection.ping()
        self.slowest = max(self.slowest, time.monotonic() - begin)


@pytest.fixture
def quiet_broker(start_broker):
    return start_broker()


@pytest.fixture
def bystander(quiet_broker, client):
    return Bystander(client("bystander", quiet_broker))


@pytest.mark.mosquitto_deviates("gives up QoS 1 too, once QoS 0 has filled the queue")
@pytest.mark.measures("memory")
def test_a_subscriber_that_stops_reading(quiet_broker, bystander, client, raw, names):
    """QoS 0 beyond its limit is dropped, QoS 1 waits, and it can come back."""
    fast, sure = names.topic("fast"), names.topic("sure")
    stalled = raw(quiet_broker, receive_buffer=4_096)
    stalled.connect(names.client("stalled"))
    stalled.subscribe((fast, 0), (sure, 1))
    publisher = client("publisher", quiet_broker)
    publisher.ping()
    before = quiet_broker.resident_bytes()

    flood, size = 4_000, 16_384
    for number in range(flood):
        publisher.send(wire.publish(fast, number.to_bytes(4, "big") + b"x" * (size - 4)))
        if number % 200 == 0:
            bystander.look()
    for number in range(100):
        publisher.publish(sure, str(number).encode(), qos=1)
        if number % 20 == 0:
            bystander.look()

    grown = quiet_broker.resident_bytes() - before
    assert grown < 16 * MEBI, f"{grown / MEBI:.1f} MiB more after 64 MiB for one that reads none"
    assert bystander.slowest < RESPONSIVE
    if quiet_broker.is_hermesd:
        detail = AdminAPI(quiet_broker).client(names.client("stalled"))
        assert sum(detail["dropped"].values()) > 0, detail
        assert detail["unsent_bytes"] > 0, detail
        assert_names_known_limits(quiet_broker.log.await_match(r".*Messages dropped.*")[0])

    # It reads again: whole packets, in order, and every QoS 1 message.
    fast_numbers, sure_numbers = [], []
    while len(sure_numbers) < 100:
        message = stalled.take_message()
        if message.topic == fast:
            assert len(message.payload) == size
            fast_numbers.append(int.from_bytes(message.payload[:4], "big"))
        else:
            sure_numbers.append(int(message.payload))
    assert sure_numbers == list(range(100))
    assert fast_numbers == sorted(set(fast_numbers))
    assert 0 < len(fast_numbers) < flood
    publisher.publish(fast, b"live again")
    assert stalled.take_message().payload == b"live again"


def test_a_stalled_subscriber_does_not_hold_up_another(quiet_broker, client, raw, names):
    """Both subscribe to the same topic; the healthy one gets all, at once."""
    topic = names.topic()
    stalled = raw(quiet_broker, receive_buffer=4_096)
    stalled.connect(names.client("stalled"))
    stalled.subscribe((topic, 1))
    healthy = client("healthy", quiet_broker)
    healthy.subscribe((topic, 1))
    publisher = client("publisher", quiet_broker)
    for number in range(300):
        publisher.publish(topic, number.to_bytes(4, "big") + b"x" * 16_384, qos=1)
        received = healthy.take_message(RESPONSIVE)
        assert int.from_bytes(received.payload[:4], "big") == number
    in_flight = [int.from_bytes(stalled.take_message().payload[:4], "big") for _ in range(300)]
    assert in_flight == list(range(300))


@pytest.mark.measures("memory")
def test_a_publisher_that_reads_no_acknowledgements(quiet_broker, bystander, raw, names):
    """Paused, or closed at a limit that the log names: in no case is memory the buffer."""
    topic = names.topic("nobody")
    rude = raw(quiet_broker, receive_buffer=4_096)
    rude.connect(names.client("rude"))
    before = quiet_broker.resident_bytes()

    identifiers = range(1, 65_536)
    lap = b"".join(wire.publish(topic, b"", qos=1, packet_id=number) for number in identifiers)
    laps = 30 if quiet_broker.is_hermesd else 5
    try:
        sent = send_until_stuck(rude, lap * laps, stuck_after=1.0, meanwhile=bystander.look)
    except (BrokenPipeError, ConnectionResetError):
        sent = None

    assert bystander.slowest < RESPONSIVE
    grown = quiet_broker.resident_bytes() - before
    assert grown < 16 * MEBI, f"{grown / MEBI:.1f} MiB more for unread acknowledgements"
    if sent is None:
        line = quiet_broker.log.await_match(rf".*at a limit.*{names.client('rude')}.*")
        assert_names_known_limits(line[0])
        return

    # Now it reads: the acknowledgements of all that was sent whole, in order.
    size = len(lap) // len(identifiers)
    whole = sent // len(lap) * len(identifiers) + sent % len(lap) // size
    expected = (b"".join(wire.puback(number) for number in identifiers) * laps)[: whole * 4]
    assert read_exactly(rude, len(expected)) == expected
    bystander.look()


def send_until_stuck(one: RawClient, data: bytes, *, stuck_after: float, meanwhile) -> int:
    """Sends as much as the broker takes; returns the number of bytes."""
    view, sent = memoryview(data), 0
    one.socket.setblocking(False)
    while sent < len(data):
        meanwhile()
        _, writable, _ = select.select([], [one.socket], [], stuck_after)
        if not writable:
            break
        sent += one.socket.send(view[sent : sent + MEBI])
    return sent


def read_exactly(one: RawClient, count: int) -> bytes:
    deadline = Deadline(30, f"{count} bytes of acknowledgements")
    received = bytearray()
    while len(received) < count:
        if deadline.is_over:
            raise deadline.failure(f"{len(received)} came")
        one.socket.settimeout(deadline.remaining)
        received += one.socket.recv(min(MEBI, count - len(received)))
    return bytes(received)


@pytest.mark.mosquitto_deviates("has no limit for unsent output")
@pytest.mark.measures("memory")
def test_a_fan_out_to_peers_that_do_not_read(quiet_broker, bystander, client, raw, names):
    """Fifty stalled subscribers of one topic: their limits add up, and no further."""
    topic = names.topic()
    for number in range(50):
        stalled = raw(quiet_broker, receive_buffer=4_096)
        stalled.connect(names.client(f"stalled{number}"))
        stalled.subscribe((topic, 0))
    publisher = client("publisher", quiet_broker)
    before = quiet_broker.resident_bytes()
    for _ in range(500):
        publisher.send(wire.publish(topic, b"x" * 65_536))
        bystander.look()
    publisher.ping()
    grown = quiet_broker.resident_bytes() - before
    # 1 MiB of unsent output each, at most.
    assert grown < 60 * MEBI, f"{grown / MEBI:.1f} MiB more"
    assert bystander.slowest < RESPONSIVE
