"""System calls that fail: those who are connected are served, nothing acknowledged is lost, and all is
well when the fault ends."""

from __future__ import annotations

import errno
import itertools
import time

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import Hermesd
from harness.faulty_calls import SHORT, Call, FaultyCalls
from harness.raw_client import ConnectionClosed, RawClient
from harness.tls import TLSClient, client_context, tls_environment
from harness.waiting import eventually
from harness.wire import Connack, Puback, Pubcomp, Publish, Pubrec, Pubrel

pytestmark = pytest.mark.hermesd("its system calls are those of hermesd")


@pytest.fixture
def faulty(hermesd, tmp_path):
    """Starts a broker whose system calls fail on demand: `broker, faults = faulty()`."""
    numbers = itertools.count()
    made: list[FaultyCalls] = []

    def start(seed: int = 1, environment: dict[str, str] | None = None, **settings):
        folder = tmp_path / f"faults{next(numbers)}"
        folder.mkdir()
        faults = FaultyCalls(folder, seed=seed)
        made.append(faults)
        broker = hermesd(
            environment=faults.environment() | (environment or {}), **settings)
        return broker, faults

    yield start
    for one in made:
        one.heal()


def exchange_everything(publisher: RawClient, subscriber: RawClient, topic: str, count: int = 20):
    """Messages of each QoS, which come in order, once, and whole."""
    subscriber.subscribe((topic, 2))
    payloads = [f"{number} ".encode() * (1 + 40 * (number % 7)) for number in range(count)]
    for number, payload in enumerate(payloads):
        publisher.publish(topic, payload, qos=number % 3)
    came = subscriber.take_messages(count)
    # Those of QoS 0 need no place in flight, and overtake.
    for qos in range(3):
        assert [one.payload for one in came if one.qos == qos] == payloads[qos::3]
    assert subscriber.messages_so_far() == []


def rests(broker: Hermesd) -> bool:
    """Nothing is left under way."""
    api = AdminAPI(broker)
    return not any(
        api.metric(name) for name in (
            "hermes_queued_messages", "hermes_in_flight_messages", "hermes_commits_pending",
            "hermes_publishers_paused", "hermes_unfinished_packet_bytes"))


# --- accepting ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EMFILE, "ulimit -n"), (errno.ENFILE, "ulimit -n"),
        (errno.ENOBUFS, "No buffer space"), (errno.ENOMEM, "Cannot allocate memory"),
    ])
def test_no_connection_can_be_accepted_for_a_while(faulty, client, raw, code, said):
    broker, faults = faulty()
    held, other = client("held", to=broker), client("other", to=broker)

    faults.fail(Call.ACCEPT, code)
    newcomer = raw(broker)
    newcomer.send(wire.connect("newcomer"))
    line = broker.log.await_match("WARN.*New connections refused, none is left").string
    assert said in line
    # The others are served, and the broker does not try all the time.
    begun, tries = time.monotonic(), faults.calls(Call.ACCEPT)
    exchange_everything(held, other, "meanwhile")
    assert faults.calls(Call.ACCEPT) - tries < 100 * (1 + time.monotonic() - begun)

    faults.heal()
    assert newcomer.expect(Connack).return_code == 0
    newcomer.ping()


@pytest.mark.parametrize("code", [errno.ECONNABORTED, errno.EPROTO, errno.EINTR])
def test_a_connection_that_fails_before_it_is_accepted_holds_up_no_other(faulty, client, code):
    broker, faults = faulty()
    faults.fail(Call.ACCEPT, code, times=50)
    clients = [client(f"c{number}", to=broker) for number in range(10)]
    assert faults.hits(Call.ACCEPT) == 50
    for one in clients:
        one.ping()


def test_epoll_takes_no_further_socket_for_a_while(faulty, client, raw):
    broker, faults = faulty()
    held = client("held", to=broker)
    faults.fail(Call.CONTROL, errno.ENOMEM)
    with pytest.raises(ConnectionClosed):
        raw(broker).connect("refused")
    assert "epoll_ctl" in broker.log.await_match("New connections refused").string
    held.ping()
    faults.heal()
    client("later", to=broker).ping()


