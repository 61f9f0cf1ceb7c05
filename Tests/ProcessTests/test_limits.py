"""Limits as sockets and the real binary meet them; docs/limits.md lists them all."""

import resource
import select
import socket
import time
from contextlib import ExitStack, closing

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import wire
from harness.admin import AdminAPI
from harness.broker import Hermesd, assert_names_known_limits
from harness.raw_client import RawClient
from harness.waiting import eventually
from harness.wire import Connack, Publish, Suback, Will

pytestmark = pytest.mark.hermesd("limits, their counters and log lines are hermesd's own")

MEBI = 1024 * 1024
TOPIC_BYTES = 65_535
SLACK = 0.25
"""Seconds that a deadline may be late by itself."""
BUSY = 0.75
"""Seconds more for a machine that does other work meanwhile."""


def reached(broker, limit):
    """The number of times a limit was met, in the metrics."""
    answer = AdminAPI(broker).request("GET", "/metrics")
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            if sample.name == "hermes_limit_reached_total" and sample.labels["limit"] == limit:
                return sample.value
    raise AssertionError(f"no series for {limit}")


def closing_time(connection, begin, patience=10):
    """Seconds from `begin` until the broker had closed."""
    connection.await_closed(patience)
    return time.monotonic() - begin


# --- time ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_alive", [1, 2, 3])
def test_keep_alive_is_exact(keep_alive, client, names):
    """[MQTT-3.1.2-24] 1.5 times, from the last whole packet: never early, hardly late."""
    silent = client("silent", keep_alive=keep_alive)
    begin = time.monotonic()
    silent.send(wire.PINGREQ)
    silent.expect(wire.Pingresp)
    taken = closing_time(silent, begin)
    assert 1.5 * keep_alive <= taken < 1.5 * keep_alive + SLACK + BUSY


def test_keep_alive_against_one_byte_a_second(client, names):
    """A packet of twelve bytes at 1 byte/s: none is whole, so none counts."""
    trickling = client("trickling", keep_alive=2)
    begin = time.monotonic()
    for byte in wire.publish(names.topic(), b"x")[:8]:
        trickling.socket.send(bytes([byte]))
        readable, _, _ = select.select([trickling.socket], [], [], 1.0)
        if readable:
            break
    taken = closing_time(trickling, begin)
    assert 2.9 < taken < 3.0 + SLACK + BUSY


def test_a_limit_on_keep_alive(start_broker, raw):
    broker = start_broker(environment={"HERMES_LIMITS_MAX_KEEP_ALIVE": "1s"})
    clients = []
    for number, keep_alive in enumerate((0, 60, 1)):
        clients.append(raw(broker))
        clients[-1].connect(f"c{number}", keep_alive=keep_alive)
    begin = time.monotonic()
    for one in clients:
        assert closing_time(one, begin) < 1.5 + SLACK + BUSY
    assert reached(broker, "max_keep_alive") == 2


def test_the_deadline_of_connect(start_broker, raw):
    """Bytes do not move it, and the log names the setting."""
    broker = start_broker(connect_timeout="1s")
    begin = time.monotonic()
    silent, trickling, punctual = raw(broker), raw(broker), raw(broker)
    connect = wire.connect("trickling")
    for byte in connect[:-1]:
        if time.monotonic() - begin > 0.9:
            break
        trickling.socket.send(bytes([byte]))
        select.select([trickling.socket], [], [], 0.05)
    punctual.connect("punctual")
    assert 1.0 <= closing_time(silent, begin) < 1.0 + SLACK + BUSY
    assert closing_time(trickling, begin) < 1.0 + SLACK + BUSY
    punctual.ping()
    assert reached(broker, "connect_timeout") == 2
    line = broker.log.await_match(r".*connect_timeout.*")[0]
    assert_names_known_limits(line)


# --- pausing -------------------------------------------------------------------------------


