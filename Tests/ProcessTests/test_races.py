"""Races over TCP against the real binary; docs/limits.md draws them."""

import select
import socket
import time
from collections import defaultdict

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import Hermesd
from harness.raw_client import RawClient
from harness.waiting import Deadline, eventually
from harness.wire import Connack, PacketReader, Puback, Publish, Pubrel, Suback

pytestmark = pytest.mark.hermesd("sessions, counters and the store are looked at")

CLIENTS = 5_000
"""One in ten uses the identifier of all other such clients."""


# Files that the journal of a default configuration keeps open at most.
JOURNAL_SEGMENTS = 8


@pytest.fixture
def races(start_broker):
    return start_broker()


@pytest.fixture
def connect(races, raw):
    """Connects a client with a session that is kept, unless told otherwise."""

    def connect_one(name, clean_session=False):
        one = raw(races)
        one.connack = one.connect(name, clean_session=clean_session)
        assert one.connack.return_code == 0
        return one

    return connect_one


def values_so_far(one):
    """Numbers that have come up to a ping, acknowledged (QoS 1)."""
    messages = one.messages_so_far()
    one.send(*(wire.puback(message.packet_id) for message in messages))
    return [int(message.payload) for message in messages]


def counts(broker, *names):
    status = AdminAPI(broker).status()
    return tuple(status[name] for name in names)


# --- one client ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["disconnect", "close", "reset", "take_over"])
def test_reconnecting_while_commits_are_pending(end, races, raw, connect):
    """A QoS 2 exchange, the close, CONNECT and the re-sent packets, all in one write."""
    witness = connect("witness")
    witness.subscribe(("race", 2))
    expected = []
    device = connect("device")
    for number in range(1, 201):
        payload = str(number).encode()
        device.send(
            wire.publish("race", payload, qos=2, packet_id=number),
            wire.DISCONNECT if end == "disconnect" else b"",
        )
        expected.append(payload)
        # The next one is there before the first has got its PUBREC.
        following = raw(races)
        if end == "close":
            device.close()
        elif end == "reset" and number % 2:
            # The broker may never see the PUBLISH.
            device.reset()
        following.send(
            wire.connect("device", clean_session=False),
            wire.publish("race", payload, qos=2, dup=True, packet_id=number),
            wire.pubrel(number),
        )
        assert following.expect(Connack) == Connack(True, 0)
        assert following.expect(wire.Pubrec) == wire.Pubrec(number)
        assert following.expect(wire.Pubcomp) == wire.Pubcomp(number)
        if end != "close":
            device.close()
        device = following
    received = [message.payload for message in witness.take_messages(len(expected))]
    assert received == expected
    assert witness.messages_so_far() == []
    eventually(
        lambda: counts(races, "connections", "sessions", "queued", "in_flight") == (2, 2, 0, 0),
        "two clients, and nothing left",
    )


def test_taking_over_at_every_step_of_qos_2(races, raw, connect):
    """The exchange goes on where it was; each message is seen once."""
    publisher = connect("publisher")
    phone = connect("phone")
    phone.subscribe(("race", 2))
    for number in range(40):
        publisher.publish("race", str(number).encode(), qos=2)
    seen, unreleased, step = [], {}, 0
    deadline = Deadline(30, "forty messages")
    while len(seen) < 40 or unreleased:
        assert not deadline.is_over, f"{len(seen)} messages, open are {unreleased}"
        try:
            packet = phone.receive(2.0)
        except AssertionError:
            continue
        if isinstance(packet, Publish):
            if packet.packet_id not in unreleased:
                seen.append(int(packet.payload))
            assert unreleased.setdefault(packet.packet_id, packet.payload) == packet.payload
            phone.send(wire.pubrec(packet.packet_id))
        elif isinstance(packet, Pubrel):
            unreleased.pop(packet.packet_id, None)
            phone.send(wire.pubcomp(packet.packet_id))
        step += 1
        if step % 3 == 0 and step < 200:
            # Packets on their way to the old connection are lost; its session is not.
            old, phone = phone, raw(races)
            assert phone.connect("phone", clean_session=False) == Connack(True, 0)
            old.close()
    assert sorted(seen) == list(range(40))
    assert seen == sorted(seen), "QoS 2 keeps its order [MQTT-4.6.0-1]"
    eventually(lambda: counts(races, "in_flight", "queued") == (0, 0), "nothing left")


