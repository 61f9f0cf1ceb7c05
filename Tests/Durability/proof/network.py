"""Many sockets on one thread: received packets are passed on in order, and nothing blocks."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable

from harness.wire import PacketReader, ServerPacket


class Link:
    """One connection to the broker; `on_closed` is called once, however it ends."""

    def __init__(
        self, network: Network, address: tuple[str, int],
        on_packet: Callable[[ServerPacket], None], on_closed: Callable[[], None],
    ) -> None:
        self._network = network
        self._on_packet = on_packet
        self._on_closed = on_closed
        self._reader = PacketReader()
        self._unsent = bytearray()
        self.is_open = True
        self.was_ended_by_peer = False
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(address)
        network.add(self)

    def send(self, *packets: bytes) -> None:
        """Sends now or as soon as the peer takes it."""
        if self.is_open:
            self._unsent += b"".join(packets)

    def close(self, *, abruptly: bool = False) -> None:
        """Closes the connection; unsent bytes are tried once."""
        if not self.is_open:
            return
        self._flush()
        if abruptly and self.is_open:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._end()

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    def handle(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if events & selectors.EVENT_READ and self.is_open:
            self._read()

    def receive(self, data: bytes) -> None:
        self._reader.feed(data)
        while self.is_open and (packet := self._reader.next()) is not None:
            self._network.received += 1
            self._on_packet(packet)

    def _read(self) -> None:
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.receive(data)
        else:
            self.was_ended_by_peer = True
            self._end()

    def _flush(self) -> None:
        if not self._unsent:
            return
        try:
            del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            # Bytes that the broker sent before its end are still to be read.
            self._unsent.clear()

    def _end(self) -> None:
        if self.is_open:
            self.is_open = False
            self._network.remove(self)
            self.socket.close()
            self._on_closed()


class HTTPLink(Link):
    """One HTTP/1.1 connection; answers come as (status, body)."""

    def __init__(
        self, network: Network, address: tuple[str, int],
        on_answer: Callable[[int, bytes], None], on_closed: Callable[[], None],
    ) -> None:
        self._answer = bytearray()
        self._on_answer = on_answer
        super().__init__(network, address, lambda _: None, on_closed)

    def post(
        self, target: str, body: bytes, token: str, content_type: str,
        headers: dict[str, str] | None = None,
    ) -> None:
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self.send(
            f"POST {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode(),
            body)

    def receive(self, data: bytes) -> None:
        self._answer += data
        while (end := self._answer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._answer[:end]).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:])
            length = int(headers.get("content-length", "0"))
            if len(self._answer) < end + 4 + length:
                return
            body = bytes(self._answer[end + 4 : end + 4 + length])
            del self._answer[: end + 4 + length]
            self._network.received += 1
            self._on_answer(int(head[0].split()[1]), body)


class Network:
    """The selector that all links share."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._links: set[Link] = set()
        self.received = 0
        """Packets and answers since the beginning."""

    def open(
        self, address: tuple[str, int], on_packet: Callable[[ServerPacket], None],
        on_closed: Callable[[], None],
    ) -> Link:
        """A new connection of an MQTT client."""
        return Link(self, address, on_packet, on_closed)

    def add(self, link: Link) -> None:
        self._links.add(link)
        self._selector.register(link.socket, selectors.EVENT_READ, link)

    def remove(self, link: Link) -> None:
        self._links.discard(link)
        self._selector.unregister(link.socket)

    @property
    def links(self) -> frozenset[Link]:
        return frozenset(self._links)

    @property
    def open_links(self) -> int:
        return len(self._links)

    def step(self, timeout: float = 0.02) -> None:
        """Handles received packets and sends pending ones."""
        for link in self._links:
            events = selectors.EVENT_READ
            if link.wants_to_write:
                events |= selectors.EVENT_WRITE
            key = self._selector.get_key(link.socket)
            if key.events != events:
                self._selector.modify(link.socket, events, link)
        for key, events in self._selector.select(timeout):
            if key.data.is_open:
                key.data.handle(events)

    def run_until(
        self, condition: Callable[[], bool], within: float, awaited: str = "",
    ) -> bool:
        """Steps until `condition` holds; with `awaited`, its absence is an error."""
        end = time.monotonic() + within
        while not condition():
            if time.monotonic() > end:
                if awaited:
                    raise AssertionError(f"waited {within:g} s for {awaited}")
                return False
            self.step()
        return True

    def close_all(self) -> None:
        for link in list(self._links):
            link.close(abruptly=True)
