"""Promises of other durabilities and of backups, and clocks across a crash."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable

import pytest

from harness.admin import AdminAPI
from harness.raw_client import RawClient
from harness.waiting import eventually
from proof.bench import Bench
from proof.disk_record import Loss, cut_power
from proof.exchange import payloads
from proof.report import verdict
from proof.runner import prove

Connect = Callable[..., RawClient]

pytestmark = pytest.mark.quick

INTERVAL = 0.5
"""Seconds that a power cut may take back."""
SLACK = 0.3
"""Seconds that the sync itself, and a busy machine, may take besides."""
PAUSE = 0.001
"""Seconds between two messages."""


def crash(bench: Bench, loss: Loss) -> None:
    bench.broker.kill()
    cut_power(bench.data, bench.shim.log, bench.shim.trash, loss, random.Random(1))


def queue_for_absent(connect: Connect, name: str = "away") -> None:
    client = connect(name)
    assert client.subscribe(("t/#", 1)) == (1,)
    client.disconnect()


def waiting(connect: Connect, name: str = "away") -> list[bytes]:
    """The client's messages up to a last one."""
    client = connect(name)
    publisher = connect("marker", clean_session=True)
    publisher.publish("t/end", b"end", qos=1)
    messages = [client.take_message()]
    while messages[-1].payload != b"end":
        messages.append(client.take_message())
    client.disconnect()
    return payloads(messages[:-1])


def test_an_interval_bounds_what_a_power_cut_takes(bench: Bench, connect: Connect) -> None:
    bench.start("--durability", f"interval {INTERVAL * 1_000:g}ms")
    queue_for_absent(connect)
    publisher = connect("publisher")
    acknowledged: list[tuple[float, bytes]] = []
    begin = time.monotonic()
    while time.monotonic() - begin < 3 * (INTERVAL + SLACK):
        payload = f"message {len(acknowledged)}".encode()
        publisher.publish("t/1", payload, qos=1)
        acknowledged.append((time.monotonic(), payload))
        # The test is about time, so fewer messages than a queue may hold.
        time.sleep(PAUSE)
    end = time.monotonic()
    crash(bench, Loss.EVERYTHING)
    bench.start()
    found = waiting(connect)
    sent = [payload for _, payload in acknowledged]
    assert found == sent[: len(found)], "what is left is no beginning of what was sent"
    certain = sum(at < end - INTERVAL - SLACK for at, _ in acknowledged)
    assert len(found) >= certain > 0, f"{len(found)} of {certain} are left"


def test_with_an_interval_a_crash_of_the_broker_takes_nothing(
    bench: Bench, connect: Connect
) -> None:
    """The acknowledgement does not wait for the disk; the kernel has the data."""
    bench.start("--durability", "interval 1m")
    queue_for_absent(connect)
    publisher = connect("publisher")
    sent = [f"message {number}".encode() for number in range(50)]
    begin = time.monotonic()
    for payload in sent:
        publisher.publish("t/1", payload, qos=1)
    assert time.monotonic() - begin < 30, "acknowledgements waited for the interval"
    crash(bench, Loss.NOTHING)
    bench.start()
    assert waiting(connect) == sent


def test_with_an_interval_kills_take_nothing() -> None:
    """The whole proof, but the power stays on."""
    settings = {"HERMES_DURABILITY": "interval 50ms", "HERMES_JOURNAL_SEGMENT_BYTES": "65536"}
    proof = prove(
        12, seed=5, per_cell=0, settings=(settings,), losses=(Loss.NOTHING,), say=print)
    text, is_proven = verdict(proof)
    assert is_proven, text


def test_without_durability_nothing_is_kept_and_everything_said(
    bench: Bench, connect: Connect
) -> None:
    broker = bench.start("--durability", "none")
    queue_for_absent(connect)
    connect("publisher").publish("t/1", b"gone", qos=1, retain=True)
    assert AdminAPI(broker).status()["durability"] == "none"
    assert not list(bench.data.rglob("*.sqlite")) and not bench.segments()
    crash(bench, Loss.NOTHING)
    bench.start("--durability", "none")
    client = RawClient(bench.broker.address)
    assert not client.connect("away", clean_session=False).session_present
    client.subscribe(("t/#", 1))
    client.settle()
    assert client.messages_so_far() == []
    client.close()


def test_a_backup_that_was_answered_outlives_a_power_cut(bench: Bench, connect: Connect) -> None:
    """With its folder's name. Data and copy lie side by side, where the shim sees both."""
    bench.live = bench.data / "live"
    broker = bench.start()
    queue_for_absent(connect)
    publisher = connect("publisher")
    sent = [f"message {number}".encode() for number in range(200)]
    for payload in sent:
        publisher.publish("t/1", payload, qos=1)
    copy = bench.data / "copy"
    answer = AdminAPI(broker).request("POST", f"/v1/backup?directory={copy}", b"")
    assert answer.status == 200, answer
    crash(bench, Loss.EVERYTHING)
    assert copy.exists(), "its folder is gone"
    assert [path.name for path in copy.iterdir()] == ["hermes.sqlite"]
    shutil.rmtree(bench.live)
    shutil.move(copy, bench.live)
    bench.start()
    assert bench.ready()[0] == 200
    assert waiting(connect) == sent


# --- time ----------------------------------------------------------------------------------


def test_a_message_expires_while_the_broker_is_down(bench: Bench, connect: Connect) -> None:
    broker = bench.start()
    queue_for_absent(connect)
    api = AdminAPI(broker)
    for payload, seconds in (("short", 1), ("long", 3_600), ("endless", None)):
        expiry = {"expires_in_s": seconds} if seconds else {}
        # Retained too: the one of `t/short` must not come to a new subscriber either.
        api.post_json(
            "/v1/messages",
            {"topic": f"t/{payload}", "payload": payload, "qos": 1, "retain": True, **expiry})
    due = time.monotonic() + 1.1
    crash(bench, Loss.EVERYTHING)
    time.sleep(max(0, due - time.monotonic()))  # the broker's wall clock is what is tested
    bench.start()
    assert waiting(connect) == [b"long", b"endless"]
    late = connect("late", clean_session=True)
    late.subscribe(("t/#", 1))
    assert sorted(payloads(late.take_messages(2))) == [b"endless", b"long"]
    late.settle()
    assert late.messages_so_far() == []


def test_a_session_expires_while_the_broker_is_down(bench: Bench, connect: Connect) -> None:
    """Expiry counts from the last disconnection; for connected clients, from the start."""
    environment = {"HERMES_LIMITS_SESSION_EXPIRY": "2s"}
    bench.start(**environment)
    queue_for_absent(connect, "gone")
    left = time.monotonic()
    kept = connect("connected")
    kept.subscribe(("t/#", 1))
    connect("publisher").publish("t/1", b"queued", qos=1)
    assert kept.take_message().payload == b"queued"
    crash(bench, Loss.EVERYTHING)
    time.sleep(max(0, left + 2.1 - time.monotonic()))  # as above
    bench.start(**environment)
    client = RawClient(bench.broker.address)
    assert client.connect("connected", clean_session=False).session_present
    client.close()
    # The timers look some moments after the start.
    eventually(
        lambda: AdminAPI(bench.broker).status()["persistent_sessions"] == 2, "one to expire")
    client = RawClient(bench.broker.address)
    assert not client.connect("gone", clean_session=False).session_present
    client.close()
