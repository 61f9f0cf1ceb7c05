"""Sent and acknowledged messages, and the deliveries that must follow."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


class Violation(AssertionError):
    """The broker broke its promise, or a rule of MQTT that a crash must not break."""


def require(condition: object, broken: str) -> None:
    if not condition:
        raise Violation(broken)


@dataclass
class Message:
    """One application message; `sequence` counts from 1 within its topic."""

    topic: str
    sequence: int
    payload: bytes
    qos: int
    life: int
    """The broker's life in which it was first sent."""
    sends: int = 0
    """Number of times it was sent; at QoS 1 each may become a message of its own."""
    is_acknowledged: bool = False
    """PUBACK or PUBREC has come, or HTTP 2xx: the broker owns it."""
    is_seen: bool = False
    """A receiver has it, so that a crash must not take it back: not from others either."""
    is_repeated: bool = True
    """Its publisher sends it until it is acknowledged, so that in the end it must be there."""
    is_void: bool = False
    """It must not come: a will that an acknowledged goodbye has removed, a POST that was refused."""

    def __str__(self) -> str:
        state = "acknowledged" if self.is_acknowledged else "unacknowledged"
        state += ", seen" if self.is_seen else ""
        return f"{self.topic} #{self.sequence} (QoS {self.qos}, {state}, of life {self.life})"


@dataclass
class Ledger:
    """The test's own memory, which survives every kill."""

    rng: random.Random
    life: int = 0
    topics: dict[str, list[Message]] = field(default_factory=dict)
    acknowledgements: dict[str, int] = field(default_factory=dict)
    """Received messages of each kind."""
    cut_off: dict[int, int] = field(default_factory=dict)
    """Exchanges that waited for the broker when it ended, by QoS; 0 is anything but a message."""
    _seen: dict[str, set[int]] = field(default_factory=dict)
    """Per topic: messages received without having been acknowledged, and not repeated."""

    def note_cut_off(self, outstanding: dict[int, int]) -> None:
        for qos, count in outstanding.items():
            self.cut_off[qos] = self.cut_off.get(qos, 0) + count

    def new_message(self, topic: str, qos: int, *, is_repeated: bool = True) -> Message:
        messages = self.topics.setdefault(topic, [])
        sequence = len(messages) + 1
        size = self.rng.choice((0, 20, 200, 1_000, 3_000))
        payload = f"{topic}\n{sequence}\n".encode() + self.rng.randbytes(size)
        message = Message(topic, sequence, payload, qos, self.life, is_repeated=is_repeated)
        messages.append(message)
        return message

    def find(self, topic: str, payload: bytes) -> Message:
        """The message that arrived, which must be whole."""
        parts = payload.split(b"\n", 2)
        messages = self.topics.get(topic, [])
        number = int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else 0
        require(
            parts[0] == topic.encode() and 0 < number <= len(messages),
            f"{topic} carries what nobody sent: {payload[:60]!r}")
        message = messages[number - 1]
        require(payload == message.payload, f"{message} arrived damaged: {payload[:60]!r}")
        require(not message.is_void, f"{message} came, and the broker had said that it would not")
        return message

    def see(self, message: Message) -> None:
        """A receiver got it, so it must be stored for all subscribed sessions already."""
        if not message.is_acknowledged and not message.is_repeated:
            self._seen.setdefault(message.topic, set()).add(message.sequence)
        message.is_seen = True

    def last_certain(self, topic: str) -> int:
        """The highest sequence that was acknowledged, or seen by anybody."""
        messages = self.topics.get(topic, [])
        return max(
            (one.sequence for one in messages if one.is_acknowledged or one.is_seen), default=0)

    def seen_before(self, topic: str, sequence: int) -> list[Message]:
        """Messages up to there that were received but never acknowledged, and not repeated."""
        return [
            self.topics[topic][one - 1]
            for one in sorted(self._seen.get(topic, ())) if one <= sequence]

    def count(self, kind: str) -> None:
        self.acknowledgements[kind] = self.acknowledgements.get(kind, 0) + 1


@dataclass
class _Arrivals:
    """One topic at one subscriber."""

    last: int = 0
    """The highest sequence that was delivered."""
    identifiers: dict[int, list[int]] = field(default_factory=dict)
    """Per sequence, the packet identifiers that it came with."""


class Mailbox:
    """Deliveries to one persistent session, checked on arrival."""

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger = ledger
        self._owner = owner
        self._topics: dict[str, _Arrivals] = {}

    def deliver(
        self, message: Message, qos: int, packet_id: int, *, is_duplicate: bool
    ) -> bool:
        """Notes a delivery; true if the message is new.

        For QoS 2 the caller has removed repetitions that the protocol itself recognises.
        """
        self._ledger.see(message)
        arrivals = self._topics.setdefault(message.topic, _Arrivals())
        known = arrivals.identifiers.setdefault(message.sequence, [])
        if known:
            require(qos == 1, f"{self._owner} got {message} twice, packets {[*known, packet_id]}")
            if is_duplicate and packet_id in known:
                return False
            known.append(packet_id)
            # Downgraded from QoS 2 it is still one message.
            most = message.sends if message.qos == 1 else 1
            require(
                len(known) <= most,
                f"{self._owner} got {message} as {len(known)} messages {known}, DUP "
                f"{is_duplicate}, but it was sent {most} times")
            return False
        known.append(packet_id)
        for skipped in range(arrivals.last + 1, message.sequence):
            self._require_optional(message.topic, skipped, f"{message} came first")
        require(
            message.sequence > arrivals.last,
            f"{self._owner} got {message} after #{arrivals.last} of its topic")
        arrivals.last = message.sequence
        return True

    def require_complete(self, topic: str, through: int) -> None:
        """All that was acknowledged or seen by others up to this sequence has come."""
        arrivals = self._topics.setdefault(topic, _Arrivals())
        for missing in range(arrivals.last + 1, through + 1):
            self._require_optional(topic, missing, "all that was queued has come")
        for message in self._ledger.seen_before(topic, through):
            require(
                message.sequence in arrivals.identifiers,
                f"{self._owner} misses {message}, which another receiver has")

    def last(self, topic: str) -> int:
        return self._topics[topic].last if topic in self._topics else 0

    def _require_optional(self, topic: str, sequence: int, seen: str) -> None:
        message = self._ledger.topics[topic][sequence - 1]
        require(
            not message.is_acknowledged and not message.is_repeated and not message.is_seen,
            f"{self._owner} misses {message}: {seen}")
