"""A small, strict MQTT 3.1.1 codec of our own.

Builders make a client's packets; `packet` frames any bytes, so that a test can break a rule.
`PacketReader` accepts only packets that a server may send, and raises `BrokerViolation` for
anything else.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class PacketType(enum.IntEnum):
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14


class BrokerViolation(AssertionError):
    """The broker sent something that the specification forbids."""


# --- packets of clients --------------------------------------------------------------------


@dataclass(frozen=True)
class Will:
    topic: str | bytes
    payload: bytes = b""
    qos: int = 0
    retain: bool = False


def string(value: str | bytes) -> bytes:
    """A length-prefixed string (section 1.5.3); bytes pass unchecked."""
    raw = value.encode() if isinstance(value, str) else value
    return len(raw).to_bytes(2, "big") + raw


def remaining_length(value: int) -> bytes:
    """The shortest encoding of section 2.2.3."""
    encoded = bytearray()
    while True:
        value, digit = divmod(value, 128)
        encoded.append(digit | (0x80 if value else 0))
        if not value:
            return bytes(encoded)


def packet(kind: int, flags: int, body: bytes = b"") -> bytes:
    """A whole packet around `body`; neither kind nor flags are checked."""
    return bytes([kind << 4 | flags]) + remaining_length(len(body)) + body


def connect(
    client_id: str | bytes,
    *,
    clean_session: bool = True,
    keep_alive: int = 0,
    will: Will | None = None,
    user_name: str | bytes | None = None,
    password: bytes | None = None,
    protocol_name: str = "MQTT",
    protocol_level: int = 4,
) -> bytes:
    """A CONNECT; keep alive in seconds, 0 for none."""
    flags = 0x02 if clean_session else 0
    payload = string(client_id)
    if will is not None:
        flags |= 0x04 | will.qos << 3 | (0x20 if will.retain else 0)
        payload += string(will.topic) + string(will.payload)
    if user_name is not None:
        flags |= 0x80
        payload += string(user_name)
    if password is not None:
        flags |= 0x40
        payload += string(password)
    return connect_with_flags(
        flags, payload, keep_alive=keep_alive, protocol_name=protocol_name,
        protocol_level=protocol_level,
    )


def connect_with_flags(
    flags: int,
    payload: bytes,
    *,
    keep_alive: int = 0,
    protocol_name: str = "MQTT",
    protocol_level: int = 4,
) -> bytes:
    """A CONNECT whose flags need not agree with its payload."""
    header = string(protocol_name) + bytes([protocol_level, flags]) + keep_alive.to_bytes(2, "big")
    return packet(PacketType.CONNECT, 0, header + payload)


def publish(
    topic: str | bytes,
    payload: bytes = b"",
    *,
    qos: int = 0,
    retain: bool = False,
    dup: bool = False,
    packet_id: int | None = None,
) -> bytes:
    """A PUBLISH; `packet_id` is written when it is given, whatever the QoS."""
    flags = (0x08 if dup else 0) | qos << 1 | (0x01 if retain else 0)
    identifier = b"" if packet_id is None else packet_id.to_bytes(2, "big")
    return packet(PacketType.PUBLISH, flags, string(topic) + identifier + payload)


def acknowledgement(kind: PacketType, packet_id: int) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP, with the flags of table 2.2."""
    flags = 0x02 if kind is PacketType.PUBREL else 0
    return packet(kind, flags, packet_id.to_bytes(2, "big"))


def puback(packet_id: int) -> bytes:
    return acknowledgement(PacketType.PUBACK, packet_id)


def pubrec(packet_id: int) -> bytes:
    return acknowledgement(PacketType.PUBREC, packet_id)


def pubrel(packet_id: int) -> bytes:
    return acknowledgement(PacketType.PUBREL, packet_id)


def pubcomp(packet_id: int) -> bytes:
    return acknowledgement(PacketType.PUBCOMP, packet_id)


def subscribe(packet_id: int, *filters: tuple[str | bytes, int]) -> bytes:
    """A SUBSCRIBE; each filter comes with its options byte (the QoS)."""
    body = b"".join(string(name) + bytes([options]) for name, options in filters)
    return packet(PacketType.SUBSCRIBE, 0x02, packet_id.to_bytes(2, "big") + body)


def unsubscribe(packet_id: int, *filters: str | bytes) -> bytes:
    body = b"".join(string(name) for name in filters)
    return packet(PacketType.UNSUBSCRIBE, 0x02, packet_id.to_bytes(2, "big") + body)


PINGREQ = packet(PacketType.PINGREQ, 0)
DISCONNECT = packet(PacketType.DISCONNECT, 0)


# --- packets of brokers --------------------------------------------------------------------


@dataclass(frozen=True)
class Connack:
    session_present: bool
    return_code: int


@dataclass(frozen=True)
class Publish:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int | None = None


@dataclass(frozen=True)
class Puback:
    packet_id: int


@dataclass(frozen=True)
class Pubrec:
    packet_id: int


@dataclass(frozen=True)
class Pubrel:
    packet_id: int


