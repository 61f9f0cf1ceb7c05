"""A client of MQTT 5.0 made of one socket: packets as bytes, for what paho hides."""

from __future__ import annotations

import socket

from .broker import Broker
from .waiting import PATIENCE
from .wire import packet, string

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 0x20, 0x30, 0x40, 0x50, 0x60, 0x70
SUBACK, PINGRESP, DISCONNECT = 0x90, 0xD0, 0xE0


def field(properties: bytes) -> bytes:
    """Properties behind their length, which takes one byte here."""
    assert len(properties) < 128
    return bytes([len(properties)]) + properties


class Raw5Client:
    """One connection; packets come as their first byte without flags, and the rest."""

    def __init__(self, broker: Broker) -> None:
        self.socket = socket.create_connection(broker.address, timeout=PATIENCE)
        self._unread = b""

    def send(self, *packets: bytes) -> None:
        self.socket.sendall(b"".join(packets))

    def connect(
        self, client_id: str, properties: bytes = b"", *, clean_start: bool = True,
        keep_alive: int = 0, user_name: str | None = None, password: bytes | None = None,
    ) -> bytes:
        """Returns CONNACK: flags, code and properties."""
        flags = 0x02 if clean_start else 0
        payload = string(client_id)
        for flag, value in ((0x80, user_name), (0x40, password)):
            if value is not None:
                flags |= flag
                payload += string(value)
        self.send(packet(
            1, 0, string("MQTT") + bytes([5, flags]) + keep_alive.to_bytes(2, "big")
            + field(properties) + payload))
        kind, body = self.receive()
        assert kind == CONNACK, (kind, body)
        return body

    def publish(
        self, topic: str, payload: bytes, qos: int, packet_id: int, *, dup: bool = False,
        retain: bool = False,
    ) -> tuple[int, int]:
        """Sends a PUBLISH of QoS 1 or 2; returns the kind and the code of the answer."""
        self.send(packet(
            3, 8 * dup | qos << 1 | retain,
            string(topic) + packet_id.to_bytes(2, "big") + b"\0" + payload))
        kind, body = self.receive()
        assert body[:2] == packet_id.to_bytes(2, "big"), (kind, body)
        return kind, code(body[2:])

    def receive(self) -> tuple[int, bytes]:
        """The next packet; an empty one of kind 0 when the broker has closed."""
        while True:
            length, shift = 0, 0
            for place in range(1, min(5, len(self._unread))):
                length |= (self._unread[place] & 0x7F) << shift
                shift += 7
                if self._unread[place] & 0x80:
                    continue
                start, end = place + 1, place + 1 + length
                if len(self._unread) < end:
                    break
                kind, body = self._unread[0] & 0xF0, self._unread[start:end]
                self._unread = self._unread[end:]
                return kind, body
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionResetError:
                more = b""
            if not more:
                return 0, b""
            self._unread += more

    def expect_end(self, reason: int) -> None:
        """DISCONNECT with this code, and the close."""
        kind, body = self.receive()
        assert (kind, code(body)) == (DISCONNECT, reason), (hex(kind), body.hex(" "))
        assert self.receive() == (0, b"")

    def close(self) -> None:
        self.socket.close()


def code(body: bytes) -> int:
    """The reason code, which is left out for 0; 0x10 (nobody has subscribed) counts as 0 too."""
    return 0 if body[:1] in (b"", b"\x10") else body[0]
