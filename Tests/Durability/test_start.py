"""Starts with damage, other formats, and unusable folders."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI
from harness.broker import Hermesd
from harness.database import edited
from harness.raw_client import RawClient
from harness.waiting import eventually
from harness.wire import Publish
from proof.bench import Bench
from proof.broker import ShimmedHermesd
from proof.disk_record import Loss, cut_power
from proof.exchange import (
    await_acknowledgement, payloads, publish_until_silence, send_message,
)
from proof.shim import Files, Operation

Connect = Callable[..., RawClient]

pytestmark = pytest.mark.quick

MESSAGES = [f"message {number:03} ".encode() * 20 for number in range(30)]


def fill(
    bench: Bench, connect: Connect, *, segment_bytes: int = 1 << 20, moves: bool = True
) -> None:
    """Queues `MESSAGES` for the offline client `away`, each in its own commit, and crashes.

    The database already holds the session. By default all messages are in one segment of the
    journal; without `moves` they stay in the journal whatever their size.
    """
    bench.start()
    away = connect("away")
    away.subscribe(("t/#", 1))
    away.disconnect()
    assert bench.broker.stop() == 0
    bench.start(HERMES_JOURNAL_SEGMENT_BYTES=str(segment_bytes))
    if not moves:
        bench.shim.fail(Operation.WRITE, errno.EIO, Files.SQLITE)
    publisher = connect("publisher")
    for payload in MESSAGES:
        publisher.publish("t/1", payload, qos=1)
    publisher.close()
    bench.broker.kill()
    cut_power(bench.data, bench.shim.log, bench.shim.trash, Loss.EVERYTHING, random.Random(1))
    bench.shim.heal(Operation.WRITE)


def queued(connect: Connect) -> list[bytes]:
    """The queued messages of client `away`."""
    client = connect("away")
    publisher = connect("marker", clean_session=True)
    publisher.publish("t/end", b"end", qos=1)
    messages: list[Publish] = []
    while not messages or messages[-1].payload != b"end":
        messages.append(client.take_message())
    client.disconnect()
    return payloads(messages[:-1])


def holder(bench: Bench, payload: bytes) -> tuple[Path, int]:
    """The journal file that holds a payload, and where."""
    for path in bench.segments():
        if (offset := path.read_bytes().find(payload)) >= 0:
            return path, offset
    raise AssertionError("no segment holds the message")


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


# --- damage --------------------------------------------------------------------------------


def test_damage_in_the_middle_of_the_journal_is_told_and_the_rest_is_there(
    bench: Bench, connect: Connect
) -> None:
    fill(bench, connect)
    path, offset = holder(bench, MESSAGES[10])
    overwrite(path, offset, b"\xff" * 100)
    broker = bench.start()
    line = broker.log.await_match("ERROR.*damaged.*")[0]
    assert "accept-loss" in broker.log.text or "store check" in broker.log.text, line
    assert queued(connect) == MESSAGES[:10] + MESSAGES[11:]
    status, body = bench.ready()
    assert status == 503 and "hermesctl store accept-loss" in body, (status, body)
    assert bench.metric("hermes_store_damage") >= 1 and bench.metric("hermes_ready") == 0
    # Not ready even after a restart, until an operator accepts the loss.
    assert broker.stop() == 0
    broker = bench.start()
    assert bench.ready()[0] == 503
    assert AdminAPI(broker).request("POST", "/v1/store/accept-loss").status == 200
    eventually(lambda: bench.ready()[0] == 200, "/readyz to be green")
    assert bench.metric("hermes_store_damage") == 0 and bench.metric("hermes_ready") == 1
    assert broker.stop() == 0
    bench.start()
    assert bench.ready()[0] == 200


def test_a_torn_tail_is_no_damage(bench: Bench, connect: Connect) -> None:
    """The write that the crash interrupted was never acknowledged."""
    fill(bench, connect)
    broker = bench.start()
    publisher = connect("publisher")
    # After the connection's records nothing else hangs.
    publisher.publish("elsewhere", b"retained", qos=1, retain=True)
    bench.shim.hang(Files.JOURNAL, 60)
    send_message(publisher, "t/1", b"torn" * 2_000)
    eventually(
        lambda: any(b"torn" * 100 in path.read_bytes() for path in bench.segments()),
        "the message to be written")
    broker.kill()
    bench.shim.release()
    path, offset = holder(bench, b"torn" * 100)
    overwrite(path, offset + 4_000, bytes(2_000))
    broker = bench.start()
    broker.log.await_match("NOTICE.*cut off by a crash, nothing of it was acknowledged")
    assert bench.ready()[0] == 200
    assert queued(connect) == MESSAGES


def test_a_lost_journal_file_is_told(bench: Bench, connect: Connect) -> None:
    """The first of two segments that the database does not have."""
    fill(bench, connect, segment_bytes=65_536, moves=False)
    path, _ = holder(bench, MESSAGES[10])
    lost = [message for message in MESSAGES if message in path.read_bytes()]
    path.unlink()
    broker = bench.start()
    assert "ERROR" in broker.log.text and "missing" in broker.log.text, broker.log.text
    status, body = bench.ready()
    assert status == 503 and "hermesctl store accept-loss" in body, (status, body)
    kept = queued(connect)
    assert kept == MESSAGES[MESSAGES.index(lost[-1]) + 1 :]


# --- formats -------------------------------------------------------------------------------


def test_a_newer_database_is_refused_and_left_alone(bench: Bench, connect: Connect) -> None:
    fill(bench, connect)
    path = bench.data / "hermes.sqlite"
    before = _set_version(path, 9_999)
    text = bench.refuse()
    assert "9999" in text and "newer version" in text and str(path) in text, text
    assert _set_version(path, before) == 9_999
    bench.start()
    assert queued(connect) == MESSAGES


def test_a_database_older_than_it_knows_is_refused_and_left_alone(
    bench: Bench, connect: Connect
) -> None:
    """A unit test covers the upgrade itself."""
    fill(bench, connect)
    path = bench.data / "hermes.sqlite"
    before = _set_version(path, 0)
    text = bench.refuse()
    assert "version 0, which this program no longer knows" in text and str(path) in text, text
    assert "Start the next newer version" in text, text
    assert _set_version(path, before) == 0
    bench.start()
    assert queued(connect) == MESSAGES


def test_a_newer_journal_is_refused_and_left_alone(bench: Bench, connect: Connect) -> None:
    fill(bench, connect)
    path, _ = holder(bench, MESSAGES[-1])
    original = path.read_bytes()
    header = bytearray(original[:64])
    header[8:12] = (9_999).to_bytes(4, "little")
    header[60:64] = _crc32c(bytes(header[:60])).to_bytes(4, "little")
    overwrite(path, 0, bytes(header))
    overwrite(path, 2_048, bytes(header))
    text = bench.refuse()
    assert "format 9999" in text and "newer version" in text and str(path) in text, text
    overwrite(path, 0, original[:4_096])
    bench.start()
    assert queued(connect) == MESSAGES


def test_another_program_s_database_is_refused(bench: Bench) -> None:
    with sqlite3.connect(bench.data / "hermes.sqlite") as database:
        database.execute("CREATE TABLE notes (text TEXT)")
    database.close()
    text = bench.refuse()
    assert "SQLite file of another program" in text and "Move it away" in text, text


def _set_version(path: Path, version: int) -> int:
    """Sets the format's version; returns the one before."""
    with edited(path) as database:
        before = database.execute("PRAGMA user_version").fetchone()[0]
        database.execute(f"PRAGMA user_version = {version}")
    return before


