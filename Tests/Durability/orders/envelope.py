"""The two messages of Protos/hermes/v1 that a phone reads, decoded without generated code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Update:
    """An Envelope with the OrderStatusUpdate in it."""

    message_id: str
    channel: str
    sequence: int
    superseded: tuple[int, ...]
    order: str
    reason: str


def decode(payload: bytes) -> Update:
    fields = list(_fields(payload))
    inner = dict(_fields(_bytes(fields, 8)))
    return Update(
        message_id=_bytes(fields, 1).decode(), channel=_bytes(fields, 3).decode(),
        sequence=next((value for tag, value in fields if tag == 14), 0),  # type: ignore[arg-type]
        superseded=tuple(value for tag, value in fields if tag == 15),  # type: ignore[misc]
        order=inner[1].decode(), reason=inner[4].decode())  # type: ignore[union-attr]


def _bytes(fields: list[tuple[int, int | bytes]], tag: int) -> bytes:
    value = next((value for number, value in fields if number == tag), b"")
    assert isinstance(value, bytes)
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field; of the wire types only varint and length-delimited occur."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        value, place = _varint(data, place)
        if key & 7 == 0:
            yield key >> 3, value
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            assert place + value <= len(data), "a field is cut off"
            yield key >> 3, data[place : place + value]
            place += value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[place] & 0x7F) << shift
        place += 1
        if data[place - 1] < 0x80:
            return value, place
        shift += 7
