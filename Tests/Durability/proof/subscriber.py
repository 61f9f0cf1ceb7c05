"""Subscribers with persistent sessions, which keep what a real client would keep on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from harness import wire
from harness.wire import Publish, Pubrel, ServerPacket, Suback

from .actor import Actor
from .ledger import Ledger, Mailbox, Message, require
from .network import Network


class Subscriber(Actor):
    """Takes messages, acknowledges them late, and checks each against the ledger."""

    def __init__(
        self, network: Network, ledger: Ledger, name: str, filters: Sequence[tuple[str, int]], *,
        held_back: int = 0,
    ) -> None:
        """`held_back` acknowledgements are kept until more messages come."""
        super().__init__(network, ledger, name)
        self.filters = filters
        self.held_back = held_back
        self.mailbox = Mailbox(ledger, name)
        self.is_subscribed = False
        self._count = 0
        self._acknowledgements: deque[tuple[int, bytes, bool]] = deque()
        """Packet identifier, packet, and whether it ends the exchange."""
        self._unacknowledged: dict[int, Message] = {}
        """Received, and neither PUBACK nor PUBREC sent: it must come again as it was."""
        self._received: dict[int, Message] = {}
        """QoS 2 between our PUBREC and the PUBREL that answers it."""
        self._owed_again: list[int] = []
        """Packets that must be re-sent on this connection, in this order."""
        self._arrivals: dict[int, tuple[int, Message]] = {}
        """Per packet identifier: the message and its number when it first arrived."""

    @property
    def outstanding(self) -> dict[int, int]:
        waiting = super().outstanding
        if self._received:
            waiting[2] = len(self._received)
        return waiting

    def connected(self, session_present: bool) -> None:
        self._owed_again = sorted(
            self._unacknowledged, key=lambda identifier: self._arrivals[identifier][0])
        # A SUBSCRIBE that the crash cut off may have been stored; without its answer it is sent again.
        if not self.is_subscribed:
            self.subscribe()

    def subscribe(self) -> None:
        self.send(wire.subscribe(self.next_identifier(), *self.filters))

    def closed(self) -> None:
        # An unsent decision does not count; the message arrives again.
        self._acknowledgements.clear()

    def acknowledge(self, keep: int = 0) -> None:
        """Sends the acknowledgements that were held back, but for the last ones."""
        while len(self._acknowledgements) > keep:
            identifier, packet, ends = self._acknowledgements.popleft()
            message = self._unacknowledged.pop(identifier, None)
            if message is not None and not ends:
                self._received[identifier] = message
            self.send(packet)

    def receive(self, packet: ServerPacket) -> None:
        if isinstance(packet, Suback):
            require(
                packet.return_codes == tuple(qos for _, qos in self.filters),
                f"{self.name}: {packet}")
            self.is_subscribed = True
            self.ledger.count("SUBACK")
            return
        if isinstance(packet, Pubrel):
            # Unknown here means that PUBCOMP went out and the crash came before it was stored.
            self._received.pop(packet.packet_id, None)
            self._acknowledgements.append(
                (packet.packet_id, wire.pubcomp(packet.packet_id), True))
        else:
            require(isinstance(packet, Publish), f"{self.name} got {packet}")
            assert isinstance(packet, Publish)
            self._take(packet)
        self.acknowledge(self.held_back)

    def is_settled(self) -> bool:
        """Nothing is owed to the broker, and nothing is owed again by it."""
        return not self._unacknowledged and not self._received and not self._owed_again

    def wants(self, topic: str) -> bool:
        return any(_matches(name, topic) for name, _ in self.filters)

    def find(self, packet: Publish) -> Message:
        return self.ledger.find(packet.topic, packet.payload)

    def delivered(self, message: Message, packet: Publish) -> None:
        """The message came; in QoS 2 this is the one time that it does."""
        assert packet.packet_id is not None
        self.mailbox.deliver(
            message, packet.qos, packet.packet_id, is_duplicate=packet.dup)

    def _take(self, packet: Publish) -> None:
        message = self.find(packet)
        granted = next(
            (qos for name, qos in self.filters if _matches(name, packet.topic)), None)
        require(granted is not None, f"{self.name} got {message} and did not subscribe to it")
        assert granted is not None
        qos = min(message.qos, granted)
        require(packet.qos == qos, f"{self.name} got {message} with QoS {packet.qos}, not {qos}")
        identifier = packet.packet_id
        if identifier is None:
            return
        waiting = self._unacknowledged.get(identifier)
        if identifier not in self._arrivals or self._arrivals[identifier][1] is not message:
            self._count += 1
            self._arrivals[identifier] = (self._count, message)
        self._check_order(packet, identifier, message)
        if identifier in self._received:
            # PUBREC was sent and may be lost; the message is not delivered again [MQTT-4.3.3-2].
            require(
                self._received[identifier] is message and packet.dup,
                f"{self.name}: identifier {identifier} still is {self._received[identifier]}, "
                f"and came as {message}, DUP {packet.dup}")
        elif waiting is not None:
            require(
                waiting is message and packet.dup,
                f"{self.name}: identifier {identifier} still is {waiting}, and came as {message}, "
                f"DUP {packet.dup}")
            if packet.qos == 1:
                self.delivered(message, packet)
        else:
            open_as = [key for key, value in self._unacknowledged.items() if value is message]
            require(
                packet.qos == 1 or not open_as,
                f"{self.name}: {message} was in flight as {open_as}, and comes as {identifier}")
            self.delivered(message, packet)
            self._unacknowledged[identifier] = message
        if qos == 1:
            self._acknowledgements.append((identifier, wire.puback(identifier), True))
        else:
            self._acknowledgements.append((identifier, wire.pubrec(identifier), False))

    def _check_order(self, packet: Publish, identifier: int, message: Message) -> None:
        """Re-sent messages arrive in the order of their first delivery [MQTT-4.6.0-1]."""
        if identifier in self._owed_again:
            require(
                self._owed_again[0] == identifier,
                f"{self.name}: {message} is sent again before what was sent earlier, identifiers "
                f"{self._owed_again}")
            self._owed_again.pop(0)
        else:
            require(
                not self._owed_again or packet.dup,
                f"{self.name}: {message} is sent before identifiers {self._owed_again} again")


def _matches(name: str, topic: str) -> bool:
    name = name.split("/", 2)[2] if name.startswith("$share/") else name
    levels, wanted = topic.split("/"), name.split("/")
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index >= len(levels) or level not in ("+", levels[index]):
            return False
    return len(levels) == len(wanted)