@pytest.mark.parametrize("clean_session", [False, True])
def test_connecting_while_the_queue_is_read(clean_session, races, raw, connect):
    """A queue of the store's; a client that comes, goes and comes again before it has read it."""
    phone, publisher = connect("phone"), connect("publisher")
    phone.subscribe(("race", 1))
    phone.disconnect()
    for number in range(900):
        publisher.send(wire.publish("race", str(number).encode(), qos=1, packet_id=number + 1))
    for number in range(900):
        assert publisher.await_packet(Puback) == Puback(number + 1)
    hasty = []
    for _ in range(30):
        one = raw(races)
        one.send(wire.connect("phone", clean_session=False))
        hasty.append(one)
        if len(hasty) % 3 == 0:
            one.send(wire.DISCONNECT)
        elif len(hasty) % 3 == 1:
            one.close()
    last = raw(races)
    connack = last.connect("phone", clean_session=clean_session)
    assert connack == Connack(not clean_session, 0)
    if clean_session:
        assert last.messages_so_far() == []
        assert counts(races, "queued", "in_flight", "subscriptions") == (0, 0, 0)
    else:
        assert [int(one.payload) for one in last.take_messages(900)] == list(range(900))
        assert last.messages_so_far() == []
    eventually(
        lambda: counts(races, "connections", "connections_pending") == (2, 0),
        "the phone and the publisher",
    )


def test_subscribing_while_retained_messages_are_published(races, connect):
    """A new subscriber gets an acknowledged value or a newer one, and none older after it."""
    publisher = connect("publisher")
    subscriber = connect("subscriber", clean_session=True)
    latest = -1
    for number in range(300):
        publisher.send(
            wire.publish("race", str(number).encode(), qos=1, retain=True, packet_id=number + 1)
        )
        if number % 3 == 0:
            subscriber.unsubscribe("race")
            values_so_far(subscriber)
            acknowledged = latest
            assert subscriber.subscribe(("race", 1)) == (1,)
            first = subscriber.take_message()
            assert int(first.payload) >= acknowledged, "a value older than the acknowledged one"
            if first.retain:
                assert all(one >= int(first.payload) for one in values_so_far(subscriber))
        if number % 7 == 0:
            while latest < number:
                latest = publisher.expect(Puback).packet_id - 1


def test_a_queue_survives_qos_0_that_waited_for_a_commit(start_broker, raw):
    """A client goes between a PUBLISH and its commit; the broker restarts; nothing is missing.

    QoS 0 messages took places in the queue, and counted as if they were in it.
    """
    broker = start_broker()
    phone, other, publisher = raw(broker), raw(broker), raw(broker)
    phone.connect("phone", clean_session=False)
    phone.subscribe(("unsure", 0), ("sure", 1))
    other.connect("other", clean_session=False)
    other.subscribe(("unsure", 1))
    publisher.connect("publisher")
    publisher.publish("sure", b"in flight", qos=1)
    assert phone.receive_publish().payload == b"in flight"
    publisher.send(
        *(wire.publish("unsure", b"x", qos=1, packet_id=number) for number in range(10, 60))
    )
    phone.send(wire.DISCONNECT)
    for number in range(10, 60):
        assert publisher.await_packet(Puback) == Puback(number)
    publisher.publish("sure", b"waiting", qos=1)
    assert broker.stop() == 0

    second = Hermesd(broker.settings, data=broker.data)
    second.start()
    try:
        phone = RawClient(second.address)
        assert phone.connect("phone", clean_session=False) == Connack(True, 0)
        sure = []
        while len(sure) < 2:
            message = phone.take_message()
            if message.topic == "sure":
                sure.append(message.payload)
        assert sure == [b"in flight", b"waiting"]
        phone.close()
    finally:
        assert second.stop() == 0


