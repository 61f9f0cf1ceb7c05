"""Clients whose certificates name them, and the other sources of logins that are asked about them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.broker import Broker
from harness.certificates import Authority, Certificate
from harness.company_service import CompanyService, allow, deny
from harness.login_service import SigningKey
from harness.tls import TLSClient, client_context, tls_environment

pytestmark = pytest.mark.hermesd("hermesd asks about clients that are named by certificates")

NAME = "device-7"


@pytest.fixture(scope="module")
def device(authority: Authority) -> Certificate:
    return authority.issue(NAME, names=None)


@pytest.fixture
def service() -> Iterator[CompanyService]:
    one = CompanyService()
    yield one
    one.close()


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey("ES256", tmp_path, "key-1")


@pytest.fixture
def start(start_broker, service, authority, pair):
    """Starts a broker of TLS that asks the service and takes certificates, which none must show."""

    def start_one(sources: str | None, environment: dict[str, str] | None = None, **settings):
        return start_broker(environment={
            **tls_environment(
                pair, client_certificates="optional", client_ca_file=authority.certificate,
                user_name_from_certificate="true"),
            "HERMES_AUTH_HTTP_URL": service.url,
            **({"HERMES_AUTH_SOURCES": sources} if sources else {}),
            **(environment or {}),
        }, **settings)

    return start_one


@pytest.fixture
def login(authority, device):
    """Connects with the certificate, unless without; returns client and return code."""
    opened: list[TLSClient] = []

    def connect(broker: Broker, identifier: str = "phone", *, named: bool = True, **options):
        context = client_context(
            authority.certificate, certificate=device if named else None)
        client = TLSClient(broker, context)
        opened.append(client)
        return client, client.connect(identifier, **options).return_code

    yield connect
    for client in opened:
        client.close()


def answer(question: dict) -> bytes:
    """`right` lets in, `ignored` is passed on, all else is refused."""
    words = (question["password"], question.get("certificate_name"))
    if "ignored" in words:
        return b'{"result":"ignore"}'
    return allow() if "right" in words else deny()


@pytest.mark.parametrize(
    ("sources", "connect", "code", "user", "asked"),
    [
        (None, {}, 0, NAME, 0),
        (None, {"user_name": "anna", "password": b"wrong"}, 0, NAME, 0),
        ("certificate,http", {}, 0, NAME, 0),
        ("http,certificate", {}, 4, None, 1),
        ("http,certificate", {"user_name": "anna", "password": b"right"}, 0, NAME, 1),
        ("http,certificate", {"user_name": "anna", "password": b"ignored"}, 0, NAME, 1),
        ("http,certificate", {"user_name": "anna", "password": b"wrong"}, 4, None, 1),
        ("file,certificate,http", {}, 0, NAME, 0),
        ("file,certificate,http", {"user_name": "anna", "password": b"a-secret"}, 0, "anna", 0),
        ("file,certificate,http", {"user_name": "anna", "password": b"wrong"}, 4, None, 0),
        ("file,certificate,http", {"user_name": "berta", "password": b"wrong"}, 0, NAME, 0),
        ("file,http,certificate", {"user_name": "berta", "password": b"right"}, 0, NAME, 1),
    ],
)
def test_the_order_of_sources_decides(sources, connect, code, user, asked, start, service, login):
    service.answer = answer
    has_file = sources is None or "file" in sources
    broker = start(sources, **({"users": {"anna": "a-secret"}} if has_file else {}))
    assert login(broker, **connect)[1] == code
    assert len(service.questions) == asked
    if user:
        assert AdminAPI(broker).get("/v1/clients/phone")["user_name"] == user
    # Clients without a certificate are asked about as ever, by the same order.
    assert login(broker, "other", named=False)[1] == 5
    assert login(broker, "other", named=False, user_name="berta", password=b"right")[1] == 0
    assert len(service.questions) == asked + 1
    assert "certificate_name" not in service.questions[-1]


def test_a_token_before_the_certificate(start, service, login, key, tmp_path):
    broker = start("jwt,certificate,http", {
        "HERMES_AUTH_JWT_KEY_FILE": str(key.write(tmp_path / "login.key"))})
    for options, code, user in (
        ({}, 0, NAME), ({"user_name": "", "password": key.token()}, 0, "anna"),
        ({"user_name": "", "password": key.token(exp=1)}, 4, None),
    ):
        client, found = login(broker, f"phone-{user}", **options)
        assert found == code
        if user:
            assert AdminAPI(broker).get(f"/v1/clients/phone-{user}")["user_name"] == user
    assert service.questions == []


def test_the_service_denies_narrows_and_ends_a_certificates_login(start, service, login, tmp_path):
    rules = tmp_path / "acl"
    rules.write_text("deny user * publish closed\nallow user * both #\n")
    broker = start("http,certificate", arguments=("--acl-file", str(rules)))
    service.answer = lambda question: deny(reason="device is stolen")
    assert login(broker)[1] == 4
    assert service.questions == [{
        "user_name": "", "client_id": "phone", "password": "", "certificate_name": NAME,
        "address": "127.0.0.1",
    }]
    events = AdminAPI(broker).get("/v1/clients/phone/history")["events"]
    found = next(event for event in events if event["kind"] == "refused")
    assert found["user_name"] == NAME
    assert found["detail"] == "auth.http does not let it in: device is stolen"
    service.answer = lambda question: allow(subscribe=["orders/%u/#"], remember_s=60)
    phone, code = login(broker)
    assert code == 0
    assert phone.subscribe((f"orders/{NAME}/1", 1), ("orders/anna/1", 1)) == (1, 0x80)
    # The answer is remembered for this certificate, and its session is the certificate's.
    phone, code = login(broker, clean_session=False)
    assert code == 0 and len(service.questions) == 2
    service.answer = lambda question: allow(user_name="anna", superuser=True)
    assert login(broker, "other")[1] == 0
    assert AdminAPI(broker).get("/v1/clients/other")["user_name"] == "anna"
    service.answer = lambda question: allow(expires_at=int(time.time()) + 2)
    phone, code = login(broker, "short")
    assert code == 0
    phone.await_closed()
    service.close()
    assert login(broker, "late")[1] == 3


def test_a_refused_certificate_is_no_guess_of_a_password(start, service, login):
    broker = start("http,certificate", {
        "HERMES_LIMITS_LOCKOUT_ATTEMPTS": "2", "HERMES_LIMITS_LOCKOUT_ATTEMPTS_PER_ADDRESS": "4"})
    service.answer = answer
    for _ in range(6):
        assert login(broker)[1] == 4
        assert login(broker, user_name="anna")[1] == 4
    assert len(service.questions) == 12
    assert login(broker, named=False, user_name="anna", password=b"right")[1] == 0
    # With passwords it guesses as everybody does.
    for _ in range(4):
        assert login(broker, user_name="anna", password=b"wrong")[1] == 4
    assert len(service.questions) == 15
    # A certificate alone is let in for all that.
    service.answer = lambda question: allow()
    assert login(broker, "device")[1] == 0


def test_a_certificate_wins_no_free_guesses(start, service, login):
    """It lets its client in as itself, which ends no count of wrong passwords of somebody else."""
    broker = start("http,certificate", {"HERMES_LIMITS_LOCKOUT_ATTEMPTS": "3"})
    service.answer = lambda question: (
        allow(user_name=NAME) if question["password"] == "own" else deny())
    for _ in range(2):
        assert login(broker, named=False, user_name="anna", password=b"guess")[1] == 4
    assert login(broker, user_name="anna", password=b"own")[1] == 0
    assert login(broker, named=False, user_name="anna", password=b"guess")[1] == 4
    asked = len(service.questions)
    assert login(broker, named=False, user_name="anna", password=b"guess")[1] == 4
    assert len(service.questions) == asked, "anna is locked out at this address"
    assert AdminAPI(broker).get("/v1/lockouts")["lockouts"][0]["user_name"] == "anna"


def test_auth_check_names_the_source(service, tmp_path, authority, pair):
    configuration = tmp_path / "hermes.yaml"

    def check(sources: str, *arguments: str, stdin: bytes = b""):
        configuration.write_text(f"""
