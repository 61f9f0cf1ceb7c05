"""A client with a clean session that is there whenever the broker is."""

from __future__ import annotations

from harness import wire
from harness.wire import Publish, Pubrel, ServerPacket, Suback

from .actor import Actor
from .ledger import Ledger, Message, require
from .network import Network


class Witness(Actor):
    """Records all packets that leave the broker, and checks that no crash revokes them.

    Its clean session gets each message once: a second delivery after a crash means that the
    message was delivered before it was stored, and then published again.
    """

    FILTERS = (("t/#", 2), ("h/#", 2), ("w/#", 2), ("r/#", 2), ("sh/#", 2))

    def __init__(self, network: Network, ledger: Ledger) -> None:
        super().__init__(network, ledger, "witness")
        self.is_ready = False
        self._has_seen: set[tuple[str, int]] = set()

    def connected(self, session_present: bool) -> None:
        self.is_ready = False
        self.send(wire.subscribe(1, *self.FILTERS))

    def closed(self) -> None:
        self.is_ready = False

    def receive(self, packet: ServerPacket) -> None:
        if isinstance(packet, Suback):
            self.is_ready = True
        elif isinstance(packet, Pubrel):
            self.send(wire.pubcomp(packet.packet_id))
        else:
            require(isinstance(packet, Publish), f"{self.name} got {packet}")
            assert isinstance(packet, Publish)
            if packet.qos == 1:
                self.send(wire.puback(packet.packet_id or 0))
            elif packet.qos == 2:
                self.send(wire.pubrec(packet.packet_id or 0))
            # The one that removes a retained message has no payload, and nothing tells which it is.
            if packet.payload:
                self._see(self.ledger.find(packet.topic, packet.payload), packet)

    def _see(self, message: Message, packet: Publish) -> None:
        self.ledger.see(message)
        if packet.retain:
            return
        require(not packet.dup, f"{self.name} got {packet} with DUP and a clean session")
        key = (message.topic, message.sequence)
        # A publisher that repeats a QoS 1 message makes it a new one.
        require(
            key not in self._has_seen or (message.qos == 1 and message.sends > 1),
            f"{self.name} got {message} twice: a crash took it back after it had been delivered")
        self._has_seen.add(key)
