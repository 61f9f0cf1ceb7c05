"""Admission under load: limits by address, the connect rate, handshakes."""

from __future__ import annotations

import time

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import Hermesd
from harness.certificates import Authority
from harness.raw_client import RawClient
from harness.tls import TLSClient, client_context, tls_environment
from harness.waiting import eventually
from harness.wire import Connack

pytestmark = pytest.mark.hermesd("the limits are its own")

HERE, THERE = "127.0.0.2", "127.0.0.3"


def reached(broker: Hermesd, limit: str) -> int:
    return AdminAPI(broker).status()["limits_reached"][limit]


def turned_away(broker: Hermesd, raw, source: str) -> None:
    client = raw(broker, source=source)
    assert client.await_closed() == []


def test_one_address_has_its_share_of_connections(start_broker, raw):
    """The next is closed at once and named; other addresses come in, and so does it later."""
    broker = start_broker(environment={"HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": "3"})
    held = [raw(broker, source=HERE) for _ in range(3)]
    for number, one in enumerate(held):
        one.connect(f"held{number}")
    for _ in range(4):
        turned_away(broker, raw, HERE)
    other = raw(broker, source=THERE)
    other.connect("other")
    for one in (*held, other):
        one.ping()
    assert reached(broker, "connections_per_address") == 4
    line = broker.log.await_match(r".*New connection closed, its address.*")[0]
    assert f"{HERE}:" in line and "limits.connections_per_address" in line
    assert "log.suppressed" not in line
    held[0].disconnect()
    eventually(lambda: AdminAPI(broker).status()["connections"] == 3, "a free place")
    raw(broker, source=HERE).connect("again")


def test_every_way_to_go_frees_the_place(start_broker, raw):
    """DISCONNECT, FIN, RST, a broken rule, a refused CONNECT, no CONNECT at all: none is forgotten."""
    broker = start_broker(
        connect_timeout="200ms",
        environment={"HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": "2"},
    )
    api = AdminAPI(broker)

    def all_gone() -> bool:
        status = api.status()
        return status["connections"] + status["connections_pending"] == 0

    def disconnect(one: RawClient) -> None:
        one.connect("one")
        one.disconnect()

    def finish(one: RawClient) -> None:
        one.connect("one")
        one.close()

    def reset(one: RawClient) -> None:
        one.connect("one")
        one.reset()

    def violate(one: RawClient) -> None:
        one.send(b"\xf0\x00")
        assert one.await_closed() == []

    def be_refused(one: RawClient) -> None:
        assert one.connect("", clean_session=False).return_code == 2
        one.await_closed()

    def say_nothing(one: RawClient) -> None:
        assert one.await_closed() == []

    for go in (disconnect, finish, reset, violate, be_refused, say_nothing) * 2:
        go(raw(broker, source=HERE))
        eventually(all_gone, "the connection to be gone")
    # A refused client's socket lingers for a moment, and counts as long as it is there.
    eventually(lambda: connects(broker, HERE, 2), "a free place")


def connects(broker: Hermesd, source: str, count: int) -> bool:
    """True if this many connections from an address are accepted together."""
    clients = [RawClient(broker.address, source=source) for _ in range(count)]
    try:
        for number, one in enumerate(clients):
            one.connect(f"probe{number}")
        return True
    except (AssertionError, OSError):
        return False
    finally:
        for one in clients:
            one.close()


def test_one_address_connects_only_so_fast(start_broker, raw):
    broker = start_broker(environment={"HERMES_LIMITS_CONNECT_RATE_PER_ADDRESS": "5"})
    begin = time.monotonic()
    served = 0
    for number in range(40):
        one = raw(broker, source=HERE)
        try:
            one.connect(f"fast{number}")
            served += 1
        except (AssertionError, OSError):
            continue
    took = time.monotonic() - begin
    assert 5 <= served <= 5 + 5 * took + 1
    assert reached(broker, "connect_rate_per_address") == 40 - served
    line = broker.log.await_match(r".*New connection closed, its address.*")[0]
    assert f"{HERE}:" in line and "limits.connect_rate_per_address" in line
    raw(broker, source=THERE).connect("other")
    # Tokens come back by themselves.
    eventually(lambda: connects(broker, HERE, 1), "a token")


def test_newcomers_wait_and_all_get_in(start_broker, raw):
    """Above connect_rate they stay in the kernel's queue; connected clients are served."""
    broker = start_broker(environment={"HERMES_LIMITS_CONNECT_RATE": "20"})
    held = raw(broker)
    held.connect("held")
    held.subscribe(("news", 0))
    begin = time.monotonic()
    newcomers = [raw(broker) for _ in range(50)]
    for number, one in enumerate(newcomers):
        one.send(wire.connect(f"new{number}"))
    # All sockets are open, and most wait: the broker goes on with whom it has.
    held.publish("news", b"meanwhile")
    assert held.take_message().payload == b"meanwhile"
    for one in newcomers:
        assert one.expect(Connack) == Connack(False, 0)
    # 20 at once, with the one before them, and then 20 a second.
    assert time.monotonic() - begin > (51 - 20) / 20 - 0.2
    assert reached(broker, "connect_rate") >= 1
    line = broker.log.await_match(r".*New connections come too fast.*")[0]
    assert "limits.connect_rate" in line
    held.ping()


