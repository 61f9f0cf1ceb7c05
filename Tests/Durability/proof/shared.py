"""Members of a shared subscription: each message goes to one member, and no crash loses it."""

from __future__ import annotations

from harness import wire
from harness.wire import Publish, ServerPacket, Suback, Unsuback

from .actor import Actor
from .ledger import Ledger, Message, require
from .network import Network
from .subscriber import Subscriber

FILTER = "$share/pool/sh/#"
QUITTERS_FILTER = "$share/quitters/sh/1"
"""A group with members whose sessions end; its messages have QoS 1."""


class Pool:
    """Deliveries to all members together.

    If all sessions are persistent and none ends, a QoS 2 message arrives once, at one of them.
    Order holds neither across members nor within a member that takes over another's messages.
    """

    def __init__(self, ledger: Ledger, *, sessions_end: bool = False) -> None:
        """With `sessions_end`, another member gets the unacknowledged messages of an ended
        session."""
        self._ledger = ledger
        self._sessions_end = sessions_end
        self._arrivals: dict[tuple[str, int], set[tuple[str, int]]] = {}
        """Per topic and sequence: the receivers and their packet identifiers."""

    def deliver(self, member: str, message: Message, packet: Publish) -> None:
        self._ledger.see(message)
        arrivals = self._arrivals.setdefault((message.topic, message.sequence), set())
        arrival = (member, packet.packet_id or 0)
        if arrival in arrivals and packet.dup and message.qos == 1:
            return
        require(
            self._sessions_end or len(arrivals) < (message.sends if message.qos == 1 else 1),
            f"{member} got {message}, sent {message.sends} times, as {arrival} after {arrivals}")
        arrivals.add(arrival)

    def require_complete(self, topic: str, through: int) -> None:
        """Checks that each acknowledged message up to this sequence has arrived."""
        missing = self.missing(topic, through)
        require(missing is None, f"no member of the shared subscription got {missing}")

    def missing(self, topic: str, through: int) -> Message | None:
        """The first acknowledged message up to this sequence that has not arrived."""
        for message in self._ledger.topics.get(topic, [])[:through]:
            if message.is_acknowledged and (topic, message.sequence) not in self._arrivals:
                return message
        return None


class SharedMember(Subscriber):
    """One session in the group; if it is `restless`, it leaves the group and joins it again."""

    def __init__(
        self, network: Network, ledger: Ledger, name: str, pool: Pool, *, restless: bool,
        group: tuple[str, int] = (FILTER, 2),
    ) -> None:
        super().__init__(network, ledger, name, [group, ("sentinel", 1)])
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
        """Sometimes leaves the group: its unsent messages go to another member."""
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


class Quitter(Actor):
    """A member that acknowledges half of its messages and then removes its session."""

    def __init__(self, network: Network, ledger: Ledger, name: str, pool: Pool) -> None:
        super().__init__(network, ledger, name)
        self._pool = pool

    def step(self, address: tuple[str, int]) -> None:
        """Comes or goes; each time it comes, its session may end."""
        rng = self.ledger.rng
        if self.link is None:
            self.connect(address, clean_session=rng.random() < 0.4)
        elif self.is_connected:
            self.disconnect(abruptly=rng.random() < 0.5)

    def connected(self, session_present: bool) -> None:
        if not self._asked_clean:
            self.send(wire.subscribe(self.next_identifier(), (QUITTERS_FILTER, 1)))

    def receive(self, packet: ServerPacket) -> None:
        if isinstance(packet, Suback):
            require(packet.return_codes == (1,), f"{self.name}: {packet}")
            return
        require(isinstance(packet, Publish), f"{self.name} got {packet}")
        assert isinstance(packet, Publish)
        # Unacknowledged messages do not count: other members must get them.
        if self.ledger.rng.random() < 0.5:
            self._pool.deliver(
                self.name, self.ledger.find(packet.topic, packet.payload), packet)
            self.send(wire.puback(packet.packet_id or 0))
