"""Disks that fail, fill up or hang: no false acknowledgement, an alarm, and life afterwards."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.raw_client import RawClient
from harness.waiting import eventually
from harness.wire import Publish
from proof.bench import Bench
from proof.disk_record import Loss, cut_power
from proof.exchange import (
    await_acknowledgement, publish_until_silence, require_silence, send_message,
)
from proof.shim import Files, Operation

Connect = Callable[..., RawClient]

pytestmark = pytest.mark.quick


def crash(bench: Bench, loss: Loss = Loss.EVERYTHING) -> None:
    bench.broker.kill()
    cut_power(bench.data, bench.shim.log, bench.shim.trash, loss, random.Random(1))


def absent_subscriber(connect: Connect, name: str = "away", qos: int = 2) -> None:
    client = connect(name)
    assert client.subscribe(("t/#", qos)) == (qos,)
    client.disconnect()


def received(connect: Connect, expected: list[bytes], name: str = "away") -> None:
    """The client gets exactly these, in this order."""
    client = connect(name)
    messages: list[Publish] = []
    for payload in expected:
        try:
            messages.append(client.take_message())
        except AssertionError as error:
            raise AssertionError(
                f"{len(messages)} of {len(expected)} messages came, not {payload[:40]!r}") from error
        assert messages[-1].payload == payload, (
            f"after {len(messages) - 1} messages {messages[-1].payload[:40]!r} came, "
            f"not {payload[:40]!r}")
    client.settle()
    assert client.messages_so_far() == []
    client.disconnect()


FAILURES = {
    "fdatasync-EIO": (Operation.SYNC, errno.EIO),
    "write-EIO": (Operation.WRITE, errno.EIO),
    "write-ENOSPC": (Operation.WRITE, errno.ENOSPC),
}
QUICK = {("fdatasync-EIO", 2), ("write-EIO", 1), ("write-ENOSPC", 1)}
"""Each failure and each QoS; the other half takes as long and shows less."""


@pytest.mark.parametrize(
    ("operation", "error", "qos"),
    [
        pytest.param(
            *failure, qos, id=f"{name}-{qos}",
            marks=[] if (name, qos) in QUICK else [pytest.mark.full])
        for name, failure in FAILURES.items() for qos in (1, 2)])
def test_a_journal_that_fails_is_never_acknowledged(
    bench: Bench, connect: Connect, operation: Operation, error: int, qos: int
) -> None:
    """The failed sync may have lost its writes, so they are written again elsewhere."""
    broker = bench.start()
    absent_subscriber(connect)
    publisher, bystander = connect("publisher"), connect("bystander", clean_session=True)
    bystander.subscribe(("free/#", 0))
    publisher.publish("t/1", b"before", qos=qos)
    assert bench.ready()[0] == 200

    bench.shim.fail(operation, error, Files.JOURNAL, is_partial=operation is Operation.WRITE)
    identifier = send_message(publisher, "t/1", b"during", qos)
    line = broker.log.await_match("CRITICAL.*Nothing can be stored, acknowledgements wait.*")[0]
    assert errno.errorcode[error] in line and ".segment" in line, line
    require_silence(publisher)
    # Everything else continues.
    bystander.ping()
    other = connect("other", clean_session=True)
    other.publish("free/1", b"at once")
    assert bystander.receive_publish().payload == b"at once"
    status, body = bench.ready()
    assert status == 503 and "Nothing can be stored" in body, (status, body)
    answer = AdminAPI(broker).request("POST", "/v1/publish?topic=t/1&qos=1", b"refused")
    if error == errno.ENOSPC:
        assert answer.status == 507, answer
    else:
        assert answer.status == 503 and int(answer.headers["retry-after"]) > 0, answer
    assert bench.shim.hits(operation) >= 1
    assert bench.metric("hermes_store_failures_total") >= 1 and bench.metric("hermes_ready") == 0

    bench.shim.heal(operation)
    await_acknowledgement(publisher, identifier, qos)
    broker.log.await_match("Storing goes on")
    eventually(lambda: bench.ready()[0] == 200, "/readyz to be green")
    assert bench.metric("hermes_ready") == 1
    publisher.publish("t/1", b"after", qos=qos)

    crash(bench)
    bench.start()
    received(connect, [b"before", b"during", b"after"])


def test_one_failed_sync_is_not_tried_again(bench: Bench, connect: Connect) -> None:
    """The kernel reports a failure once: the second fdatasync would succeed, and be a lie."""
    broker = bench.start()
    absent_subscriber(connect)
    publisher = connect("publisher")
    publisher.publish("t/1", b"before", qos=1)
    bench.shim.fail(Operation.SYNC, errno.EIO, Files.JOURNAL, times=1)
    publisher.publish("t/1", b"during", qos=1)
    assert bench.shim.hits(Operation.SYNC) == 1
    broker.log.await_match("Storing (failed for a moment, and )?goes on")
    publisher.publish("t/1", b"after", qos=1)
    crash(bench)
    bench.start()
    received(connect, [b"before", b"during", b"after"])


def test_a_crash_while_the_disk_fails_loses_nothing_acknowledged(
    bench: Bench, connect: Connect
) -> None:
    bench.start()
    absent_subscriber(connect)
    publisher = connect("publisher")
    publisher.publish("t/1", b"before", qos=2)
    bench.shim.fail(Operation.SYNC, errno.EIO, Files.JOURNAL)
    identifier = send_message(publisher, "t/1", b"during", 2)
    bench.broker.log.await_match("Nothing can be stored")
    crash(bench)
    bench.shim.heal(Operation.SYNC)
    bench.start()
    publisher = RawClient(bench.broker.address)
    assert publisher.connect("publisher", clean_session=False).session_present
    publisher.send(wire.publish("t/1", b"during", qos=2, dup=True, packet_id=identifier))
    await_acknowledgement(publisher, identifier, 2)
    publisher.close()
    received(connect, [b"before", b"during"])


@pytest.mark.parametrize("error", (errno.EIO, errno.ENOSPC))
def test_a_database_that_fails_holds_up_its_journal(
    bench: Bench, connect: Connect, error: int
) -> None:
    """Segments wait for the database, and none of them is used again before."""
    broker = bench.start(HERMES_JOURNAL_SEGMENT_BYTES="65536")
    absent_subscriber(connect)
    publisher = connect("publisher")
    bench.shim.fail(Operation.WRITE, error, Files.SQLITE)
    expected, identifier = publish_until_silence(publisher)
    # A segment of 64 KiB holds 15 of them, each in a block of its own.
    assert len(expected) > 30, f"only {len(expected)} while a segment could be made"
    line = broker.log.await_match("ERROR.*Journal cannot be moved to the database.*")[0]
    assert "hermes.sqlite" in line, line
    broker.log.await_match("Database does not keep up, new messages wait")
    status, body = bench.ready()
    assert status == 503 and "cannot be moved" in body, (status, body)
    assert bench.metric("hermes_store_waiting_segments") >= 3 and bench.metric("hermes_ready") == 0
    bench.shim.heal(Operation.WRITE)
    broker.log.await_match("Journal is moved to the database again")
    broker.log.await_match("Database has caught up, new messages are stored")
    await_acknowledgement(publisher, identifier)
    eventually(lambda: bench.ready()[0] == 200, "/readyz to be green")
    crash(bench)
    bench.start()
    received(connect, expected)


def test_a_crash_while_the_database_fails_loses_nothing(bench: Bench, connect: Connect) -> None:
    bench.start(HERMES_JOURNAL_SEGMENT_BYTES="65536")
    absent_subscriber(connect)
    bench.shim.fail(Operation.SYNC, errno.EIO, Files.SQLITE)
    expected, _ = publish_until_silence(connect("publisher"))
    crash(bench, Loss.PART)
    bench.shim.heal(Operation.SYNC)
    bench.start()
    # The last one was not acknowledged, and its publisher does not come back.
    received(connect, expected[:-1])


def test_a_journal_without_space_waits_and_goes_on(bench: Bench, connect: Connect) -> None:
    """No new segment can be made, and the old ones wait for a database that has no space either."""
    broker = bench.start(HERMES_JOURNAL_SEGMENT_BYTES="65536")
    absent_subscriber(connect)
    publisher = connect("publisher")
    for operation in (Operation.ALLOCATE, Operation.CREATE):
        bench.shim.fail(operation, errno.ENOSPC, Files.JOURNAL)
    bench.shim.fail(Operation.WRITE, errno.ENOSPC, Files.SQLITE)
    expected, identifier = publish_until_silence(publisher)
    line = broker.log.await_match("CRITICAL.*Nothing can be stored.*")[0]
    assert "ENOSPC" in line and "Free space" in line, line
    for operation in (Operation.ALLOCATE, Operation.CREATE, Operation.WRITE):
        bench.shim.heal(operation)
    await_acknowledgement(publisher, identifier)
    publisher.publish("t/1", b"after", qos=1)
    eventually(lambda: bench.ready()[0] == 200, "/readyz to be green")
    crash(bench)
    bench.start()
    received(connect, [*expected, b"after"])


def test_short_writes_are_finished(bench: Bench, connect: Connect) -> None:
    """A write may take only a part of its bytes."""
    bench.shim.write_by_halves(Files.JOURNAL)
    bench.start()
    absent_subscriber(connect)
    publisher = connect("publisher")
    for number in range(20):
        publisher.publish("t/1", bytes([number]) * 1_000, qos=2)
    crash(bench)
    bench.start()
    received(connect, [bytes([number]) * 1_000 for number in range(20)])


@pytest.mark.parametrize(
    "seconds", (6.5, pytest.param(10.0, marks=pytest.mark.full)), ids=("short", "long"))
def test_a_disk_that_hangs_delays_acknowledgements_and_nothing_else(
    bench: Bench, connect: Connect, seconds: float
) -> None:
    broker = bench.start()
    absent_subscriber(connect)
    publisher = connect("publisher")
    reader, writer = (connect(name, clean_session=True) for name in ("reader", "writer"))
    reader.subscribe(("free/#", 1))
    bench.shim.hang(Files.JOURNAL, seconds)
    begin = time.monotonic()
    identifier = send_message(publisher, "t/1", b"late")
    eventually(lambda: bench.shim.is_hanging, "the sync to hang")
    answered, was_alarmed = 0, False
    while bench.shim.is_hanging:
        # The publisher itself, QoS 0, and QoS 1 without a stored receiver.
        publisher.ping()
        writer.publish("free/1", b"at once", qos=answered % 2)
        assert reader.take_message().payload == b"at once"
        answered += 1
        if time.monotonic() - begin > 6:
            status, body = bench.ready()
            is_alarm = status == 503 and "disk has not answered" in body
            assert is_alarm or not bench.shim.is_hanging, (status, body)
            was_alarmed = was_alarmed or is_alarm
    assert time.monotonic() - begin >= seconds
    assert answered > 10, f"only {answered} round trips in {seconds} s"
    assert was_alarmed, "nothing was said about the disk"
    broker.log.await_match("ERROR.*Disk does not answer, acknowledgements wait")
    await_acknowledgement(publisher, identifier)
    bench.shim.release()
    broker.log.await_match("NOTICE.*Disk answers again")
    assert bench.metric("hermes_store_fdatasync_longest_seconds") >= seconds
    assert bench.metric("hermes_store_commit_longest_seconds") >= seconds
    eventually(lambda: bench.ready()[0] == 200, "/readyz to be green")
    assert "Nothing can be stored" not in broker.log.text
    crash(bench)
    bench.start()
    received(connect, [b"late"])
