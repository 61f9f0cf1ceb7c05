"""Costly packets of one client: the others are answered meanwhile, and memory stays.

A stall is measured against the work that causes it, in the same run: the client that sends the
costly packets ends them with a PINGREQ, and its answer tells how long they took altogether. A broker
that handles them in one piece answers everybody else only then.
"""

from __future__ import annotations

import itertools
import time

import pytest

from harness import wire
from harness.raw_client import RawClient
from harness.wire import Pingresp

pytestmark = pytest.mark.hermesd("a turn of work is a rule of Hermes")

MEBI = 1024 * 1024


def answered_beside(quiet: RawClient, busy: RawClient, *packets: bytes) -> tuple[float, float]:
    """Sends costly packets; returns the longest PINGRESP of the quiet client, and their time."""
    begin = time.monotonic()
    busy.send(*packets, wire.PINGREQ)
    busy.socket.setblocking(False)
    longest = 0.0
    while True:
        sent = time.monotonic()
        quiet.ping()
        longest = max(longest, time.monotonic() - sent)
        try:
            busy.socket.recv(1, 2)  # MSG_PEEK
        except BlockingIOError:
            continue
        break
    busy.await_packet(Pingresp)
    return longest, time.monotonic() - begin


def test_matches_of_very_many_filters_hold_nobody_up(start_broker, raw):
    """32,768 filters match each topic of a burst; a match visits them all."""
    broker = start_broker()
    subscriber = raw(broker)
    subscriber.connect("subscriber")
    filters = ["/".join(levels) + "/#" for levels in itertools.product("a+", repeat=15)]
    for start in range(0, len(filters), 8_192):
        codes = subscriber.subscribe(*((name, 0) for name in filters[start : start + 8_192]))
        assert set(codes) == {0}
    quiet, busy = raw(broker), raw(broker)
    quiet.connect("quiet")
    busy.connect("busy")
    prefix = "/".join("a" * 15)
    burst = [wire.publish(f"{prefix}/{number}", b"") for number in range(300)]
    longest, whole = answered_beside(quiet, busy, *burst)
    assert longest < whole / 4, f"{longest:.3f} s of {whole:.3f} s"
    received = subscriber.messages_so_far()
    assert [one.topic for one in received] == [f"{prefix}/{number}" for number in range(300)]


def test_one_match_of_many_clients_filters_is_divided(start_broker, raw):
    """Eight clients' filters, 32,768 each, match each topic: others are answered amid a match.

    Were a match one piece, a quiet client would get one answer for each of them.
    """
    broker = start_broker()
    filters = ["/".join(levels) + "/#" for levels in itertools.product("a+", repeat=15)]
    chunks = [filters[start : start + 8_192] for start in range(0, len(filters), 8_192)]
    subscribers = [raw(broker) for _ in range(8)]
    for number, subscriber in enumerate(subscribers):
        subscriber.connect(f"subscriber-{number}")
        for chunk in chunks:
            assert set(subscriber.subscribe(*((name, 0) for name in chunk))) == {0}
    quiet, busy = raw(broker), raw(broker)
    quiet.connect("quiet")
    busy.connect("busy")
    prefix = "/".join("a" * 15)
    messages = 30
    busy.send(*(wire.publish(f"{prefix}/{number}") for number in range(messages)), wire.PINGREQ)
    busy.socket.setblocking(False)
    answers = 0
    while True:
        quiet.ping()
        answers += 1
        try:
            busy.socket.recv(1, 2)  # MSG_PEEK
        except BlockingIOError:
            continue
        break
    assert answers > 2 * messages, f"{answers} answers beside {messages} messages"
    for subscriber in subscribers:
        received = [one.topic for one in subscriber.messages_so_far()]
        assert received == [f"{prefix}/{number}" for number in range(messages)]


@pytest.mark.measures("memory")
def test_tiny_messages_to_a_thousand_subscribers_hold_nobody_up(start_broker, raw):
    """One read of 64 KiB becomes 8 million packets; they neither take all the time nor memory."""
    broker = start_broker()
    subscribers = [raw(broker) for _ in range(1_000)]
    for number, subscriber in enumerate(subscribers):
        subscriber.connect(f"subscriber-{number}")
        assert subscriber.subscribe(("t", 0)) == (0,)
    quiet, busy = raw(broker), raw(broker)
    quiet.connect("quiet")
    busy.connect("busy")
    before = broker.resident_bytes()
    burst = wire.publish("t", b"") * 8_000
    longest, whole = answered_beside(quiet, busy, burst)
    assert longest < whole / 4, f"{longest:.3f} s of {whole:.3f} s"
    assert broker.peak_resident_bytes() - before < 24 * MEBI
    assert len(subscribers[0].messages_so_far()) == 8_000


@pytest.mark.parametrize("rules", [1_000, 10_000])
def test_many_access_rules_hold_nobody_up(start_broker, raw, tmp_path, rules):
    """Ever new topics, each of which is compared with all rules to publish and to receive."""
    file = tmp_path / "acl"
    lines = [f"deny everyone both a/{number}" for number in range(rules)]
    file.write_text("\n".join([*lines, "allow everyone both #", ""]))
    file.chmod(0o600)
    broker = start_broker(arguments=("--acl-file", str(file)))
    subscribers = [raw(broker) for _ in range(50)]
    for number, subscriber in enumerate(subscribers):
        subscriber.connect(f"subscriber-{number}")
        assert subscriber.subscribe(("t/#", 0)) == (0,)
    quiet, busy = raw(broker), raw(broker)
    quiet.connect("quiet")
    busy.connect("busy")
    messages = 4_000_000 // rules
    burst = [wire.publish(f"t/{number}") for number in range(messages)]
    longest, whole = answered_beside(quiet, busy, *burst)
    assert longest < whole / 4, f"{longest:.3f} s of {whole:.3f} s"
    for subscriber in subscribers:
        received = [one.topic for one in subscriber.messages_so_far()]
        assert received == [f"t/{number}" for number in range(messages)]
