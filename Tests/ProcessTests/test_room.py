"""State that outlives its connection: its bytes are bounded, and it keeps no newcomer out."""

from __future__ import annotations

import contextlib
import time

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.broker import FromFile, Hermesd
from harness.raw_client import RawClient
from harness.waiting import eventually
from harness.wire import Connack, Will

pytestmark = pytest.mark.hermesd("the limits are its own")

MIB = 1024 * 1024
# A machine under load answers late; a broker that takes no newcomers does not answer at all.
LONGEST_PING = 3


def status(broker: Hermesd) -> dict:
    return AdminAPI(broker).status()


def reached(broker: Hermesd, limit: str) -> int:
    return status(broker)["limits_reached"].get(limit, 0)


def name(number: int, size: int) -> str:
    return f"{number}-".ljust(size, "x")


def ping_time(client: RawClient) -> float:
    begin = time.monotonic()
    client.ping()
    return time.monotonic() - begin


def assert_newcomers_get_in(broker: Hermesd, raw) -> None:
    """Somebody new connects, subscribes and gets a message."""
    newcomer = raw(broker)
    assert newcomer.connect("newcomer", will=Will("newcomer/gone", b"!")) == Connack(False, 0)
    assert newcomer.subscribe(("newcomer/inbox", 1)) == (1,)
    newcomer.publish("newcomer/inbox", b"hello", qos=1)
    assert newcomer.take_message().payload == b"hello"
    newcomer.disconnect()


def leave_sessions(broker: Hermesd, raw, count: int, size: int) -> set[Connack]:
    """Makes offline sessions whose names are so long; returns the answers."""
    answers = set()
    for number in range(count):
        one = raw(broker)
        answers.add(one.connect(
            name(number, size), clean_session=False, user_name=name(number, size)))
        # A refused one is closed by the broker.
        with contextlib.suppress(OSError):
            one.disconnect()
        one.close()
    return answers


@pytest.mark.measures("memory")
def test_long_names_of_offline_clients_shut_nobody_out(start_broker, raw):
    """750 sessions with names of 64 KiB took more memory than the broker may have."""
    broker = start_broker(environment={"HERMES_LIMITS_MEMORY": "64MiB"})
    connected = raw(broker)
    connected.connect("connected")
    pings = []
    answers = set()
    for number in range(750):
        answers |= leave_sessions(broker, raw, 1, 65_535)
        if number % 25 == 0:
            pings.append(ping_time(connected))
    assert_newcomers_get_in(broker, raw)
    assert max(pings) < LONGEST_PING
    assert answers == {Connack(False, 2)}
    assert reached(broker, "max_client_id") == 750
    line = broker.log.await_match(r"Connection refused.*").string
    assert "client_id_too_long" in line and "limits.max_client_id" in line
    assert status(broker)["memory"]["pressure"] == "none"


@pytest.mark.measures("memory")
def test_the_bytes_of_all_sessions_have_a_limit(start_broker, raw):
    """New persistent sessions are refused; clean ones and known clients get in."""
    broker = start_broker(environment={
        "HERMES_LIMITS_MEMORY": "64MiB", "HERMES_LIMITS_MAX_CLIENT_ID": "65535",
        "HERMES_LIMITS_MAX_USER_NAME": "65535",
    })
    connected = raw(broker)
    connected.connect("connected")
    known = raw(broker)
    known.connect("known", clean_session=False)
    known.disconnect()
    both = {Connack(False, 0), Connack(False, 3)}
    assert leave_sessions(broker, raw, 300, 65_535) == both
    # What is left is too little for such names, and for all of these.
    assert leave_sessions(broker, raw, 100, 1_000) == both
    assert ping_time(connected) < LONGEST_PING
    assert 31 * MIB < status(broker)["session_bytes"] <= status(broker)["session_bytes_limit"]
    assert status(broker)["session_bytes_limit"] == 32 * MIB
    assert "of 32 MiB" in hermesctl("status", broker=broker).output
    line = broker.log.await_match(r"Connection refused.*no_room.*").string
    assert "limits.session_bytes" in line

    assert_newcomers_get_in(broker, raw)
    assert raw(broker).connect("known", clean_session=False) == Connack(True, 0)
    # Wills count as well, and only a large one needs room.
    assert raw(broker).connect("w", will=Will("w", bytes(40_000))) == Connack(False, 3)
    assert raw(broker).connect("w", will=Will("w", bytes(400))) == Connack(False, 0)
    assert reached(broker, "session_bytes") > 100
    assert status(broker)["memory"]["pressure"] == "none"


@pytest.mark.parametrize(
    ("make_filter", "batch"),
    [
        pytest.param(lambda number: name(number, 60_000), 10, id="long"),
        # Each level is a node of the topic tree.
        pytest.param(lambda number: f"{number}" + "/x" * 127, 100, id="deep"),
    ])
