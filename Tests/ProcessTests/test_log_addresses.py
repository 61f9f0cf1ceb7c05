"""Log lines about misbehaving or rejected peers: their address, and advice."""

from __future__ import annotations

import ssl
import subprocess

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.certificates import Authority
from harness.tls import TLSClient, client_context, tls_environment
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("its log is its own")


def own(connection) -> str:
    host, port = connection.socket.getsockname()
    return f"connection.address={host}:{port}"


@pytest.mark.parametrize("end", ["stay", "close", "reset"])
def test_a_violation_names_the_peer_also_when_it_is_gone(start_broker, raw, end):
    broker = start_broker()
    client = raw(broker)
    expected = own(client)
    client.send(wire.PINGREQ)
    if end != "stay":
        getattr(client, end)()
    found = broker.log.await_match("Connection closed after a protocol violation").string
    assert expected in found and "hint=" not in found


def test_a_deadline_names_the_peer(start_broker, raw):
    broker = start_broker(connect_timeout="100ms")
    client = raw(broker)
    expected = own(client)
    assert client.await_closed() == []
    found = broker.log.await_match("Connection closed by the broker.*connect_timeout").string
    assert expected in found


def test_a_take_over_names_the_old_peer(start_broker, raw):
    broker = start_broker()
    old, new = raw(broker), raw(broker)
    expected = own(old)
    old.connect("phone")
    new.connect("phone")
    found = broker.log.await_match("Connection closed by the broker.*taken_over").string
    assert expected in found


def test_a_wrong_password_names_peer_and_user(start_broker, raw):
    broker = start_broker(users={"alice": "secret"})
    client = raw(broker)
    expected = own(client)
    client.send(wire.connect("phone", user_name="ali\x1b[31m\nce", password=b"guess"))
    found = broker.log.await_match("Connection refused").string
    assert expected in found and "bad_user_name_or_password" in found
    assert r"ali\u{1B}[31m\nce" in found and "guess" not in found


def test_a_long_user_name_is_cut(start_broker, raw):
    broker = start_broker(users={"alice": "secret"})
    client = raw(broker)
    assert client.connect("phone", user_name="u" * 60_000, password=b"guess").return_code == 4
    found = broker.log.await_match("Connection refused").string
    assert "user.name=" + "u" * 256 + "…(+59744 bytes)" in found.replace('"', "")
    assert len(found) < 1_000


def test_refusals_of_one_kind_do_not_hide_another(start_broker, raw):
    broker = start_broker(users={"alice": "secret"})
    for number in range(50):
        client = raw(broker)
        assert client.connect("phone", user_name="alice", password=b"guess").return_code == 4
    assert raw(broker).connect("anonymous").return_code == 5
    broker.log.await_match("Connection refused.*not_authorized")
    lines = [one for one in broker.log.lines if "bad_user_name_or_password" in one
             and " NOTICE " in one]
    assert 1 <= len(lines) < 50


def test_violations_in_a_flood_are_one_line_a_second(start_broker, raw):
    broker = start_broker()
    for _ in range(200):
        raw(broker).send(wire.PINGREQ)
    api = AdminAPI(broker)
    eventually(
        lambda: 'hermes_connections_closed_total{reason="protocol_violation"} 200\n'
        in api.request("GET", "/metrics").body.decode(), "all to be closed")
    lines = [one for one in broker.log.lines if "after a protocol violation" in one]
    assert 1 <= len(lines) < 100
    assert all("connection.address=127.0.0.1:" in one for one in lines)


# --- the wrong protocol ---------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--data", "x"), ("--http2-prior-knowledge",)])
def test_http_on_an_mqtt_port(start_broker, arguments):
    broker = start_broker()
    subprocess.run(
        ["curl", "--silent", "--max-time", f"{PATIENCE:g}", *arguments,
         f"http://127.0.0.1:{broker.port}/mqtt"], check=False, capture_output=True,
        timeout=PATIENCE + 5)
    found = broker.log.await_match("Connection closed after a protocol violation").string
    assert "the client speaks HTTP" in found and "WebSockets is not served" in found
    assert "connection.address=127.0.0.1:" in found
    assert 'hermes_connections_closed_total{reason="protocol_violation"} 1\n' in AdminAPI(
        broker).request("GET", "/metrics").body.decode()


@pytest.mark.parametrize(
    "request_line",
    [b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\nHost: a\r\n\r\n" + b"x" * 500,
     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HEAD / HTTP/1.0\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n"])
def test_every_request_is_told(start_broker, raw, request_line):
    broker = start_broker()
    client = raw(broker)
    client.send(request_line)
    assert client.await_closed() == []
    broker.log.await_match("Connection closed after a protocol violation.*the client speaks HTTP")


def test_tls_on_a_plain_port_names_the_peer(start_broker, tmp_path):
    broker = start_broker()
    authority = Authority(tmp_path / "ca")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TLSClient(broker, client_context(authority.certificate))
    found = broker.log.await_match("Connection closed, the client speaks TLS").string
    assert "connection.address=127.0.0.1:" in found


def test_a_client_that_refuses_our_certificate_is_named(start_broker, tmp_path):
    """It sends its alert and closes before the broker has read it."""
    authority, other = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    broker = start_broker(environment=tls_environment(authority.issue("localhost")))
    for _ in range(5):
        with pytest.raises(ssl.SSLError):
            TLSClient(broker, client_context(other.certificate))
    found = broker.log.await_match("TLS handshake failed.*refused_by_client").string
    assert "connection.address=127.0.0.1:" in found