def test_who_is_closed_for_its_address_makes_nobody_wait(start_broker, raw):
    """A flood of one address, closed at once, costs the others no token."""
    broker = start_broker(
        environment={
            "HERMES_LIMITS_CONNECT_RATE": "10",
            "HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": "1",
        }
    )
    raw(broker, source=HERE).connect("greedy")
    for _ in range(100):
        turned_away(broker, raw, HERE)
    assert reached(broker, "connect_rate") == 0
    raw(broker, source=THERE).connect("other")


def test_one_address_has_its_share_of_handshakes(start_broker, raw, tmp_path):
    authority = Authority(tmp_path / "ca")
    pair = authority.issue("localhost")
    broker = start_broker(
        environment={
            **tls_environment(pair),
            "HERMES_LIMITS_MAX_HANDSHAKES": "10",
            "HERMES_LIMITS_HANDSHAKES_PER_ADDRESS": "2",
        }
    )
    context = client_context(authority.certificate)
    stalled = [raw(broker, source=HERE) for _ in range(2)]
    turned_away(broker, raw, HERE)
    # Another address has places, also when it comes again and again: each is given back.
    for number in range(6):
        other = TLSClient(broker, context)
        assert other.connect(f"other{number}").return_code == 0
        if number % 2:
            other.disconnect()
    line = broker.log.await_match(r".*New connection closed, its address.*")[0]
    assert "limits.handshakes_per_address" in line and f"{HERE}:" in line
    assert reached(broker, "handshakes_per_address") == 1
    # A handshake that ends in failure gives its place back, too.
    stalled[0].send(b"garbage that is no TLS")
    stalled[0].await_closed()
    free = raw(broker, source=HERE)
    eventually(
        lambda: AdminAPI(broker).status()["connections_pending"] == 2, "the place to be taken")
    free.close()


def test_limits_by_address_change_while_running(from_file, raw):
    broker = from_file("limits: {connections_per_address: off}")
    held = [raw(broker, source=HERE) for _ in range(5)]
    for number, one in enumerate(held):
        one.connect(f"held{number}")
    start = broker.reload("limits: {connections_per_address: 5, connect_rate: off}")
    line = broker.log.await_match("Configuration read again", start=start).string
    assert "limits.connections_per_address" in line and "limits.connect_rate" in line
    # Earlier connections count.
    turned_away(broker, raw, HERE)
    for one in held:
        one.ping()
    start = broker.reload("limits: {connections_per_address: 6}")
    broker.log.await_match("Configuration read again", start=start)
    raw(broker, source=HERE).connect("sixth")


def test_a_lower_connect_rate_owes_nothing_of_the_higher_one(from_file, raw):
    """A waiting client is accepted within a second of the new rate, or at once without one."""
    broker = from_file("limits: {connect_rate: 1000, connect_rate_per_address: off}")
    for _ in range(900):
        raw(broker).close()
    eventually(
        lambda: AdminAPI(broker).metric(
            'hermes_connections_closed_total{reason="peer_closed"}') == 900,
        "all to have come and gone")
    start = broker.reload("limits: {connect_rate: 2, connect_rate_per_address: off}")
    broker.log.await_match("Configuration read again", start=start)
    waiting = [raw(broker) for _ in range(30)]
    for number, one in enumerate(waiting):
        one.send(wire.connect(f"waiting{number}"))
    waiting[0].expect(Connack, timeout=5)
    start = broker.reload("limits: {connect_rate: off, connect_rate_per_address: off}")
    broker.log.await_match("Configuration read again", start=start)
    for one in waiting[1:]:
        # At two a second the last would take 14 s.
        one.expect(Connack, timeout=5)


def test_nobody_gives_way_while_nobody_waits(start_broker, raw, tmp_path):
    """As many handshakes as there may be are no more than that; one more is."""
    authority = Authority(tmp_path / "ca")
    broker = start_broker(
        environment={
            **tls_environment(authority.issue("localhost")), "HERMES_LIMITS_MAX_HANDSHAKES": "4"}
    )
    stalled = [raw(broker) for _ in range(4)]
    eventually(
        lambda: AdminAPI(broker).status()["connections_pending"] == 4, "all to be accepted")
    assert reached(broker, "max_handshakes") == 0
    one_more = raw(broker)
    eventually(lambda: reached(broker, "max_handshakes") > 0, "one more to be noticed")
    # The oldest has had its two seconds then, and gives way.
    assert stalled[0].await_closed() == []
    one_more.close()