@pytest.mark.measures("memory")
def test_the_bytes_of_subscriptions_have_a_limit(start_broker, raw, make_filter, batch):
    """Filters of one client, then of many; newcomers subscribe all the same."""
    # Beside the sessions there is room for what waits for a slow disk.
    broker = start_broker(
        environment={"HERMES_LIMITS_MEMORY": "128MiB", "HERMES_LIMITS_SESSION_BYTES": "32MiB"})
    connected = raw(broker)
    connected.connect("connected")
    codes: list[tuple[int, ...]] = []
    pings = []
    for number in range(8):
        greedy = raw(broker)
        greedy.connect(f"greedy{number}", clean_session=False)
        for _ in range(20):
            first = len(codes) * batch
            filters = [(make_filter(number), 0) for number in range(first, first + batch)]
            codes.append(greedy.subscribe(*filters))
            pings.append(ping_time(connected))
        greedy.disconnect()
    assert_newcomers_get_in(broker, raw)
    assert max(pings) < LONGEST_PING
    # A quarter of 32 MiB for one client, and then nothing for all of them.
    assert 0x80 not in codes[0] and set(codes[19]) == {0x80} and set(codes[-1]) == {0x80}
    assert reached(broker, "subscription_bytes") > 0 and reached(broker, "session_bytes") > 0
    broker.log.await_match("Subscription refused at a limit.*limits.subscription_bytes")
    assert status(broker)["session_bytes"] <= 32 * MIB
    assert status(broker)["memory"]["pressure"] == "none"

    # Removing them makes room.
    first = raw(broker)
    first.connect("greedy0")
    assert status(broker)["session_bytes"] < 25 * MIB


def test_one_user_does_not_take_all_the_room(start_broker, raw):
    broker = start_broker(
        users={"anna": "a", "ben": "b"},
        environment={
            "HERMES_LIMITS_SESSION_BYTES": "256KiB", "HERMES_LIMITS_MAX_CLIENT_ID": "64KiB"})
    def answer(client_id: str, user: str) -> Connack:
        return raw(broker).connect(
            client_id, clean_session=False, user_name=user, password=user[:1].encode())

    codes = [answer(name(number, 20_000), "anna").return_code for number in range(10)]
    assert codes == [0] * 6 + [3] * 4
    broker.log.await_match("Connection refused.*limits.session_bytes_per_user.*user.name=anna")
    assert [answer(f"ben{number}", "ben").return_code for number in range(10)] == [0] * 10
    assert reached(broker, "session_bytes_per_user") == 4


def test_sessions_from_before_the_limit_go_on(hermesd, raw):
    """A client with a longer identifier keeps its session; what a restart counts is the same."""
    broker = hermesd(environment={"HERMES_LIMITS_MAX_CLIENT_ID": "64KiB"})
    long = raw(broker)
    long.connect(name(1, 50_000), clean_session=False, user_name="somebody")
    long.subscribe(("a/+/c", 1), ("$share/group/b/#", 2), (name(2, 3_000), 0))
    long.send(wire.publish("x", b"", qos=2, packet_id=7))
    long.expect(wire.Pubrec)
    long.disconnect()
    eventually(lambda: status(broker)["connections"] == 0, "the client to be gone")
    counted = status(broker)["session_bytes"]
    assert counted > 53_000
    broker.stop()

    broker = hermesd(data=broker.data)
    assert status(broker)["session_bytes"] == counted
    again = raw(broker)
    assert again.connect(
        name(1, 50_000), clean_session=False, user_name="somebody") == Connack(True, 0)
    assert raw(broker).connect(name(3, 1_025)) == Connack(False, 2)
    assert raw(broker).connect(name(3, 1_024)) == Connack(False, 0)
    assert raw(broker).connect("short", user_name=name(4, 1_025)) == Connack(False, 4)
    broker.log.await_match(r"Connection refused.*user_name_too_long.*limits.max_user_name")
    again.disconnect()
    assert raw(broker).connect(name(1, 50_000), user_name="somebody") == Connack(False, 0)
    eventually(lambda: status(broker)["persistent_sessions"] == 0, "the session to be gone")


def test_the_limits_are_reloaded(from_file, raw):
    broker = from_file("limits: {max_client_id: 100}")
    assert raw(broker).connect(name(1, 101)) == Connack(False, 2)
    start = broker.reload(
        "limits: {max_client_id: 200, session_bytes: 64KiB, subscription_bytes: 2KiB}")
    changed = broker.log.await_match("Configuration read again.*", start=start).string
    assert "limits.session_bytes" in changed and "limits.subscription_bytes" in changed
    client = raw(broker)
    assert client.connect(name(1, 101)) == Connack(False, 0)
    assert client.subscribe((name(1, 1_000), 0), (name(2, 1_000), 0)) == (0, 0x80)
    assert status(broker)["session_bytes_limit"] == 65_536
    # It is the only session.
    shown = AdminAPI(broker).client(name(1, 101))
    assert shown["session_bytes"] == status(broker)["session_bytes"] > 1_400