def test_very_many_newcomers_hold_nobody_up(faulty, client, raw):
    """Each takes a millisecond here; answers to those who are connected leave between them."""
    broker, faults = faulty(arguments=("--logging-level", "info"))
    held = client("held", to=broker)
    faults.delay(Call.ACCEPT, 0.001)
    newcomers = [raw(broker) for _ in range(600)]
    longest = 0.0
    while AdminAPI(broker).metric("hermes_connections_opened_total") <= len(newcomers):
        begin = time.monotonic()
        held.ping()
        longest = max(longest, time.monotonic() - begin)
    # 256 of them took a quarter of a second and more.
    assert longest < 0.1, f"a ping took {longest:.3f} s"


# --- interruptions and halves ---------------------------------------------------------------


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("error", [errno.EINTR, SHORT], ids=["EINTR", "short"])
def test_interrupted_and_short_calls_change_nothing(
    faulty, pair, authority, is_tls, error
):
    broker, faults = faulty(environment=tls_environment(pair) if is_tls else None)
    for call in (Call.RECEIVE, Call.SEND, Call.WAIT, Call.WRITE):
        faults.fail(call, error, every=2)
    if error == errno.EINTR:
        for call in (Call.ACCEPT, Call.EVENT):
            faults.fail(call, error, every=2)
    context = client_context(authority.certificate)
    clients = [
        TLSClient(broker, context) if is_tls else RawClient(broker.address) for _ in range(2)]
    try:
        for number, one in enumerate(clients):
            assert one.connect(f"c{number}", clean_session=False).return_code == 0
        exchange_everything(*clients, "t", count=40)
        # The way of commands: a counter wakes the broker's thread.
        for _ in range(20):
            AdminAPI(broker).client("c0")
        eventually(lambda: rests(broker), "rest")
        assert faults.hits(Call.RECEIVE) and faults.hits(Call.SEND)
    finally:
        for one in clients:
            one.close()


# --- no memory ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (Call.SEND, errno.ENOMEM), (Call.SEND, errno.ENOBUFS), (Call.RECEIVE, errno.ENOMEM),
        (Call.RECEIVE, errno.ENOBUFS), (Call.WAIT, errno.ENOMEM),
    ])
def test_a_kernel_without_memory_ends_no_connection(faulty, client, call, code):
    broker, faults = faulty()
    publisher = client("publisher", to=broker)
    subscriber = client("subscriber", to=broker, clean_session=False)
    faults.fail(call, code, every=2)
    exchange_everything(publisher, subscriber, "every second call")

    faults.fail(call, code)
    publisher.send(wire.publish("t", b"x", qos=1, packet_id=77), wire.PINGREQ)
    subscriber.send(wire.subscribe(9, ("t", 1)), wire.PINGREQ)
    eventually(lambda: faults.hits(call) > 10, "the calls to fail")
    broker.log.await_match("WARN.*The kernel lacks memory for connections")
    faults.heal()
    assert publisher.await_packet(Puback) == Puback(77)
    publisher.ping()
    subscriber.await_packet(wire.Suback)
    publisher.publish("t", b"y", qos=1)
    while subscriber.take_message().payload != b"y":
        pass
    eventually(lambda: rests(broker), "rest")


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
def test_a_slow_reader_gets_all_although_epoll_had_no_memory(faulty, pair, authority, is_tls):
    """What epoll was not told is told later: else a connection would wait for ever."""
    broker, faults = faulty(
        environment=tls_environment(pair) if is_tls else None, max_in_flight=200)
    context = client_context(authority.certificate)

    def open_one(name: str) -> RawClient:
        one = (
            TLSClient(broker, context, receive_buffer=4_096) if is_tls
            else RawClient(broker.address, receive_buffer=4_096))
        assert one.connect(name).return_code == 0
        return one

    reader, publisher = open_one("reader"), open_one("publisher")
    try:
        reader.subscribe(("t", 1))
        faults.fail(Call.CONTROL, errno.ENOMEM)
        # More than the kernel's buffers take: the rest waits for room, which epoll would report.
        payload, count = b"p" * 60_000, 100
        for _ in range(count):
            publisher.publish("t", payload, qos=1)
        eventually(lambda: faults.hits(Call.CONTROL), "epoll_ctl to fail")
        faults.heal()
        for _ in range(count):
            assert reader.take_message().payload == payload
    finally:
        reader.close()
        publisher.close()


