"""More load than the broker can carry: what is shed, what everybody else notices, and that all that was
acknowledged arrives.

As process tests they are a small form; `scripts/soak --overload` runs them in full and shows the
figures, which docs/limits.md has.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import Hermesd
from harness.faulty_calls import Call, FaultyCalls
from harness.raw_client import RawClient
from harness.tls import client_context, tls_environment
from harness.waiting import PATIENCE, eventually
from harness.wire import PacketReader, Puback, Publish

pytestmark = [pytest.mark.hermesd("its limits are those of hermesd"), pytest.mark.timeout(300)]

SCALE = 10 if os.environ.get("OVERLOAD") == "full" else 1
LONGEST_PING = 1.0
"""Seconds: generous, because the load has the same two cores."""


class Bystander:
    """A client that pings ten times a second, and notes how long each answer takes."""

    def __init__(self, broker: Hermesd) -> None:
        self._client = RawClient(broker.address)
        self._client.connect("bystander")
        self._is_over = threading.Event()
        self.times: list[float] = []
        self.peak = 0
        self._broker = broker
        self._begin = broker.resident_bytes()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(0.1):
            begin = time.monotonic()
            self._client.ping()
            self.times.append(time.monotonic() - begin)
            self.peak = max(self.peak, self._broker.resident_bytes())

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE)
        self._client.close()

    @property
    def growth(self) -> int:
        """Bytes of memory above the beginning."""
        return max(0, self.peak - self._begin)

    def __str__(self) -> str:
        times = sorted(self.times)
        return (
            f"PINGRESP of another client p50 {1_000 * statistics.median(times):.1f} ms, longest "
            f"{1_000 * times[-1]:.1f} ms of {len(times)}; memory +{self.growth >> 20} MiB")


@contextmanager
def bystander(broker: Hermesd) -> Iterator[Bystander]:
    one = Bystander(broker)
    try:
        yield one
    finally:
        one.end()


def tell(title: str, *lines: object) -> None:
    """The figures, for the command's output."""
    print(f"\n{title}")
    for line in lines:
        print(f"  {line}")


def warnings(broker: Hermesd) -> set[str]:
    """What an operator reads: the first words of each warning and error."""
    found = set()
    for line in broker.log.lines:
        parts = line.split(maxsplit=2)
        if len(parts) == 3 and parts[1] in ("WARNING", "ERROR", "CRITICAL"):
            words = [word for word in parts[2].split() if "=" not in word]
            found.add(f"{parts[1]} {' '.join(words)}")
    return found


def pump(
    connections: dict[socket.socket, bytearray], readers: dict[socket.socket, PacketReader],
    taken, *, until, within: float,
) -> None:
    """Sends what is unsent and passes what comes to `taken(socket, packet)`, on one thread."""
    selector = selectors.DefaultSelector()
    for one in connections:
        one.setblocking(False)
        selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE)
    end = time.monotonic() + within
    while not until():
        assert time.monotonic() < end, "the load did not end"
        for key, events in selector.select(0.05):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            if events & selectors.EVENT_WRITE:
                unsent = connections[one]
                if unsent:
                    try:
                        del unsent[: one.send(unsent[:65_536])]
                    except BlockingIOError:
                        pass
                else:
                    selector.modify(one, selectors.EVENT_READ)
            if events & selectors.EVENT_READ:
                try:
                    data = one.recv(1 << 18)
                except BlockingIOError:
                    continue
                assert data, "the broker closed a connection that keeps every rule"
                readers[one].feed(data)
                while (packet := readers[one].next()) is not None:
                    taken(one, packet)
                if connections[one]:
                    selector.modify(one, selectors.EVENT_READ | selectors.EVENT_WRITE)
    selector.close()


# --- publishers faster than the disk ---------------------------------------------------------


