"""The quiet clients whose time counts: a process of its own, one thread, nothing else to do.

Each kind of measurement sends every 20 ms, whether or not its last answer has come, so that a stall
counts for everyone who would have waited in it. The control does the same with a process that echoes
bytes: what the machine does to everybody.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection

from harness import wire
from harness.wire import PacketReader, Pingresp, Puback, Publish

from .broker import Target

INTERVAL = 0.020
"""Seconds between two of a kind."""
CONNECT_PATIENCE = 30.0
Samples = dict[str, list[tuple[float, float]]]
"""By kind: when it was sent, and the seconds until its answer."""
KINDS = ("delivery", "ping", "ping TLS")
CONTROL = "control"


def urgently() -> None:
    """Runs this process before all others that want the processor, if it may."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


def echo(ready: Connection) -> None:
    """The other side of the control, with the priority of the broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready.send(server.getsockname())
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(4096):
            connection.sendall(data)


class _Peer:
    """A socket that never blocks, and what it does with the bytes that come."""

    def __init__(self, connection: socket.socket, taken: Callable[[bytes], None]) -> None:
        self.socket = connection
        self.taken = taken
        self.socket.setblocking(False)

    def read(self) -> bool:
        """Takes all that has come; false at the end of the stream."""
        while True:
            try:
                data = self.socket.recv(65_536)
            except (BlockingIOError, ssl.SSLWantReadError):
                return True
            except OSError:
                return False
            if not data:
                return False
            self.taken(data)


class Watcher:
    def __init__(self, control: tuple[str, int]) -> None:
        self._poll = select.epoll()
        self._peers: dict[int, _Peer] = {}
        self._waiting: dict[str, deque[float]] = {kind: deque() for kind in (*KINDS, CONTROL)}
        self._samples: Samples = {kind: [] for kind in (*KINDS, CONTROL)}
        self._senders: list[Callable[[float], None]] = []
        self.lost: list[str] = []
        connection = socket.create_connection(control)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._control = self._add(connection, lambda data: self._answered(CONTROL, len(data)))

    def watch(self, target: Target) -> None:
        """Connects the quiet clients; tries again until the broker is there."""
        end = time.monotonic() + CONNECT_PATIENCE
        while True:
            try:
                self._connect(target)
                return
            except (OSError, AssertionError):
                self.leave()
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def _connect(self, target: Target) -> None:
        subscriber = _opened(target, "quiet-subscriber")
        subscriber.sendall(wire.subscribe(1, ("quiet/delivery", 1)))
        _expect(subscriber, 5)
        reader = PacketReader()

        def delivered(data: bytes) -> None:
            reader.feed(data)
            while (packet := reader.next()) is not None:
                assert isinstance(packet, Publish), packet
                receiver.socket.send(wire.puback(packet.packet_id or 0))
                begin = struct.unpack("!d", packet.payload)[0]
                self._samples["delivery"].append((begin, time.monotonic() - begin))
                if self._waiting["delivery"]:
                    self._waiting["delivery"].popleft()

        receiver = self._add(subscriber, delivered)
        answers = PacketReader()

        def acknowledged(data: bytes) -> None:
            answers.feed(data)
            while (packet := answers.next()) is not None:
                assert isinstance(packet, Puback), packet

        publisher = self._add(_opened(target, "quiet-publisher"), acknowledged)
        identifier = 0

        def publish(now: float) -> None:
            nonlocal identifier
            identifier = identifier % 65_535 + 1
            self._waiting["delivery"].append(now)
            publisher.socket.send(wire.publish(
                "quiet/delivery", struct.pack("!d", time.monotonic()), qos=1,
                packet_id=identifier))

        self._senders = [publish]
        for kind, connection in (
            ("ping", _opened(target, "quiet-ping")),
            ("ping TLS", _opened(target, "quiet-ping-tls", is_tls=True)),
        ):
            self._senders.append(self._pinging(kind, connection))
        self._senders.append(self._echoing)

    def _pinging(self, kind: str, connection: socket.socket) -> Callable[[float], None]:
        reader = PacketReader()

        def answered(data: bytes) -> None:
            reader.feed(data)
            while (packet := reader.next()) is not None:
                assert isinstance(packet, Pingresp), packet
                self._answered(kind, 1)

        peer = self._add(connection, answered)

        def ping(_: float) -> None:
            self._waiting[kind].append(time.monotonic())
            peer.socket.send(wire.PINGREQ)

        return ping

    def _echoing(self, _: float) -> None:
        self._waiting[CONTROL].append(time.monotonic())
        self._control.socket.send(b"e")

    def _answered(self, kind: str, count: int) -> None:
        now = time.monotonic()
        for _ in range(min(count, len(self._waiting[kind]))):
            begin = self._waiting[kind].popleft()
            self._samples[kind].append((begin, now - begin))

    def _add(self, connection: socket.socket, taken: Callable[[bytes], None]) -> _Peer:
        peer = _Peer(connection, taken)
        self._peers[connection.fileno()] = peer
        self._poll.register(connection.fileno(), select.EPOLLIN)
        return peer

    def leave(self) -> None:
        """Closes the quiet clients, and not the control."""
        self._senders = []
        for descriptor, peer in list(self._peers.items()):
            if peer is not self._control:
                self._close(descriptor)
        for kind in KINDS:
            self._waiting[kind].clear()

    def _close(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        self._peers.pop(descriptor).socket.close()

    def step(self, until: float) -> None:
        """Takes what comes, until that time."""
        while (left := until - time.monotonic()) > 0:
            for descriptor, _ in self._poll.poll(left):
                peer = self._peers.get(descriptor)
                if peer is not None and not peer.read():
                    self.lost.append("a quiet client was disconnected")
                    self._close(descriptor)

    def run_round(self) -> None:
        """One of each kind, at times of their own."""
        begin = time.monotonic()
        share = INTERVAL / max(1, len(self._senders))
        for index, send in enumerate(self._senders):
            try:
                send(time.monotonic())
            except OSError:
                pass
            self.step(begin + (index + 1) * share)
        self.step(begin + INTERVAL)

    def cut(self) -> tuple[Samples, list[str]]:
        """What was measured since the last cut; what waits for over a second counts with its age."""
        now = time.monotonic()
        taken, lost = self._samples, self.lost
        self._samples = {kind: [] for kind in (*KINDS, CONTROL)}
        self.lost = []
        for kind, waiting in self._waiting.items():
            taken[kind] += [(begin, now - begin) for begin in waiting if now - begin > 1]
        return taken, lost


def _opened(target: Target, name: str, *, is_tls: bool = False) -> socket.socket:
    """A connected client with a clean session, and no keep alive."""
    connection = socket.create_connection(target.tls if is_tls else target.plain, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if is_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(target.authority)
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(wire.connect(name))
    assert _expect(connection, 4) == b"\x20\x02\x00\x00"
    return connection


def _expect(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionResetError("closed")
        data += more
    return data


def watch(orders: Connection, control: tuple[str, int]) -> None:
    """The process: obeys `watch`, `leave`, `cut` and `end`, and answers each."""
    urgently()
    gc.disable()
    watcher = Watcher(control)
    while True:
        while orders.poll():
            order, argument = orders.recv()
            if order == "watch":
                watcher.watch(argument)
                orders.send(None)
            elif order == "leave":
                watcher.leave()
                orders.send(None)
            elif order == "cut":
                orders.send(watcher.cut())
            else:
                return
        watcher.run_round()
