"""Reads the shim's record, and undoes writes as a power failure may.

A write is durable if the first sync of its file that began after it succeeded. After a failed
sync the kernel may have dropped it, whatever later syncs report. A name (created, renamed,
removed) is durable if its directory was synced after it. Everything else is volatile.

A record that misses a change proves nothing, so it is checked: undone completely, it must give
the files at the process's start.
"""

from __future__ import annotations

import enum
import random
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path

_RECORD = struct.Struct("<IIQQQQQII")
_MAGIC = 0x4B534944


class _Type(enum.IntEnum):
    WRITE = 1
    RESIZE = 2
    SYNC = 3
    SYNC_FAILED = 4
    CREATE = 5
    RENAME = 6
    UNLINK = 7
    MAKE_DIRECTORY = 8
    SYNC_DIRECTORY = 9
    ESCAPE = 10


class Loss(enum.Enum):
    """The effect of the power failure on volatile changes."""

    NOTHING = "kept"
    """A killed process: the page cache lives on."""
    EVERYTHING = "dropped"
    PART = "torn"
    """Each piece of 512 or 4,096 bytes got to the disk or not; names up to some point."""


@dataclass
class _Record:
    type: _Type
    sequence: int
    inode: int
    offset: int
    count: int
    old_size: int
    body: bytes
    after: bytes = b""
    """The bytes of a write."""
    new_size: int = 0


@dataclass
class CutReport:
    """The changes lost in a power failure."""

    writes: int = 0
    """Volatile writes that were taken back, whole or in part."""
    files: set[str] = field(default_factory=set)
    names: int = 0


def _read(log: Path) -> list[_Record]:
    data = log.read_bytes() if log.exists() else b""
    records = []
    position = 0
    while position + _RECORD.size <= len(data):
        magic, kind, sequence, inode, offset, count, old_size, is_zero, body_count = (
            _RECORD.unpack_from(data, position)
        )
        assert magic == _MAGIC, f"the shim's log is damaged at byte {position}"
        position += _RECORD.size
        # A record that is cut short was being noted at the kill, and its change never came.
        if position + body_count > len(data):
            break
        body = data[position : position + body_count]
        position += body_count
        if is_zero:
            end = min(old_size, offset + count) if kind == _Type.WRITE else old_size
            body = bytes(max(0, end - min(offset, end)))
        records.append(_Record(_Type(kind), sequence, inode, offset, count, old_size, body))
    return records


def cut_power(
    data: Path, log: Path, trash: Path, loss: Loss, rng: random.Random, *,
    before: Path | None = None,
) -> CutReport:
    """Brings the directory of a killed broker into a state that a power cut could have left.

    `before` is a copy of it as the broker found it: with that the record is checked.
    """
    records = _read(log)
    escaped = [record.body for record in records if record.type is _Type.ESCAPE]
    assert not escaped, f"calls that the shim does not follow: {escaped}"
    report = CutReport()
    if loss is Loss.NOTHING and before is None:
        return report
    paths = {
        path.stat().st_ino: path
        for folder in (data, trash) for path in folder.rglob("*") if path.is_file()
    }
    changes: dict[int, list[_Record]] = {}
    for record in records:
        if record.type in (_Type.WRITE, _Type.RESIZE, _Type.SYNC, _Type.SYNC_FAILED):
            changes.setdefault(record.inode, []).append(record)
    # Without a path no process can open it any more.
    files = {
        inode: _undo(paths[inode], history) for inode, history in changes.items()
        if inode in paths}
    if before is not None:
        _check(records, files, paths, data, before)
    if loss is Loss.NOTHING:
        return report
    for file in files.values():
        _cut_file(file, loss, rng, report)
    _cut_names(records, loss, rng, report)
    # The index of a log that may be lost; SQLite rebuilds it.
    for index in data.rglob("*-shm"):
        index.unlink()
    return report


@dataclass
class _File:
    """A file and its changes."""

    path: Path
    history: list[_Record]
    original: bytearray
    """Its content before the first change."""
    final: bytes

    @property
    def writes(self) -> list[_Record]:
        return [one for one in self.history if one.type in (_Type.WRITE, _Type.RESIZE)]


def _undo(path: Path, history: list[_Record]) -> _File:
    final = path.read_bytes()
    file = _File(path, history, bytearray(final), final)
    content = file.original
    for record in reversed(file.writes):
        record.new_size = len(content)
        if record.type is _Type.WRITE:
            record.after = bytes(content[record.offset : record.offset + record.count])
            content[record.offset : record.offset + len(record.body)] = record.body
            del content[record.old_size :]
        else:
            del content[min(record.offset, record.old_size) :]
            content += record.body
            content += bytes(record.old_size - len(content))
    return file