# --- everything at once ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_any_call_may_fail_and_nothing_acknowledged_is_lost(faulty, hermesd, seed):
    """Every kind of fault at random, then SIGKILL: what was acknowledged is there."""
    broker, faults = faulty(seed=seed, queue_limit=5_000)
    subscriber = RawClient(broker.address)
    subscriber.connect("away", clean_session=False)
    subscriber.subscribe(("t", 2))
    subscriber.disconnect()
    publisher = RawClient(broker.address)
    publisher.connect("publisher")
    codes = (errno.ENOMEM, errno.ENOBUFS, errno.EINTR, SHORT)
    for call in (Call.RECEIVE, Call.SEND):
        faults.fail(call, codes[(seed + call) % 4], every=5)
    faults.fail(Call.CONTROL, errno.ENOMEM, every=5)
    faults.fail(Call.EVENT, errno.EINTR, every=5)
    faults.fail(Call.WAIT, errno.EINTR, every=5)
    faults.fail(Call.WRITE, SHORT, every=3)
    payloads = [f"{number}".encode().ljust(100 * (number % 9)) for number in range(300)]
    for number, payload in enumerate(payloads):
        publisher.publish("t", payload, qos=1 + number % 2)
    publisher.close()
    broker.kill()
    faults.heal()

    again = hermesd(data=broker.data, queue_limit=5_000)
    subscriber = RawClient(again.address)
    assert subscriber.connect("away", clean_session=False).session_present
    assert [one.payload for one in subscriber.take_messages(len(payloads))] == payloads
    subscriber.close()


# --- the disk hangs -------------------------------------------------------------------------


@pytest.mark.parametrize("call", [Call.SYNC, Call.WRITE], ids=["fdatasync", "pwrite"])
def test_while_the_disk_hangs_the_others_are_served(faulty, client, call):
    """However long: who needs nothing stored notices nothing, the rest waits and is not lost."""
    broker, faults = faulty()
    absent = client("absent", to=broker, clean_session=False)
    absent.subscribe(("stored", 2))
    absent.disconnect()
    publisher, quiet, reader = (client(name, to=broker) for name in ("p", "quiet", "reader"))
    reader.subscribe(("passing", 2))

    faults.hang(call)
    publisher.send(
        wire.publish("stored", b"1", qos=1, packet_id=1),
        wire.publish("stored", b"2", qos=2, packet_id=2))
    eventually(lambda: faults.is_hanging, "the disk to hang")
    longest = 0.0
    for number in range(100):
        begin = time.monotonic()
        quiet.ping()
        longest = max(longest, time.monotonic() - begin)
        quiet.publish("passing", f"{number}".encode(), qos=number % 3)
    assert longest < 1.0, f"a ping took {longest:.2f} s"
    assert len(reader.take_messages(100)) == 100
    # Also somebody new, and nothing that is not on the disk has been acknowledged.
    client("new", to=broker).ping()
    assert publisher.packets_so_far() == []

    faults.heal()
    answers = {type(publisher.receive()) for _ in range(2)}
    assert answers == {Puback, Pubrec}
    publisher.send(wire.pubrel(2))
    assert publisher.await_packet(Pubcomp) == Pubcomp(2)
    back = client("absent", to=broker, clean_session=False)
    assert [one.payload for one in back.take_messages(2)] == [b"1", b"2"]
    eventually(lambda: rests(broker), "rest")


def test_a_disk_that_hangs_for_a_moment_again_and_again(faulty, client):
    """Messages of QoS 2 in flight through each hang are acknowledged once, and come once."""
    broker, faults = faulty()
    subscriber = client("subscriber", to=broker, clean_session=False)
    subscriber.subscribe(("t", 2))
    publisher = client("publisher", to=broker, clean_session=False)
    count = 40
    for number in range(count):
        if number % 4 == 0:
            faults.hang(Call.SYNC)
        publisher.send(wire.publish("t", f"{number}".encode(), qos=2, packet_id=number + 1))
        if number % 4 == 3:
            eventually(lambda: faults.is_hanging, "the disk to hang")
            faults.heal()
    for _ in range(count):
        publisher.send(wire.pubrel(publisher.await_packet(Pubrec).packet_id))
    for _ in range(count):
        publisher.await_packet(Pubcomp)
    messages = subscriber.take_messages(count)
    assert [one.payload for one in messages] == [f"{number}".encode() for number in range(count)]
    assert not any(one.dup for one in messages)
    assert not [one for one in subscriber.packets_so_far() if isinstance(one, (Publish, Pubrel))]