def _crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


# --- folders -------------------------------------------------------------------------------


def test_a_folder_that_the_start_makes_outlives_a_power_cut(bench: Bench) -> None:
    data = bench.data / "made"
    broker = ShimmedHermesd(data, bench.shim)
    broker.start()
    client = RawClient(broker.address)
    client.connect("client", clean_session=False)
    client.close()
    broker.kill()
    broker.remove_files()
    cut_power(bench.data, bench.shim.log, bench.shim.trash, Loss.EVERYTHING, random.Random(1))
    assert data.exists(), "its name was never synchronised"
    broker = ShimmedHermesd(data, bench.shim)
    broker.start()
    client = RawClient(broker.address)
    assert client.connect("client", clean_session=False).session_present
    client.close()
    assert broker.stop() == 0
    broker.remove_files()


def test_a_second_process_is_refused_and_disturbs_nothing(
    bench: Bench, connect: Connect
) -> None:
    first = bench.start()
    publisher = connect("publisher")
    text = bench.refuse()
    assert "in use by another hermesd" in text and str(bench.data) in text, text
    assert first.is_running
    publisher.publish("t/1", b"still here", qos=1)


def test_a_folder_that_others_may_enter_is_refused(bench: Bench) -> None:
    bench.data.chmod(0o755)
    text = bench.refuse()
    assert f"chmod 700 '{bench.data}'" in text, text


