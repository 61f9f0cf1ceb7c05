"""A phone with a persistent session that comes and goes, and keeps what it has received."""

from __future__ import annotations

from harness import wire
from harness.wire import Connack, Publish, Pubrel, ServerPacket, Suback
from proof.ledger import require
from proof.network import Link, Network

from .envelope import Update, decode


class Phone:
    """The sales person's phone; it subscribes to its channel of orders.

    Repeats are told by their sequence, as an app would; the broker may send one only at QoS 1, and
    with DUP.
    """

    def __init__(self, network: Network, sales: str, qos: int) -> None:
        self._network = network
        self.sales = sales
        self.client = f"phone-{sales}"
        self.qos = qos
        self.link: Link | None = None
        self.is_subscribed = False
        self.updates: dict[int, Update] = {}
        """By sequence."""
        self._sequences: dict[str, int] = {}
        self.newest: dict[str, Update] = {}
        """Of each order."""
        self.repeats = 0
        self._is_open = False
        self._unreleased: set[int] = set()
        """Packet identifiers between PUBREC and PUBREL."""

    def __str__(self) -> str:
        return f"phone {self.sales} (QoS {self.qos})"

    def connect(self, address: tuple[str, int]) -> None:
        assert self.link is None
        self.link = self._network.open(address, self._receive, self._closed)
        self.link.send(wire.connect(self.client, clean_session=False))

    def leave(self, *, abruptly: bool) -> None:
        if self.link is None:
            return
        if not abruptly:
            self.link.send(wire.DISCONNECT)
        self.link.close(abruptly=abruptly)

    @property
    def is_ready(self) -> bool:
        return self.link is not None and self._is_open and self.is_subscribed

    def has(self, message_id: str) -> bool:
        return message_id in self._sequences

    @property
    def holes(self) -> set[int]:
        """Sequences that never came, and that no update explains."""
        missing = set(range(1, max(self.updates, default=0) + 1)) - set(self.updates)
        for update in self.updates.values():
            missing.difference_update(update.superseded)
        return missing

    def _closed(self) -> None:
        self.link = None
        self._is_open = False

    def _send(self, packet: bytes) -> None:
        if self.link is not None:
            self.link.send(packet)

    def _receive(self, packet: ServerPacket) -> None:
        match packet:
            case Connack():
                require(packet.return_code == 0, f"{self} was refused: {packet}")
                require(
                    packet.session_present or not self.is_subscribed, f"{self}: no session")
                self._is_open = True
                if not self.is_subscribed:
                    self._send(wire.subscribe(1, (f"orders/{self.sales}/+/status", self.qos)))
            case Suback():
                require(packet.return_codes == (self.qos,), f"{self} got {packet}")
                self.is_subscribed = True
            case Pubrel():
                self._unreleased.discard(packet.packet_id)
                self._send(wire.pubcomp(packet.packet_id))
            case Publish(qos=1):
                self._take(packet)
                self._send(wire.puback(packet.packet_id or 0))
            case Publish(qos=2):
                identifier = packet.packet_id or 0
                if identifier not in self._unreleased:
                    self._take(packet)
                    self._unreleased.add(identifier)
                self._send(wire.pubrec(identifier))
            case _:
                require(False, f"{self} got {packet}")

    def _take(self, packet: Publish) -> None:
        update = decode(packet.payload)
        require(packet.qos == self.qos, f"{self} got {packet}")
        require(update.channel == f"orders/{self.sales}", f"{self} got {update}")
        former = self.updates.get(update.sequence)
        if former is not None:
            require(former == update, f"{self} got {update} with the sequence of {former}")
            require(
                self.qos == 1 and packet.dup, f"{self} got {update} twice, DUP {packet.dup}")
            self.repeats += 1
            return
        require(
            update.message_id not in self._sequences,
            f"{self} got {update}, published before as {self._sequences.get(update.message_id)}")
        newest = self.newest.get(update.order)
        require(
            newest is None
            or (newest.sequence < update.sequence and int(newest.reason) < int(update.reason)),
            f"{self} got {update} behind {newest}")
        self.updates[update.sequence] = update
        self._sequences[update.message_id] = update.sequence
        self.newest[update.order] = update
