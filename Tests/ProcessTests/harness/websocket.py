"""WebSocket (RFC 6455) of our own: requests and frames of any form, and packets inside frames."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import ssl
import struct
from dataclasses import dataclass, field

from .raw_client import RawClient
from .waiting import PATIENCE, Deadline

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
IDENTIFIER = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
HEADERS = (
    "Host: broker.example", "Upgrade: websocket", "Connection: Upgrade",
    f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: mqtt",
)


def websocket_environment(listener: int = 0, **keys: object) -> dict[str, str]:
    """Settings of a listener of WebSocket: `websocket_environment(origins="https://a.example")`."""
    prefix = f"HERMES_LISTENERS_{listener}_"
    return {f"{prefix}PROTOCOL": "websocket"} | {
        f"{prefix}WEBSOCKET_{name.upper()}": str(value) for name, value in keys.items()
    }


def request(
    line: str = "GET /mqtt HTTP/1.1", *more: str, without: str | None = None,
    headers: tuple[str, ...] = HEADERS,
) -> bytes:
    """A request for the upgrade; `without` leaves headers out, by the beginning of their lines."""
    kept = [one for one in headers if without is None or not one.startswith(without)]
    return "".join(f"{one}\r\n" for one in (line, *kept, *more, "")).encode()


def frame(
    opcode: int, payload: bytes = b"", *, final: bool = True, reserved: int = 0,
    mask: bytes | None = b"\x37\xfa\x21\x3d", length: int | None = None, form: int | None = None,
) -> bytes:
    """A frame of a client, also one that nobody may send; `form` is 7, 16 or 64 bits of length."""
    count = len(payload) if length is None else length
    bits = form or (7 if count <= 125 else 16 if count <= 0xFFFF else 64)
    masked = 0 if mask is None else 0x80
    head = bytes([(0x80 if final else 0) | reserved << 4 | opcode])
    if bits == 7:
        head += bytes([masked | count])
    elif bits == 16:
        head += bytes([masked | 126]) + struct.pack("!H", count)
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", count)
    return head + (mask or b"") + masked_with(mask or bytes(4), payload)


def masked_with(mask: bytes, payload: bytes) -> bytes:
    """The payload under a mask, or out of it."""
    if mask == bytes(4):
        return payload
    size = len(payload)
    pad = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")


def closing(code: int, reason: bytes = b"") -> bytes:
    """The payload of a close frame."""
    return struct.pack("!H", code) + reason


@dataclass
class Response:
    """An answer of HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Frame:
    """A frame of the broker."""

    opcode: int
    payload: bytes

    @property
    def code(self) -> int:
        """The status code of a close frame; 1005 without one."""
        assert self.opcode == CLOSE, self
        return struct.unpack("!H", self.payload[:2])[0] if self.payload else 1005


@dataclass
class FrameReader:
    """Splits what a broker sends into frames, strictly."""

    rest: bytes = b""
    frames: list[Frame] = field(default_factory=list)

    def feed(self, data: bytes) -> list[Frame]:
        self.rest += data
        found: list[Frame] = []
        while (one := self._next()) is not None:
            found.append(one)
        self.frames += found
        return found

    def _next(self) -> Frame | None:
        rest = self.rest
        if len(rest) < 2:
            return None
        assert rest[0] & 0x70 == 0, f"reserved bits in {rest[:16]!r}"
        assert rest[0] & 0x80, f"a fragment in {rest[:16]!r}"
        assert rest[1] & 0x80 == 0, f"a mask in {rest[:16]!r}"
        opcode, length, place = rest[0] & 0xF, rest[1], 2
        assert opcode in (BINARY, CLOSE, PING, PONG), f"opcode {opcode}"
        if length >= 126:
            size = 2 if length == 126 else 8
            if len(rest) < 2 + size:
                return None
            least = 126 if size == 2 else 65_536
            length, place = int.from_bytes(rest[2 : 2 + size], "big"), 2 + size
            assert length >= least, f"{length} in {size} bytes"
        if len(rest) < place + length:
            return None
        self.rest = rest[place + length :]
        return Frame(opcode, rest[place : place + length])


