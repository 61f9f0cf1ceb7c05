"""Everyday traffic: the clients of the durability proof, who check every message, over TCP and TLS."""

from __future__ import annotations

import os
import random
import ssl
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

from harness.wire import ServerPacket
from proof.cast import Cast
from proof.ledger import Ledger
from proof.network import HTTPLink, Link, Network

from .broker import Target

PATIENCE = 60.0
PACE = 0.05
"""Seconds between two looks at the sockets: with small windows, some 200 messages a second."""


class TLSLink(Link):
    """A connection whose bytes travel in TLS."""

    def __init__(
        self, network: Network, address: tuple[str, int], context: ssl.SSLContext,
        on_packet: Callable[[ServerPacket], None], on_closed: Callable[[], None],
    ) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self._sealed = bytearray()
        self._is_secure = False
        super().__init__(network, address, on_packet, on_closed)
        self._advance()

    @property
    def wants_to_write(self) -> bool:
        return bool(self._sealed) or (self._is_secure and bool(self._unsent))

    def _advance(self) -> None:
        """Goes on with the handshake, and seals what waits behind it."""
        try:
            if not self._is_secure:
                self._tls.do_handshake()
                self._is_secure = True
            while self._unsent:
                del self._unsent[: self._tls.write(self._unsent)]
        except ssl.SSLWantReadError:
            pass
        self._sealed += self._outgoing.read()

    def _flush(self) -> None:
        self._advance()
        self._unsent, unsent = self._sealed, self._unsent
        super()._flush()
        self._sealed, self._unsent = self._unsent, unsent

    def _read(self) -> None:
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._incoming.write(data) if data else self._incoming.write_eof()
        plain = b""
        try:
            self._advance()
            while more := self._tls.read(1 << 16):
                plain += more
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            # The end of the stream; what came before it counts.
            data = b""
        if plain:
            self.receive(plain)
        if not data and self.is_open:
            self.was_ended_by_peer = True
            self._end()


class MixedNetwork(Network):
    """Every second connection is one of TLS."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.load_verify_locations(target.authority)
        self._opened = 0

    def open(
        self, address: tuple[str, int], on_packet: Callable[[ServerPacket], None],
        on_closed: Callable[[], None],
    ) -> Link:
        self._opened += 1
        if self._opened % 2:
            return super().open(address, on_packet, on_closed)
        return TLSLink(self, self._target.tls, self._context, on_packet, on_closed)


class Household:
    """Rests, connected, or lives; at the end of a life everything is checked."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self.network = MixedNetwork(target)
        self.ledger = Ledger(random.Random(seed))
        self.cast = Cast(self.network, self.ledger)
        for publisher in (*self.cast.publishers, self.cast.retainer, self.cast.sharer):
            publisher.window = 2
        self.lives = False

    def begin(self) -> None:
        """Everybody comes, and everything that was acknowledged is there."""
        self.ledger.life += 1
        self.cast.verify(
            self._target.plain, self._target.admin, self._await, qos=self.ledger.life % 2 + 1,
            everybody=True)
        for messages in self.ledger.topics.values():
            for message in messages[:-50]:
                # It has come to everyone. If it came again, it would count as damaged.
                message.payload = b""

    def live(self) -> None:
        if not self.lives:
            self.cast.start_traffic((1, 2))
        self.lives = True

    def brace(self) -> None:
        """Goes on, but nobody comes back who has gone."""
        self.lives = False

    def leave(self) -> None:
        """Everybody goes; sessions stay."""
        self.lives = False
        for mortal in self.cast.mortals:
            mortal.say_goodbye()
        for actor in self.cast.everyone:
            actor.disconnect()

    def cut(self) -> None:
        """The broker has been killed, or stopped, behind `brace`: connections end by themselves."""
        self._await(lambda: self.network.open_links == 0, "the end of all connections")

    def check(self) -> None:
        # A retained message that waits for its commit reaches a reader later.
        retainer = self.cast.retainer
        retainer.is_publishing = False
        self._await(lambda: retainer.link is None or retainer.is_idle, "the retainer's answers")
        self.leave()
        self.begin()

    def step(self) -> None:
        if self.lives:
            self.cast.move()
        self.network.step(0)

    def _await(self, condition: Callable[[], bool], awaited: str) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(
                    f"waited {PATIENCE:g} s for {awaited}: {self.cast.state()}")
            self.network.step(0.005)

    def count_links(self) -> int:
        """Open MQTT connections."""
        return sum(type(one) is not HTTPLink for one in self.network.links)


def keep_house(orders: Connection, target: Target, seed: int) -> None:
    """The process: obeys the names of methods, and answers each with what went wrong, or None."""
    os.nice(10)
    household = Household(target, seed)
    while True:
        while orders.poll():
            order = orders.recv()
            if order == "end":
                household.leave()
                return
            try:
                orders.send(("done", getattr(household, order)()))
            except Exception as error:
                orders.send(("failed", f"{error}\n{traceback.format_exc(limit=-3)}"))
                return
        try:
            household.step()
        except Exception as error:
            orders.send(("failed", f"{error}\n{traceback.format_exc(limit=-3)}"))
            return
        time.sleep(PACE)
