"""Shortage of memory: the order of reactions, and the clients that are not affected."""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.broker import FromFile, Hermesd
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually
from harness.wire import Connack

pytestmark = pytest.mark.hermesd("the limits are its own")

MIB = 1024 * 1024


def memory(broker: Hermesd) -> dict:
    return AdminAPI(broker).status()["memory"]


def set_limit(broker: FromFile, spare: int, rest: str = "") -> None:
    """Allows so many bytes more than the broker uses now."""
    limit = (memory(broker)["used_bytes"] + spare) // MIB * MIB
    start = broker.reload(f"limits: {{memory: {limit}{rest}}}")
    broker.log.await_match("Configuration read again", start=start)


def reasons(broker: Hermesd) -> list[str]:
    text = AdminAPI(broker).request("GET", "/metrics").body.decode()
    return [line.split('"')[1] for line in text.splitlines()
            if line.startswith("hermes_connections_closed_total") and not line.endswith(" 0")]


def slow_reader(broker: Hermesd, raw, name: str) -> RawClient:
    reader = raw(broker, receive_buffer=4096)
    reader.connect(name)
    reader.subscribe((name, 0))
    return reader


def fill(broker: Hermesd, publisher: RawClient, name: str, size: int) -> None:
    """Publishes until the broker holds about so much for a reader that reads nothing."""
    payload = b"x" * 8_000
    for _ in range(size // len(payload)):
        publisher.send(wire.publish(name, payload))
    publisher.ping()


@pytest.mark.measures("memory")
def test_slow_readers_go_and_the_others_lose_nothing(from_file, raw):
    """Largest first; newcomers wait meanwhile; then everything is as it was."""
    broker = from_file("limits: {memory: off, output_bytes: 64MiB}")
    well = raw(broker)
    well.connect("well")
    well.subscribe(("news", 1))
    publisher = raw(broker)
    publisher.connect("publisher")
    publisher.publish("warm", b"x" * 100_000)
    large = [slow_reader(broker, raw, f"large{number}") for number in range(3)]
    small = slow_reader(broker, raw, "small")
    set_limit(broker, 60 * MIB, ", output_bytes: 64MiB")

    fill(broker, publisher, "small", 10 * MIB)
    for number in range(3):
        fill(broker, publisher, f"large{number}", 40 * MIB)
    broker.log.await_match("Memory is short, slow readers are closed.*limits.memory")
    line = broker.log.await_match("Connection closed at a limit.*memory_shortage").string
    assert "client.id=large" in line and "limits.memory" in line

    broker.log.await_match("Memory is enough again")
    assert memory(broker)["pressure"] == "none"
    publisher.publish("news", b"still here", qos=1)
    assert well.take_message().payload == b"still here"
    # Largest first: a connection with little output stays.
    assert AdminAPI(broker).client("small")["connected"]
    raw(broker).connect("newcomer")
    assert AdminAPI(broker).status()["limits_reached"]["memory"] >= 2
    assert "memory_shortage" in reasons(broker)
    for one in (*large, small):
        one.close()


@pytest.mark.measures("memory")
def test_newcomers_wait_until_there_is_memory(from_file, raw):
    """Connections without CONNECT are closed; later ones wait in the kernel and are accepted
    after."""
    rest = "output_bytes: 256MiB, connect_timeout: 60s"
    broker = from_file(f"limits: {{memory: off, {rest}}}")
    silent = raw(broker)
    held = raw(broker)
    held.connect("held")
    reader = slow_reader(broker, raw, "reader")
    publisher = raw(broker)
    publisher.connect("publisher")
    fill(broker, publisher, "reader", 160 * MIB)
    used = memory(broker)["used_bytes"]
    # Just above the limit: no reader is closed for that.
    start = broker.reload(f"limits: {{memory: {used * 100 // 103}, {rest}}}")
    broker.log.await_match("Memory is short, new connections wait", start=start)
    assert silent.await_closed() == []
    status = memory(broker)
    assert status["pressure"] == "newcomers" and status["used_bytes"] >= status["limit_bytes"]
    shown = hermesctl("status", broker=broker).output
    assert "short: newcomers are cut back" in shown

    newcomer = raw(broker)
    newcomer.send(wire.connect("newcomer"))
    for _ in range(3):
        held.ping()
    assert AdminAPI(broker).status()["connections"] == 3
    assert AdminAPI(broker).request("GET", "/readyz").status == 200
    reader.close()
    assert newcomer.expect(Connack) == Connack(False, 0)
    broker.log.await_match("Memory is enough again", start=start)


def test_unfinished_packets_have_a_limit_together(start_broker, raw):
    """The oldest incomplete packets close; a client that finishes its packets does not."""
    broker = start_broker(environment={
        "HERMES_LIMITS_UNFINISHED_BYTES": "4MiB", "HERMES_LIMITS_MAX_PACKET": "512KiB",
    })
    well = raw(broker)
    well.connect("well")
    well.subscribe(("big", 1))
    payload = b"y" * 400_000
    begun = []
    for number in range(40):
        one = raw(broker)
        one.connect(f"greedy{number}")
        one.send(wire.publish("big", payload)[:-1])
        begun.append(one)
        if number % 4 == 0:
            # A large packet of an honest client comes through all the time.
            well.publish("big", payload, qos=1)
            assert well.take_message().payload == payload
    held = eventually(
        lambda: 0 < memory(broker)["unfinished_bytes"] <= 4 * MIB and memory(broker),
        "less than the limit to be held")
    assert held["unfinished_bytes"] > MIB
    for one in begun[:20]:
        assert one.await_closed() == []
    begun[-1].send(b"y")
    assert well.take_message().payload == payload
    assert AdminAPI(broker).status()["limits_reached"]["unfinished_bytes"] >= 25
    line = broker.log.await_match("Connection closed at a limit.*unfinished_packets").string
    assert "limits.unfinished_bytes" in line


def test_unfinished_packets_take_hardly_more_memory_than_they_may(start_broker):
    """However fast they come and go, with buffers of ever other sizes."""
    bound = 32 * MIB
    broker = start_broker(environment={"HERMES_LIMITS_UNFINISHED_BYTES": str(bound)})
    before = broker.resident_bytes()
    sent = 0
    with selectors.DefaultSelector() as selector:
        def begin(number: int) -> None:
            one = socket.create_connection(broker.address)
            one.setblocking(False)
            size = 90_000 + number * 7_919 % 900_000
            packets = wire.connect(f"greedy{number}") + wire.publish("big", bytes(size))[:-1]
            selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE,
                              [memoryview(packets)])

        begun = 150
        for number in range(begun):
            begin(number)
        while sent < 12 * bound:
            for key, events in selector.select(PATIENCE):
                one, rest = key.fileobj, key.data
                try:
                    if events & selectors.EVENT_WRITE:
                        count = one.send(rest[0][:65_536])
                        sent += count
                        rest[0] = rest[0][count:]
                        if not rest[0]:
                            selector.modify(one, selectors.EVENT_READ, rest)
                    elif not one.recv(1_024):
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                except OSError:
                    selector.unregister(one)
                    one.close()
                    begin(begun)
                    begun += 1
        for key in list(selector.get_map().values()):
            key.fileobj.close()
    assert AdminAPI(broker).status()["limits_reached"]["unfinished_bytes"] > 100
    taken = broker.peak_resident_bytes() - before
    assert taken < 1.3 * bound + 6 * MIB, f"{taken / MIB:.0f} MiB"