def set_limit(broker: FromFile, limit: int) -> int:
    return broker.reload(f"limits: {{memory: {limit}, connect_timeout: 1s}}")


def settled_memory(broker):
    """The memory in use once it has not changed for two seconds: what was published is in its place.
    """
    readings = []

    def probe():
        now = time.monotonic()
        used = status(broker)["memory"]["used_bytes"]
        if readings and abs(used - readings[-1][1]) > MIB:
            readings.clear()
        readings.append((now, used))
        return used if now - readings[0][0] > 2 else None

    return eventually(probe, "memory that does not change", within=30)


@pytest.mark.measures("memory")
def test_state_above_the_limit_keeps_nobody_out(from_file, raw):
    """Nothing can be freed: newcomers get in after a moment, and nothing lasting is added."""
    broker = from_file("limits: {memory: off, connect_timeout: 1s}")
    publisher = raw(broker)
    publisher.connect("publisher")
    known = raw(broker)
    known.connect("known", clean_session=False)
    known.disconnect()
    for number in range(60):
        publisher.publish(f"state/{number}", bytes(MIB - 100), qos=1, retain=True)
    used = settled_memory(broker)
    start = set_limit(broker, used * 2 // 3)
    broker.log.await_match("Memory is short", start=start)

    waiting = raw(broker)
    assert waiting.connect("waiting") == Connack(False, 0)
    broker.log.await_match("nothing is left to be freed.*limits.memory", start=start)
    memory = status(broker)["memory"]
    assert memory["keeps_nothing_new"] and memory["pressure"] == "none"
    assert "nothing new is kept" in hermesctl("status", broker=broker).output
    assert_newcomers_get_in(broker, raw)
    assert raw(broker).connect("known", clean_session=False) == Connack(True, 0)
    assert raw(broker).connect("new", clean_session=False) == Connack(False, 3)
    broker.log.await_match("Connection refused.*no_room.*limits.memory", start=start)
    publisher.publish("state/new", b"x", qos=1, retain=True)
    publisher.publish("state/0", b"smaller", qos=1, retain=True)
    assert waiting.subscribe(("state/new", 0), ("state/0", 0)) == (0, 0)
    assert waiting.take_message().payload == b"smaller"

    for number in range(60):
        publisher.publish(f"state/{number}", b"", qos=1, retain=True)
    broker.log.await_match("Memory is enough again", start=start, within=30)
    assert raw(broker).connect("new", clean_session=False) == Connack(False, 0)
    assert not status(broker)["memory"]["keeps_nothing_new"]


@pytest.mark.measures("memory")
def test_newcomers_wait_no_longer_than_for_a_connect(from_file, raw):
    """Whoever holds memory and reads nothing goes for them, also just above the limit."""
    rest = "output_bytes: 256MiB, connect_timeout: 1s"
    broker = from_file(f"limits: {{memory: off, {rest}}}")
    reader = raw(broker, receive_buffer=4096)
    reader.connect("reader")
    reader.subscribe(("reader", 0))
    publisher = raw(broker)
    publisher.connect("publisher")
    for _ in range(100):
        publisher.send(wire.publish("reader", bytes(1_000_000)))
    publisher.ping()
    used = status(broker)["memory"]["used_bytes"]
    start = broker.reload(f"limits: {{memory: {used * 100 // 103}, {rest}}}")
    broker.log.await_match("Memory is short, new connections wait", start=start)
    assert raw(broker).connect("newcomer") == Connack(False, 0)
    assert "client.id=reader" in broker.log.await_match(
        "Connection closed at a limit.*memory_shortage", start=start).string
    broker.log.await_match("Memory is enough again", start=start)
    assert not status(broker)["memory"]["keeps_nothing_new"]


@pytest.mark.measures("memory")
def test_messages_that_are_not_acknowledged_are_shed_too(from_file, raw):
    """A clean session takes messages and acknowledges none: they wait in memory."""
    rest = "queue_bytes: 256MiB, connect_timeout: 60s"
    broker = from_file(f"limits: {{memory: off, {rest}}}")
    hoarder = raw(broker)
    hoarder.connect("hoarder")
    hoarder.subscribe(("hoard", 1))
    publisher = raw(broker)
    publisher.connect("publisher")
    for _ in range(100):
        publisher.publish("hoard", bytes(1_000_000), qos=1)
    for _ in range(20):
        hoarder.receive_publish()
    used = status(broker)["memory"]["used_bytes"]
    start = broker.reload(f"limits: {{memory: {used * 100 // 120}, {rest}}}")
    assert "client.id=hoarder" in broker.log.await_match(
        "Connection closed at a limit.*memory_shortage", start=start).string
    broker.log.await_match("Memory is enough again", start=start)
