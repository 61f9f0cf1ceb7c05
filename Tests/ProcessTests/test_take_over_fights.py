"""Two peers with one client identifier that throw each other out: damped, and named."""

from __future__ import annotations

import re
import time

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.broker import Hermesd
from harness.command_line_clients import MosquittoSub
from harness.wire import Connack

pytestmark = pytest.mark.hermesd("other brokers let them fight")

PEERS = ("127.0.0.2", "127.0.0.3")


def fight(broker: Hermesd, raw, count: int, **options):
    """As many immediate take-overs, from two addresses in turn; returns the connected client."""
    connected = raw(broker, source=PEERS[0])
    connected.connect("tv", **options)
    for round in range(1, count + 1):
        former, connected = connected, raw(broker, source=PEERS[round % 2])
        connected.connect("tv", **options)
        former.await_closed()
    return connected


def metric(broker: Hermesd, name: str) -> int:
    text = AdminAPI(broker).request("GET", "/metrics").body.decode()
    return int(re.search(rf"^{name} (\d+)$", text, re.MULTILINE)[1])


def test_the_sixth_take_over_waits_and_both_are_named(start_broker, raw):
    broker = start_broker(users={"anna": "secret"})
    user = {"user_name": "anna", "password": b"secret"}
    connected = fight(broker, raw, 5, **user)
    begin = time.monotonic()
    newcomer = raw(broker, source=PEERS[0])
    newcomer.send(wire.connect("tv", **user))

    line = broker.log.await_match(r".*Two clients with one identifier.*").string
    assert "WARNING" in line and "anna" in line and "client.id=tv" in line
    assert all(f"{peer}:" in line for peer in PEERS)
    detail = AdminAPI(broker).client("tv")
    assert detail["take_overs"]["count"] == 5
    assert [peer.split(":")[0] for peer in detail["take_overs"]["peers"]] == [PEERS[1], PEERS[0]]
    assert detail["user_name"] == "anna"
    shown = hermesctl("clients", "show", "tv", broker=broker).output
    assert re.search(rf"fought over by +{PEERS[1]}:\d+ and {PEERS[0]}:\d+, 5 take-overs", shown)

    # The connected client is served until the other one's delay has ended.
    connected.ping()
    assert newcomer.expect(Connack) == Connack(False, 0)
    assert time.monotonic() - begin >= 1.0
    connected.await_closed()
    newcomer.ping()
    assert metric(broker, "hermes_take_overs_delayed_total") == 1


def test_whoever_waits_gets_in_when_the_other_goes(start_broker, raw):
    broker = start_broker()
    connected = fight(broker, raw, 5)
    # Each delay is twice the former: the next is 8 s, longer than the rest of the test.
    for round in range(3):
        former, connected = connected, raw(broker, source=PEERS[round % 2])
        connected.connect("tv")
        former.await_closed()
    newcomer = raw(broker, source=PEERS[1])
    newcomer.send(wire.connect("tv"))
    broker.log.await_match(r"Two clients with one identifier.*delay_ms=8000")
    begin = time.monotonic()
    connected.disconnect()
    newcomer.expect(Connack)
    assert time.monotonic() - begin < 8.0
    newcomer.ping()


def test_a_client_that_comes_again_never_waits(start_broker, raw):
    """From the address where it was, and from ever new ones."""
    broker = start_broker()
    for number in range(12):
        raw(broker, source=PEERS[0]).connect("restarted")
        raw(broker, source=f"127.0.1.{number + 1}").connect("moving")
    assert metric(broker, "hermes_take_overs_delayed_total") == 0
    assert "take_overs" not in AdminAPI(broker).client("moving")


def test_two_real_clients_that_come_back_by_themselves(start_broker):
    broker = start_broker()
    clients = [
        MosquittoSub(broker, "-i", "twin", "-t", "news", "-A", peer) for peer in PEERS
    ]
    try:
        broker.log.await_match(
            r"Two clients with one identifier.*client.id=twin.*delay_ms=2000", within=60)
        assert metric(broker, "hermes_take_overs_delayed_total") >= 2
    finally:
        for one in clients:
            one.stop()


@pytest.mark.parametrize("more", [b"", b"\xc0\x00"], ids=["silent", "with-input"])
def test_whoever_waits_and_goes_takes_nothing_over(start_broker, raw, more):
    broker = start_broker()
    connected = fight(broker, raw, 5)
    newcomer = raw(broker, source=PEERS[0])
    newcomer.send(wire.connect("tv"), more)
    broker.log.await_match(r"Two clients with one identifier.*delay_ms=1000")
    assert AdminAPI(broker).client("tv")["take_overs"]["waiting"].startswith(PEERS[0])
    newcomer.close()
    broker.log.await_match(r"Connection closed .*reason=peer_closed")
    assert "waiting" not in AdminAPI(broker).client("tv")["take_overs"]
    connected.ping()
