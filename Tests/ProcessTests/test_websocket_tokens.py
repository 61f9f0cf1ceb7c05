"""Tokens of a company's login in the request for WebSocket, where no password can be set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.company_service import CompanyService, allow, deny
from harness.login_service import SigningKey
from harness.tls import client_context, tls_environment
from harness.waiting import eventually
from harness.websocket import (
    BINARY, CLOSE, TEXT, WebSocket, frame, request, websocket_environment)

pytestmark = pytest.mark.hermesd("hermesd takes tokens in the request for WebSocket")


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey("ES256", tmp_path, "key-1")


@pytest.fixture
def start(start_broker, tmp_path, key):
    """Starts a broker that verifies tokens of `key`, in requests where `token` says."""

    def start_one(token: str = "any", **settings):
        environment = {
            **websocket_environment(token=token),
            "HERMES_AUTH_JWT_KEY_FILE": str(key.write(tmp_path / "login.key")),
            **settings.pop("environment", {}),
        }
        return start_broker(environment=environment, **settings)

    return start_one


@pytest.fixture
def web() -> Iterator:
    opened: list[WebSocket] = []

    def open_one(broker, *, token: bytes | None = None, **options) -> WebSocket:
        """Opens a connection; with `token` its request is accepted with that in its query."""
        one = WebSocket(broker.address, **options)
        opened.append(one)
        if token is not None:
            one.upgrade(request(f"GET /mqtt?access_token={token.decode()} HTTP/1.1"))
        return one

    yield open_one
    for one in opened:
        one.close()


def code(one: WebSocket, identifier: str = "page", **options) -> int:
    """The return code for a CONNECT."""
    one.send(frame(BINARY, wire.connect(identifier, **options)))
    return one.expect(BINARY).payload[3]


def test_paho_comes_with_a_token_in_its_path_or_header(start, key, paho_client):
    broker = start()
    api = AdminAPI(broker)
    token = key.token(subscribe=["orders/%u"]).decode()
    for name, path, headers in (
        ("query", f"/mqtt?v=1&access_token={quote(token)}", None),
        ("header", "/mqtt?v=1", {"Authorization": f"Bearer {token}"}),
    ):
        page = paho_client(name, broker, websocket_path=path, websocket_headers=headers)
        assert not page.is_refused
        assert api.get(f"/v1/clients/{name}")["user_name"] == "anna"
        page.subscribe(("orders/anna", 1))
        page.publish("orders/anna", b"hello", 1)
        assert page.take().payload == b"hello"
    assert not any(token in line or "access_token" in line for line in broker.log.lines)


@pytest.mark.parametrize(
    ("line", "header", "status"),
    [
        ("access_token=", None, 400), ("access_token=s3cret%2", None, 400),
        ("access_token=s3cret%00", None, 400), ("access_token=s3cret&access_token=s3cret", None, 400),
        ("access_token=s3cret", "Authorization: Bearer s3cret", 400),
        ("", "Authorization: Bearer", 400), ("", "Authorization: Basic czNjcmV0", 400),
        ("access_token=" + "s3cret" * 1_400, None, 431),
    ],
    ids=["empty", "percent", "zero", "twice", "both", "no-bearer", "basic", "long"],
)
def test_what_is_no_token_is_refused_with_a_status(line, header, status, start, web):
    broker = start()
    response = web(broker).ask(request(
        f"GET /mqtt?{line} HTTP/1.1", *([header] if header else [])))
    assert response.status == status
    assert b"s3cret" not in response.body
    setting = "setting=.*websocket.token" if status == 400 else ""
    broker.log.await_match(f"WebSocket was broken.*{setting}.*websocket.failure=.*(token|headers)")
    assert not any("s3cret" in one or "czNjcmV0" in one for one in broker.log.lines)


def test_the_token_is_the_password_of_connect(start, key, web):
    broker = start("query")
    good, other = key.token(), key.token(sub="berta")
    for token, options, expected in (
        (good, {}, 0), (good, {"user_name": "anna"}, 0), (good, {"user_name": ""}, 0),
        (good, {"user_name": "anna", "password": b""}, 0),
        (good, {"user_name": "anna", "password": good}, 0),
        (good, {"user_name": "anna", "password": other}, 4),
        (good, {"user_name": "berta"}, 4),
        (key.token(exp=1), {}, 4), (b"no.token.0", {}, 4), (b"s3cret", {}, 4),
    ):
        assert code(web(broker, token=token), **options) == expected, options
    # A request without a token leaves it to the CONNECT, as on any listener.
    one = web(broker)
    one.upgrade()
    assert code(one, user_name="anna", password=good) == 0
    one = web(broker)
    one.upgrade()
    assert code(one) == 5
    assert code(web(broker, token=good), "both", user_name="anna", password=other) == 4
    told = hermesctl("explain", "both", broker=broker).output
    assert "a password that is not the token of its request" in told
    assert good.decode() not in told and other.decode() not in told
    assert not any(good.decode() in line or "s3cret" in line for line in broker.log.lines)


def test_by_default_the_request_is_not_read(start, key, web):
    broker = start("none")
    one = web(broker, token=key.token() + b"&access_token=%")
    assert code(one) == 5
    one = web(broker)
    one.upgrade(request("GET /mqtt HTTP/1.1", "Authorization: Basic eA=="))
    assert code(one, user_name="anna", password=key.token()) == 0


def test_a_token_over_tls(start, key, web, pair, authority):
    broker = start("header", environment=tls_environment(pair))
    one = web(broker, context=client_context(authority.certificate))
    one.upgrade(request("GET /mqtt HTTP/1.1", f"Authorization: Bearer {key.token().decode()}"))
    assert code(one) == 0


def test_the_companys_service_is_asked_about_it(start_broker, web):
    service = CompanyService()
    try:
        service.answer = lambda question: (
            allow(user_name="anna") if question["password"] == "good"
            else allow() if question["password"] == "nobody" else deny())
        broker = start_broker(environment={
            **websocket_environment(token="query"), "HERMES_AUTH_HTTP_URL": service.url})
        assert code(web(broker, token=b"good")) == 0
        assert service.questions[-1] == {
            "user_name": "", "client_id": "page", "password": "good", "address": "127.0.0.1"}
        assert AdminAPI(broker).get("/v1/clients/page")["user_name"] == "anna"
        # An answer that names nobody makes nobody of a client without a user name.
        assert code(web(broker, token=b"nobody"), "other") == 4
        assert code(web(broker, token=b"nobody"), "other", user_name="berta") == 0
        assert code(web(broker, token=b"bad"), "other") == 4
    finally:
        service.close()


def test_tokens_that_wait_for_connect_are_counted_and_bounded(start, key, web):
    broker = start("query", environment={"HERMES_LIMITS_UNFINISHED_BYTES": "256KiB"})
    api = AdminAPI(broker)

    def unfinished() -> float:
        return api.metric("hermes_unfinished_packet_bytes")

    token = key.token(pad="x" * 3_000)
    assert 4_000 < len(token) < 6_000
    few = [web(broker, token=token) for _ in range(20)]
    eventually(lambda: unfinished() == 20 * (6_144 + 192), "the memory of tokens")
    for number, one in enumerate(few):
        assert code(one, f"page-{number}") == 0
    assert unfinished() == 0
    for _ in range(60):
        web(broker, token=token)
    eventually(
        lambda: api.metric('hermes_connections_closed_total{reason="unfinished_packets"}') > 0,
        "some of them to be closed")
    eventually(lambda: unfinished() <= 256 << 10, "the bound")
    few[0].send(frame(BINARY, wire.PINGREQ))
    assert few[0].expect(BINARY).payload == b"\xd0\x00"


def test_guesses_beside_a_certificate_are_counted(start_broker, web, pair, authority):
    """A service that is asked before the certificate sees no more guesses than of anybody else."""
    service = CompanyService()
    try:
        service.answer = lambda question: deny()
        broker = start_broker(environment={
            **websocket_environment(token="query"), "HERMES_AUTH_HTTP_URL": service.url,
            **tls_environment(
                pair, client_certificates="required", client_ca_file=authority.certificate,
                user_name_from_certificate="true"),
            "HERMES_AUTH_SOURCES": "http,certificate", "HERMES_LIMITS_LOCKOUT_ATTEMPTS": "2",
        })
        context = client_context(
            authority.certificate, certificate=authority.issue("device", names=None))
        for number in range(4):
            one = web(broker, token=b"guess%d" % number, context=context)
            assert code(one, user_name="anna") == 4
        assert [question["password"] for question in service.questions] == ["guess0", "guess1"]
    finally:
        service.close()


def test_wrong_tokens_lock_out_no_others_who_name_no_user(start_broker, web):
    """A page that comes again and again with an old token shares its address with its office."""
    service = CompanyService()
    try:
        service.answer = lambda question: (
            allow(user_name="anna") if question["password"] == "good" else deny())
        broker = start_broker(environment={
            **websocket_environment(token="query"), "HERMES_AUTH_HTTP_URL": service.url,
            "HERMES_LIMITS_LOCKOUT_ATTEMPTS": "2",
            "HERMES_LIMITS_LOCKOUT_ATTEMPTS_PER_ADDRESS": "6",
        })
        for number in range(5):
            assert code(web(broker, token=b"old%d" % number)) == 4
        assert code(web(broker, token=b"good")) == 0
        # Its address has its share all the same.
        assert code(web(broker, token=b"old5")) == 4
        assert code(web(broker, token=b"good")) == 4
    finally:
        service.close()


def test_a_connection_that_ends_has_dropped_its_token(start, key, web):
    """Also while its peer still reads why."""
    broker = start()
    figures = AdminAPI(broker)
    closed = [web(broker, token=b"a" * 7_500) for _ in range(20)]
    assert figures.metric("hermes_unfinished_packet_bytes") >= 20 * 7_500
    for one in closed:
        one.send(frame(TEXT, b"no binary frame"))
        one.expect(CLOSE)
    assert figures.metric("hermes_unfinished_packet_bytes") == 0