@pytest.mark.measures("memory")
def test_publishers_faster_than_the_disk(hermesd, tmp_path):
    """Their sockets are read no faster than the disk writes; nobody else waits; all arrives."""
    faults = FaultyCalls(tmp_path)
    broker = hermesd(
        environment=faults.environment() | {
            "HERMES_LIMITS_QUEUE_MESSAGES": "65000", "HERMES_LIMITS_QUEUE_BYTES": "1GiB"},
        arguments=("--logging-level", "info"))
    receiver = RawClient(broker.address)
    receiver.connect("receiver", clean_session=False)
    receiver.subscribe(("t/#", 1))
    receiver.disconnect()
    publishers, count, payload = 10, 2_000 if SCALE == 1 else 6_000, b"p" * 4_000
    # A disk that takes a fifth of a second for each write to be safe.
    faults.delay(Call.SYNC, 0.2)
    paused = looked = 0.0
    with bystander(broker) as other:
        sockets: dict[socket.socket, bytearray] = {}
        for number in range(publishers):
            client = RawClient(broker.address)
            client.connect(f"publisher-{number}")
            sockets[client.socket] = bytearray().join(
                wire.publish(f"t/{number}", b"%d " % index + payload, qos=1,
                             packet_id=index % 65_535 + 1)
                for index in range(count))
        acknowledged = dict.fromkeys(sockets, 0)
        begin = time.monotonic()

        def taken(one: socket.socket, packet: object) -> None:
            assert packet == Puback(acknowledged[one] % 65_535 + 1), packet
            acknowledged[one] += 1

        def is_over() -> bool:
            nonlocal paused, looked
            now = time.monotonic()
            if now - looked > 0.05:
                looked = now
                paused = max(paused, AdminAPI(broker).metric("hermes_publishers_paused"))
            if now - begin > 3 * SCALE**0.5:
                faults.heal()
            return all(value == count for value in acknowledged.values())

        pump(sockets, {one: PacketReader() for one in sockets}, taken, until=is_over, within=240)
        seconds = time.monotonic() - begin
        faults.heal()
        for one in sockets:
            one.close()
    assert paused > 0, "no publisher was held back"
    assert max(other.times) < LONGEST_PING, str(other)
    assert other.growth < 200 << 20, str(other)
    receiver = RawClient(broker.address)
    assert receiver.connect("receiver", clean_session=False).session_present
    next_index = [0] * publishers
    for _ in range(publishers * count):
        message = receiver.take_message(60)
        number = int(message.topic[2:])
        assert message.payload.startswith(b"%d " % next_index[number]), message.payload[:20]
        next_index[number] += 1
    receiver.close()
    tell(
        "publishers faster than the disk (200 ms for each fdatasync, then healthy)",
        f"{publishers} publishers, {publishers * count} messages of 4 KB at QoS 1 in {seconds:.1f} s,"
        f" at most {paused:.0f} of them paused; all acknowledged, all arrived in order", other,
        *sorted(warnings(broker)))


# --- ten times the load ----------------------------------------------------------------------


@pytest.mark.measures("memory")
def test_ten_times_the_load_that_the_machine_carries(hermesd):
    """Publishers that never wait: TCP holds them back, QoS 0 to readers that fall behind is dropped
    and counted, and a bystander is served."""
    broker = hermesd(arguments=("--logging-level", "info"))
    subscribers, payload = 100, b"x" * 100

    def offer(publishers: int, each: int) -> tuple[float, int, int, Bystander]:
        """Seconds until all has been taken, messages that came, and messages that were dropped."""
        name = f"l{publishers}"
        with bystander(broker) as other:
            connections: dict[socket.socket, bytearray] = {}
            readers: dict[socket.socket, int] = {}
            for number in range(subscribers):
                one = RawClient(broker.address)
                one.connect(f"{name}-s{number}")
                one.subscribe((name, 0))
                connections[one.socket] = bytearray()
                readers[one.socket] = 0
            packet = wire.publish(name, payload)
            for number in range(publishers):
                one = RawClient(broker.address)
                one.connect(f"{name}-p{number}")
                connections[one.socket] = bytearray(packet * each + wire.PINGREQ)
            dropped = AdminAPI(broker).metric('hermes_messages_dropped_total{reason="slow_reader"}')
            begin = time.monotonic()
            seconds = _take_all(connections, readers, publishers) - begin
            dropped = AdminAPI(broker).metric(
                'hermes_messages_dropped_total{reason="slow_reader"}') - dropped
            for one in connections:
                one.close()
        received = sum(readers.values())
        assert received % len(packet) == 0
        came = received // len(packet)
        assert came + dropped == publishers * each * subscribers, f"{came} came, {dropped} dropped"
        return seconds, came, int(dropped), other

    each = 300 if SCALE == 1 else 30_000
    one_time = offer(1, each)
    ten_times = offer(10, each)
    assert max(ten_times[3].times) < LONGEST_PING, str(ten_times[3])
    assert ten_times[3].growth < 300 << 20, str(ten_times[3])
    lines = [
        f"{publishers} publishers: {publishers * each} messages to {subscribers} subscribers in "
        f"{seconds:.1f} s, {came} delivered ({came / seconds:.0f} a second), {dropped} dropped; "
        f"{other}"
        for publishers, (seconds, came, dropped, other) in ((1, one_time), (10, ten_times))]
    tell("ten times the load (QoS 0, publishers that never wait)", *lines, *warnings(broker))


