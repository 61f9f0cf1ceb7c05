"""Full disks that heal: real small file systems, filled by clients until the broker takes no more.

At every fill the reserve stays free, whatever the messages' size; what was acknowledged comes; and
once it has left the queues, new messages are taken again without anybody freeing space.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import wire
from harness.admin import AdminAPI, Answer
from harness.broker import Hermesd, Settings
from harness.raw_client import RawClient
from harness.waiting import Deadline, eventually
from harness.wire import Puback

pytestmark = pytest.mark.quick

MEBI = 1 << 20
RESERVE = 16 * MEBI
SILENCE = 0.5
"""Seconds without an acknowledgement after which the disk is looked at."""
QUEUE = "/v1/clients/away/queue"

Mount = Callable[..., Path]


def mount_tmpfs(folder: Path, mebibytes: int) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0700", "tmpfs", str(folder)],
        capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs: {done.stderr.decode().strip()}")


def mount_ext4(folder: Path, mebibytes: int) -> None:
    image = folder.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(mebibytes * MEBI)
    try:
        for command in (
            ["mkfs.ext4", "-q", "-m", "0", str(image)],
            ["mount", "-o", "loop", str(image), str(folder)],
        ):
            subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot mount an ext4 file system in a file: {error}")


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts small file systems."""
    mounted: list[Path] = []

    def mount_one(mebibytes: int, kind: str = "tmpfs") -> Path:
        folder = tmp_path.resolve() / f"volume-{len(mounted)}"
        folder.mkdir()
        (mount_tmpfs if kind == "tmpfs" else mount_ext4)(folder, mebibytes)
        mounted.append(folder)
        return folder

    yield mount_one
    for folder in mounted:
        # A broker that a failed test left behind holds on to it.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def free(disk: Path) -> int:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize


