"""The simulated power failure: the changes it must lose and keep."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.preload import compiler
from proof.disk_record import Loss, cut_power
from proof.shim import Files, Operation, Shim

pytestmark = pytest.mark.quick


class Disk:
    """Runs Python below the shim, with `data` as the current folder, and then cuts the power."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir()
        self.shim = Shim(folder / "shim", self.data, records=True)

    def run(self, program: str, *, preload: Path | None = None) -> str:
        """`preload` is another library, which the loader initialises before the shim."""
        environment = os.environ | self.shim.environment()
        if preload:
            environment["LD_PRELOAD"] += f" {preload}"
        done = subprocess.run(
            [sys.executable, "-c", "import os\n" + program], cwd=self.data, check=True,
            capture_output=True, text=True, env=environment)
        return done.stdout

    def cut(
        self, loss: Loss = Loss.EVERYTHING, seed: int = 1, before: Path | None = None
    ) -> None:
        cut_power(
            self.data, self.shim.log, self.shim.trash, loss, random.Random(seed), before=before)

    def read(self, name: str) -> bytes | None:
        path = self.data / name
        return path.read_bytes() if path.exists() else None


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path.resolve())


OPEN = "f = os.open('a', os.O_RDWR | os.O_CREAT, 0o600)\n"
MAGIC = b"DISK"
"""The beginning of each record, and the type of one below."""
SYNC_DIRECTORY = 9
SYNC_NAMES = "d = os.open('.', os.O_RDONLY)\nos.fsync(d)\n"


def test_keeps_what_was_synced(disk: Disk) -> None:
    disk.run(OPEN + SYNC_NAMES + "os.pwrite(f, b'synced', 0); os.fdatasync(f)")
    disk.cut()
    assert disk.read("a") == b"synced"


def test_takes_what_was_not_synced(disk: Disk) -> None:
    disk.run(
        OPEN + SYNC_NAMES + "os.pwrite(f, b'synced', 0); os.fdatasync(f)\n"
        "os.pwrite(f, b'LOST and longer', 0); os.pwritev(f, [b'x', b'y'], 100)")
    disk.cut()
    assert disk.read("a") == b"synced"


def test_gives_back_what_was_cut_off(disk: Disk) -> None:
    disk.run(
        OPEN + SYNC_NAMES + "os.write(f, b'synced'); os.fsync(f)\n"
        "os.ftruncate(f, 2); os.ftruncate(f, 4)")
    disk.cut()
    assert disk.read("a") == b"synced"


def test_takes_names_of_an_unsynced_directory(disk: Disk) -> None:
    disk.run(
        OPEN + SYNC_NAMES + "os.write(f, b'old'); os.fsync(f)\n"
        "g = os.open('new', os.O_RDWR | os.O_CREAT); os.write(g, b'new'); os.fsync(g)\n"
        "os.rename('new', 'a'); os.unlink('a')")
    disk.cut()
    assert disk.read("a") == b"old"
    assert disk.read("new") is None


def test_keeps_names_of_a_synced_directory(disk: Disk) -> None:
    disk.run(
        "g = os.open('new', os.O_RDWR | os.O_CREAT); os.write(g, b'new'); os.fsync(g)\n"
        "os.rename('new', 'a')\n" + SYNC_NAMES)
    disk.cut()
    assert disk.read("a") == b"new"
    assert disk.read("new") is None


def test_a_sync_that_began_earlier_and_returned_later_takes_nothing_back(disk: Disk) -> None:
    """Two threads create files; a directory's sync covers those present when it began."""
    disk.run(OPEN + SYNC_NAMES + "os.rename('a', 'b'); os.fsync(d)")
    log = disk.shim.log.read_bytes()
    starts = [at for at in range(len(log)) if log.startswith(MAGIC, at)]
    syncs = [at for at in starts if log[at + 4 : at + 8] == bytes([SYNC_DIRECTORY, 0, 0, 0])]
    assert len(syncs) == 2 and syncs[1] == starts[-1]
    first = log[syncs[0] : starts[starts.index(syncs[0]) + 1]]
    disk.shim.log.write_bytes(log + first)
    disk.cut()
    assert disk.read("b") is not None and disk.read("a") is None