def test_a_fast_publisher_is_paused_and_lives(start_broker, raw, client, names):
    """It writes faster than the disk takes, reads nothing, and its keep alive is 1 s."""
    broker = start_broker(
        environment={
            "HERMES_LIMITS_MAX_UNACKNOWLEDGED_PUBLISHES": "10",
            "HERMES_LIMITS_QUEUE_MESSAGES": "60000",
        }
    )
    subscriber = raw(broker)
    subscriber.connect("subscriber", clean_session=False)
    subscriber.subscribe((names.topic(), 1))
    subscriber.disconnect()
    publisher = raw(broker, receive_buffer=4_096)
    publisher.connect("publisher", keep_alive=1)
    count = 20_000
    data = b"".join(
        wire.publish(names.topic(), str(number).encode(), qos=1, packet_id=number)
        for number in range(1, count + 1)
    )
    view, sent, begin = memoryview(data), 0, time.monotonic()
    publisher.socket.setblocking(False)
    while sent < len(data):
        _, writable, _ = select.select([], [publisher.socket], [], 30)
        assert writable, f"stuck after {sent} bytes"
        sent += publisher.socket.send(view[sent : sent + 65_536])
    for number in range(1, count + 1):
        assert publisher.expect(wire.Puback, 30) == wire.Puback(number)
    assert time.monotonic() - begin < 50
    assert reached(broker, "max_unacknowledged_publishes") > 0
    assert "limits.max_unacknowledged_publishes" in broker.log.await_match(".*ublisher paused.*")[0]
    publisher.ping()


def test_a_flood_of_unread_answers_ends_by_name(start_broker, raw):
    """PINGREQ is never held back; a peer that reads no answer is closed, and the log says why."""
    broker = start_broker(environment={"HERMES_LIMITS_OUTPUT_BYTES": "65536"})
    rude = raw(broker, receive_buffer=4_096)
    rude.connect("rude")
    bystander = raw(broker)
    bystander.connect("bystander")
    before = broker.resident_bytes()
    flood = wire.PINGREQ * 500_000
    closed = False
    for _ in range(40):
        try:
            rude.send(flood)
        except (BrokenPipeError, ConnectionResetError):
            closed = True
            break
    assert closed, "40 MB of PINGREQ without reading an answer"
    bystander.ping()
    assert broker.resident_bytes() - before < 16 * MEBI
    assert reached(broker, "output_bytes") >= 1
    line = broker.log.await_match(r".*closed at a limit.*rude.*")[0]
    assert "limits.output_bytes" in line


@pytest.mark.parametrize("kind", ["PUBACK", "PUBCOMP", "PUBREC", "PUBREL"])
def test_a_flood_of_acknowledgements_is_read_to_its_end(kind, start_broker, raw):
    """They must be read to free what they acknowledge: never paused, and no other client waits."""
    broker = start_broker()
    flooding, bystander = raw(broker), raw(broker)
    flooding.connect("flooding", clean_session=False)
    bystander.connect("bystander")
    before = broker.resident_bytes()
    packets = b"".join(
        wire.acknowledgement(wire.PacketType[kind], number) for number in range(1, 20_001)
    )
    slowest = 0.0
    for _ in range(5):
        flooding.send(packets)
        begin = time.monotonic()
        bystander.ping()
        slowest = max(slowest, time.monotonic() - begin)
    answers = {"PUBREC": wire.Pubrel, "PUBREL": wire.Pubcomp}
    if kind in answers:
        for number in [*range(1, 20_001)] * 5:
            assert flooding.expect(answers[kind]) == answers[kind](number)
    flooding.ping()
    assert slowest < 1.0
    assert broker.resident_bytes() - before < 16 * MEBI