@dataclass(frozen=True)
class Pubcomp:
    packet_id: int


@dataclass(frozen=True)
class Suback:
    packet_id: int
    return_codes: tuple[int, ...]


@dataclass(frozen=True)
class Unsuback:
    packet_id: int


@dataclass(frozen=True)
class Pingresp:
    pass


ServerPacket = (
    Connack | Publish | Puback | Pubrec | Pubrel | Pubcomp | Suback | Unsuback | Pingresp
)

_IDENTIFIER_ONLY = {
    PacketType.PUBACK: (0, Puback),
    PacketType.PUBREC: (0, Pubrec),
    PacketType.PUBREL: (2, Pubrel),
    PacketType.PUBCOMP: (0, Pubcomp),
    PacketType.UNSUBACK: (0, Unsuback),
}


class PacketReader:
    """Cuts a byte stream into packets and checks each against the specification."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    @property
    def is_between_packets(self) -> bool:
        """True when no part of a packet is waiting for the rest."""
        return not self._buffer

    def next(self) -> ServerPacket | None:
        """The next whole packet; `None` asks for more bytes."""
        length = 0
        for index in range(1, min(len(self._buffer), 5)):
            digit = self._buffer[index]
            length |= (digit & 0x7F) << (7 * (index - 1))
            if not digit & 0x80:
                break
        else:
            _require(len(self._buffer) < 5, "remaining length of more than 4 bytes [2.2.3]")
            return None
        _require(digit or index == 1, f"remaining length {length} padded to {index} bytes")
        end = index + 1 + length
        if len(self._buffer) < end:
            return None
        first, body = self._buffer[0], bytes(self._buffer[index + 1 : end])
        del self._buffer[:end]
        return decode(first, body)


def decode(first: int, body: bytes) -> ServerPacket:
    """Reads one packet from its first byte and the bytes after the remaining length."""
    kind, flags = first >> 4, first & 0x0F
    if kind == PacketType.PUBLISH:
        return _decode_publish(flags, body)
    if kind == PacketType.CONNACK:
        _require(flags == 0 and len(body) == 2, f"CONNACK {first:02x} {body.hex()}")
        _require(body[0] in (0, 1), f"CONNACK acknowledge flags {body[0]:#04x} [3.2.2.1]")
        _require(body[1] <= 5, f"CONNACK return code {body[1]} [MQTT-3.2.2-6]")
        _require(not (body[0] and body[1]), "session present on a refusal [MQTT-3.2.2-4]")
        return Connack(bool(body[0]), body[1])
    if kind == PacketType.SUBACK:
        _require(flags == 0 and len(body) >= 3, f"SUBACK {first:02x} {body.hex()}")
        codes = tuple(body[2:])
        _require(all(code in (0, 1, 2, 0x80) for code in codes), f"SUBACK {codes} [MQTT-3.9.3-2]")
        return Suback(_identifier(body), codes)
    if kind == PacketType.PINGRESP:
        _require(flags == 0 and not body, f"PINGRESP {first:02x} {body.hex()}")
        return Pingresp()
    for expected, (expected_flags, form) in _IDENTIFIER_ONLY.items():
        if kind == expected:
            _require(
                flags == expected_flags and len(body) == 2,
                f"{expected.name} {first:02x} {body.hex()} [MQTT-2.2.2-1]",
            )
            return form(_identifier(body))
    raise BrokerViolation(f"a server never sends packet type {kind}")


def _decode_publish(flags: int, body: bytes) -> Publish:
    qos, dup, retain = flags >> 1 & 3, bool(flags & 0x08), bool(flags & 0x01)
    _require(qos < 3, "PUBLISH with QoS 3 [MQTT-3.3.1-4]")
    _require(qos or not dup, "DUP on a QoS 0 PUBLISH [MQTT-3.3.1-2]")
    _require(len(body) >= 2, "PUBLISH without a topic name [MQTT-3.3.2-1]")
    end = 2 + int.from_bytes(body[:2], "big")
    _require(2 < end <= len(body), f"PUBLISH topic length {end - 2} of {len(body)} bytes")
    try:
        topic = body[2:end].decode()
    except UnicodeDecodeError as error:
        raise BrokerViolation(f"topic name {body[2:end]!r} [MQTT-1.5.3-1]") from error
    _require("\0" not in topic, f"U+0000 in topic name {topic!r} [MQTT-1.5.3-2]")
    _require("+" not in topic and "#" not in topic, f"wildcard in {topic!r} [MQTT-3.3.2-2]")
    if qos == 0:
        return Publish(topic, body[end:], retain=retain)
    _require(len(body) >= end + 2, "PUBLISH without its packet identifier [MQTT-2.3.1-1]")
    return Publish(topic, body[end + 2 :], qos, retain, dup, _identifier(body[end:]))


def _identifier(body: bytes) -> int:
    value = int.from_bytes(body[:2], "big")
    _require(value > 0, "packet identifier 0 [MQTT-2.3.1-1]")
    return value


def _require(condition: object, rule: str) -> None:
    if not condition:
        raise BrokerViolation(rule)
