"""Clients that change their state in the broker: subscriptions, sessions, wills."""

from __future__ import annotations

from harness import wire
from harness.wire import Publish, Pubrel, ServerPacket, Suback, Unsuback, Will

from .actor import Actor
from .ledger import Ledger, Message, require
from .network import Network
from .subscriber import Subscriber

FILTERS = 4
MARK = FILTERS
"""The last filter, whose message arrives after the others'."""
Granted = int | None
"""The QoS of a subscription, or `None` where there is none."""


class Restless(Actor):
    """Subscribes, unsubscribes, disconnects, reconnects, and removes its session."""

    def __init__(self, network: Network, ledger: Ledger, name: str) -> None:
        super().__init__(network, ledger, name)
        self._possible: list[set[Granted]] = [{None} for _ in range(FILTERS + 1)]
        """The possible subscriptions per filter."""
        self._asked: tuple[int, int, Granted] | None = None
        """Packet identifier, filter, and the subscription after the acknowledgement."""
        self._probes: dict[int, bytes] = {}
        self._probe_qos = 2
        self._arrived: dict[int, int] = {}

    def topic(self, index: int) -> str:
        return f"s/{self.name}/{index}"

    @property
    def outstanding(self) -> dict[int, int]:
        return {0: 1} if self._asked else super().outstanding

    @property
    def is_idle(self) -> bool:
        return self.is_connected and self._asked is None

    def step(self, address: tuple[str, int]) -> None:
        """Begins the next change, when nothing is under way."""
        if self._asked is not None:
            return
        rng = self.ledger.rng
        if self.link is None:
            self.connect(address, clean_session=rng.random() < 0.3)
        elif self.is_connected:
            choice = rng.random()
            if choice < 0.15:
                self.disconnect(abruptly=choice < 0.07)
            else:
                self.ask(rng.randrange(FILTERS), rng.choice((None, 0, 1, 2)))

    def ask(self, index: int, granted: Granted) -> None:
        """Subscribes to a filter with this QoS, or unsubscribes."""
        identifier = self.next_identifier()
        self._asked = (identifier, index, granted)
        self._possible[index] = self._possible[index] | {granted}
        if granted is None:
            self.send(wire.unsubscribe(identifier, self.topic(index)))
        else:
            self.send(wire.subscribe(identifier, (self.topic(index), granted)))

    def connect(
        self, address: tuple[str, int], *, clean_session: bool = False, will: Will | None = None
    ) -> None:
        # A session that this CONNECT finds may have been made by one that was never answered.
        if False in self.session_exists:
            self._possible = [
                known | {None} if True in self.session_exists else {None}
                for known in self._possible]
        super().connect(address, clean_session=clean_session, will=will)

    def connected(self, session_present: bool) -> None:
        if not session_present:
            self._possible = [{None} for _ in range(FILTERS + 1)]

    def closed(self) -> None:
        self._asked = None

    def receive(self, packet: ServerPacket) -> None:
        if isinstance(packet, (Suback, Unsuback)):
            require(
                self._asked is not None and packet.packet_id == self._asked[0],
                f"{self.name} got {packet} for {self._asked}")
            assert self._asked is not None
            _, index, granted = self._asked
            if isinstance(packet, Suback):
                require(packet.return_codes == (granted,), f"{self.name}: {packet}")
            self._possible[index] = {granted}
            self._asked = None
            self.ledger.count(type(packet).__name__.upper())
        elif isinstance(packet, Pubrel):
            self.send(wire.pubcomp(packet.packet_id))
        else:
            require(isinstance(packet, Publish), f"{self.name} got {packet}")
            assert isinstance(packet, Publish)
            if packet.qos == 1:
                self.send(wire.puback(packet.packet_id or 0))
            elif packet.qos == 2:
                self.send(wire.pubrec(packet.packet_id or 0))
            index = int(packet.topic.rsplit("/", 1)[1])
            # An acknowledgement of an earlier request, which a crash cut off, does not count.
            if packet.payload == self._probes.get(index):
                self._arrived[index] = packet.qos

    # --- state in the broker ---------------------------------------------------------------

    def expect(self, probes: list[Message]) -> None:
        """One message per filter is under way, the mark's last; all have the same QoS."""
        self._probes = {index: probe.payload for index, probe in enumerate(probes)}
        self._probe_qos = probes[0].qos
        self._arrived = {}

    @property
    def has_answer(self) -> bool:
        return MARK in self._arrived

    def check(self) -> None:
        """The probes came where a subscription must be, and nowhere else."""
        for index, possible in enumerate(self._possible):
            found = self._arrived.get(index)
            fitting = {
                granted for granted in possible
                if found == (None if granted is None else min(granted, self._probe_qos))}
            require(
                fitting,
                f"{self.name}: filter {index} got a QoS {self._probe_qos} message with QoS {found}, "
                f"but the answers that came allow subscriptions {possible}")
            self._possible[index] = fitting