def test_files_of_another_mode_are_made_private(bench: Bench, connect: Connect) -> None:
    fill(bench, connect)
    (bench.data / "hermes.sqlite").chmod(0o644)
    bench.start()
    modes = {
        path.name: oct(path.stat().st_mode & 0o777)
        for path in bench.data.rglob("*") if path.is_file()}
    assert set(modes.values()) == {"0o600"}, modes
    assert queued(connect) == MESSAGES


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents):
        if str(path).startswith("/tmp/"):
            path.chmod(path.stat().st_mode | 0o011)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         str(Hermesd.executable()), "--port", "0", "--admin-port", "0",
         "--data-directory", str(data)],
        capture_output=True, text=True, timeout=20, check=False, cwd="/")
    assert done.returncode not in (0, 126, 127), done
    owner = f"{data} belongs to the user with number 0, and hermesd runs as number 65534"
    assert owner in done.stderr and f"chown -R 65534 '{data}'" in done.stderr, done.stderr
    assert list(data.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder away")
def test_root_leaves_nothing_in_another_users_folder(bench: Bench) -> None:
    os.chown(bench.data, 65_534, 65_534)
    text = bench.refuse()
    assert f"{bench.data} belongs to the user with number 65534" in text, text
    assert list(bench.data.iterdir()) == []


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB."""
    folder = tmp_path.resolve() / "volume"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", str(folder)],
        capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs: {done.stderr.decode().strip()}")
    yield folder
    # A broker that a failed test left behind holds on to it.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small_bench(volume: Path, tmp_path: Path) -> Iterator[Bench]:
    """A data directory on the small volume."""
    one = Bench(volume, shim_folder=tmp_path / "shim")
    yield one
    one.close()


def test_a_read_only_folder_is_refused(small_bench: Bench, volume: Path) -> None:
    bench = small_bench
    bench.start()
    assert bench.broker.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", str(volume)], check=True)
    text = bench.refuse()
    subprocess.run(["mount", "-o", "remount,rw", str(volume)], check=True)
    assert str(bench.data) in text and "ead-only file system" in text, text
    bench.start()


def test_a_disk_that_is_nearly_full_holds_up_new_messages_until_it_has_room(
    small_bench: Bench, volume: Path
) -> None:
    """Acknowledgements of receivers and removals go on; it recovers by itself."""
    bench = small_bench
    broker = bench.start(HERMES_DISK_RESERVE="16MiB")
    opened = [RawClient(broker.address) for _ in range(3)]
    away, publisher, clean = opened
    away.connect("away", clean_session=False)
    away.subscribe(("t/#", 1))
    publisher.connect("publisher", clean_session=False)
    clean.connect("clean")
    clean.subscribe(("free/#", 1))
    for payload in MESSAGES:
        publisher.publish("t/1", payload, qos=1)
    assert bench.ready()[0] == 200

    ballast = volume / "ballast"
    ballast.write_bytes(bytes(_free(volume) - (8 << 20)))
    # The room is looked at each second in which something is stored.
    late, identifier = publish_until_silence(publisher, pause=0.02)
    broker.log.await_match("ERROR.*Disk nearly full, new messages wait until there is room")
    status, body = bench.ready()
    assert status == 503 and "nearly full" in body, (status, body)
    assert bench.metric("hermes_store_free_bytes") < 16 << 20
    assert bench.metric("hermes_ready") == 0
    answer = AdminAPI(broker).request("POST", "/v1/publish?topic=t/1&qos=1", b"refused")
    assert answer.status == 507, answer
    # Work without disk space continues: deliveries and acknowledgements, QoS 0, QoS 1 without
    # stored receivers, subscriptions.
    stored = MESSAGES + late[:-1]
    assert payloads(away.take_messages(len(stored))) == stored
    away.ping()
    away.subscribe(("more/#", 1))
    other = RawClient(broker.address)
    opened.append(other)
    other.connect("other")
    other.publish("free/1", b"at once", qos=1)
    assert clean.take_message().payload == b"at once"

    ballast.unlink()
    broker.log.await_match("NOTICE.*Disk has room again, new messages are stored")
    assert bench.metric("hermes_store_free_bytes") > 16 << 20
    await_acknowledgement(publisher, identifier)
    assert away.take_message().payload == late[-1]
    eventually(lambda: bench.ready()[0] == 200, "/readyz to be green")
    for client in opened:
        client.close()
    assert broker.stop() == 0


def test_a_disk_that_is_full_to_the_last_byte_loses_nothing(
    small_bench: Bench, volume: Path
) -> None:
    """The reserve is off, and others take everything: what is acknowledged is stored all the same."""
    bench = small_bench
    environment = {"HERMES_DISK_RESERVE": "0", "HERMES_JOURNAL_SEGMENT_BYTES": "65536"}
    broker = bench.start(**environment)
    away, publisher = (RawClient(broker.address) for _ in range(2))
    away.connect("away", clean_session=False)
    away.subscribe(("t/#", 1))
    away.disconnect()
    publisher.connect("publisher", clean_session=False)
    ballast = volume / "ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(descriptor, bytes(4_096)) > 0:
            pass
    os.close(descriptor)
    assert _free(volume) == 0
    sent, identifier = publish_until_silence(publisher)
    broker.log.await_match("ERROR.*Disk nearly full, new messages wait until there is room")
    ballast.unlink()
    await_acknowledgement(publisher, identifier)
    eventually(lambda: bench.ready()[0] == 200, "/readyz to be green")
    broker.kill()
    broker = bench.start(**environment)
    client = RawClient(broker.address)
    client.connect("away", clean_session=False)
    assert payloads(client.take_messages(len(sent))) == sent
    client.close()
    assert broker.stop() == 0


def _free(volume: Path) -> int:
    status = os.statvfs(volume)
    return status.f_bavail * status.f_frsize