# --- five thousand clients -----------------------------------------------------------------


class Crowd:
    """Thousands of sockets, driven by one epoll."""

    def __init__(self, address):
        self.address = address
        self.epoll = select.epoll()
        self.sockets = {}
        self.readers = {}
        self.names = {}
        self.outbox = {}

    def connect(self, name, *packets):
        """Opens a connection and sends all at once, without waiting for anything."""
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.setblocking(False)
        one.connect_ex(self.address)
        number = one.fileno()
        self.sockets[number], self.readers[number] = one, PacketReader()
        self.names[number] = name
        self.epoll.register(number, select.EPOLLOUT)
        self.outbox[number] = b"".join(packets)
        return number

    def run(self, handle, until, what, within=90):
        """Gives every packet to `handle(number, packet)`, `None` at the end of a connection."""
        deadline = Deadline(within, what)
        while not until():
            if deadline.is_over:
                raise deadline.failure(f"{len(self.sockets)} connections")
            for number, events in self.epoll.poll(0.1):
                if number not in self.sockets:
                    continue
                if events & select.EPOLLOUT and number in self.outbox:
                    try:
                        self.sockets[number].send(self.outbox.pop(number))
                    except OSError:
                        self.drop(number)
                        handle(number, None)
                        continue
                    self.epoll.modify(number, select.EPOLLIN)
                elif events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    self.read(number, handle)

    def read(self, number, handle):
        try:
            data = self.sockets[number].recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.readers[number].feed(data)
            while number in self.sockets and (packet := self.readers[number].next()) is not None:
                handle(number, packet)
            return
        self.drop(number)
        handle(number, None)

    def send(self, number, data):
        try:
            self.sockets[number].send(data)
        except OSError:
            pass  # The end of it is on its way.

    def drop(self, number):
        self.epoll.unregister(number)
        self.sockets.pop(number).close()
        self.outbox.pop(number, None)

    def close(self):
        for number in list(self.sockets):
            self.drop(number)
        self.epoll.close()


@pytest.fixture
def crowd(races):
    one = Crowd(races.address)
    yield one
    one.close()


def identifier(number):
    return "everybody" if number % 10 == 0 else f"phone{number}"