def test_who_is_refused_counts_no_more_as_unfinished(start_broker, raw):
    """Bytes after a rejected CONNECT cost other clients no packet."""
    broker = start_broker(
        users={"anna": "secret"}, environment={"HERMES_LIMITS_UNFINISHED_BYTES": "128KiB"})
    honest = raw(broker)
    honest.connect("honest", user_name="anna", password=b"secret")
    packet = wire.publish("a", bytes(60_000))
    honest.send(packet[:40_000])
    for number in range(3):
        stranger = raw(broker)
        stranger.send(
            wire.connect(f"stranger{number}", user_name="anna", password=b"wrong")
            + packet[:50_000])
        assert stranger.expect(wire.Connack).return_code == 4
    honest.send(packet[40_000:])
    honest.ping()


def test_memory_is_measured_without_a_free_descriptor(start_broker, raw):
    broker = start_broker(environment={
        "HERMES_LIMITS_MEMORY": "64MiB", "HERMES_LIMITS_UNFINISHED_BYTES": "512MiB",
    })
    held = [raw(broker) for _ in range(80)]
    for number, one in enumerate(held):
        one.connect(f"held{number}")
    pid = broker.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        begun = wire.publish("a", bytes(1_000_000))[:-1]
        for one in held:
            with contextlib.suppress(OSError):
                one.send(begun)
        broker.log.await_match("Memory is short")
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