def _check(
    records: list[_Record], files: dict[int, _File], paths: dict[int, Path], data: Path,
    before: Path,
) -> None:
    """Checks that the record's final state equals the files."""
    inodes = {path: inode for inode, path in paths.items()}
    for record in reversed(records):
        if record.type not in (_Type.CREATE, _Type.RENAME, _Type.UNLINK):
            continue
        names = [Path(name.decode()) for name in record.body.split(b"\0") if name]
        if record.type is _Type.CREATE:
            inodes.pop(names[0], None)
        elif record.type is _Type.RENAME:
            inodes[names[0]] = inodes.pop(names[1])
            if len(names) > 2:
                inodes[names[1]] = inodes[names[2]]
        else:
            inodes[names[0]] = inodes[names[1]]
    found = {
        path.relative_to(data): inode for path, inode in inodes.items()
        if path.is_relative_to(data) and not _is_unrecorded(path)}
    expected = {
        path.relative_to(before): path for path in before.rglob("*")
        if path.is_file() and not _is_unrecorded(path)}
    assert found.keys() == expected.keys(), (
        f"files came or went without the shim: {sorted(map(str, found.keys() ^ expected.keys()))}")
    for name, inode in found.items():
        content = files[inode].original if inode in files else paths[inode].read_bytes()
        assert content == expected[name].read_bytes(), f"{name} was written without the shim"


def _is_unrecorded(path: Path) -> bool:
    return path.name == "lock" or path.name.endswith("-shm")


def _cut_file(file: _File, loss: Loss, rng: random.Random, report: CutReport) -> None:
    durable = _durable(file.history)
    volatile = [record for record in file.writes if record.sequence not in durable]
    if not volatile:
        return
    # In order: first durable changes, then those that may have reached the disk.
    content = file.original
    for record in file.writes:
        if record.sequence in durable:
            _apply(content, record)
    kept = bytes(content)
    if loss is Loss.PART:
        kept = _mixed(kept, content, volatile, file.final, rng)
    if kept == file.final:
        return
    report.writes += len(volatile)
    report.files.add(file.path.name)
    # In place, so that the inode stays.
    with file.path.open("r+b") as opened:
        opened.write(kept)
        opened.truncate(len(kept))


def _durable(history: list[_Record]) -> set[int]:
    syncs = [one for one in history if one.type in (_Type.SYNC, _Type.SYNC_FAILED)]
    durable = set()
    for record in history:
        if record.type not in (_Type.WRITE, _Type.RESIZE):
            continue
        # A sync notes the last change before it began.
        first = next((one for one in syncs if one.offset >= record.sequence), None)
        if first is not None and first.type is _Type.SYNC:
            durable.add(record.sequence)
    return durable


def _apply(content: bytearray, record: _Record) -> None:
    if record.type is _Type.RESIZE:
        del content[record.new_size :]
        content += bytes(record.new_size - len(content))
        return
    content += bytes(max(0, record.offset - len(content)))
    content[record.offset : record.offset + len(record.after)] = record.after


def _mixed(
    kept: bytes, content: bytearray, volatile: list[_Record], final: bytes, rng: random.Random
) -> bytes:
    """Each piece as it was, as it became, or as it was for a moment in between."""
    for record in volatile[: rng.randrange(len(volatile) + 1)]:
        _apply(content, record)
    versions = [kept, bytes(content), final]
    size = rng.choice([len(version) for version in versions])
    weights = [rng.random(), rng.random(), rng.random()]
    piece = rng.choice([512, 4_096])
    result = bytearray()
    for start in range(0, size, piece):
        end = min(start + piece, size)
        chosen = rng.choices(versions, weights)[0][start:end]
        result += chosen + bytes(end - start - len(chosen))
    return bytes(result)


def _cut_names(
    records: list[_Record], loss: Loss, rng: random.Random, report: CutReport
) -> None:
    synced: dict[str, int] = {}
    volatile: list[tuple[_Record, list[Path]]] = []
    for record in records:
        if record.type is _Type.SYNC_DIRECTORY:
            # Of two at the same time, the one that began first may return last.
            folder = str(Path(record.body.rstrip(b"\0").decode()))
            synced[folder] = max(record.offset, synced.get(folder, 0))
    for record in records:
        if record.type in (_Type.CREATE, _Type.RENAME, _Type.UNLINK, _Type.MAKE_DIRECTORY):
            names = [Path(name.decode()) for name in record.body.split(b"\0") if name]
            if record.sequence > synced.get(str(names[0].parent), 0):
                volatile.append((record, names))
    # A file system keeps the order of such changes, so the last ones are lost.
    first_lost = 0 if loss is Loss.EVERYTHING else rng.randrange(len(volatile) + 1)
    for record, names in reversed(volatile[first_lost:]):
        report.names += 1
        if record.type is _Type.CREATE:
            names[0].unlink(missing_ok=True)
        elif record.type is _Type.MAKE_DIRECTORY:
            # Including synchronised content, since no name leads there.
            shutil.rmtree(names[0], ignore_errors=True)
        elif record.type is _Type.RENAME:
            names[1].rename(names[0])
            if len(names) > 2:
                names[2].rename(names[1])
        else:
            names[1].rename(names[0])
