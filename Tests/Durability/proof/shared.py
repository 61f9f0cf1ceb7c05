"""Members of a shared subscription: each message is one member's, and no crash makes it nobody's."""

from __future__ import annotations

from harness import wire
from harness.wire import Publish, ServerPacket, Unsuback

from .ledger import Ledger, Message, require
from .network import Network
from .subscriber import Subscriber

FILTER = "$share/pool/sh/#"


class Pool:
    """What all members together were given.

    All sessions are persistent and none ends, so a QoS 2 message comes to one of them, once. There is
    no order across members, and none within one that was given what another had not been sent.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._arrivals: dict[tuple[str, int], set[tuple[str, int]]] = {}
        """Per topic and sequence, who got it with which packet identifiers."""

    def deliver(self, member: str, message: Message, packet: Publish) -> None:
        self._ledger.see(message)
        arrivals = self._arrivals.setdefault((message.topic, message.sequence), set())
        arrival = (member, packet.packet_id or 0)
        if arrival in arrivals and packet.dup and message.qos == 1:
            return
        require(
            len(arrivals) < (message.sends if message.qos == 1 else 1),
            f"{member} got {message}, sent {message.sends} times, as {arrival} after {arrivals}")
        arrivals.add(arrival)

    def require_complete(self, topic: str, through: int) -> None:
        """What was acknowledged up to this sequence has come to somebody."""
        for message in self._ledger.topics.get(topic, [])[:through]:
            require(
                not message.is_acknowledged or (topic, message.sequence) in self._arrivals,
                f"no member of the shared subscription got {message}")


class SharedMember(Subscriber):
    """One session in the group; if it is `restless`, it leaves the group and joins it again."""

    def __init__(
        self, network: Network, ledger: Ledger, name: str, pool: Pool, *, restless: bool
    ) -> None:
        super().__init__(network, ledger, name, [(FILTER, 2), ("sentinel", 1)])
        self._pool = pool
        self._restless = restless
        self._leaving: int | None = None
        """Packet identifier of an UNSUBSCRIBE without its answer."""

    @property
    def outstanding(self) -> dict[int, int]:
        waiting = super().outstanding
        return waiting | {0: 1} if self._leaving else waiting

    def wants(self, topic: str) -> bool:
        # The group's messages are counted by the pool.
        return topic == "sentinel"

    def step(self) -> None:
        """Leaves the group, now and then: what it was not sent becomes another member's."""
        if self._restless and self.is_connected and self.is_subscribed and not self._leaving:
            self._leaving = self.next_identifier()
            # Whatever becomes of it, the next connection subscribes.
            self.is_subscribed = False
            self.send(wire.unsubscribe(self._leaving, FILTER))

    def closed(self) -> None:
        self._leaving = None
        super().closed()

    def receive(self, packet: ServerPacket) -> None:
        if isinstance(packet, Unsuback):
            require(packet.packet_id == self._leaving, f"{self.name} got {packet}")
            self.ledger.count("UNSUBACK")
            self._leaving = None
            self.subscribe()
            return
        super().receive(packet)

    def delivered(self, message: Message, packet: Publish) -> None:
        if packet.topic == "sentinel":
            super().delivered(message, packet)
        else:
            self._pool.deliver(self.name, message, packet)