def test_takes_a_folder_whose_name_was_not_synced(disk: Disk) -> None:
    """Whatever is in it, and as well as that was synchronised."""
    disk.run(
        "os.mkdir('kept'); " + SYNC_NAMES.replace("\n", "; ") + "os.mkdir('lost')\n"
        "f = os.open('lost/a', os.O_RDWR | os.O_CREAT); os.write(f, b'synced'); os.fsync(f)\n"
        "e = os.open('lost', os.O_RDONLY); os.fsync(e)")
    disk.cut()
    assert sorted(path.name for path in disk.data.iterdir()) == ["kept"]


def test_a_failed_sync_loses_for_good(disk: Disk) -> None:
    """After a failure the kernel may forget the pages: a later sync does not bring them back."""
    disk.shim.fail(Operation.SYNC, 5, Files.OTHER, skip=1, times=1)
    disk.run(
        OPEN + SYNC_NAMES + "os.pwrite(f, b'first', 0); os.fdatasync(f)\n"
        "os.pwrite(f, b'LOST!', 0)\n"
        "try: os.fdatasync(f)\n"
        "except OSError as error: print(error.errno)\n"
        "os.pwrite(f, b'last', 5); os.fdatasync(f)")
    assert disk.shim.hits(Operation.SYNC) == 1
    disk.cut()
    assert disk.read("a") == b"firstlast"


def test_torn_writes_mix_old_and_new_pieces(disk: Disk) -> None:
    disk.run(
        OPEN + SYNC_NAMES + "os.write(f, b'o' * 65536); os.fsync(f)\n"
        "os.pwrite(f, b'n' * 65536, 0)")
    disk.cut(Loss.PART, seed=3)
    content = disk.read("a")
    assert content is not None and set(content) == set(b"on")
    assert all(len(set(content[start : start + 512])) == 1 for start in range(0, 65_536, 512))


def test_a_killed_process_alone_loses_nothing(disk: Disk) -> None:
    disk.run(OPEN + "os.write(f, b'in the page cache')")
    disk.cut(Loss.NOTHING)
    assert disk.read("a") == b"in the page cache"


def test_a_call_that_it_does_not_follow_fails_the_proof(disk: Disk) -> None:
    disk.run(OPEN + "os.write(f, b'x'); os.dup(f)")
    with pytest.raises(AssertionError, match="does not follow"):
        disk.cut()


FOLLOWED = (
    OPEN + "os.pwrite(f, b'seen', 3); os.ftruncate(f, 10)\n"
    "os.rename('b', 'c'); os.unlink('d')\n"
    "g = os.open('new', os.O_RDWR | os.O_CREAT); os.write(g, b'new'); os.rename('new', 'a')\n")


@pytest.mark.parametrize(
    ("hidden", "is_found"),
    [("", False), ("os.truncate('c', 5)", True), ("os.mknod('x')", True)],
    ids=("none", "truncate", "mknod"))
def test_a_change_that_passes_it_by_fails_the_proof(
    disk: Disk, tmp_path: Path, hidden: str, is_found: bool
) -> None:
    for name in ("a", "b", "c", "d"):
        (disk.data / name).write_bytes(b"before" * 100)
    before = tmp_path / "before"
    shutil.copytree(disk.data, before)
    disk.run(FOLLOWED + hidden)
    if is_found:
        with pytest.raises(AssertionError, match="without the shim"):
            disk.cut(before=before)
    else:
        disk.cut(before=before)


EARLY = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {
    int file = open("a", O_RDWR | O_CREAT, 0600);
    if (write(file, "early", 5) != 5) abort();
}
"""


def test_it_follows_a_library_that_writes_as_it_is_initialised(
    disk: Disk, tmp_path: Path
) -> None:
    source, library = tmp_path / "early.c", tmp_path / "early.so"
    source.write_text(EARLY)
    subprocess.run(
        [compiler(), "-fPIC", "-shared", "-o", str(library), str(source)], check=True)
    disk.run("pass", preload=library)
    assert disk.read("a") == b"early"
    disk.cut()
    assert disk.read("a") is None
