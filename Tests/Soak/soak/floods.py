"""Loads that ask much of the broker with few bytes: matches, fan-out, retained messages, filters."""

from __future__ import annotations

import itertools
import selectors
import socket
import time

from harness import wire
from harness.raw_client import RawClient
from harness.waiting import PATIENCE

from .load import STRANGER, Load

BURST = 500
FILTER_LEVELS = 15
SUBSCRIBERS = 1_000


def unseen_topics(load: Load) -> None:
    """All filters `{a,+}^15/#` of one client, and bursts of publishes to topics nobody has named."""
    holder = load.client(load.name("filters"))
    names = ("/".join(levels) + "/#" for levels in itertools.product("a+", repeat=FILTER_LEVELS))
    while chunk := list(itertools.islice(names, 1_000)):
        holder.subscribe(*((name, 0) for name in chunk))
        if not load.goes_on:
            return
    publisher = load.client(load.name("unseen"))
    stem = "/".join("a" * FILTER_LEVELS)
    while load.goes_on:
        publisher.send(*(
            wire.publish(f"{stem}/{load.rng.randrange(1 << 40):x}") for _ in range(BURST)))
        _ping(publisher)
        holder.messages_so_far()
        load.notes["bursts"] += 1


def _ping(client: RawClient, patience: float = 60.0) -> None:
    client.send(wire.PINGREQ)
    client.await_packet(wire.Pingresp, patience)


def changing_subscriptions(load: Load) -> None:
    """Others' subscriptions come and go, each change of which tells the broker to match anew."""
    client = load.client(load.name("changing"))
    while load.goes_on:
        name = f"changing/{load.rng.randrange(1_000)}/+"
        client.subscribe((name, 0))
        client.unsubscribe(name)
        load.notes["changes"] += 2


def tiny_fan_out(load: Load) -> None:
    """64 KiB of the smallest publishes, each for 1,000 subscribers."""
    selector = selectors.DefaultSelector()
    topic = load.name("f")[:4]
    for number in range(SUBSCRIBERS):
        one = socket.create_connection(load.target.plain, PATIENCE, (STRANGER, 0))
        one.sendall(wire.connect(f"fan-{number}") + wire.subscribe(1, (topic, 0)))
        selector.register(one, selectors.EVENT_READ)
    publisher = load.client(load.name("fan-out"))
    packet = wire.publish(topic)
    burst = packet * (65_536 // len(packet))
    buffer = bytearray(1 << 20)

    def drain(seconds: float) -> int:
        """Reads until nothing has come for so long."""
        total, quiet = 0, time.monotonic() + seconds
        while time.monotonic() < quiet:
            for key, _ in selector.select(0.01):
                assert isinstance(key.fileobj, socket.socket)
                count = key.fileobj.recv_into(buffer)
                assert count, "a subscriber that reads was disconnected"
                total += count
                quiet = time.monotonic() + seconds
        return total

    drain(0.5)
    try:
        while load.goes_on:
            publisher.send(burst)
            load.notes["MiB received"] += drain(0.2) >> 20
            load.notes["bursts"] += 1
    finally:
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        selector.close()


def retained_pin(load: Load) -> None:
    """A walk that never ends, while deep topics are retained and removed beneath it."""
    name = load.name("pin")
    pin = load.client(f"{name}-reader")
    setter = load.client(f"{name}-setter")
    setter.send(*(wire.publish(f"{name}/{n}", b"x", retain=True) for n in range(100)))
    _ping(setter)
    pin.send(wire.subscribe(1, (f"{name}/#", 1)))
    number = 0
    while load.goes_on:
        topics = []
        for _ in range(100):
            number += 1
            topics.append("/".join([name, f"{number:x}", *"abcdefgh" * 15])[:1_000])
        setter.send(*(wire.publish(one, b"x", retain=True) for one in topics))
        setter.send(*(wire.publish(one, b"", retain=True) for one in topics))
        _ping(setter)
        pin.send(wire.PINGREQ)
        load.notes["topics"] += len(topics)
    setter.send(*(wire.publish(f"{name}/{n}", b"", retain=True) for n in range(100)))
    _ping(setter)


def long_identifiers(load: Load) -> None:
    """Persistent sessions whose identifiers, user names and filters are as long as they may be."""
    known: list[str] = []
    while load.goes_on:
        for length in (65_000, 1_000):
            name = load.name("long").ljust(length, "x")
            client = load.socket()
            with load.may_be_closed():
                connack = client.connect(
                    name, clean_session=False, user_name="u" * 60_000, password=b"")
                if connack.return_code == 0:
                    client.subscribe(("/".join("f" * 100).ljust(60_000, "y"), 1))
                    known.append(name)
                    client.send(wire.DISCONNECT)
                load.notes[f"{length}: code {connack.return_code}"] += 1
            load.drop(client)
    for name in known:
        # They would stay until they expire.
        with load.may_be_closed():
            client = load.socket()
            client.connect(name)
            client.disconnect()


def large_subscribes(load: Load) -> None:
    """SUBSCRIBE and UNSUBSCRIBE of 1 MB, of filters with 127 levels."""
    client = load.client(load.name("subscribes"))
    while load.goes_on:
        stem = "/".join(["l"] * 126)
        names = [f"{stem}/{load.rng.randrange(1 << 24):x}" for _ in range(3_900)]
        client.send(wire.subscribe(1, *((name, 0) for name in names)))
        client.await_packet(wire.Suback, 60)
        client.send(wire.unsubscribe(2, *names))
        client.await_packet(wire.Unsuback, 60)
        load.notes["packets"] += 2


def shared_members(load: Load) -> None:
    """A client with very many memberships in shared groups comes and goes."""
    name = load.name("member")
    first = load.client(name, clean_session=False)
    for chunk in range(20):
        first.subscribe(*((f"$share/g{chunk}-{n}/{name}/{n}", 1) for n in range(500)))
    first.send(wire.DISCONNECT)
    while load.goes_on:
        again = load.client(name, clean_session=False)
        again.ping()
        again.disconnect()
        load.notes["returns"] += 1
    load.client(name).disconnect()
