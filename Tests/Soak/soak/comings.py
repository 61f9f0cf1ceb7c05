"""Loads of clients that come and go: storms, take-overs, queues of the absent."""

from __future__ import annotations

import contextlib
import socket

from harness import wire
from harness.raw_client import RawClient
from harness.waiting import PATIENCE
from harness.wire import Publish, Pubrel, Will

from .load import Load


def storm(load: Load) -> None:
    """Connections as fast as they go: with and without TLS, with wills, sessions, hasty ends."""
    number = 0
    while load.goes_on:
        number += 1
        one = load.socket(is_tls=number % 3 == 0)
        one.connect(
            f"storm-{number % 500}", clean_session=number % 4 != 0,
            will=Will("storm/will", b"gone", qos=number % 3))
        one.subscribe((f"storm/{number % 50}/+", number % 3), ("storm/all", 0))
        if number % 5 == 0:
            with load.may_be_closed():
                one.reset()
        else:
            one.send(wire.DISCONNECT)
        load.drop(one)
        load.notes["clients"] += 1
    for name in range(0, 500, 4):
        load.client(f"storm-{name}").disconnect()


def take_overs(load: Load) -> None:
    """A second connection takes each session over in the middle of its deliveries: every message
    arrives, those of QoS 2 once, and in order."""
    topic = load.name("take-over")
    publisher = load.client(f"{topic}-p")
    while load.goes_on:
        name, qos = load.name("phone"), load.rng.choice((1, 2))
        first = load.client(name, clean_session=False)
        first.subscribe((topic, qos))
        count = load.rng.randrange(1, 30)
        payloads = [f"{name} {number}".encode() for number in range(count)]
        for payload in payloads:
            publisher.publish(topic, payload, qos=qos)
        seen: dict[int, bytes] = {}
        # Of QoS 2 as many as may be in flight: their exchanges stay open.
        for _ in range(load.rng.randrange(min(count, 20))):
            with load.may_be_closed():
                message = first.receive_publish()
                identifier = message.packet_id or 0
                seen[identifier] = message.payload
                first.send(wire.puback(identifier) if qos == 1 else wire.pubrec(identifier))
        second = load.client(name, is_tls=load.rng.random() < 0.3, clean_session=False)
        with load.may_be_closed():
            first.await_closed()
        _take_the_rest(second, qos, payloads, seen)
        second.disconnect()
        load.client(name).disconnect()
        for one in (first, second):
            load.drop(one)
        load.notes["take-overs"] += 1
        load.notes["messages"] += count


def _take_the_rest(
    client: RawClient, qos: int, payloads: list[bytes], seen: dict[int, bytes]
) -> None:
    """Acknowledges until every message has come and all exchanges have ended.

    `seen` has what came before, by packet identifier; it was answered with PUBACK or PUBREC.
    """
    came = list(seen.values())
    unreleased = dict(seen) if qos == 2 else {}
    while payloads[-1] not in came or unreleased:
        packet = client.receive(30)
        if isinstance(packet, Pubrel):
            unreleased.pop(packet.packet_id, None)
            client.send(wire.pubcomp(packet.packet_id))
            continue
        assert isinstance(packet, Publish), packet
        identifier = packet.packet_id or 0
        if qos == 1:
            client.send(wire.puback(identifier))
        else:
            client.send(wire.pubrec(identifier))
            if unreleased.get(identifier) == packet.payload:
                assert packet.dup, f"sent again without DUP: {packet}"
                continue
            unreleased[identifier] = packet.payload
        came.append(packet.payload)
    new = list(dict.fromkeys(came))
    assert new == payloads, f"QoS {qos}: of {len(payloads)} came {new}, seen before {len(seen)}"
    assert qos == 1 or len(came) == len(payloads), f"QoS 2, some twice: {came}"


def absent_receivers(load: Load) -> None:
    """Queues fill while their clients are away, beyond their limit too, and are read again."""
    topic = load.name("absent")
    publisher = load.client(f"{topic}-p")
    names = [f"{topic}-{number}" for number in range(5)]
    for name in names:
        one = load.client(name, clean_session=False)
        one.subscribe((topic, 1))
        one.disconnect()
        load.drop(one)
    number = 0
    while load.goes_on:
        count = load.rng.randrange(100, 2_000)
        for begin in range(0, count, 50):
            identifiers = [publisher.next_identifier() for _ in range(50)]
            publisher.send(*(
                wire.publish(topic, f"{number + begin + n}".encode().ljust(200), qos=1,
                             packet_id=one)
                for n, one in enumerate(identifiers)))
            for _ in identifiers:
                publisher.await_packet(wire.Puback, 60)
        number += -(-count // 50) * 50
        name = load.rng.choice(names)
        one = load.client(name, clean_session=False, is_tls=load.rng.random() < 0.3)
        last = -1
        while last < number - 1:
            value = int(one.take_message(30).payload)
            assert value > last, f"{name} got {value} after {last}"
            last = value
            load.notes["messages"] += 1
        one.disconnect()
        load.drop(one)
    for name in names:
        load.client(name).disconnect()


def half_open(load: Load) -> None:
    """Connections that stop in the middle of a packet and are kept, up to their deadlines."""
    held: list[socket.socket] = []
    pieces = (b"\x10", b"\x10\x20\x00\x04MQ", wire.connect("h") + b"\x30\xff\xff\x3f\x00\x01a",
              wire.connect("i") + wire.publish("half/open", b"x" * 500)[:-1])
    while load.goes_on:
        one = socket.create_connection(load.target.plain, PATIENCE)
        with contextlib.suppress(OSError):
            one.sendall(load.rng.choice(pieces))
        held.append(one)
        if len(held) > 400:
            held.pop(0).close()
        load.notes["peers"] += 1
    for one in held:
        one.close()
