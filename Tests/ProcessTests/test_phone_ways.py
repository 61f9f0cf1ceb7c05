"""hermes-phone on its other ways to a real broker: WebSocket, client certificates, HTTP proxies."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI
from harness.broker import Hermesd
from harness.certificates import Authority, Certificate
from harness.http_proxy import HTTPProxy
from harness.phone import Phone
from harness.relay import Relay
from harness.tls import tls_environment
from harness.waiting import PATIENCE
from harness.websocket import websocket_environment
from test_phone_tls import FILTER, SAFE, pin, post, trust

pytestmark = [pytest.mark.hermesd("its listeners are its own"), pytest.mark.timeout(120)]

StartBroker = Callable[..., Hermesd]
StartPhone = Callable[..., Phone]


@pytest.fixture
def proxied() -> Iterator[Callable[..., HTTPProxy]]:
    """Starts proxies; they are closed at the end."""
    started: list[HTTPProxy] = []

    def start(target: Hermesd | Listener, **options: str) -> HTTPProxy:
        started.append(HTTPProxy(target.address, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def receives(phone: Phone, broker: Hermesd, order: str) -> None:
    phone.await_note("subscribed")
    post(broker, order)
    (message,) = phone.await_messages(1)
    assert message["orderStatus"]["orderId"] == order


# --- WebSocket -------------------------------------------------------------------------------------


@pytest.mark.parametrize("secured", [False, True], ids=["ws", "wss"])
def test_messages_go_and_come_over_websocket(
    start_broker: StartBroker, phone: StartPhone, authority: Authority, pair: Certificate,
    secured: bool,
) -> None:
    environment = websocket_environment(path="/a/path")
    if secured:
        environment |= tls_environment(pair)
    broker = start_broker(environment=environment)
    options = trust(authority, pin(pair), SAFE) if secured else []
    seven = phone(
        ("localhost", broker.port), "phone-7", "-s", FILTER, "--websocket", "/a/path?x=1", *options)
    receives(seven, broker, "o-1")
    text = "x" * 70_000
    seven.tell(f"publish orders/s-42/long {text}")
    seven.await_note("acknowledged: orders/s-42/long")
    assert seven.await_messages(2)[1]["text"] == text
    assert seven.stop() == 0
    assert "disconnected" not in seven.log.text
    # The goodbye of MQTT came, and not the end of a connection alone.
    assert AdminAPI(broker).get("/v1/clients/phone-7")["connected"] is False


def test_a_session_goes_on_over_websocket_that_is_cut(
    start_broker: StartBroker, phone: StartPhone, tmp_path: Path
) -> None:
    broker = start_broker(environment=websocket_environment())
    relay = Relay(broker.address)
    seven = phone(
        relay.address, "phone-7", "-s", FILTER, "--websocket", "/mqtt",
        storage=tmp_path / "phone.log", tries_at_once=True)
    receives(seven, broker, "o-1")
    relay.cut_all()
    post(broker, "o-2")
    assert [each["orderStatus"]["orderId"] for each in seven.await_messages(2)] == ["o-1", "o-2"]
    seven.await_note("connected, the session goes on")
    relay.close()


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["/other"], "404"), (["/mqtt", "--header", "Origin: https://elsewhere.example"], "403")])
def test_a_refused_request_is_told(
    start_broker: StartBroker, phone: StartPhone, options: list[str], reason: str
) -> None:
    broker = start_broker(environment=websocket_environment())
    seven = phone(broker.address, "phone-7", "--websocket", *options)
    seven.await_note(f"disconnected: WebSocket failed: the answer to the request was {reason}")
    seven.await_note("state: waiting .*: WebSocket failed")


def test_a_port_without_websocket_is_told(start_broker: StartBroker, phone: StartPhone) -> None:
    broker = start_broker()
    seven = phone(broker.address, "phone-7", "--websocket", "/mqtt")
    # The broker waits for a CONNECT, and closes upon "GET".
    seven.await_note("disconnected: ")
    assert "state: connected" not in seven.log.text


def test_headers_of_the_request_are_sent(phone: StartPhone) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        seven = phone(
            server.getsockname(), "phone-7", "--websocket", "/mqtt",
            "--header", "Authorization: Bearer secret", "--header", "X-Tenant: a")
        with server.accept()[0] as one:
            one.settimeout(PATIENCE)
            head = b""
            while b"\r\n\r\n" not in head:
                head += one.recv(4_096)
            assert {b"Authorization: Bearer secret", b"X-Tenant: a"} <= set(head.split(b"\r\n"))
            one.sendall(b"220 mail.example ESMTP\r\n\r\n")
            seven.await_note("WebSocket failed: the answer to the request is no HTTP")


class Listener:
    """A server of TLS that takes one connection, and keeps the first bytes that come in it."""

    def __init__(self, pair: Certificate) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair.certificate, pair.key)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(PATIENCE)
        self.address: tuple[str, int] = self._server.getsockname()

    def first_bytes(self) -> bytes:
        """Nothing if the client goes away first, after the handshake."""
        with self._server, self._server.accept()[0] as connection:
            connection.settimeout(PATIENCE)
            with self._context.wrap_socket(connection, server_side=True) as tls:
                try:
                    return tls.recv(4_096)
                except (ssl.SSLEOFError, ConnectionResetError):
                    return b""


def test_headers_of_the_request_leave_only_after_the_pin_is_found_right(
    phone: StartPhone, authority: Authority, pair: Certificate
) -> None:
    def bytes_of_a_phone(*pins: str) -> bytes:
        listener = Listener(pair)
        seven = phone(
            listener.address, "phone-7", "--websocket", "/mqtt",
            "--header", "Authorization: Bearer secret", *trust(authority, *pins))
        received = listener.first_bytes()
        if not received:
            seven.await_note("no pin is that of the broker's key")
        seven.kill()
        return received

    # The same eye sees them when the pin is right.
    assert b"Authorization: Bearer secret" in bytes_of_a_phone(pin(pair), SAFE)
    assert bytes_of_a_phone(SAFE, "sha256/" + "B" * 42 + "A=") == b""


# --- client certificates ---------------------------------------------------------------------------


@pytest.fixture
def named(start_broker: StartBroker, pair: Certificate, authority: Authority) -> Hermesd:
    """A broker that lets in whom a certificate names."""
    return start_broker(
        environment=tls_environment(
            pair, client_certificates="required", client_ca_file=authority.certificate,
            user_name_from_certificate="true"))


def test_a_certificate_names_the_phone(
    named: Hermesd, phone: StartPhone, authority: Authority, pair: Certificate
) -> None:
    device = authority.issue("device-7", names=None)
    seven = phone(
        ("localhost", named.port), "phone-7", "-s", FILTER, *trust(authority, pin(pair), SAFE),
        "--certificate", str(device.certificate), "--key", str(device.key))
    receives(seven, named, "o-1")
    assert AdminAPI(named).get("/v1/clients/phone-7")["user_name"] == "device-7"


def test_a_certificate_comes_as_pkcs_12(
    named: Hermesd, phone: StartPhone, authority: Authority, pair: Certificate, tmp_path: Path
) -> None:
    device = authority.issue("device-8", names=None)
    file = tmp_path / "device.p12"
    subprocess.run(
        ["openssl", "pkcs12", "-export", "-in", device.certificate, "-inkey", device.key,
         "-certfile", authority.certificate, "-passout", "pass:open", "-out", file],
        check=True, capture_output=True, timeout=PATIENCE)
    options = [*trust(authority, pin(pair), SAFE), "--identity", str(file)]
    eight = phone(
        ("localhost", named.port), "phone-8", "-s", FILTER, *options,
        environment={"HERMES_IDENTITY_PASSWORD": "open"})
    receives(eight, named, "o-1")
    assert AdminAPI(named).get("/v1/clients/phone-8")["user_name"] == "device-8"
    other = phone(
        ("localhost", named.port), "phone-9", *options,
        environment={"HERMES_IDENTITY_PASSWORD": "another"})
    other.await_note("cannot begin: .*no PKCS #12, or its password is another one")
    assert other.process.wait(PATIENCE) == 1


def test_a_certificate_that_is_missing_or_foreign_is_told(
    named: Hermesd, phone: StartPhone, authority: Authority, pair: Certificate, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "other", "Another authority").issue("device-7", names=None)
    for shown in (
        [], ["--certificate", str(stranger.certificate), "--key", str(stranger.key)],
    ):
        seven = phone(
            ("localhost", named.port), "phone-7", *trust(authority, pin(pair), SAFE), *shown)
        seven.await_note("disconnected: TLS could not be agreed upon: ")
        assert "state: connected" not in seven.log.text


def test_a_key_of_another_certificate_is_refused_at_once(
    phone: StartPhone, authority: Authority, pair: Certificate
) -> None:
    one, other = (authority.issue(name, names=None) for name in ("device-1", "device-2"))
    seven = phone(
        ("localhost", 1), "phone-7", *trust(authority, pin(pair), SAFE),
        "--certificate", str(one.certificate), "--key", str(other.key))
    seven.await_note("cannot begin: ")
    assert seven.process.wait(PATIENCE) == 1


@pytest.mark.parametrize(
    "shown", [["--certificate", "a.crt", "--key", "a.key"], ["--key", "a.key"], ["--identity", "a.p12"]],
    ids=["pem", "key", "pkcs12"])
def test_a_certificate_is_not_ignored_without_tls(
    start_broker: StartBroker, phone: StartPhone, shown: list[str]
) -> None:
    seven = phone(start_broker().address, "phone-7", *shown)
    seven.await_note("cannot begin: .*need TLS: name the broker's keys with --pin")
    assert seven.process.wait(PATIENCE) == 1


# --- proxies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["plain", "tls", "wss"])
def test_a_proxy_opens_the_way(
    start_broker: StartBroker, phone: StartPhone, authority: Authority, pair: Certificate,
    proxied: Callable[..., HTTPProxy], way: str,
) -> None:
    environment = {} if way == "plain" else tls_environment(pair)
    if way == "wss":
        environment |= websocket_environment()
    broker = start_broker(environment=environment)
    proxy = proxied(broker, login="me:a:b")
    options = [] if way == "plain" else trust(authority, pin(pair), SAFE)
    options += ["--websocket", "/mqtt"] if way == "wss" else []
    seven = phone(
        ("localhost", broker.port), "phone-7", "-s", FILTER, *options, "--proxy", proxy.address,
        environment={"HERMES_PROXY_LOGIN": "me:a:b"})
    receives(seven, broker, "o-1")
    assert len(proxy.requests) == 1


def test_a_proxy_that_refuses_is_told(
    start_broker: StartBroker, phone: StartPhone, proxied: Callable[..., HTTPProxy]
) -> None:
    broker = start_broker()
    proxy = proxied(broker, login="me:secret")
    seven = phone(("localhost", broker.port), "phone-7", "--proxy", proxy.address)
    seven.await_note(
        "disconnected: the proxy opened no way to the broker: it answered 407 Proxy Auth")
    other = phone(("elsewhere.example", 1883), "phone-8", "--proxy", proxy.address)
    other.await_note("it answered 403 Forbidden")


@pytest.mark.parametrize(
    ("host", "names", "trusted"),
    [("localhost", "DNS:localhost", True),
     # The address is the proxy's, and that of the connection's other end.
     ("localhost", "DNS:elsewhere.example,IP:127.0.0.1", False),
     ("192.0.2.7", "IP:192.0.2.7", True),
     ("192.0.2.7", "DNS:192.0.2.7,IP:127.0.0.1", False)])
def test_behind_a_proxy_the_certificate_is_for_the_broker_and_not_for_the_proxy(
    phone: StartPhone, authority: Authority, proxied: Callable[..., HTTPProxy], host: str,
    names: str, trusted: bool,
) -> None:
    pair = authority.issue("behind", names=names)
    listener = Listener(pair)
    proxy = proxied(listener, host=host)
    seven = phone(
        (host, listener.address[1]), "phone-7", "--user", "seven",
        *trust(authority, pin(pair), SAFE), "--proxy", proxy.address,
        environment={"HERMES_PASSWORD": "secret"})
    received = listener.first_bytes()
    if trusted:
        assert b"seven" in received
    else:
        assert received == b""
        seven.await_note(f"disconnected: .*another host: none of its names is {host}")