class WebSocket:
    """One connection, before and behind the upgrade. Every call reads with a deadline."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        context: ssl.SSLContext | None = None,
        receive_buffer: int | None = None,
        prefix: bytes = b"",
        source: str | None = None,
    ) -> None:
        """`prefix` is sent first, in plain bytes, as a proxy does."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if prefix:
            self.socket.sendall(prefix)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.reader = FrameReader()
        self._arrived: list[Frame] = []

    def send(self, *pieces: bytes) -> None:
        self.socket.settimeout(PATIENCE)
        self.socket.sendall(b"".join(pieces))

    def ask(self, asked: bytes) -> Response:
        """Sends a request and reads its answer."""
        self.send(asked)
        return self.response()

    def response(self) -> Response:
        data = self.reader.rest
        deadline = Deadline(PATIENCE, "a response of HTTP")
        while b"\r\n\r\n" not in data:
            data += self._receive(deadline)
        head, body = data.split(b"\r\n\r\n", 1)
        first, *lines = head.decode().split("\r\n")
        version, status, _ = first.split(" ", 2)
        assert version == "HTTP/1.1"
        headers = dict(line.split(": ", 1) for line in lines)
        size = int(headers.get("Content-Length", "0"))
        while len(body) < size:
            body += self._receive(deadline)
        self.reader.rest = body[size:]
        return Response(int(status), headers, body[:size])

    def upgrade(self, asked: bytes | None = None) -> None:
        """Asks for the upgrade, which must succeed."""
        response = self.ask(asked or request())
        assert response.status == 101, response
        digest = hashlib.sha1((KEY + IDENTIFIER).encode()).digest()
        assert response.headers["Sec-WebSocket-Accept"] == base64.b64encode(digest).decode()
        assert response.headers["Sec-WebSocket-Protocol"] == "mqtt"

    def next_frame(self, timeout: float = PATIENCE) -> Frame:
        deadline = Deadline(timeout, "a frame")
        self._arrived += self.reader.feed(b"")
        while not self._arrived:
            self._arrived += self.reader.feed(self._receive(deadline))
        return self._arrived.pop(0)

    def expect(self, opcode: int, timeout: float = PATIENCE) -> Frame:
        """The next frame, which must be of this kind."""
        one = self.next_frame(timeout)
        assert one.opcode == opcode, one
        return one

    def await_end(self, timeout: float = PATIENCE) -> int | None:
        """Waits until the broker has closed; returns the code of its close frame, the last one."""
        deadline = Deadline(timeout, "the broker to close the connection")
        code = None
        try:
            while True:
                for one in self._arrived + self.reader.feed(b""):
                    assert code is None, f"{one} behind a close frame"
                    code = one.code if one.opcode == CLOSE else None
                self._arrived = self.reader.feed(self._receive(deadline))
        except EOFError:
            return code

    def _receive(self, deadline: Deadline) -> bytes:
        if deadline.is_over:
            raise deadline.failure()
        self.socket.settimeout(deadline.remaining)
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise deadline.failure() from None
        except (ConnectionResetError, BrokenPipeError):
            data = b""
        if not data:
            raise EOFError
        return data

    def close(self) -> None:
        self.socket.close()


class FrameSocket:
    """What a raw client needs of a socket, with its bytes in frames."""

    def __init__(self, connection: WebSocket, mask: bytes | None = None) -> None:
        self.connection = connection
        self._mask = mask
        self._data = b""

    def settimeout(self, seconds: float) -> None:
        self.connection.socket.settimeout(seconds)

    def setsockopt(self, *option) -> None:
        self.connection.socket.setsockopt(*option)

    def sendall(self, data: bytes) -> None:
        self.connection.socket.sendall(frame(BINARY, data, mask=self._mask or os.urandom(4)))

    def recv(self, most: int) -> bytes:
        """Data of the next binary frame; nothing at the end."""
        while not self._data:
            try:
                one = self.connection.next_frame(self.connection.socket.gettimeout() or 0.001)
            except EOFError:
                return b""
            except AssertionError as error:
                if "waited" in str(error):
                    raise TimeoutError from None
                raise
            if one.opcode == CLOSE:
                return b""
            if one.opcode == BINARY:
                self._data = one.payload
        data, self._data = self._data[:most], self._data[most:]
        return data

    def close(self) -> None:
        self.connection.close()


class WebSocketClient(RawClient):
    """A raw client whose packets travel in frames."""

    def __init__(self, address: tuple[str, int], **options) -> None:
        super().__init__(address)
        self.socket.close()
        self.web = WebSocket(address, **options)
        self.web.upgrade()
        self.socket = FrameSocket(self.web)  # type: ignore[assignment]
