"""The preloaded disk shim, controlled through a shared page."""

from __future__ import annotations

import ctypes
import enum
import mmap
from pathlib import Path

from harness.preload import compiled

SOURCE = Path(__file__).resolve().parents[1] / "shim" / "disk_shim.c"


class Files(enum.IntFlag):
    """Kinds of files, as the shim tells them apart by their names."""

    JOURNAL = 1
    DATABASE = 2
    WAL = 4
    DIRECTORY = 8
    OTHER = 16
    SQLITE = DATABASE | WAL
    ALL = 31


class Operation(enum.IntEnum):
    SYNC = 0
    WRITE = 1
    ALLOCATE = 2
    CREATE = 3


class _Fault(ctypes.Structure):
    _fields_ = [
        ("error", ctypes.c_uint32), ("files", ctypes.c_uint32), ("skip", ctypes.c_int32),
        ("times", ctypes.c_int32), ("is_partial", ctypes.c_uint32), ("hits", ctypes.c_uint32),
    ]


class _Control(ctypes.Structure):
    _fields_ = [
        ("faults", _Fault * len(Operation)), ("hang_files", ctypes.c_uint32),
        ("hang_ms", ctypes.c_uint32), ("short_files", ctypes.c_uint32),
        ("hanging", ctypes.c_uint32), ("calls", ctypes.c_uint32 * len(Operation)),
        ("hang_reads", ctypes.c_uint32), ("reading", ctypes.c_uint32),
    ]


class Shim:
    """One broker's shim. `directory` is on the same file system as the data directory."""

    def __init__(self, directory: Path, data: Path, *, records: bool) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.data = data
        self.log = directory / "disk.log"
        self.trash = directory / "disk.log.trash"
        self.records = records
        self._page = directory / "control"
        self._page.write_bytes(bytes(mmap.PAGESIZE))
        with self._page.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._control = _Control.from_buffer(self._map)

    def environment(self) -> dict[str, str]:
        """Prepares a broker's start; moves an earlier process's log to `disk.log.last`."""
        if self.log.exists():
            self.log.rename(self.log.with_suffix(".log.last"))
        self.trash.mkdir(exist_ok=True)
        for kept in self.trash.iterdir():
            kept.unlink()
        variables = {
            "LD_PRELOAD": str(compiled(SOURCE)),
            "DISK_SHIM_DATA": str(self.data),
            "DISK_SHIM_CONTROL": str(self._page),
        }
        if self.records:
            variables["DISK_SHIM_LOG"] = str(self.log)
        return variables

    # --- faults --------------------------------------------------------------------------

    def fail(
        self, operation: Operation, error: int, files: Files, *, skip: int = 0, times: int = -1,
        is_partial: bool = False,
    ) -> None:
        """Lets `skip` calls pass, then fails `times` of them (-1: until `heal`)."""
        fault = self._control.faults[operation]
        fault.error = 0
        fault.files, fault.skip, fault.times = files, skip, times
        fault.is_partial, fault.hits = is_partial, 0
        fault.error = error

    def heal(self, operation: Operation) -> None:
        self._control.faults[operation].error = 0

    def hits(self, operation: Operation) -> int:
        """Number of faults since `fail`."""
        return self._control.faults[operation].hits

    def calls(self, operation: Operation) -> int:
        return self._control.calls[operation]

    def hang(self, files: Files, seconds: float) -> None:
        """Each sync takes so long, or until `release`."""
        self._control.hang_ms = int(seconds * 1_000)
        self._control.hang_files = files

    def release(self) -> None:
        self._control.hang_files = 0

    def hang_reads(self, files: Files) -> None:
        """Each read takes until `release_reads`."""
        self._control.hang_reads = files

    def release_reads(self) -> None:
        self._control.hang_reads = 0

    @property
    def is_reading(self) -> bool:
        """True while a read hangs."""
        return self._control.reading > 0

    @property
    def is_hanging(self) -> bool:
        return self._control.hanging > 0

    def write_by_halves(self, files: Files) -> None:
        """Makes every write short, which POSIX allows."""
        self._control.short_files = files