class Mortal(Actor):
    """Connects with a will; ends with the broker, or with DISCONNECT before.

    Sometimes it has no will: then CONNACK means that the old will is removed.
    """

    def __init__(self, network: Network, ledger: Ledger, name: str, qos: int) -> None:
        super().__init__(network, ledger, name)
        self.topic = f"w/{name}"
        self._qos = qos
        self._will: Message | None = None
        self._farewell: Message | None = None

    @property
    def dead(self) -> int:
        """Wills up to this number have had their occasion."""
        count = len(self.ledger.topics.get(self.topic, []))
        return count - 1 if self.link is not None and self._will is not None else count

    def live(self, address: tuple[str, int]) -> None:
        self._will = None
        if self._farewell is not None and self.ledger.rng.random() < 0.5:
            self.connect(address)
            return
        self._will = self.ledger.new_message(self.topic, self._qos, is_repeated=False)
        self._will.sends = 1
        self.connect(address, will=Will(self.topic, self._will.payload, qos=self._qos))

    def connected(self, session_present: bool) -> None:
        if self._will is not None:
            # From now on a crash publishes it: as good as any other acknowledged message.
            self._will.is_acknowledged = True
        farewell, self._farewell = self._farewell, None
        if farewell is not None and farewell.life == self.ledger.life:
            # This CONNACK speaks of all that came before, the goodbye too.
            farewell.is_void = True

    def say_goodbye(self) -> None:
        if self._will is not None:
            # DISCONNECT has no answer, so a crash behind it may still find the will.
            self._will.is_acknowledged = False
            if self.is_connected and self._will.life == self.ledger.life:
                self._farewell = self._will
        self.disconnect()

    def receive(self, packet: ServerPacket) -> None:
        require(False, f"{self.name} got {packet}")


class OrderWatcher(Subscriber):
    """Sees that the numbers of a channel come one by one."""

    def __init__(self, network: Network, ledger: Ledger, name: str) -> None:
        super().__init__(network, ledger, name, [("orders/#", 1), ("sentinel", 1)])
        self.orders: dict[str, int] = {}
        """Order identifiers that came, with the number of their update."""
        self._updates: dict[int, Message] = {}
        self._identifiers: dict[int, int] = {}

    def find(self, packet: Publish) -> Message:
        if packet.topic == "sentinel":
            return super().find(packet)
        number = _sequence(packet.payload)
        known = self._updates.get(number)
        if known is None:
            known = self._updates[number] = Message(
                packet.topic, number, packet.payload, 1, self.ledger.life)
        require(
            known.payload == packet.payload and known.topic == packet.topic,
            f"{self.name}: number {number} of the channel is {known.topic} and {packet.topic}")
        return known

    def delivered(self, message: Message, packet: Publish) -> None:
        if packet.topic == "sentinel":
            super().delivered(message, packet)
            return
        number = message.sequence
        assert packet.packet_id is not None
        if number in self._identifiers:
            require(
                packet.dup and self._identifiers[number] == packet.packet_id,
                f"{self.name}: update {number} came as {self._identifiers[number]} and {packet}")
            return
        require(
            number == len(self._identifiers) + 1,
            f"{self.name}: update {number} came after {len(self._identifiers)}")
        order = packet.topic.split("/")[2]
        require(
            order not in self.orders,
            f"{self.name}: {order} came as {self.orders.get(order)} and {number}")
        self._identifiers[number] = packet.packet_id
        self.orders[order] = number


def _sequence(envelope: bytes) -> int:
    """Field 14 of a `hermes.v1.Envelope`."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = envelope[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while position < len(envelope):
        key = varint()
        if key & 7 == 0:
            value = varint()
            if key >> 3 == 14:
                return value
        else:
            require(key & 7 == 2, f"an envelope with wire type {key & 7}")
            length = varint()
            position += length
    require(False, "an envelope without a sequence")
    return 0
