"""Listeners behind a proxy that writes a PROXY header (proxy_from)."""

from __future__ import annotations

import re
import ssl

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.command_line_clients import mosquitto_pub
from harness.proxy import LOCAL, SIGNATURE, Proxy, binary, line
from harness.raw_client import RawClient
from harness.tls import TLSClient, client_context, tls_environment
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("proxy_from is its own setting")

LISTED = "127.0.0.2"
"""Address of the proxies; everything else on this machine comes from 127.0.0.1."""
FOUR, SIX = "192.0.2.7", "2001:db8::7"
FIELDS = b"\x01\x00\x04mqtt" + b"\x05\x00\x80" + bytes(128) + b"\x04\x00\x00"
"""Fields that proxies add in version 2: ALPN, a unique identifier, NOOP."""
HEADERS = {
    "v1-ipv4": (line(FOUR, 50_001), f"{FOUR}:50001"),
    "v1-ipv6": (line(SIX, 50_002), f"[{SIX}]:50002"),
    "v2-ipv4": (binary(FOUR, 50_003), f"{FOUR}:50003"),
    "v2-ipv6": (binary(SIX, 50_004), f"[{SIX}]:50004"),
    "v2-fields": (binary(SIX, 50_005, fields=FIELDS), f"[{SIX}]:50005"),
}


def proxied(**settings: str) -> dict[str, str]:
    return {
        "HERMES_LISTENERS_0_PROXY_FROM": f"{LISTED},10.0.0.0/8,fd00::/8",
        "HERMES_LISTENERS_0_ALLOW_ANONYMOUS": "true",
        **settings,
    }


@pytest.fixture
def broker(start_broker):
    return start_broker(environment=proxied())


@pytest.fixture
def tls_broker(start_broker, pair):
    return start_broker(environment={**proxied(), **tls_environment(pair)})


