"""While the disk hangs: nothing is seen before its commit, and nobody pays for others' packets."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually
from harness.wire import Connack, Puback, Will
from proof.bench import Bench
from proof.exchange import await_acknowledgement, payloads, send_message
from proof.shim import Files

Connect = Callable[..., RawClient]

pytestmark = pytest.mark.quick

MOST_UNACKNOWLEDGED = 8


def hang(bench: Bench, publisher: RawClient, topic: str = "kept") -> int:
    """Publishes to a stored queue, on which the disk hangs; returns the packet identifier."""
    bench.shim.hang(Files.JOURNAL, 600)
    identifier = send_message(publisher, topic, b"held")
    eventually(lambda: bench.shim.is_hanging, "the sync to hang")
    return identifier


def keeper(connect: Connect, *filters: str) -> None:
    """A persistent session, offline, for which messages must be stored."""
    one = connect("keeper")
    one.subscribe(*((each, 1) for each in filters))
    one.disconnect()


def connections(bench: Bench) -> int:
    return AdminAPI(bench.broker).status()["connections"]


def test_a_shared_group_hands_over_after_the_commit(bench: Bench, connect: Connect) -> None:
    """Members leave with messages that are not stored yet: the others wait for the disk too."""
    bench.start()
    keeper(connect, "jobs/#")
    members = [connect(name, clean_session=True) for name in ("a", "b")]
    for member in members:
        member.subscribe(("$share/g/jobs/#", 1))
    publisher = connect("publisher")
    identifier = hang(bench, publisher, "jobs/1")
    publisher.ping()
    api = AdminAPI(bench.broker)
    chosen = next(
        number for number, name in enumerate("ab") if api.client(name)["queued"] == 1)
    members.pop(chosen).close()
    eventually(lambda: connections(bench) == 2, "the member's end")
    assert members[0].messages_so_far() == [], "a message came before its commit"
    assert not any(isinstance(one, Puback) for one in publisher.packets_so_far())
    bench.shim.release()
    await_acknowledgement(publisher, identifier)
    assert members[0].take_message().payload == b"held"


def test_half_a_packet_lives_beside_paused_publishers(bench: Bench, connect: Connect) -> None:
    """What the broker itself holds back costs no client its unfinished packet."""
    bench.start(
        HERMES_LIMITS_UNFINISHED_BYTES="512KiB",
        HERMES_LIMITS_MAX_UNACKNOWLEDGED_PUBLISHES=str(MOST_UNACKNOWLEDGED))
    keeper(connect, "kept")
    reader = connect("reader", clean_session=True)
    reader.subscribe(("free", 0))
    innocent = connect("innocent", clean_session=True)
    packet = wire.publish("free", b"x" * 60_000)
    innocent.send(packet[:30_000])
    api = AdminAPI(bench.broker)
    eventually(
        lambda: api.status()["memory"]["unfinished_bytes"] >= 30_000, "half of it to be read")
    publishers = [connect(f"p{number}", clean_session=True) for number in range(60)]
    hang(bench, publishers[0])
    burst = b"".join(
        wire.publish("kept", b"y" * 900, qos=1, packet_id=number) for number in range(2, 66))
    for publisher in publishers:
        publisher.send(burst)
    eventually(
        lambda: api.metric("hermes_publishers_paused") == len(publishers), "all to be paused")
    # More turns, each of which looks at the memory of unfinished packets.
    for _ in range(5):
        reader.ping()
    innocent.send(packet[30_000:])
    assert reader.receive_publish().payload == b"x" * 60_000
    innocent.ping()
    assert api.status()["connections"] == len(publishers) + 2
    bench.shim.release()
    for publisher in publishers[1:]:
        for identifier in range(2, 66):
            await_acknowledgement(publisher, identifier)


def test_large_packets_of_many_stay_in_the_kernel(bench: Bench, connect: Connect) -> None:
    """While the store is full, no packet that would have to wait for it is read to its end."""
    bench.start(HERMES_LIMITS_UNFINISHED_BYTES="256MiB", HERMES_LIMITS_MAX_PACKET="2MiB")
    keeper(connect, "kept")
    api = AdminAPI(bench.broker)
    big = b"z" * 1_000_000
    filler = connect("filler", clean_session=True)
    hang(bench, filler)
    held: list[RawClient] = []
    while api.metric("hermes_publishers_paused") == 0:
        assert len(held) < 40, "the backlog has no bound"
        held.append(connect(f"filler{len(held)}", clean_session=True))
        held[-1].send(wire.publish("kept", big, qos=1, packet_id=1))
        held[-1].ping() if len(held) < 30 else filler.ping()
    before = bench.broker.resident_bytes()
    publishers = [connect(f"p{number}", clean_session=True) for number in range(100)]
    senders = [
        threading.Thread(
            target=one.send, args=(wire.publish("kept", big, qos=1, packet_id=1),), daemon=True)
        for one in publishers
    ]
    for one in senders:
        one.start()
    eventually(
        lambda: api.metric("hermes_publishers_paused") > len(publishers), "all to be paused")
    growth = bench.broker.resident_bytes() - before
    assert growth < 32 * 1_024 * 1_024, f"{growth} bytes for packets that wait"
    assert api.status()["connections"] == len(publishers) + len(held) + 1
    bench.shim.release()
    for one in held + publishers:
        await_acknowledgement(one, 1, within=30)
    for one in senders:
        one.join(10)


@pytest.mark.parametrize("end", ["reset", "close"])
def test_a_disconnect_that_arrived_counts(bench: Bench, connect: Connect, end: str) -> None:
    """The broker holds back the packets of a client that says DISCONNECT and is gone at once."""
    bench.start(HERMES_LIMITS_MAX_UNACKNOWLEDGED_PUBLISHES=str(MOST_UNACKNOWLEDGED))
    keeper(connect, "kept")
    witness = connect("witness", clean_session=True)
    witness.subscribe(("will", 0), ("free", 0), ("kept", 0))
    going = connect("going", will=Will("will", b"gone"))
    hang(bench, going)
    count = 4 * MOST_UNACKNOWLEDGED
    going.send(
        *(wire.publish("kept", b"%d" % one, qos=1, packet_id=one) for one in range(2, count)),
        wire.publish("free", b"the last"), wire.DISCONNECT)
    api = AdminAPI(bench.broker)
    eventually(lambda: api.metric("hermes_publishers_paused") == 1, "the publisher to be paused")
    if end == "reset":
        going.reset()
    else:
        going.close()
    for _ in range(5):
        witness.ping()
    assert api.status()["connections"] == 2, "its packets still wait"
    bench.shim.release()
    eventually(lambda: api.status()["connections"] == 1, "the end of the connection")
    received = witness.messages_so_far()
    assert [one for one in received if one.topic == "will"] == []
    kept = payloads([one for one in received if one.topic == "kept"])
    assert kept == [b"held", *(b"%d" % one for one in range(2, count))]
    assert payloads([one for one in received if one.topic == "free"]) == [b"the last"]


def test_a_take_over_of_a_client_that_had_disconnected(bench: Bench, connect: Connect) -> None:
    """Its DISCONNECT has arrived, so no end of the old connection publishes the will."""
    bench.start(HERMES_LIMITS_MAX_UNACKNOWLEDGED_PUBLISHES=str(MOST_UNACKNOWLEDGED))
    keeper(connect, "kept")
    witness = connect("witness", clean_session=True)
    witness.subscribe(("will", 0))
    going = connect("going", clean_session=True, will=Will("will", b"gone"))
    hang(bench, going)
    going.send(
        *(wire.publish("kept", b"x", qos=1, packet_id=one) for one in range(2, 20)),
        wire.DISCONNECT)
    api = AdminAPI(bench.broker)
    eventually(lambda: api.metric("hermes_publishers_paused") == 1, "the publisher to be paused")
    going.reset()
    witness.ping()
    again = connect("going", clean_session=True)
    again.ping()
    assert witness.messages_so_far() == []
    bench.shim.release()


@pytest.mark.parametrize("way", ["take_over", "lost"])
def test_an_emptied_queue_delays_no_reconnect(
    bench: Bench, connect: Connect, way: str
) -> None:
    """CONNACK waits for a read of the former connection's, and the operator empties the queue."""
    broker = bench.start(HERMES_JOURNAL_SEGMENT_BYTES="8388608")
    phone = connect("phone")
    phone.subscribe(("orders", 1))
    phone.disconnect()
    publisher = connect("publisher")
    for number in range(200):
        publisher.publish("orders", b"%d" % number, qos=1)
    bench.shim.hang_reads(Files.JOURNAL | Files.SQLITE)
    first = RawClient(broker.address)
    first.send(wire.connect("phone", clean_session=False))
    eventually(lambda: bench.shim.is_reading, "the queue to be read")
    if way == "lost":
        first.reset()
    second = RawClient(broker.address)
    second.send(wire.connect("phone", clean_session=False))
    if way == "take_over":
        first.await_closed()
    dropped = hermesctl("queue", "drop", "phone", "--yes", broker=broker)
    assert dropped.code == 0 and "200" in dropped.output, dropped.output
    bench.shim.release_reads()
    assert second.expect(Connack) == Connack(True, 0)
    publisher.publish("orders", b"after", qos=1)
    assert second.take_message().payload == b"after"
    assert second.messages_so_far() == []
    for one in (first, second):
        one.close()
