"""Changes a stopped broker's database as another program would."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

PAGE = 16_384
RESERVED = 8
"""Bytes at the end of each page for its checksums, which SQLite leaves alone."""


@contextlib.contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose changes are committed at the end. The file then says that its pages have
    no checksums, so that the next start rewrites it."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            yield connection
    finally:
        connection.close()
    with path.open("r+b") as file:
        file.seek(PAGE - RESERVED)
        file.write(bytes(RESERVED))