@pytest.fixture
def proxy():
    opened: list[Proxy] = []

    def open_one(broker, pieces, **options) -> Proxy:
        opened.append(Proxy(broker.address, pieces, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def from_proxy(proxy):
    """A raw connection from the proxy's address; the test sends the header."""
    clients: list[RawClient] = []

    def open_one(broker, *pieces: bytes) -> RawClient:
        clients.append(RawClient(proxy(broker, pieces).address))
        return clients[-1]

    yield open_one
    for one in clients:
        one.close()


def address(broker, client_id: str) -> str:
    listed = AdminAPI(broker).get("/v1/clients")["clients"]
    return next(one["address"] for one in listed if one["client_id"] == client_id)


def closed(broker, reason: str) -> int:
    name = f'hermes_connections_closed_total{{reason="{reason}"}} '
    text = AdminAPI(broker).request("GET", "/metrics").body.decode()
    return int(next(one for one in text.splitlines() if one.startswith(name)).removeprefix(name))


# --- the client's address -------------------------------------------------------------------


@pytest.mark.parametrize(("header", "peer"), HEADERS.values(), ids=HEADERS)
def test_the_address_is_the_headers_everywhere(broker, proxy, mosquitto_sub, header, peer):
    front = proxy(broker, header)
    sub = mosquitto_sub("-i", "phone", "-t", "a/#", "-q", "1", to=front)
    mosquitto_pub(front, "-t", "a/b", "-m", "hello", "-q", "2")
    assert sub.take().payload == b"hello"

    assert address(broker, "phone") == peer
    assert peer in hermesctl("clients", "list", broker=broker).output
    broker.log.await_match(
        rf"Client connected client.id=phone connection.address={re.escape(peer)} ")


@pytest.mark.parametrize("header", ["v1-ipv4", "v2-fields"])
def test_the_header_comes_before_tls(tls_broker, proxy, paho_client, authority, header):
    bytes_, peer = HEADERS[header]
    front = proxy(tls_broker, bytes_)
    phone = paho_client("phone", to=front, context=client_context(authority.certificate))
    phone.subscribe(("a", 1))
    phone.publish("a", b"hello", 1)
    assert phone.take().payload == b"hello"
    assert address(tls_broker, "phone") == peer
    assert 'hermes_tls_handshakes_total{kind="full"} 1' in AdminAPI(
        tls_broker).request("GET", "/metrics").body.decode()


@pytest.mark.parametrize(
    "header",
    [b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN ::1 ::1 1 2\r\n",
     binary(FOUR, 1, command=LOCAL), SIGNATURE + b"\x20\x00\x00\x00",
     SIGNATURE + b"\x21\x00\x00\x00"],
    ids=["v1-unknown", "v1-unknown-more", "v2-local-address", "v2-local", "v2-unspecified"],
)
def test_a_header_without_address_leaves_the_proxys(broker, from_proxy, header):
    client = from_proxy(broker, header)
    assert client.connect("phone").return_code == 0
    assert address(broker, "phone").startswith(f"{LISTED}:")


def test_who_is_not_listed_needs_no_header(broker, client, raw):
    direct = raw(broker)
    assert direct.connect("direct").return_code == 0
    assert address(broker, "direct") == "127.0.0.1:{}".format(direct.socket.getsockname()[1])


# --- how it arrives -------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["v1-ipv6", "v2-fields"])
def test_a_header_may_come_byte_by_byte(tls_broker, broker, proxy, authority, from_proxy, header):
    bytes_, peer = HEADERS[header]
    pieces = [bytes([one]) for one in bytes_]
    plain = from_proxy(broker, *pieces)
    assert plain.connect("plain").return_code == 0
    assert address(broker, "plain") == peer

    front = proxy(tls_broker, pieces)
    secured = TLSClient(front, client_context(authority.certificate))
    assert secured.connect("secured").return_code == 0
    assert address(tls_broker, "secured") == peer
    secured.disconnect()


@pytest.mark.parametrize(("header", "peer"), HEADERS.values(), ids=HEADERS)
def test_what_follows_in_the_same_segment_counts(broker, from_proxy, header, peer):
    client = from_proxy(
        broker, header + wire.connect("phone") + wire.subscribe(7, ("a", 1)) + wire.PINGREQ)
    assert client.expect(wire.Connack).return_code == 0
    assert client.expect(wire.Suback).packet_id == 7
    client.expect(wire.Pingresp)
    assert address(broker, "phone") == peer


@pytest.mark.parametrize(
    "part", [b"", b"P", line(FOUR, 1)[:-1], SIGNATURE, binary(FOUR, 1, fields=FIELDS)[:-1]])
def test_a_header_that_does_not_end_is_closed_in_time(start_broker, from_proxy, part):
    broker = start_broker(connect_timeout="300ms", environment=proxied())
    client = from_proxy(broker, part)
    assert client.await_closed() == []
    found = broker.log.await_match("Connection closed by the broker.*reason=connect_timeout").string
    assert f"connection.address={LISTED}:" in found and "limits.connect_timeout" in found
    assert closed(broker, "connect_timeout") == 1


def test_headers_that_stall_count_as_handshakes(
    start_broker, pair, authority, proxy, from_proxy
):
    broker = start_broker(environment={
        **proxied(HERMES_LIMITS_MAX_HANDSHAKES="3"), **tls_environment(pair)})
    stalled = [from_proxy(broker, line(FOUR, 1)[:10]) for _ in range(3)]
    eventually(lambda: AdminAPI(broker).status()["connections_pending"] == 3, "three to wait")

    # Waits in the kernel until the oldest of them has had its two seconds.
    client = TLSClient(proxy(broker, line(FOUR, 50_001)), client_context(authority.certificate))
    assert client.connect("newcomer").return_code == 0
    assert address(broker, "newcomer") == f"{FOUR}:50001"
    found = broker.log.await_match("TLS handshake failed.*reason=displaced").string
    assert f"connection.address={LISTED}:" in found
    assert stalled[0].await_closed() == []
    client.disconnect()


def test_a_check_that_only_connects_is_no_news(broker, from_proxy):
    """The health checks of load balancers, every few seconds."""
    start = len(broker.log.lines)
    for header in (b"", SIGNATURE + b"\x20\x00\x00\x00"):
        from_proxy(broker, header).close()
    eventually(lambda: closed(broker, "peer_closed") == 2, "both to be gone")
    assert [one for one in broker.log.lines[start:] if " DEBUG " not in one] == []


def test_the_limits_of_an_address_count_whom_the_header_names(
    start_broker, pair, authority, proxy, from_proxy
):
    broker = start_broker(environment={
        **proxied(HERMES_LIMITS_CONNECTIONS_PER_ADDRESS="2"), **tls_environment(pair)})
    context = client_context(authority.certificate)
    waiting = [from_proxy(broker, b"P") for _ in range(3)]
    eventually(lambda: AdminAPI(broker).status()["connections_pending"] == 3, "three to wait")

    front, other = proxy(broker, line(FOUR, 50_001)), proxy(broker, binary(SIX, 50_002))
    held = [TLSClient(front, context) for _ in range(2)]
    for number, one in enumerate(held):
        assert one.connect(f"held{number}").return_code == 0
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TLSClient(front, context)
    elsewhere = TLSClient(other, context)
    assert elsewhere.connect("elsewhere").return_code == 0

    found = broker.log.await_match("New connection closed, its address has had its share").string
    assert f"connection.address={FOUR}:50001" in found
    assert closed(broker, "address_limit") == 1
    held[0].disconnect()
    eventually(lambda: AdminAPI(broker).status()["connections"] == 2, "a free place")
    again = TLSClient(front, context)
    assert again.connect("again").return_code == 0
    for one in (held[1], elsewhere, again):
        one.disconnect()
    for one in waiting:
        one.close()


# --- rejected headers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (wire.connect("phone"), "begins with no PROXY header"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "begins with no PROXY header"),
        (b"GET / HTTP/1.1\r\n\r\n", "begins with no PROXY header"),
        (b"PROXY TCP4 192.0.2.7\r\n", "not two addresses and two ports"),
        (b"PROXY TCP4 192.0.2.777 198.51.100.1 1 2\r\n", "an address that is none of its family"),
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 1 65536\r\n", "a port that is no number"),
        (b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n", "a line of more than 107 bytes"),
        (SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12), "a version that is not 2"),
        (SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11), "no room for its addresses"),
        (SIGNATURE + b"\x21\x11\xff\xff", "a length of more than 1024 bytes"),
    ],
    ids=["connect", "tls", "http", "fields", "address", "port", "line", "version", "short", "long"],
)
@pytest.mark.parametrize("is_secured", [False, True], ids=["plain", "tls"])
def test_a_proxy_without_a_valid_header_is_closed(
    start_broker, pair, from_proxy, sent, why, is_secured
):
    broker = start_broker(
        environment={**proxied(), **(tls_environment(pair) if is_secured else {})})
    client = from_proxy(broker, sent)
    assert client.await_closed() == []
    found = broker.log.await_match("Connection closed, its proxy sent no valid PROXY header").string
    assert " NOTICE " in found and why in found and "listeners[].proxy_from" in found
    assert f"connection.address={LISTED}:" in found
    assert closed(broker, "proxy_header") == 1
    assert closed(broker, "protocol_violation") == 0


