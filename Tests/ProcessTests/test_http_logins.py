"""A company's service that is asked about logins (`auth.http`)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.broker import Broker
from harness.certificates import Authority
from harness.company_service import CompanyService, allow, deny, drip, response
from harness.login_service import SigningKey
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("hermesd asks a company's service about logins")


@pytest.fixture
def service() -> Iterator[CompanyService]:
    one = CompanyService()
    yield one
    one.close()


@pytest.fixture
def start(start_broker, service):
    """Starts a broker that asks the service."""

    def start_one(
        *arguments: str, users: dict[str, str] | None = None,
        environment: dict[str, str] | None = None, **settings: object,
    ) -> Broker:
        full = {
            "HERMES_AUTH_HTTP_URL": service.url,
            **{f"HERMES_AUTH_HTTP_{key.upper()}": str(value) for key, value in settings.items()},
            **(environment or {}),
        }
        rest = {"users": users} if users else {}
        return start_broker(arguments=arguments, environment=full, **rest)

    return start_one


@pytest.fixture
def login(raw):
    """Connects with a password; returns client and return code."""

    def connect(
        broker: Broker, password: str | bytes, user: str = "anna", identifier: str = "phone",
        **options: object,
    ):
        client = raw(broker)
        secret = password.encode() if isinstance(password, str) else password
        answer = client.connect(identifier, user_name=user, password=secret, **options)
        return client, answer.return_code

    return connect


def refusal(broker: Broker, client: str = "phone") -> dict:
    events = AdminAPI(broker).get(f"/v1/clients/{client}/history")["events"]
    return next(event for event in events if event["kind"] == "refused")


# MARK: Answers


def test_the_service_lets_in_and_refuses(start, service, login):
    broker = start()
    phone, code = login(broker, "right")
    assert code == 0
    assert service.questions == [{
        "user_name": "anna", "client_id": "phone", "password": "right", "address": "127.0.0.1",
    }]
    assert service.headers[0][":line"] == "POST /logins?shop=7 HTTP/1.1"
    assert service.headers[0]["content-type"] == "application/json"
    assert phone.subscribe(("orders/#", 1)) == (1,)
    service.answer = lambda _: deny(reason="account\nclosed")
    _, code = login(broker, "wrong", identifier="other")
    assert code == 4
    found = refusal(broker, "other")
    assert found["reason"] == "bad_user_name_or_password"
    assert found["detail"] == "auth.http does not let it in: account closed"
    assert found["detail"] in hermesctl("explain", "other", broker=broker).output


def test_names_and_passwords_arrive_as_they_are(start, service, login):
    broker = start()
    service.answer = lambda _: allow()
    user, client = 'an"na\\\x01\n\té', '"}{'
    assert login(broker, 'se"cr\\et\x7f', user, client)[1] == 0
    assert service.questions[0] == {
        "user_name": user, "client_id": client, "password": 'se"cr\\et\x7f',
        "address": "127.0.0.1",
    }
    assert login(broker, b"\xff\x00", "berta", "b")[1] == 0
    assert service.questions[1]["password_base64"] == "/wA="


def test_rules_of_the_service_narrow_the_access_rules(start, service, login, tmp_path):
    rules = tmp_path / "acl"
    rules.write_text("allow user * publish up/+\nallow user * subscribe orders/#\n")
    broker = start("--acl-file", str(rules))
    service.answer = lambda _: allow(publish=["up/%u", "other"], subscribe=["orders/%u/#"])
    phone, code = login(broker, "x")
    assert code == 0
    assert phone.subscribe(("orders/anna/#", 1), ("orders/berta/#", 1)) == (1, 0x80)
    phone.publish("up/anna", b"x", qos=1)
    phone.send(wire.publish("other", b"x"))
    phone.await_closed()


def test_a_superuser_is_not_held_to_the_access_rules(start, service, login, tmp_path):
    rules = tmp_path / "acl"
    rules.write_text("deny everyone both #\n")
    broker = start("--acl-file", str(rules))
    service.answer = lambda question: allow(superuser=question["user_name"] == "root")
    phone, _ = login(broker, "x")
    assert phone.subscribe(("orders/1", 1)) == (0x80,)
    root, _ = login(broker, "x", "root", "office")
    assert root.subscribe(("#", 1)) == (1,)
    root.publish("orders/1", b"hello", qos=1)


def test_the_service_may_name_another_user(start, service, login):
    broker = start()
    service.answer = lambda _: allow(user_name="customer-7")
    assert login(broker, "x", "anna@shop.example")[1] == 0
    assert AdminAPI(broker).get("/v1/clients/phone")["user_name"] == "customer-7"


def test_the_end_of_a_login_ends_its_connection(start, service, login):
    broker = start()
    service.answer = lambda _: allow(expires_at=int(time.time()) + 2, remember_s=60)
    phone, code = login(broker, "x")
    assert code == 0
    phone.await_closed()
    # It is remembered no longer than that.
    service.answer = lambda _: deny()
    assert login(broker, "x")[1] == 4


# MARK: Memory


def test_an_answer_is_remembered_for_its_time(start, service, login):
    broker = start()
    service.answer = lambda question: (
        allow(remember_s=60) if question["password"] == "right" else deny(remember_s=60))
    for _ in range(3):
        assert login(broker, "right")[1] == 0
        assert login(broker, "wrong", identifier="other")[1] == 4
    assert len(service.questions) == 2
    # Another user, client or password is another question.
    assert login(broker, "right", "berta", "hers")[1] == 0
    assert login(broker, "wrong")[1] == 4
    assert len(service.questions) == 4


def test_nothing_is_remembered_unless_the_service_says_so(start, service, login):
    broker = start()
    for _ in range(3):
        assert login(broker, "right")[1] == 0
    assert len(service.questions) == 3


# MARK: A service that is down


def test_while_the_service_is_down_newcomers_wait_and_the_connected_stay(
    start, service, login
):
    broker = start(breaker_failures=2, breaker_pause="200ms")
    phone, _ = login(broker, "right")
    service.close()
    for number in range(3):
        _, code = login(broker, "right", identifier=f"late-{number}")
        assert code == 3
    found = refusal(broker, "late-0")
    assert found["reason"] == "login_service_unavailable"
    assert found["detail"].startswith("auth.http fails: ")
    told = hermesctl("explain", "late-0", broker=broker).output
    assert found["detail"] in told
    broker.log.await_match("The login service fails, it is asked only now and then")
    phone.ping()
    service.open()
    eventually(
        lambda: login(broker, "right", identifier="back")[1] == 0, "the service to be asked again")
    broker.log.await_match("The login service answers again")
    phone.ping()


def test_remembered_clients_get_in_while_the_service_is_down(start, service, login):
    broker = start(when_unavailable="remembered", outdated="1h", remember="1s")
    service.answer = lambda _: allow(remember_s=60, subscribe=["orders/%u"])
    assert login(broker, "right")[1] == 0
    service.close()

    def outdated() -> bool:
        phone, code = login(broker, "right")
        assert code == 0
        phone.close()
        return AdminAPI(broker).status()["login_service"]["logins"]["outdated"] > 0

    eventually(outdated, "the answer to be out of date")
    phone, code = login(broker, "right")
    assert code == 0
    assert phone.subscribe(("orders/anna", 1), ("orders/berta", 1)) == (1, 0x80)
    assert login(broker, "wrong")[1] == 3
    assert login(broker, "right", "berta", "new")[1] == 3


def garbage(connection, question) -> bool:
    connection.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n" * 10)
    return False


def close_at_once(connection, question) -> bool:
    return False


def of(body: bytes, status: str = "200 OK", headers: str = ""):
    def act(connection, question) -> bool:
        connection.sendall(response(body, status, headers))
        return True

    return act


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (garbage, ""),
        (close_at_once, "closed the connection|reset"),
        (drip, "does not end within|no answer within"),
        (of(allow() + b" " * (10 << 20)), "longer than 65536 bytes"),
        (of(allow(), "500 Internal Server Error"), "status 500"),
        (of(allow(), "403 Forbidden"), "status 403"),
        (of(allow(), "204 No Content"), "status 204"),
        (of(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n"), "status 307"),
        (of(b"welcome"), "the answer is no JSON"),
        (of(b'{"result":"deny","result":"allow"}'), "occurs twice"),
        (of(b'{"result":"allow","superuser":"yes"}'), "`superuser` is a string"),
        (of(b"[" * 1_000), "no JSON"),
    ],
    ids=[
        "garbage", "closes", "drips", "endless", "500", "403", "204", "redirect", "no-json",
        "twice", "wrong-type", "deep",
    ],
)
def test_what_is_no_answer_lets_nobody_in(act, reason, start, service, login):
    broker = start(timeout="500ms")
    established, _ = login(broker, "right", identifier="established")
    service.wire = act
    begun = time.monotonic()
    _, code = login(broker, "top-secret-word")
    assert code == 3
    assert time.monotonic() - begun < PATIENCE / 2
    assert re.search(reason, refusal(broker)["detail"]), refusal(broker)
    established.ping()
    service.wire = None
    eventually(lambda: login(broker, "right")[1] == 0, "a good answer to be taken again")
    assert not any("top-secret-word" in line for line in broker.log.lines)


def test_a_storm_against_a_service_that_hangs_is_bounded(start, service, raw, login):
    """A few requests at a time, a few that wait; others are told to come again at once."""
    broker = start(
        timeout="1s", max_in_flight=4, max_waiting=8, breaker_failures=1_000,
        environment={"HERMES_LIMITS_LOCKOUT_ATTEMPTS": "off"})
    established, _ = login(broker, "right", identifier="established")
    service.wire = service.hang
    clients = []
    for number in range(60):
        client = raw(broker)
        client.send(wire.connect(
            f"guess-{number}", user_name="anna", password=f"wrong-{number}".encode()))
        clients.append(client)
    slowest = 0.0
    for _ in range(50):
        begun = time.monotonic()
        established.ping()
        slowest = max(slowest, time.monotonic() - begun)
    assert slowest < 0.5
    codes = [client.expect(wire.Connack).return_code for client in clients]
    assert set(codes) == {3}
    # That one was asked about, then four at a time and the eight that waited.
    assert len(service.questions) <= 1 + 4 + 8
    # Those that waited were not asked about in vain: all is free again.
    service.released.set()
    service.wire = None
    assert login(broker, "right")[1] == 0


def test_nobody_is_asked_about_a_client_that_has_gone(start, service, raw, login):
    broker = start(timeout="5s", max_in_flight=1)
    service.wire = service.hang
    first = raw(broker)
    first.send(wire.connect("first", user_name="anna", password=b"1"))
    service.await_questions(1)
    gone = raw(broker)
    gone.send(wire.connect("gone", user_name="anna", password=b"2"))
    last = raw(broker)
    last.send(wire.connect("last", user_name="anna", password=b"right"))
    status = AdminAPI(broker)
    eventually(
        lambda: status.get("/v1/status")["login_service"]["waiting"] == 3, "three logins to wait")
    gone.reset()
    eventually(
        lambda: status.get("/v1/status")["connections_pending"] == 2, "the broker to notice")
    service.wire = None
    service.released.set()
    assert last.expect(wire.Connack).return_code == 0
    assert "2" not in [question["password"] for question in service.questions]


def test_wrong_passwords_lock_out_before_the_service_is_asked(start, service, login):
    broker = start(environment={"HERMES_LIMITS_LOCKOUT_ATTEMPTS": "3"})
    for number in range(5):
        assert login(broker, f"wrong-{number}")[1] == 4
    assert len(service.questions) == 3


# MARK: Sources


@pytest.mark.parametrize(
    ("order", "user", "password", "code", "asked"),
    [
        ("file,http", "anna", "a-secret", 0, 0), ("file,http", "anna", "right", 4, 0),
        ("file,http", "berta", "right", 0, 1), ("file,http", "berta", "wrong", 4, 1),
        ("http,file", "anna", "right", 0, 1), ("http,file", "anna", "a-secret", 4, 1),
        ("http,file", "ignored", "i-secret", 0, 1), ("http,file", "ignored", "right", 4, 1),
        ("http,file", "nobody", "ignored", 4, 1),
    ],
)
def test_the_order_of_sources_decides(
    order, user, password, code, asked, start, service, login, tmp_path
):
    service.answer = lambda question: (
        b'{"result":"ignore"}'
        if "ignored" in (question["user_name"], question["password"])
        else allow() if question["password"] == "right" else deny())
    users = {"anna": "a-secret", "ignored": "i-secret"}
    broker = start(users=users, environment={"HERMES_AUTH_SOURCES": order})
    assert login(broker, password, user)[1] == code
    assert len(service.questions) == asked


def test_a_token_is_not_shown_to_the_service(start, service, login, tmp_path):
    key = SigningKey("ES256", tmp_path, "key-1")
    broker = start(
        environment={"HERMES_AUTH_JWT_KEY_FILE": str(key.write(tmp_path / "login.key"))})
    assert login(broker, key.token(), "anna")[1] == 0
    assert login(broker, key.token(exp=1), "anna")[1] == 4
    assert service.questions == []
    assert login(broker, "right", "berta", "hers")[1] == 0
    assert len(service.questions) == 1


# MARK: TLS, files, reload


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.mark.parametrize(
    ("names", "reason"),
    [("IP:127.0.0.1", None), ("DNS:other.example", "is for another name")],
)
def test_the_certificate_of_the_service_is_verified(
    names, reason, start_broker, login, authority, tmp_path
):
    certificate = authority.issue("service", names=names)
    token = tmp_path / "service.token"
    token.write_text("0123456789abcdef-broker\n")
    token.chmod(0o600)
    service = CompanyService(certificate)
    try:
        for ca_file, expected in ((authority.certificate, reason), (None, "handshake failed")):
            environment = {
                "HERMES_AUTH_HTTP_URL": service.url,
                "HERMES_AUTH_HTTP_TOKEN_FILE": str(token),
            }
            if ca_file:
                environment["HERMES_AUTH_HTTP_CA_FILE"] = str(ca_file)
            broker = start_broker(environment=environment)
            _, code = login(broker, "right")
            assert code == (3 if expected else 0)
            if expected:
                assert expected in refusal(broker)["detail"]
        assert all(
            headers["authorization"] == "Bearer 0123456789abcdef-broker"
            for headers in service.headers)
        assert len(service.questions) == (0 if reason else 1)
    finally:
        service.close()


def test_a_connection_that_fails_fails_no_other_login(start_broker, raw, authority):
    """One of eight handshakes is cut off, while the others go on."""
    service = CompanyService(authority.issue("service", names="IP:127.0.0.1"))

    def cuts_the_first(number: int) -> bool:
        # All have begun; the first is cut off; then another connection comes in its place.
        if number <= 8:
            eventually(lambda: service.accepted >= (8 if number == 1 else 9), "the connections")
        return number != 1

    service.before_handshake = cuts_the_first
    try:
        broker = start_broker(environment={
            "HERMES_AUTH_HTTP_URL": service.url, "HERMES_AUTH_HTTP_TIMEOUT": "10s",
            "HERMES_AUTH_HTTP_CA_FILE": str(authority.certificate),
        })
        clients = [raw(broker) for _ in range(8)]
        for number, client in enumerate(clients):
            client.send(wire.connect(f"phone-{number}", user_name="anna", password=b"right"))
        codes = [client.expect(wire.Connack).return_code for client in clients]
        assert codes == [0] * 8
        # Each was asked about once: what the service has seen is not sent again.
        assert sorted(question["client_id"] for question in service.questions) == [
            f"phone-{number}" for number in range(8)]
    finally:
        service.close()


def test_a_reload_takes_other_settings(from_file, service, login, tmp_path):
    def text(remember: str) -> str:
        return f"auth:\n  http:\n    url: {service.url}\n    remember: {remember}\n"

    broker = from_file(text("1m"))
    service.answer = lambda _: allow(remember_s=600)
    assert login(broker, "right")[1] == 0
    assert login(broker, "right")[1] == 0
    assert len(service.questions) == 1
    broker.reload(text("0"))
    broker.log.await_match("Configuration read again.*changed=auth.http.remember")
    assert login(broker, "right")[1] == 0
    assert login(broker, "right")[1] == 0
    assert len(service.questions) == 3


# MARK: hermesctl auth check


def test_auth_check_asks_the_service_and_names_the_sources(service, tmp_path):
    configuration = tmp_path / "hermes.yaml"
    configuration.write_text(f"auth:\n  http:\n    url: {service.url}\n")

    def check(password: bytes, *arguments: str):
        return hermesctl(
            "auth", "check", "anna", "--config", str(configuration), *arguments, stdin=password)

    service.answer = lambda question: {
        "right": allow(superuser=True, subscribe=["a"], expires_at=4_000_000_000),
        "closed": deny(reason="closed"), "other": b'{"result":"ignore"}',
    }.get(question["password"], b"?")
    checked = check(b"right", "--client", "phone-7", "--address", "192.0.2.7")
    assert (checked.code, checked.errors) == (0, "")
    assert checked.output.startswith('let in by http as "anna" until 2096-')
    assert "The access rules are not asked (superuser)." in checked.output
    assert "The service narrows" in checked.output
    assert service.questions[0]["client_id"] == "phone-7"
    assert service.questions[0]["address"] == "192.0.2.7"
    checked = check(b"closed\n")
    assert checked.code == 1
    assert checked.output == "refused by http: the service does not let it in: closed\n"
    checked = check(b"other")
    assert checked.code == 1
    assert "http passes it on: the service does not know it (ignore)" in checked.output
    checked = check(b"garbage")
    assert checked.code == 1
    assert checked.output.startswith("not decided by http: the answer is no JSON")
    service.close()
    checked = check(b"right")
    assert checked.code == 1
    assert checked.output.startswith("not decided by http: ")
    told = check(b"right", "--json").json
    assert (told["allowed"], told["source"], told["unavailable"]) == (False, "http", True)


def test_a_configuration_that_cannot_work_says_why(tmp_path):
    configuration = tmp_path / "hermes.yaml"
    configuration.write_text(
        "auth:\n  sources: file\n  http:\n    url: http://login.example/\n    timeout: 1h\n")
    checked = hermesctl("config", "check", str(configuration))
    assert checked.code != 0
    for text in (
        "auth.http.url: passwords would be sent to another machine without TLS",
        "auth.sources: a service is set up (auth.http) and nobody asks it",
        "auth.http.timeout: ",
    ):
        assert text in checked.errors