def _take_all(
    connections: dict[socket.socket, bytearray], readers: dict[socket.socket, int],
    publishers: int,
) -> float:
    """Sends everything and counts bytes, until each publisher has its PINGRESP and nothing more
    comes; returns when the last came."""
    selector = selectors.DefaultSelector()
    for one in connections:
        one.setblocking(False)
        selector.register(
            one, selectors.EVENT_READ | (0 if one in readers else selectors.EVENT_WRITE))
    answers, quiet = 0, time.monotonic()
    end = time.monotonic() + 240
    while answers < publishers or time.monotonic() - quiet < 1:
        assert time.monotonic() < end, "the load did not end"
        for key, events in selector.select(0.05):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            if events & selectors.EVENT_WRITE:
                unsent = connections[one]
                try:
                    del unsent[: one.send(unsent[:65_536])]
                except BlockingIOError:
                    pass
                if not unsent:
                    selector.modify(one, selectors.EVENT_READ)
            if events & selectors.EVENT_READ:
                data = one.recv(1 << 18)
                assert data, "the broker closed a connection that keeps every rule"
                quiet = time.monotonic()
                if one in readers:
                    readers[one] += len(data)
                else:
                    answers += data.count(b"\xd0\x00")
    selector.close()
    return quiet


# --- very many TLS clients at once -----------------------------------------------------------


def test_very_many_tls_clients_at_once(hermesd, pair, authority):
    """All get in, those who were there are served meanwhile. A client that is too slow for its place
    is displaced and comes again, as clients do."""
    count = 500 * SCALE
    broker = hermesd(environment=tls_environment(pair), arguments=("--logging-level", "info"))
    context = client_context(authority.certificate)
    there = RawClient(broker.address)
    there.socket = context.wrap_socket(there.socket, server_hostname="localhost")
    there.connect("there")
    selector = selectors.DefaultSelector()
    begin = time.monotonic()
    for number in range(count):
        _Newcomer(f"many-{number}", broker.address, context).come(selector)
    admitted, displaced, times, next_ping = 0, 0, [], begin
    try:
        while admitted < count:
            assert time.monotonic() - begin < 200, f"{admitted} of {count} are in"
            for key, _ in selector.select(0.02):
                outcome = key.data.step(selector)
                admitted += outcome is True
                displaced += outcome is None
            if time.monotonic() > next_ping:
                pinged = time.monotonic()
                there.ping()
                times.append(time.monotonic() - pinged)
                next_ping = pinged + 0.1
        seconds = time.monotonic() - begin
        assert max(times) < LONGEST_PING, f"a ping over TLS took {max(times):.2f} s"
        assert AdminAPI(broker).metric("hermes_tls_connections") == count + 1
        tell(
            f"{count} TLS clients at once",
            f"all in after {seconds:.1f} s ({count / seconds:.0f} a second), {displaced} came twice "
            f"because they were slow; PINGRESP over TLS of a client that was there p50 "
            f"{1_000 * statistics.median(times):.1f} ms, longest {1_000 * max(times):.1f} ms of "
            f"{len(times)}; {broker.resident_bytes() >> 20} MiB of memory",
            *sorted(warnings(broker)))
    finally:
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        selector.close()
        there.close()