@pytest.mark.parametrize(("header", "peer"), HEADERS.values(), ids=HEADERS)
def test_a_header_from_elsewhere_is_a_violation(broker, raw, header, peer):
    spoofer = raw(broker)
    port = spoofer.socket.getsockname()[1]
    spoofer.send(header, wire.connect("spoofer"))
    assert spoofer.await_closed() == []
    found = broker.log.await_match("Connection closed after a protocol violation").string
    assert "a PROXY header from an address that proxy_from of the listener does not name" in found
    assert f"connection.address=127.0.0.1:{port}" in found and peer not in found
    assert closed(broker, "protocol_violation") == 1
    assert AdminAPI(broker).get("/v1/clients")["clients"] == []


def test_a_header_where_no_proxy_is_expected_is_a_violation(start_broker, raw):
    broker = start_broker()
    spoofer = raw(broker)
    spoofer.send(line(FOUR, 1), wire.connect("spoofer"))
    assert spoofer.await_closed() == []
    broker.log.await_match("Connection closed after a protocol violation.*a PROXY header")


@pytest.mark.parametrize("header", ["v1-ipv4", "v2-ipv6"])
def test_a_header_from_elsewhere_is_no_handshake(tls_broker, raw, header):
    spoofer = raw(tls_broker)
    spoofer.send(HEADERS[header][0])
    assert spoofer.await_closed() == []
    found = tls_broker.log.await_match("TLS handshake failed").string
    assert "reason=not_tls" in found and "connection.address=127.0.0.1:" in found
    assert "hint=\"a PROXY header from an address that proxy_from" in found


