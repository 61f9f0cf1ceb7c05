"""System calls of a broker that fail, hang or do half of their work, by a preloaded library."""

from __future__ import annotations

import ctypes
import enum
import mmap
import os
from pathlib import Path

from .preload import compiled

SOURCE = Path(__file__).with_name("faulty_calls.c")
SHORT = 0
"""In place of an error: the call does a part of its work."""


class Call(enum.IntEnum):
    ACCEPT = 0
    RECEIVE = 1
    SEND = 2
    WAIT = 3
    """epoll_wait"""
    CONTROL = 4
    """epoll_ctl, to add or change"""
    EVENT = 5
    """the counter that wakes the broker's thread"""
    SYNC = 6
    WRITE = 7
    """pwrite and pwritev, to files"""


class _Fault(ctypes.Structure):
    _fields_ = [
        ("every", ctypes.c_uint32), ("error", ctypes.c_uint32), ("times", ctypes.c_int32),
        ("hits", ctypes.c_uint32), ("calls", ctypes.c_uint32),
    ]


class _Page(ctypes.Structure):
    _fields_ = [
        ("faults", _Fault * len(Call)), ("hangs", ctypes.c_uint32 * len(Call)),
        ("delays", ctypes.c_uint32 * len(Call)), ("hanging", ctypes.c_uint32),
        ("random", ctypes.c_uint64), ("threads", ctypes.c_char * 16),
    ]


class FaultyCalls:
    """The faults of one broker, whose environment `environment()` belongs to.

    They concern the broker's own threads; the HTTP API has others.
    """

    def __init__(self, directory: Path, *, seed: int = 1) -> None:
        self._path = directory / "faulty-calls"
        self._path.write_bytes(bytes(mmap.PAGESIZE))
        with self._path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._page = _Page.from_buffer(self._map)
        self._page.random = seed
        self._page.threads = b"hermes-"

    def environment(self) -> dict[str, str]:
        # scripts/sanitize preloads something too.
        libraries = [str(compiled(SOURCE)), *os.environ.get("LD_PRELOAD", "").split()]
        return {"LD_PRELOAD": " ".join(libraries), "FAULTY_CALLS": str(self._path)}

    def fail(self, call: Call, error: int, *, every: int = 1, times: int = -1) -> None:
        """One call of `every` fails with this errno, or is `SHORT`; `times` times, -1 until
        `heal`."""
        fault = self._page.faults[call]
        fault.every = 0
        fault.error, fault.times, fault.hits = error, times, 0
        fault.every = every

    def heal(self) -> None:
        """Nothing fails or hangs any more."""
        for call in Call:
            self._page.faults[call].every = 0
            self._page.hangs[call] = 0
            self._page.delays[call] = 0

    def hang(self, *calls: Call) -> None:
        for call in calls:
            self._page.hangs[call] = 1

    def delay(self, call: Call, seconds: float) -> None:
        """Each such call takes so much longer, until `heal`."""
        self._page.delays[call] = int(seconds * 1_000)

    @property
    def is_hanging(self) -> bool:
        return self._page.hanging > 0

    def hits(self, call: Call) -> int:
        """Number of faults since `fail`."""
        return self._page.faults[call].hits

    def calls(self, call: Call) -> int:
        return self._page.faults[call].calls
