"""Packets and sessions with very many filters: the other clients do not wait for them."""

import random
import select
import time

import pytest

from harness import wire
from harness.waiting import Deadline
from harness.wire import Connack, Suback, Unsuback

RESPONSIVE = 0.03
"""Seconds that a round trip of another client may take meanwhile; usually under 2 ms."""
ROUNDS = 3
"""Another process of the machine may get in the way in one round, but hardly in all."""


@pytest.fixture
def quiet_broker(start_broker):
    return start_broker(environment={
        "HERMES_DURABILITY": "none", "HERMES_LIMITS_MAX_SUBSCRIPTIONS": "2000000",
        "HERMES_LIMITS_MAX_PACKET": "4MiB", "HERMES_LIMITS_SUBSCRIPTION_BYTES": "1GiB",
        "HERMES_LIMITS_SESSION_BYTES": "off",
    })


@pytest.fixture
def bystander(quiet_broker, client):
    return client("bystander", quiet_broker)


def slowest_ping(bystander, is_over):
    """The slowest round trip of another client until `is_over` returns true."""
    slowest, deadline = 0.0, Deadline(20.0, "the answer")
    while not is_over():
        begin = time.monotonic()
        bystander.ping()
        slowest = max(slowest, time.monotonic() - begin)
        assert not deadline.is_over, deadline.failure()
    return slowest


def has_arrived(connection):
    return lambda: bool(select.select([connection.socket], [], [], 0)[0])


def has_passed(seconds):
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def slowest_ping_during(bystander, connection, packet):
    """The same from the last byte of a packet to its answer, which is left to be read."""
    connection.send(packet[:-1])
    bystander.ping()
    connection.send(packet[-1:])
    return slowest_ping(bystander, has_arrived(connection))


def deep_filters(round_number):
    """As many filters of one packet as are looked at, each of 127 levels: 2.6 MB."""
    return [f"{round_number}-{number}" + "/y" * 126 for number in range(10_000)]


@pytest.mark.hermesd("measures its turns")
@pytest.mark.measures("time")
def test_nobody_waits_for_a_subscribe_of_deep_filters(quiet_broker, bystander, client):
    one = client("one", quiet_broker)
    subscribing, unsubscribing = [], []
    for number in range(ROUNDS):
        filters = deep_filters(number)
        packet = wire.subscribe(1, *((name, 0) for name in filters))
        subscribing.append(slowest_ping_during(bystander, one, packet))
        assert one.expect(Suback).return_codes == (0,) * len(filters)
        packet = wire.unsubscribe(2, *filters)
        unsubscribing.append(slowest_ping_during(bystander, one, packet))
        assert one.expect(Unsuback).packet_id == 2
    assert (min(subscribing), min(unsubscribing)) < (RESPONSIVE, RESPONSIVE)
    assert min(unsubscribing) < RESPONSIVE


def subscribe_many(connection, filters):
    for first in range(0, len(filters), 10_000):
        part = filters[first : first + 10_000]
        assert connection.subscribe(*((name, 1) for name in part)) == (1,) * len(part)


@pytest.mark.hermesd("measures its turns")
def test_nobody_waits_for_the_end_of_a_session_with_many_filters(quiet_broker, bystander, client):
    ending = []
    for number in range(ROUNDS):
        one = client("one", quiet_broker)
        subscribe_many(one, [f"{number}/{other}/a/b/c/d" for other in range(100_000)])
        one.send(wire.DISCONNECT)
        ending.append(slowest_ping(bystander, has_passed(0.5)))
    assert min(ending) < RESPONSIVE


@pytest.mark.hermesd("measures its turns")
@pytest.mark.measures("time")
def test_nobody_waits_for_a_member_of_many_shared_groups(
    quiet_broker, bystander, client, raw, names
):
    coming, going = [], []
    groups = [f"$share/g{number}/a" for number in range(500_000)]
    subscribe_many(client("other", quiet_broker), groups)
    one = client("one", quiet_broker, clean_session=False)
    # In another order than the groups have in memory.
    random.Random(1).shuffle(groups)
    subscribe_many(one, groups)
    for _ in range(ROUNDS):
        one.send(wire.DISCONNECT)
        going.append(slowest_ping(bystander, has_passed(0.3)))
        one = raw(quiet_broker)
        one.send(wire.connect(names.client("one"), clean_session=False))
        coming.append(slowest_ping(bystander, has_passed(0.3)))
        assert one.expect(Connack).session_present
    assert (min(coming), min(going)) < (RESPONSIVE, RESPONSIVE)
    assert min(going) < RESPONSIVE