listeners:
  - tls:
      certificate: {pair.certificate}
      key: {pair.key}
      client_certificates: optional
      client_ca_file: {authority.certificate}
      user_name_from_certificate: true
auth:
  sources: {sources}
  http:
    url: {service.url}
""")
        return hermesctl(
            "auth", "check", "-", "--config", str(configuration), *arguments, stdin=stdin)

    service.answer = answer
    named = ("--certificate-name", NAME)
    checked = check("http", *named)
    assert (checked.code, checked.output) == (0, f'let in by certificate as "{NAME}"\n')
    checked = check("http,certificate", *named)
    assert (checked.code, checked.output) == (
        1, "refused by http: the service does not let it in\n")
    assert service.questions[-1]["certificate_name"] == NAME
    checked = check("http,certificate", "--certificate-name", "right")
    assert (checked.code, checked.output) == (0, 'let in by http as "right"\n')
    checked = check("http,certificate", "--certificate-name", "ignored")
    assert (checked.code, checked.output) == (
        0, "http passes it on: the service does not know it (ignore)\n"
        'let in by certificate as "ignored"\n')
    password = tmp_path / "password"
    password.write_text("right\n")
    checked = check("http,certificate", *named, "--file", str(password), "--json")
    assert checked.json["source"] == "http" and checked.json["user_name"] == NAME
    checked = check("certificate,http", stdin=b"right")
    assert checked.output == (
        "certificate passes it on: no certificate names it\nrefused by http: the service lets it in,"
        " and neither CONNECT nor it names a user\n")
    configuration.write_text(f"auth:\n  http:\n    url: {service.url}\n")
    checked = hermesctl("auth", "check", "-", "--config", str(configuration), *named)
    assert checked.code == 64
    assert "no listener of the configuration takes the names of users" in checked.errors
