"""Bounded waits: nothing in these tests waits without a deadline and a reason to print."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

PATIENCE = 10.0 * float(os.environ.get("TEST_PATIENCE", "1"))
"""Seconds a test waits for what should happen at once: generous, for a busy machine. TEST_PATIENCE
multiplies it, for a broker that is slow by intention (scripts/sanitize)."""

POLL_INTERVAL = 0.01
"""Seconds between two looks at a condition that announces itself in no other way."""


class Deadline:
    """A deadline on the monotonic clock, with the awaited event."""

    def __init__(self, seconds: float, awaited: str) -> None:
        self.seconds = seconds
        self.awaited = awaited
        self._end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds left; never negative."""
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self.remaining == 0.0

    def failure(self, detail: str = "") -> AssertionError:
        """The error to raise when the deadline has passed."""
        suffix = f": {detail}" if detail else ""
        return AssertionError(f"waited {self.seconds:g} s for {self.awaited}{suffix}")


def eventually(
    probe: Callable[[], Value], awaited: str, *, within: float = PATIENCE
) -> Value:
    """Calls `probe` until it returns something true, and returns that.

    The failure shows the last value, so that a wrong one is told from a late one.
    """
    deadline = Deadline(within, awaited)
    while True:
        value = probe()
        if value:
            return value
        if deadline.is_over:
            raise deadline.failure(f"last seen {value!r}")
        time.sleep(POLL_INTERVAL)