@pytest.mark.timeout(300)
def test_5000_clients_reconnect_at_once(races, crowd, connect, capsys):
    """One in ten with the same identifier: one connection each, every session whole, nothing leaks.

    Each phone has two messages in flight and three waiting when all of them lose their connections.
    """
    office = connect("office")
    before = races.open_descriptors()
    names = sorted({identifier(number) for number in range(CLIENTS)})

    # Everybody subscribes, and gets two messages that it does not acknowledge.
    subscribed, received = set(), defaultdict(list)

    def first(number, packet):
        name = crowd.names[number]
        if isinstance(packet, Suback):
            subscribed.add(name)
        elif isinstance(packet, Publish):
            received[name].append(packet)
        assert packet is not None, f"{name} was closed"

    for name in names:
        crowd.connect(
            name, wire.connect(name, clean_session=False), wire.subscribe(1, (f"to/{name}", 1))
        )
    crowd.run(first, lambda: len(subscribed) == len(names), "every SUBACK")

    def publish(payload):
        for start in range(0, len(names), 500):
            part = names[start : start + 500]
            office.send(
                *(
                    wire.publish(f"to/{name}", payload, qos=1, packet_id=number + 1)
                    for number, name in enumerate(part)
                )
            )
            for number in range(len(part)):
                assert office.expect(Puback, 30) == Puback(number + 1)

    for payload in (b"0", b"1"):
        publish(payload)
    crowd.run(
        first, lambda: sum(map(len, received.values())) == 2 * len(names), "two messages each"
    )
    for number in list(crowd.sockets):
        crowd.drop(number)
    eventually(lambda: counts(races, "connections") == (1,), "all to be gone", within=30)
    for payload in (b"2", b"3", b"4"):
        publish(payload)
    assert counts(races, "queued", "in_flight") == (3 * len(names), 2 * len(names))

    # All at once, twice over for good measure of take-overs.
    begin = time.monotonic()
    delivered, open_connections = defaultdict(list), defaultdict(set)
    refused = []

    def again(number, packet):
        name = crowd.names[number]
        if packet is None:
            open_connections[name].discard(number)
        elif isinstance(packet, Connack):
            if packet != Connack(True, 0):
                refused.append((name, packet))
            open_connections[name].add(number)
        elif isinstance(packet, Publish):
            delivered[name].append(packet)
            crowd.send(number, wire.puback(packet.packet_id))

    for number in range(CLIENTS):
        crowd.connect(identifier(number), wire.connect(identifier(number), clean_session=False))

    def is_settled():
        return (
            len(crowd.sockets) == len(names)
            and len(open_connections) == len(names)
            and all(len({one.payload for one in delivered[name]}) == 5 for name in names)
            and all(len(one) == 1 for one in open_connections.values())
        )

    crowd.run(again, is_settled, "one connection per identifier with all its messages")
    took = time.monotonic() - begin
    assert refused == []

    for name in names:
        messages = delivered[name]
        order = list(dict.fromkeys(one.payload for one in messages))
        assert order == [b"0", b"1", b"2", b"3", b"4"], f"{name}: {order}"
        if name != "everybody":
            assert [one.payload for one in messages] == order, f"{name} got a message twice"
            assert [one.dup for one in messages] == [True, True, False, False, False], name
        by_payload = defaultdict(set)
        for one in messages:
            by_payload[one.payload].add(one.packet_id)
        assert all(len(one) == 1 for one in by_payload.values()), f"{name}: identifiers changed"

    status = eventually(
        lambda: (found := AdminAPI(races).status())["in_flight"] == 0 and found,
        "the last acknowledgements",
    )
    expected = {
        "connections": len(names) + 1, "connections_pending": 0, "sessions": len(names) + 1,
        "persistent_sessions": len(names) + 1, "subscriptions": len(names), "queued": 0,
        "queued_bytes": 0,
    }
    assert {key: status[key] for key in expected} == expected
    # The journal may have opened segments meanwhile.
    own = races.open_descriptors() - before - len(names)
    assert 0 <= own <= JOURNAL_SEGMENTS
    assert status["protocol_violations"] == 0
    crowd.close()
    crowd.epoll = select.epoll()
    eventually(
        lambda: races.open_descriptors() <= before + JOURNAL_SEGMENTS,
        "every descriptor to be closed", within=30,
    )
    assert counts(races, "connections", "sessions") == (1, len(names) + 1)
    office.ping()
    with capsys.disabled():
        print(f"\n{CLIENTS} clients, {len(names)} identifiers: settled in {took:.2f} s")


def test_one_identifier_and_a_thousand_connections(races, crowd, connect):
    """Of clean and kept sessions in turn: the last one lives, and it is whole."""
    watcher = connect("watcher")
    watcher.subscribe(("will", 1))
    answered = {}

    def handle(number, packet):
        if isinstance(packet, Connack):
            assert packet.return_code == 0
            answered[number] = packet
        elif packet is None:
            answered.setdefault(number, None)

    numbers = [
        crowd.connect(
            "everybody",
            wire.connect(
                "everybody", clean_session=number % 2 == 0,
                will=wire.Will("will", str(number).encode(), 1),
            ),
        )
        for number in range(1_000)
    ]
    crowd.run(handle, lambda: len(crowd.sockets) == 1, "one to be left", within=60)
    survivor = next(iter(crowd.sockets))
    crowd.run(handle, lambda: answered.get(survivor) is not None, "its CONNACK")
    assert counts(races, "connections", "connections_pending") == (2, 0)
    # A connection that was accepted leaves its will once, another none.
    accepted = sum(isinstance(answered.get(number), Connack) for number in numbers)
    assert accepted >= 1
    wills = [message.payload for message in watcher.take_messages(accepted - 1)]
    assert len(set(wills)) == len(wills)
    extra = watcher.messages_so_far()
    # Accepted and taken over before its CONNACK could be read.
    assert len({one.payload for one in extra} | set(wills)) == len(wills) + len(extra)