def test_a_second_header_is_a_violation(broker, from_proxy):
    client = from_proxy(broker, line(FOUR, 50_001), line(SIX, 50_002), wire.connect("phone"))
    assert client.await_closed() == []
    found = broker.log.await_match("Connection closed after a protocol violation").string
    assert f"connection.address={FOUR}:50001" in found


def test_a_refused_client_is_named_with_its_own_address(start_broker, from_proxy):
    broker = start_broker(users={"alice": "secret"}, environment={
        "HERMES_LISTENERS_0_PROXY_FROM": LISTED})
    client = from_proxy(broker, line(FOUR, 50_001))
    assert client.connect("phone", user_name="alice", password=b"guess").return_code == 4
    found = broker.log.await_match("Connection refused").string
    assert f"connection.address={FOUR}:50001" in found and "user.name=alice" in found


@pytest.mark.parametrize("part", [b"", b"PROXY TCP4 192."], ids=["nothing", "a-part"])
@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
def test_a_proxy_that_resets_before_its_header_is_whole(
    start_broker, pair, raw, part, secured
):
    broker = start_broker(environment={**proxied(), **(tls_environment(pair) if secured else {})})
    checker = raw(broker, source=LISTED)
    checker.send(part)
    eventually(
        lambda: AdminAPI(broker).status()["bytes_received"] == len(part), "the part to arrive")
    checker.reset()
    eventually(
        lambda: AdminAPI(broker).status()["connections_pending"] == 0, "the connection to go")
    assert broker.process.poll() is None


def test_unfinished_packets_are_shed_while_a_header_is_awaited(start_broker, raw):
    broker = start_broker(environment=proxied(HERMES_LIMITS_UNFINISHED_BYTES="64KiB"))
    silent = raw(broker, source=LISTED)
    greedy = raw(broker)
    greedy.connect("greedy")
    whole = wire.publish("a", bytes(400_000))
    greedy.send(whole[:200_000])
    greedy.await_closed()
    assert closed(broker, "unfinished_packets") == 1
    silent.send(line(FOUR, 50_001))
    assert silent.connect("patient").return_code == 0


def test_who_is_refused_behind_a_header_takes_nobodys_turn(start_broker, from_proxy, raw):
    broker = start_broker(
        environment=proxied(
            HERMES_LIMITS_CONNECT_RATE="20", HERMES_LIMITS_CONNECTIONS_PER_ADDRESS="1",
            HERMES_LIMITS_CONNECT_RATE_PER_ADDRESS="off",
        )
    )
    from_proxy(broker, line(FOUR, 50_001)).connect("greedy")
    for _ in range(60):
        assert from_proxy(broker, line(FOUR, 50_001)).await_closed() == []
    reached = AdminAPI(broker).status()["limits_reached"]
    assert (reached["connections_per_address"], reached["connect_rate"]) == (60, 0)
    raw(broker).connect("other")