@pytest.mark.measures("memory")
def test_peers_that_never_read_have_their_limit(start_broker, raw):
    """A tiny receive buffer, QoS 0 and 1, and retained messages: the output limit holds for all."""
    broker = start_broker(environment={"HERMES_LIMITS_OUTPUT_BYTES": "262144"})
    publisher = raw(broker)
    publisher.connect("publisher")
    for number in range(64):
        publisher.send(wire.publish(f"r/{number}", b"x" * 65_536, retain=True))
    publisher.ping()
    before = broker.resident_bytes()
    stalled = []
    for number in range(20):
        one = raw(broker, receive_buffer=1_024)
        one.connect(f"stalled{number}")
        one.send(wire.subscribe(1, ("r/#", 1), ("live", number % 2)))
        stalled.append(one)
    for number in range(200):
        publisher.publish("live", b"x" * 65_536, qos=1)
    grown = broker.resident_bytes() - before
    # 256 KiB and a message each, the kernel's buffers aside; 200 messages wait, stored once.
    assert grown < 20 * MEBI, f"{grown / MEBI:.1f} MiB more"
    assert reached(broker, "output_bytes") > 0
    line = broker.log.await_match(r".*Messages dropped.*")[0]
    assert "limits.output_bytes" in line
    publisher.ping()
    # They can still be served: the first retained message comes whole.
    message = stalled[0].receive_publish()
    assert message.retain and len(message.payload) == 65_536


# --- topics and subscriptions --------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_topics_of_65535_bytes(qos, start_broker, raw):
    """PUBLISH, SUBSCRIBE, retained, will, and UNSUBSCRIBE; across a restart of the client too."""
    broker = start_broker()
    topic = "long/" + "x" * (TOPIC_BYTES - 5)
    subscriber, publisher = raw(broker), raw(broker)
    subscriber.connect("subscriber", clean_session=False)
    assert subscriber.subscribe((topic, qos)) == (qos,)
    # CONNECT carries the same topic as a will: below the limit of 330 KiB.
    assert publisher.connect("publisher", will=Will(topic, b"will", qos, True)) == Connack(False, 0)
    publisher.publish(topic, b"live", qos=qos, retain=True)
    assert subscriber.take_message() == Publish(
        topic, b"live", qos, packet_id=1 if qos else None
    )
    subscriber.settle()
    subscriber.disconnect()
    if qos:
        publisher.publish(topic, b"queued", qos=qos)
    subscriber = raw(broker)
    assert subscriber.connect("subscriber", clean_session=False) == Connack(True, 0)
    if qos:
        assert subscriber.take_message().payload == b"queued"
        subscriber.settle()
    publisher.reset()
    assert subscriber.take_message().payload == b"will"
    subscriber.settle()
    subscriber.unsubscribe(topic)
    late = raw(broker)
    late.connect("late")
    assert late.subscribe(("long/+", qos)) == (qos,)
    message = late.take_message()
    assert (message.topic, message.payload, message.retain) == (topic, b"will", True)


