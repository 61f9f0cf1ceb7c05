"""Publishers: over MQTT with a persistent session, and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from harness import wire
from harness.broker import ADMIN_TOKEN
from harness.wire import Puback, Pubcomp, Pubrec, ServerPacket

from .actor import Actor
from .ledger import Ledger, Message, require
from .network import HTTPLink, Network


@dataclass
class _Outgoing:
    message: Message
    is_received: bool = False
    """PUBREC has come: PUBREL is owed."""


class Publisher(Actor):
    """Keeps `window` messages in flight, and repeats unacknowledged ones after a crash."""

    def __init__(
        self, network: Network, ledger: Ledger, name: str,
        topics: Sequence[tuple[str, Sequence[int]]], *, window: int = 12, retain: bool = False,
    ) -> None:
        """`topics` come with the QoS that their messages may have."""
        super().__init__(network, ledger, name)
        self.topics = topics
        self.window = window
        self.retain = retain
        self.levels: Sequence[int] = (1, 2)
        """The QoS that new messages may have at the moment."""
        self.is_publishing = False
        self._outgoing: dict[int, _Outgoing] = {}

    def publish(self, topic: str, qos: int) -> Message:
        message = self.ledger.new_message(topic, qos)
        if self.retain and message.sequence % 5 == 0:
            # Every fifth retained message removes the topic's.
            message.payload = b""
        # Few, so that each means another message soon: a broker that has not forgotten the old one
        # takes the new one for it.
        identifier = self.next_identifier() % (3 * self.window) + 1
        while identifier in self._outgoing:
            identifier = self.next_identifier() % (3 * self.window) + 1
        self._outgoing[identifier] = _Outgoing(message)
        self._send(identifier, is_duplicate=False)
        return message

    def fill(self) -> None:
        choices = [
            (topic, qos) for topic, levels in self.topics for qos in levels if qos in self.levels]
        while self.is_publishing and self.is_connected and len(self._outgoing) < self.window:
            self.publish(*self.ledger.rng.choice(choices))

    @property
    def outstanding(self) -> dict[int, int]:
        waiting = super().outstanding
        for outgoing in self._outgoing.values():
            waiting[outgoing.message.qos] = waiting.get(outgoing.message.qos, 0) + 1
        return waiting

    @property
    def is_idle(self) -> bool:
        return self.is_connected and not self._outgoing

    def connected(self, session_present: bool) -> None:
        for identifier, outgoing in list(self._outgoing.items()):
            if outgoing.is_received:
                require(session_present, f"{self.name}: PUBREC came, and the session is gone")
                self.send(wire.pubrel(identifier))
            else:
                self._send(identifier, is_duplicate=True)
        self.fill()

    def receive(self, packet: ServerPacket) -> None:
        require(
            isinstance(packet, (Puback, Pubrec, Pubcomp)) and packet.packet_id in self._outgoing,
            f"{self.name} got {packet}, for which nothing waits")
        assert isinstance(packet, (Puback, Pubrec, Pubcomp))
        outgoing = self._outgoing[packet.packet_id]
        self.ledger.count(type(packet).__name__.upper())
        expected = Puback if outgoing.message.qos == 1 else (
            Pubcomp if isinstance(packet, Pubcomp) and outgoing.is_received else Pubrec)
        require(isinstance(packet, expected), f"{self.name} got {packet} for {outgoing.message}")
        outgoing.message.is_acknowledged = True
        if isinstance(packet, Pubrec):
            outgoing.is_received = True
            self.send(wire.pubrel(packet.packet_id))
            return
        del self._outgoing[packet.packet_id]
        self.fill()

    def _send(self, identifier: int, *, is_duplicate: bool) -> None:
        message = self._outgoing[identifier].message
        message.sends += 1
        self.send(
            wire.publish(
                message.topic, message.payload, qos=message.qos, retain=self.retain,
                dup=is_duplicate, packet_id=identifier))


class HTTPPublisher:
    """Posts one message after the other, and never repeats one."""

    def __init__(self, network: Network, ledger: Ledger, topic: str) -> None:
        self.network = network
        self.ledger = ledger
        self.topic = topic
        self.levels: Sequence[int] = (1, 2)
        self.is_publishing = False
        self.link: HTTPLink | None = None
        self._waiting: Message | None = None

    @property
    def outstanding(self) -> dict[int, int]:
        return {self._waiting.qos: 1} if self._waiting else {}

    @property
    def is_idle(self) -> bool:
        return self._waiting is None

    def connect(self, address: tuple[str, int]) -> None:
        self.link = HTTPLink(self.network, address, self._answer, self._closed)
        self.fill()

    def disconnect(self, *, abruptly: bool = False) -> None:
        if self.link is not None:
            self.link.close(abruptly=abruptly)

    def fill(self) -> None:
        if self.link is None or self._waiting is not None or not self.is_publishing:
            return
        message = self.ledger.new_message(
            self.topic, self.ledger.rng.choice(self.levels), is_repeated=False)
        message.sends = 1
        self._waiting = message
        self.link.post(
            f"/v1/publish?topic={quote(self.topic, safe='')}&qos={message.qos}", message.payload,
            ADMIN_TOKEN, "application/octet-stream")

    def _answer(self, status: int, body: bytes) -> None:
        assert self._waiting is not None
        message, self._waiting = self._waiting, None
        if status == 503:
            # The database does not keep up with small segments: nothing was published.
            message.is_void = True
        else:
            require(status == 200, f"POST of {message}: {status} {body[:200]!r}")
            message.is_acknowledged = True
        self._answered(status)

    def _answered(self, status: int) -> None:
        self.ledger.count(f"HTTP {status}")
        # After a refusal it waits for a call of `fill`.
        if status == 200:
            self.fill()

    def _closed(self) -> None:
        assert self.link is not None
        if self.link.was_ended_by_peer:
            self.ledger.note_cut_off(self.outstanding)
        self.link = None
        self._forget()

    def _forget(self) -> None:
        self._waiting = None


class OrderPublisher(HTTPPublisher):
    """Posts order status updates: each gets the next number of its channel."""

    def __init__(self, network: Network, ledger: Ledger, sales_id: str) -> None:
        super().__init__(network, ledger, f"orders/{sales_id}")
        self._sales_id = sales_id
        self.posted = 0
        self.acknowledged: list[str] = []
        """Identifiers of orders whose update must arrive."""
        self.refused: set[str] = set()
        """Identifiers of orders whose update must not arrive."""
        self._order: str | None = None

    @property
    def outstanding(self) -> dict[int, int]:
        return {1: 1} if self._order else {}

    @property
    def is_idle(self) -> bool:
        return self._order is None

    def fill(self) -> None:
        if self.link is None or self._order is not None or not self.is_publishing:
            return
        self.posted += 1
        self._order = f"order-{self.posted}"
        body = json.dumps({"sales_id": self._sales_id, "status": "APPROVED"}).encode()
        self.link.post(
            f"/v1/orders/{self._order}/status", body, ADMIN_TOKEN, "application/json")

    def _answer(self, status: int, body: bytes) -> None:
        assert self._order is not None
        order, self._order = self._order, None
        if status == 503:
            self.refused.add(order)
        else:
            require(status == 200, f"status of {order}: {status} {body[:200]!r}")
            self.acknowledged.append(order)
        self._answered(status)

    def _forget(self) -> None:
        self._order = None