class _Newcomer:
    """One of many: shakes hands, connects, and stays."""

    def __init__(self, name: str, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self._name = name
        self._address = address
        self._context = context

    def come(self, selector: selectors.BaseSelector) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self._context.wrap_bio(
            self._incoming, self._outgoing, server_hostname="localhost")
        self._is_connecting = True
        self._plain = socket.socket()
        self._plain.setblocking(False)
        self._plain.connect_ex(self._address)
        selector.register(self._plain, selectors.EVENT_WRITE, self)

    def step(self, selector: selectors.BaseSelector) -> bool | None:
        """Goes on; true when CONNACK has come, and `None` when it has to come again."""
        answer = b""
        try:
            if selector.get_key(self._plain).events & selectors.EVENT_WRITE:
                selector.modify(self._plain, selectors.EVENT_READ, self)
            else:
                self._incoming.write(self._plain.recv(1 << 16) or _raise_closed())
            try:
                if self._is_connecting:
                    self._tls.do_handshake()
                    self._tls.write(wire.connect(self._name))
                    self._is_connecting = False
                answer = self._tls.read(100)
            except ssl.SSLWantReadError:
                pass
            if out := self._outgoing.read():
                self._plain.sendall(out)
        except ConnectionError:
            selector.unregister(self._plain)
            self._plain.close()
            self.come(selector)
            return None
        assert answer in (b"", b"\x20\x02\x00\x00"), answer
        return bool(answer)


def _raise_closed() -> bytes:
    raise ConnectionResetError("closed")


# --- a slow reader of everything -------------------------------------------------------------


@pytest.mark.measures("memory")
def test_a_slow_reader_of_everything(hermesd):
    """Of QoS 0 it misses what does not fit, of QoS 1 what its queue does not hold; both are counted,
    and what is left arrives in order. Nobody else misses anything."""
    broker = hermesd(
        environment={"HERMES_LIMITS_QUEUE_BYTES": "4MiB"}, queue_limit=2_000,
        arguments=("--logging-level", "info"))
    slow = RawClient(broker.address, receive_buffer=4_096)
    slow.connect("slow", clean_session=False)
    slow.subscribe(("#", 1))
    reader = RawClient(broker.address)
    reader.connect("reader")
    reader.subscribe(("q1", 1))
    publisher = RawClient(broker.address)
    publisher.connect("publisher")
    count, payload = 6_000 * SCALE, b"s" * 1_000
    with bystander(broker) as other:
        for begin in range(0, count, 50):
            numbers = range(begin, begin + 50)
            publisher.send(*(wire.publish("q0", b"%d " % one + payload) for one in numbers))
            publisher.send(*(
                wire.publish("q1", b"%d " % one + payload, qos=1, packet_id=one % 65_535 + 1)
                for one in numbers))
            for _ in numbers:
                publisher.await_packet(Puback)
            # Nobody else misses anything.
            for one in numbers:
                assert reader.take_message().payload.startswith(b"%d " % one)
        api = AdminAPI(broker)
        dropped = {
            reason: int(api.metric(f'hermes_messages_dropped_total{{reason="{reason}"}}'))
            for reason in ("slow_reader", "queue_full")}
    assert max(other.times) < LONGEST_PING, str(other)
    assert other.growth < 100 << 20, str(other)
    assert dropped["slow_reader"] and dropped["queue_full"], dropped
    came: dict[int, list[int]] = {0: [], 1: []}
    while len(came[0]) + len(came[1]) < 2 * count - sum(dropped.values()):
        message = slow.take_message(30)
        assert isinstance(message, Publish)
        came[message.qos].append(int(message.payload.split()[0]))
    slow.settle()
    assert slow.messages_so_far() == []
    for qos, reason in ((0, "slow_reader"), (1, "queue_full")):
        assert came[qos] == sorted(came[qos]) and len(came[qos]) == count - dropped[reason]
    # drop_oldest: the last ones are there.
    assert came[1][-1] == count - 1
    eventually(lambda: api.metric("hermes_queued_messages") == 0, "an empty queue")
    for one in (slow, reader, publisher):
        one.close()
    tell(
        "a slow reader of #",
        f"{count} messages of 1 KB at QoS 0 and as many at QoS 1; the slow reader got "
        f"{len(came[0])} and {len(came[1])}, dropped and counted were {dropped}; another reader got "
        "all", other, *sorted(warnings(broker)))