class Site:
    """A broker on a small disk, with a client that is away."""

    def __init__(self, disk: Path) -> None:
        self.disk = disk
        self.broker: Hermesd
        self.sent: list[bytes] = []
        """Payloads that were acknowledged, in order."""
        self.lowest = free(disk)
        """The least that was free while messages were taken."""
        self.start()
        client = RawClient(self.broker.address)
        client.connect("away", clean_session=False)
        client.subscribe(("t/#", 1))
        client.disconnect()

    def start(self) -> None:
        self.broker = Hermesd(
            Settings(environment={
                "HERMES_DISK_RESERVE": f"{RESERVE // MEBI}MiB",
                "HERMES_LIMITS_QUEUE_MESSAGES": "65000",
                "HERMES_LIMITS_QUEUE_BYTES": "1GiB",
            }, arguments=("--logging-level", "info")), data=self.disk / "data")
        command = self.broker.command
        self.broker.command = lambda: without_first_level(command())  # type: ignore[method-assign]
        self.broker.start()

    def kill(self) -> None:
        self.broker.kill()
        self.broker.remove_files()

    def close(self) -> None:
        if self.broker.is_running:
            self.broker.kill()
        self.broker.remove_files()

    # --- what clients and operators do ---------------------------------------------------------

    def fill(self, size: int, most: int = 1_000_000) -> None:
        """Publishes messages of this size until the broker takes no more, or so many."""
        publisher = RawClient(self.broker.address)
        publisher.connect("publisher", clean_session=True)
        group = max(1, min(400, 400_000 // size))
        end = len(self.sent) + most
        while len(self.sent) < end:
            payloads = [
                f"{len(self.sent) + index:08}".encode().ljust(size, b"x") for index in range(group)]
            taken = self._offer(publisher, payloads)
            self.sent += payloads[:taken]
            self.lowest = min(self.lowest, free(self.disk))
            if taken < group:
                break
        publisher.close()

    def _offer(self, publisher: RawClient, payloads: list[bytes]) -> int:
        """Publishes these; the number that was acknowledged when nothing more is."""
        waiting = [
            wire.publish("t/1", payload, qos=1, packet_id=index + 1)
            for index, payload in enumerate(payloads)]
        publisher.socket.settimeout(SILENCE)
        taken = 0
        for packet in waiting:
            view = memoryview(packet)
            while view:
                try:
                    view = view[publisher.socket.send(view):]
                except TimeoutError:
                    if not self.is_full():
                        continue
                    view = memoryview(b"")
                    break
            else:
                continue
            break
        while taken < len(payloads):
            try:
                assert publisher.await_packet(Puback, SILENCE) == Puback(taken + 1)
            except AssertionError as silence:
                assert "waited" in str(silence), silence
                if self.is_full():
                    return taken
                continue
            taken += 1
        return taken

    def is_full(self) -> bool:
        return self.post().status == 507

    def post(self) -> Answer:
        """Publishes one message that has to be stored for a client of its own topic."""
        return AdminAPI(self.broker).request("POST", "/v1/publish?topic=t/probe&qos=1", b"probe")

    def require_full(self) -> None:
        answer = eventually(
            lambda: (one := self.post()).status == 507 and one, "the broker to take no more")
        assert int(answer.headers["retry-after"]) > 0, answer.headers
        assert answer.problem(507)["type"].endswith("disk-full")

    def consume(self) -> list[bytes]:
        """The messages of the client that was away, acknowledged; without those of probes."""
        client = RawClient(self.broker.address)
        client.connect("away", clean_session=False)
        came: list[bytes] = []
        deadline = Deadline(60, "the queue to be empty")
        while not deadline.is_over:
            try:
                message = client.take_message(1)
            except AssertionError as silence:
                assert "waited" in str(silence), silence
                if self.queued() == 0:
                    break
                continue
            if message.payload != b"probe":
                came.append(message.payload)
        client.disconnect()
        return came

    def queued(self) -> int:
        return AdminAPI(self.broker).client("away")["queued"]

    def require_all(self, came: list[bytes]) -> None:
        """Everything acknowledged came, in order; what was sent and not acknowledged may have."""
        distinct = list(dict.fromkeys(came))
        assert distinct[: len(self.sent)] == self.sent, (
            f"{len(distinct)} came of {len(self.sent)} that were acknowledged")

    def require_reserve(self, size: int) -> None:
        assert self.lowest >= RESERVE // 2, f"only {self.lowest} bytes stayed free"
        assert len(self.sent) * size > 10 * MEBI, (
            f"it was full with {len(self.sent)} messages and {free(self.disk)} bytes free")

    def used(self) -> int:
        """Bytes of the database and of its log."""
        return sum(path.stat().st_size for path in (self.disk / "data").glob("hermes.sqlite*"))

    def require_healed(self, within: float = 10.0) -> None:
        """New messages are taken, the broker is ready, and its files are small."""
        eventually(lambda: self.post().status == 200, "messages to be taken again", within=within)
        eventually(lambda: AdminAPI(self.broker).request("GET", "/readyz").status == 200, "ready")
        try:
            eventually(lambda: self.used() < 12 * MEBI, "the database to shrink", within=within)
        except AssertionError:
            files = {path.name: path.stat().st_size for path in (self.disk / "data").rglob("*")}
            raise AssertionError(f"{free(self.disk)} bytes free: {files}") from None


def without_first_level(command: list[str]) -> list[str]:
    first = command.index("--logging-level")
    return command[:first] + command[first + 2:]


@pytest.fixture
def site(mount: Mount) -> Iterator[Callable[..., Site]]:
    """Brokers on disks of their own."""
    sites: list[Site] = []

    def make(mebibytes: int = 120, kind: str = "tmpfs") -> Site:
        sites.append(Site(mount(mebibytes, kind)))
        return sites[-1]

    yield make
    for one in sites:
        one.close()


def drop(one: Site) -> None:
    answer = AdminAPI(one.broker).request("DELETE", QUEUE)
    assert answer.status == 200, answer


def end_session(one: Site) -> None:
    answer = AdminAPI(one.broker).request("DELETE", "/v1/clients/away/session")
    assert answer.status == 204, answer


def consume(one: Site) -> None:
    one.require_all(one.consume())


EMPTY = {"drop": drop, "end": end_session, "consume": consume}
"""How the queue of a filled disk is emptied."""


@pytest.mark.parametrize(
    ("size", "emptied"),
    [(1_500, "drop"), (5_000, "consume"), (1_000_000, "end"), (1_000_000, "consume")])
def test_a_filled_disk_heals_once_its_queue_is_empty(
    site: Callable[..., Site], size: int, emptied: str
) -> None:
    one = site()
    one.fill(size)
    one.require_full()
    one.require_reserve(size)
    EMPTY[emptied](one)
    one.require_healed()


@pytest.mark.full
@pytest.mark.parametrize("kind", ("tmpfs", "ext4"))
@pytest.mark.parametrize("size", (100, 1_500, 5_000, 20_000, 200_000, 1_000_000))
@pytest.mark.parametrize("emptied", EMPTY)
def test_a_disk_of_200_mib_heals_after_each_fill(
    site: Callable[..., Site], kind: str, size: int, emptied: str
) -> None:
    one = site(200, kind)
    # Of small messages the queue holds fewer than the disk, and would drop the oldest.
    one.fill(size, most=60_000)
    if size >= 5_000:
        one.require_full()
        one.require_reserve(size)
    EMPTY[emptied](one)
    one.require_healed()


def test_a_disk_of_ext4_heals(site: Callable[..., Site]) -> None:
    one = site(120, "ext4")
    one.fill(200_000)
    one.require_full()
    one.require_reserve(200_000)
    drop(one)
    one.require_healed()


def test_a_broker_starts_on_the_disk_that_it_has_filled(site: Callable[..., Site]) -> None:
    one = site()
    one.fill(20_000)
    one.require_full()
    for _ in range(3):
        one.kill()
        one.start()
        one.fill(20_000)
    one.require_full()
    one.require_all(one.consume())
    one.require_healed()


def test_kills_amid_a_fill_lose_nothing(site: Callable[..., Site]) -> None:
    one = site()
    for round_ in range(4):
        one.fill(50_000, most=250 * (round_ + 1))
        one.kill()
        one.start()
    one.fill(50_000)
    one.require_full()
    one.kill()
    one.start()
    one.require_all(one.consume())
    one.require_healed()
    one.sent.clear()
    # The room that it has given back is taken again.
    one.fill(50_000)
    one.require_full()
    one.require_reserve(50_000)
