"""A small TCP proxy that sends a PROXY header first, as HAProxy and nginx do."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Sequence

from .waiting import PATIENCE

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY = 0x20, 0x21


def line(source: str, port: int, *, destination_port: int = 1883) -> bytes:
    """A header of version 1."""
    family = "TCP6" if ":" in source else "TCP4"
    destination = "2001:db8::1" if ":" in source else "198.51.100.1"
    return f"PROXY {family} {source} {destination} {port} {destination_port}\r\n".encode()


def binary(source: str, port: int, *, fields: bytes = b"", command: int = PROXY) -> bytes:
    """A header of version 2, with fields (TLVs) behind its addresses."""
    is_six = ":" in source
    destination = "2001:db8::1" if is_six else "198.51.100.1"
    block = b"".join(ipaddress.ip_address(one).packed for one in (source, destination))
    block += struct.pack("!HH", port, 1883) + fields
    return SIGNATURE + struct.pack("!BBH", command, 0x21 if is_six else 0x11, len(block)) + block


class Proxy:
    """Passes each connection on to a broker, with `pieces` in front; looks like a broker to clients.

    It connects from `bound_to`, so that a broker can tell it from other peers on this machine.
    """

    def __init__(
        self, target: tuple[str, int], pieces: bytes | Sequence[bytes], bound_to: str = "127.0.0.2"
    ) -> None:
        self._target = target
        self._pieces = [pieces] if isinstance(pieces, bytes) else list(pieces)
        self._bound_to = bound_to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.address = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return self.address[1]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = from_address(self._bound_to, self._target)
            self._open += [client, broker]
            try:
                for piece in self._pieces:
                    broker.sendall(piece)
            except OSError:
                client.close()
                continue
            for source, target in ((client, broker), (broker, client)):
                source.settimeout(None)
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()

    def close(self) -> None:
        # A thread that waits in accept() would keep a closed socket open.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()


def from_address(source: str, target: tuple[str, int]) -> socket.socket:
    """A connection from this address of the machine."""
    connection = socket.create_connection(target, PATIENCE, source_address=(source, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One end has closed, so close the other.
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