@pytest.mark.timeout(180)
def test_100_000_subscriptions_of_one_client(start_broker, raw, capsys):
    """The default of limits.max_subscriptions; one more is answered with 0x80."""
    broker = start_broker()
    subscriber, publisher = raw(broker), raw(broker)
    subscriber.connect("subscriber", clean_session=False)
    publisher.connect("publisher")
    before, begin = broker.resident_bytes(), time.monotonic()
    count, batch = 100_000, 5_000
    for first in range(0, count, batch):
        filters = ((f"orders/{number}/+", 1) for number in range(first, first + batch))
        subscriber.send(wire.subscribe(first // batch + 1, *filters))
    for first in range(0, count, batch):
        assert subscriber.expect(Suback, 60) == Suback(first // batch + 1, (1,) * batch)
    subscribing = time.monotonic() - begin
    each = (broker.resident_bytes() - before) / count
    assert subscriber.subscribe(("one/more", 1), ("orders/7/+", 1)) == (0x80, 1)
    assert reached(broker, "max_subscriptions") == 1
    line = broker.log.await_match(r".*Subscription refused.*subscriber.*")[0]
    assert "limits.max_subscriptions" in line

    begin = time.monotonic()
    for number in range(0, count, 100):
        publisher.publish(f"orders/{number}/status", str(number).encode(), qos=1)
        assert int(subscriber.take_message().payload) == number
    delivering = time.monotonic() - begin

    begin = time.monotonic()
    subscriber.disconnect()
    again = raw(broker)
    assert again.connect("subscriber", clean_session=False) == Connack(True, 0)
    resuming = time.monotonic() - begin
    begin = time.monotonic()
    again.close()
    clean = raw(broker)
    assert clean.connect("subscriber", clean_session=True) == Connack(False, 0)
    removing = time.monotonic() - begin
    eventually(lambda: AdminAPI(broker).status()["subscriptions"] == 0, "no subscriptions left")
    with capsys.disabled():
        print(
            f"\n100,000 subscriptions: made in {subscribing:.2f} s, {each:.0f} bytes each, "
            f"1,000 messages in {delivering:.2f} s, resumed in {resuming * 1000:.1f} ms, "
            f"removed in {removing * 1000:.0f} ms"
        )


# --- sessions ------------------------------------------------------------------------------


def test_sessions_have_a_limit(start_broker, raw):
    broker = start_broker(environment={"HERMES_LIMITS_MAX_SESSIONS": "2"})
    first, second, third = raw(broker), raw(broker), raw(broker)
    first.connect("1", clean_session=False)
    second.connect("2", clean_session=False)
    assert third.connect("3", clean_session=False) == Connack(False, 3)
    assert third.await_closed() == []
    assert raw(broker).connect("3") == Connack(False, 0)
    first.disconnect()
    assert raw(broker).connect("1", clean_session=False) == Connack(True, 0)
    assert reached(broker, "max_sessions") == 1
    assert "limits.max_sessions" in broker.log.await_match(r".*Connection refused.*")[0]


def test_retained_messages_have_a_limit(hermesd, raw):
    """Further ones are delivered and not retained; a start loads all that the store has."""
    broker = hermesd()
    publisher = raw(broker)
    publisher.connect("publisher")
    for topic in ("a", "b", "c"):
        publisher.publish(topic, b"kept", qos=1, retain=True)
    broker.stop()

    broker = hermesd(data=broker.data, environment={"HERMES_LIMITS_MAX_RETAINED": "2"})
    live, publisher = raw(broker), raw(broker)
    live.connect("live")
    live.subscribe(("d", 0))
    publisher.connect("publisher")
    for qos in (0, 1, 2):
        publisher.publish("d", b"passing", qos=qos, retain=True)
        assert live.take_message().payload == b"passing"
    publisher.publish("a", b"replaced", qos=1, retain=True)
    late = raw(broker)
    late.connect("late")
    late.subscribe(("#", 0))
    messages = late.take_messages(3)
    late.settle()
    assert {(message.topic, message.payload) for message in messages} == {
        ("a", b"replaced"), ("b", b"kept"), ("c", b"kept"),
    }
    assert reached(broker, "max_retained") == 3
    line = broker.log.await_match(r".*Message not retained.*")[0]
    assert_names_known_limits(line)


def test_sessions_expire(start_broker, raw, names):
    """Sessions of offline clients expire, with their queues."""
    broker = start_broker(environment={"HERMES_LIMITS_SESSION_EXPIRY": "1s"})
    api = AdminAPI(broker)
    staying, leaving, publisher = raw(broker), raw(broker), raw(broker)
    staying.connect("staying", clean_session=False)
    leaving.connect("leaving", clean_session=False)
    leaving.subscribe((names.topic(), 1))
    publisher.connect("publisher")
    begin = time.monotonic()
    leaving.disconnect()
    publisher.publish(names.topic(), b"x", qos=1)
    assert api.status()["queued"] == 1
    eventually(lambda: reached(broker, "session_expiry") == 1, "the session to expire")
    assert 0.9 < time.monotonic() - begin < 1.0 + SLACK + BUSY
    status = api.status()
    assert (status["queued"], status["persistent_sessions"]) == (0, 1)
    assert raw(broker).connect("leaving", clean_session=False) == Connack(False, 0)
    staying.ping()


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
@pytest.mark.parametrize("limit", ["messages", "bytes"])
def test_a_full_queue(policy, limit, start_broker, raw):
    """Messages in flight stay; waiting ones are cut to the limit, counted and logged."""
    topic, size = "queue", 1_000
    # PUBLISH: two bytes of remaining length, the topic, the identifier.
    packet = 1 + 2 + 2 + len(topic) + 2 + size
    setting = {"messages": "5", "bytes": str(5 * packet)}[limit]
    broker = start_broker(
        max_in_flight=2,
        environment={
            f"HERMES_LIMITS_QUEUE_{limit.upper()}": setting,
            "HERMES_LIMITS_QUEUE_POLICY": policy,
            "HERMES_LIMITS_MAX_PACKET": "4096",
        },
    )
    phone, publisher = raw(broker), raw(broker)
    phone.connect("phone", clean_session=False)
    phone.subscribe((topic, 1))
    publisher.connect("publisher")
    payloads = [str(number).encode().rjust(size) for number in range(12)]
    for payload in payloads[:2]:
        publisher.publish(topic, payload, qos=1)
    assert [phone.receive_publish().payload for _ in range(2)] == payloads[:2]
    phone.close()
    eventually(lambda: AdminAPI(broker).status()["connections"] == 1, "the phone to be away")
    for payload in payloads[2:]:
        publisher.publish(topic, payload, qos=1)
    assert reached(broker, f"queue_{limit}") == 5
    assert_names_known_limits(broker.log.await_match(r".*Messages dropped.*phone.*")[0])
    phone = raw(broker)
    phone.connect("phone", clean_session=False)
    kept = payloads[7:] if policy == "drop_oldest" else payloads[2:7]
    assert [message.payload for message in phone.take_messages(7)] == payloads[:2] + kept
    assert phone.messages_so_far() == []


# --- connections ---------------------------------------------------------------------------


def test_connections_have_a_limit(start_broker, raw):
    """New ones are closed at once, the old ones live on, and a place that is free is taken."""
    broker = start_broker(environment={"HERMES_LIMITS_MAX_CONNECTIONS": "5"})
    clients = [raw(broker) for _ in range(5)]
    for number, one in enumerate(clients):
        one.connect(str(number))
    for _ in range(3):
        refused = raw(broker)
        assert refused.await_closed() == []
    for one in clients:
        one.ping()
    assert reached(broker, "max_connections") == 3
    line = broker.log.await_match(r".*New connections refused.*")[0]
    assert "limits.max_connections" in line
    clients[0].disconnect()
    eventually(lambda: AdminAPI(broker).status()["connections"] == 4, "a free place")
    raw(broker).connect("new")


def test_the_descriptors_run_out(start_broker, raw, names):
    """ulimit -n: connected clients and the HTTP API continue, new ones are rejected, it recovers.
    """
    broker = start_broker()
    pid = broker.process.pid
    before = broker.open_descriptors()
    limit = before + 40
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
    old = [raw(broker) for _ in range(10)]
    for number, one in enumerate(old):
        one.connect(str(number), clean_session=False)
        one.subscribe((names.topic(), 1))
    many = [raw(broker) for _ in range(100)]
    served = []
    for number, one in enumerate(many):
        try:
            one.send(wire.connect(f"many{number}"))
            one.expect(Connack)
            served.append(one)
        except (AssertionError, BrokenPipeError, ConnectionResetError):
            continue
    assert 0 < len(served) <= 30
    old[0].publish(names.topic(), b"still here", qos=1)
    for one in old:
        assert one.take_message().payload == b"still here"
    line = broker.log.await_match(r".*New connections refused.*")[0]
    assert "ulimit -n" in line
    for one in many:
        one.close()
    eventually(
        lambda: broker.open_descriptors() <= before + 11, "the broker to close its descriptors"
    )
    raw(broker).connect("new")
    assert reached(broker, "open_files") >= 1
    for one in old:
        one.ping()


class FewDescriptors(Hermesd):
    """A broker that may open 120 files."""

    def command(self):
        return ["prlimit", "--nofile=120:120", *super().command()]


def test_few_descriptors_are_shared_and_told():
    with ExitStack() as stack:
        broker = FewDescriptors()
        broker.start()
        stack.callback(broker.remove_files)
        stack.callback(broker.stop)
        assert broker.log.await_match(r"WARNING .*Few descriptors .*descriptors=120.*ulimit -n")
        # They have no token, and leave places for those that have one.
        for _ in range(100):
            stack.enter_context(closing(socket.create_connection(broker.admin_address)))
        for number in range(20):
            one = stack.enter_context(closing(RawClient(broker.address)))
            one.connect(f"few-{number}")
        assert AdminAPI(broker).status()["connections"] == 20
