"""Tokens of a company's login (JWT) as the password of CONNECT."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.broker import Broker
from harness.command_line_clients import mosquitto_pub
from harness.login_service import KeyServer, SigningKey, key_set
from harness.waiting import PATIENCE, eventually
from harness.wire import Will

pytestmark = pytest.mark.hermesd("tokens are verified by hermesd")


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey("ES256", tmp_path, "key-1")


@pytest.fixture
def start(start_broker, tmp_path, key):
    """Starts a broker that verifies tokens of `key`."""

    def start_one(*arguments: str, of: SigningKey = key, **settings: object) -> Broker:
        name = "SECRET_FILE" if of.algorithm == "HS256" else "KEY_FILE"
        environment = {
            f"HERMES_AUTH_JWT_{name}": str(of.write(tmp_path / "login.key")),
            **{f"HERMES_AUTH_JWT_{key.upper()}": str(value) for key, value in settings.items()
               if key != "users"},
        }
        rest = {"users": settings["users"]} if "users" in settings else {}
        return start_broker(arguments=arguments, environment=environment, **rest)

    return start_one


@pytest.fixture
def login(raw):
    """Connects with a token; returns client and return code."""

    def connect(
        broker: Broker, token: bytes, user: str = "", identifier: str = "phone", **options: object
    ):
        client = raw(broker)
        answer = client.connect(identifier, user_name=user, password=token, **options)
        return client, answer.return_code

    return connect


def events(broker: Broker, client: str) -> list[dict]:
    return AdminAPI(broker).get(f"/v1/clients/{client}/history")["events"]


# MARK: Getting in


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256", "EdDSA"])
def test_a_token_of_each_algorithm_lets_its_user_in(algorithm, start, login, tmp_path):
    key = SigningKey(algorithm, tmp_path, "k")
    broker = start(of=key)
    for user in ("anna", ""):
        phone, code = login(broker, key.token(), user, f"phone-{user}")
        assert code == 0
        assert phone.subscribe(("orders/anna/#", 1)) == (1,)
        shown = AdminAPI(broker).get(f"/v1/clients/phone-{user}")
        assert shown["user_name"] == "anna"


def test_paho_and_mosquitto_come_with_tokens(start, key, paho_client, names):
    broker = start()
    anna = paho_client(
        names.client("a"), to=broker, user_name="anna", password=key.token().decode())
    assert anna.subscribe(("orders/#", 1)) == [1]
    mosquitto_pub(
        broker, "-u", "berta", "-P", key.token(sub="berta").decode(), "-t", "orders/1", "-m", "x",
        "-q", "1")
    assert anna.take().topic == "orders/1"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": 1_000_000_000}, r"its token expired at 2001-09-09T01:46:40Z"),
        ({"exp": None}, r"end \(`exp`\) is missing"),
        ({"nbf": 4_000_000_000}, r"is valid only from 2096-"),
        ({"iat": 4_000_000_000}, r"is valid only from 2096-"),
        ({"sub": None}, r"names the user, is missing"),
        ({"sub": 7}, r"is a number, and no name"),
        ({"sub": "berta"}, r"is for the user .*berta.*, and CONNECT names another"),
        ({"aud": "web"}, r"is for .*web.*, and auth.jwt.audience names none"),
        ({"publish": "#"}, r"is a string, and no list"),
        ({"subscribe": ["a/#/b"]}, r"has a # before its end"),
    ],
)
def test_a_token_that_is_no_login_is_refused_with_its_reason(claims, reason, start, login, key):
    broker = start()
    client, code = login(broker, key.token(**claims), "anna")
    assert code == 4
    client.await_closed()
    broker.log.await_match(
        "Connection refused.*client.id=phone.*reason=token_refused")
    broker.log.await_match("login.refusal=.*" + reason)
    found = events(broker, "phone")[0]
    assert (found["kind"], found["reason"]) == ("refused", "token_refused")
    told = hermesctl("explain", "phone", broker=broker).output
    assert "its token" in told
    assert found["detail"] in told


def test_foreign_and_forged_tokens_are_refused(start, login, key, tmp_path):
    broker = start()
    other = SigningKey("ES256", tmp_path, "other")
    secret = SigningKey("HS256", tmp_path, "secret")
    secret._key = key.public
    good = key.token()
    head, claims, signature = good.split(b".")
    forged = {
        "another service's": other.token(),
        "the public key as a secret": secret.token(),
        "none": key.token({"alg": "none"}),
        "no signature": head + b"." + claims + b".",
        "changed claims": head + b"." + other.token(sub="root").split(b".")[1] + b"." + signature,
        "an own key": other.token({"jwk": other.jwk, "jku": "http://127.0.0.1:1/"}),
        "padding": good + b"=",
        "crit": key.token({"crit": ["x"], "x": 1}),
        "too long": key.token(x="x" * 9_000),
        "nothing": b"",
        "a password": b"secret",
    }
    for name, token in forged.items():
        _, code = login(broker, token, "anna")
        assert code == 4, name
    assert login(broker, good, "anna")[1] == 0
    assert not any(signature.decode() in line for line in broker.log.lines)


def test_issuer_audience_and_claims_are_as_configured(start, login, key):
    broker = start(
        issuer="https://login.example", audience="hermes,shop", user_claim="phone_user",
        user_name="ignore")
    good = {"iss": "https://login.example", "aud": ["web", "shop"], "phone_user": "anna"}
    phone, code = login(broker, key.token(**good), "whoever")
    assert code == 0
    assert AdminAPI(broker).get("/v1/clients/phone")["user_name"] == "anna"
    for claim, value in {"iss": "https://other.example", "aud": "web", "phone_user": None}.items():
        assert login(broker, key.token(**{**good, claim: value}))[1] == 4


def test_password_file_and_tokens_stand_side_by_side(start, login, key):
    broker = start(users={"berta": "b-secret"})
    assert login(broker, b"b-secret", "berta", "b")[1] == 0
    assert login(broker, key.token(), "anna", "a")[1] == 0
    assert login(broker, b"wrong", "berta", "b")[1] == 4
    assert login(broker, b"wrong", "nobody", "n")[1] == 4
    assert login(broker, key.token(), "berta", "b")[1] == 4
    # Nobody is let in without a login any more.
    assert login(broker, b"", "", "c")[1] == 4


def test_a_session_is_its_users_with_any_token(start, login, key):
    broker = start()
    phone, code = login(broker, key.token(), identifier="p", clean_session=False)
    assert code == 0
    phone.subscribe(("orders/#", 1))
    phone.disconnect()
    assert login(broker, key.token(sub="berta"), identifier="p", clean_session=False)[1] == 5
    sender, _ = login(broker, key.token(sub="berta"), identifier="s")
    sender.publish("orders/1", b"kept", qos=1)
    again, code = login(broker, key.token(jti="2"), identifier="p", clean_session=False)
    assert code == 0
    assert again.take_message().payload == b"kept"


# MARK: Topics


def test_topics_of_a_token_narrow_rights_everywhere(start, login, key):
    broker = start()
    narrow = {"publish": ["up/%u/%c"], "subscribe": ["down/%u/#"]}
    office, _ = login(broker, key.token(sub="office"), identifier="office")
    office.subscribe(("up/#", 1), ("wills/#", 1))
    office.publish("down/berta/retained", b"x", qos=1, retain=True)
    office.publish("down/anna/retained", b"x", qos=1, retain=True)
    phone, code = login(
        broker, key.token(**narrow), identifier="p", clean_session=False,
        will=Will("wills/p", b"gone", qos=1))
    assert code == 0
    broker.log.await_match("Will not published.*acl.line=token")
    assert phone.subscribe(
        ("down/anna/#", 1), ("down/berta/#", 1), ("down/#", 1), ("#", 1), ("$share/g/down/#", 1)
    ) == (1, 0x80, 1, 1, 1)
    assert {m.topic for m in phone.take_messages(3)} == {"down/anna/retained"}
    for topic in ("down/berta/1", "other", "down/anna/1"):
        office.publish(topic, b"x", qos=1)
    assert phone.take_message().topic == "down/anna/1"
    phone.settle()
    assert {m.topic for m in phone.messages_so_far()} <= {"down/anna/1"}
    phone.publish("up/anna/p", b"x", qos=1)
    assert office.take_message().topic == "up/anna/p"
    phone.send(wire.publish("up/berta/p", b"x"))
    phone.await_closed()
    # The will, which the token does not allow, is not published.
    assert office.messages_so_far() == []


def test_rules_and_token_must_both_allow(start, login, key, tmp_path):
    rules = tmp_path / "acl"
    rules.write_text("allow everyone subscribe a/#\nallow everyone both b\n")
    broker = start("--acl-file", str(rules))
    phone, _ = login(broker, key.token(subscribe=["a/1", "c"], publish=["b", "c"]))
    assert phone.subscribe(("a/1", 0), ("a/2", 0), ("b", 0), ("c", 0)) == (0, 0x80, 0x80, 0x80)
    phone.publish("b", b"x", qos=1)
    phone.send(wire.publish("c", b"x"))
    phone.await_closed()


def test_an_empty_list_allows_nothing(start, login, key):
    broker = start()
    phone, _ = login(broker, key.token(subscribe=[], publish=[]))
    assert phone.subscribe(("a", 0), ("#", 0)) == (0x80, 0x80)
    phone.send(wire.publish("a", b"x"))
    phone.await_closed()


@pytest.mark.parametrize("name", ["#", "+", "a/b", "$x"])
def test_names_that_are_patterns_fill_no_placeholder_of_a_token(name, start, login, key):
    """CVE-2017-7650, by the claim that names the user and by the client identifier."""
    broker = start()
    claims = {"subscribe": ["own/%u", "mine/%c"]}
    by_user, code = login(broker, key.token(sub=name, **claims), identifier="p")
    assert code == 0
    assert by_user.subscribe(("own/victim", 0), ("own/#", 0), ("own/+", 0)) == (0x80,) * 3
    by_client, code = login(broker, key.token(**claims), identifier=name)
    assert code == 0
    assert by_client.subscribe(("mine/victim", 0), ("mine/#", 0), ("mine/+", 0)) == (0x80,) * 3


def test_a_resumed_session_is_held_to_the_new_token(hermesd, login, key, tmp_path):
    environment = {"HERMES_AUTH_JWT_KEY_FILE": str(key.write(tmp_path / "login.key"))}
    broker = hermesd(environment=environment)
    persistent = {"identifier": "p", "clean_session": False}
    phone, _ = login(broker, key.token(subscribe=["a/#", "b/#"]), **persistent)
    phone.subscribe(("#", 1))
    phone.disconnect()
    office, _ = login(broker, key.token(sub="office"), identifier="office")
    for topic in ("a/1", "b/1", "c/1", "a/2"):
        office.publish(topic, b"x", qos=1)
    phone, _ = login(broker, key.token(subscribe=["a/#"]), **persistent)
    assert [m.topic for m in phone.take_messages(2)] == ["a/1", "a/2"]
    assert phone.messages_so_far() == []
    office.publish("b/2", b"x", qos=1)
    office.publish("a/3", b"x", qos=1)
    assert phone.take_message().topic == "a/3"
    phone.disconnect()
    # After a restart the offline session's login is not known, and what waits for it is held to
    # the token that it comes with.
    office.publish("a/4", b"x", qos=1)
    assert broker.stop() == 0
    broker = hermesd(data=broker.data, environment=environment)
    office, _ = login(broker, key.token(sub="office"), identifier="office")
    office.publish("b/3", b"x", qos=1)
    office.publish("a/5", b"x", qos=1)
    phone, _ = login(broker, key.token(subscribe=["a/#"]), **persistent)
    assert [m.topic for m in phone.take_messages(2)] == ["a/4", "a/5"]
    assert phone.messages_so_far() == []
    # And a token without topics leaves all to the rules again.
    phone.disconnect()
    office.publish("c/2", b"x", qos=1)
    phone, _ = login(broker, key.token(), **persistent)
    office.publish("b/4", b"x", qos=1)
    assert phone.take_message().topic == "b/4"


def test_a_delivery_that_the_claims_deny_is_explained(start, login, key):
    broker = start()
    phone, _ = login(broker, key.token(sub="bob", subscribe=["jwt/bob/a/#"]), "bob", "phone")
    assert phone.subscribe(("jwt/bob/#", 1)) == (1,)
    office, _ = login(broker, key.token(sub="office"), "office", "office")
    for topic in ("jwt/bob/b/x", "jwt/bob/a/x"):
        office.publish(topic, b"x", qos=1)
    assert phone.take_message().topic == "jwt/bob/a/x"

    def explained(topic: str) -> str:
        return hermesctl("explain", "phone", "--topic", topic, broker=broker).output

    denied = explained("jwt/bob/b/x")
    assert "Its subscription jwt/bob/# (QoS 1) matches jwt/bob/b/x." in denied
    assert "It may not read jwt/bob/b/x: its login does not allow it" in denied
    assert "It may not read" not in explained("jwt/bob/a/x")
    assert "It may not get messages of jwt/bob/b/x: its login does not allow it: denied" in denied
    denial = next(event for event in events(broker, "phone") if event["kind"] == "denied")
    assert (denial["reason"], denial["topic"]) == ("deliver", "jwt/bob/b/x")


# MARK: The end of a token


def test_the_end_of_a_token_ends_its_connection_at_no_loss(start, login, key):
    broker = start(leeway=0)
    office, _ = login(broker, key.token(sub="office"), identifier="office")
    office.subscribe(("wills/#", 1))
    begun = time.time()
    phone, code = login(
        broker, key.token(exp=int(begun) + 2), identifier="p", clean_session=False,
        will=Will("wills/p", b"gone", qos=1))
    assert code == 0
    phone.subscribe(("orders/#", 1))
    phone.await_closed()
    assert time.time() >= int(begun) + 2
    assert office.take_message().topic == "wills/p"
    broker.log.await_match("Connection closed by the broker.*reason=token_expired")
    office.publish("orders/1", b"kept", qos=1)
    assert login(broker, key.token(exp=int(begun) + 2), identifier="p", clean_session=False)[1] == 4
    phone, code = login(broker, key.token(), identifier="p", clean_session=False)
    assert code == 0
    assert phone.take_message().payload == b"kept"
    kinds = [(event["kind"], event["reason"]) for event in events(broker, "p")]
    assert ("disconnected", "token_expired") in kinds
    metrics = AdminAPI(broker).request("GET", "/metrics").body.decode()
    assert 'hermes_connections_closed_total{reason="token_expired"} 1' in metrics


def test_an_expired_token_may_keep_its_connection(start, login, key):
    broker = start(leeway=0, expired="keep")
    end = int(time.time()) + 2
    kept, _ = login(broker, key.token(exp=end), identifier="kept")
    eventually(lambda: time.time() > end + 0.2, "the end of the token")
    kept.ping()
    assert login(broker, key.token(exp=end), identifier="late")[1] == 4


# MARK: Keys


def reload(broker: Broker) -> None:
    start = len(broker.log.lines)
    broker.process.send_signal(signal.SIGHUP)
    broker.log.await_match("Configuration read again|everything stays as it was", start=start)


def test_a_reload_takes_other_keys_and_keeps_the_old_ones_after_a_mistake(
    start, login, key, tmp_path
):
    broker = start()
    established, _ = login(broker, key.token(), identifier="a")
    file = tmp_path / "login.key"
    file.write_text("no key at all")
    reload(broker)
    broker.log.await_match("Unusable key file of tokens.*auth.jwt.key_file.*BEGIN PUBLIC KEY")
    assert login(broker, key.token(), identifier="b")[1] == 0
    new = SigningKey("EdDSA", tmp_path, "key-2")
    new.write(file)
    reload(broker)
    broker.log.await_match("Configuration read again.*changed=auth.jwt.key_file")
    # Also a token that was accepted before: what is remembered ends with the keys.
    token = key.token()
    assert login(broker, token, identifier="b")[1] == 4
    assert login(broker, new.token(), identifier="b")[1] == 0
    established.ping()


def test_a_reload_takes_another_audience(from_file, login, key, tmp_path):
    file = key.write(tmp_path / "login.key")

    def configuration(audience: str) -> str:
        return f"auth:\n  jwt:\n    key_file: {file}\n    audience: [{audience}]\n"

    started = from_file(configuration("hermes"))
    token = key.token(aud="hermes")
    assert login(started, token)[1] == 0
    start = started.reload(configuration("shop"))
    started.log.await_match("changed=auth.jwt.audience", start=start)
    assert login(started, token)[1] == 4
    assert login(started, key.token(aud="shop"))[1] == 0


@pytest.mark.parametrize(
    ("content", "mode", "complaint"),
    [
        (b"", 0o600, "BEGIN PUBLIC KEY"), (None, 0o600, "there is no file"),
        (b"-----BEGIN PRIVATE KEY-----\n", 0o600, "-pubout"),
    ],
    ids=["empty", "missing", "private"],
)
def test_a_key_file_that_cannot_be_used_ends_the_start(content, mode, complaint, tmp_path):
    file = tmp_path / "login.key"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    configuration = tmp_path / "hermes.yaml"
    configuration.write_text(f"auth:\n  jwt:\n    key_file: {file}\n")
    checked = hermesctl("config", "check", str(configuration))
    assert checked.code != 0
    assert "auth.jwt.key_file: " in checked.errors
    assert complaint in checked.errors


@pytest.fixture
def service(key) -> Iterator[KeyServer]:
    server = KeyServer(key_set(key))
    yield server
    server.close()


def from_url(start_broker, service: KeyServer, **settings: object) -> Broker:
    return start_broker(environment={
        "HERMES_AUTH_JWT_JWKS_URL": service.url,
        **{f"HERMES_AUTH_JWT_{key.upper()}": str(value) for key, value in settings.items()},
    })


def await_login(login, broker: Broker, token: bytes, code: int, what: str) -> None:
    """Tries again and again; what is refused is closed."""

    def gets_in() -> bool:
        client, found = login(broker, token)
        if found != code:
            client.close()
        return found == code

    eventually(gets_in, what, within=3 * PATIENCE)


def test_keys_are_fetched_rotated_and_kept_over_an_outage(
    start_broker, service, login, key, tmp_path
):
    broker = from_url(start_broker, service, refresh="1h")
    broker.log.await_match("Keys of the login service are new.*login_keys.count=1")
    assert login(broker, key.named())[1] == 0
    # The service rotates: a token with the new name makes the broker ask, at most every 10 s. Until
    # then the client is told to come again, and what nobody signs does not get in.
    new = SigningKey("ES256", tmp_path, "key-2")
    service.document = key_set(key, new)
    await_login(login, broker, new.named(), 0, "the new key")
    assert login(broker, key.named())[1] == 0
    before = service.requests
    for number in range(20):
        stranger = SigningKey("ES256", tmp_path, f"unknown-{number}")
        assert login(broker, stranger.named())[1] == 4
    assert service.requests == before
    # An outage: the last keys stay.
    service.close()
    assert login(broker, new.named(jti="3"))[1] == 0


def test_a_service_that_is_down_at_the_start_lets_nobody_in_until_it_answers(
    start_broker, service, login, key
):
    service.close()
    broker = from_url(start_broker, service)
    broker.log.await_match("Keys of the login service could not be fetched.*refused")
    assert login(broker, key.named())[1] == 3
    service.open()
    await_login(login, broker, key.named(), 0, "the first keys")


NO_SETS_OF_KEYS = [
    (500, None, "the answer has status 500"),
    (302, None, "the answer has status 302"),
    (200, b"<html>", "it is no JSON"),
    (200, b"{}", "no JSON Web Key Set"),
    (200, b" " * 300_000, "longer than 262144 bytes"),
    (200, b'{"keys":[{"kty":"oct","k":"' + b"A" * 64 + b'"}]}', "a secret that others could"),
]


def test_what_is_no_set_of_keys_changes_nothing(start_broker, login, key):
    """Each has a broker and a service of its own, because a broker asks again after ten seconds."""
    good = key_set(key)
    with contextlib.ExitStack() as stack:
        brokers: list[tuple[Broker, KeyServer]] = []
        for status, document, reason in NO_SETS_OF_KEYS:
            service = KeyServer(document or good)
            stack.callback(service.close)
            service.status = status
            if status == 302:
                service.headers = {"Location": service.url + "/elsewhere"}
            broker = from_url(start_broker, service)
            broker.log.await_match("could not be fetched.*" + reason)
            assert login(broker, key.named())[1] == 3
            brokers.append((broker, service))
        for _, service in brokers:
            (service.status, service.document, service.headers) = (200, good, {})
        for broker, _ in brokers:
            await_login(login, broker, key.named(), 0, "keys")


def test_configuration_mistakes_are_told(tmp_path):
    configuration = tmp_path / "hermes.yaml"
    configuration.write_text(
        "auth:\n  jwt:\n    jwks_url: http://login.example/keys\n    key_file: /a\n"
        "    leeway: 10m\n    audience:\n")
    checked = hermesctl("config", "check", str(configuration))
    assert checked.code != 0
    for complaint in (
        ":3: auth.jwt.jwks_url: the keys would be fetched from another machine without TLS",
        ":3: auth.jwt.jwks_url: there are keys in auth.jwt.key_file and auth.jwt.jwks_url",
        ":5: auth.jwt.leeway: ", ":6: auth.jwt.audience: ",
    ):
        assert complaint in checked.errors, checked.errors


def test_secrets_stay_out_of_log_and_api(start, login, key):
    broker = start()
    token = key.token(sub="anna", secret_claim="do-not-show")
    assert login(broker, token, "anna")[1] == 0
    assert login(broker, token, "berta", "other")[1] == 4
    shown = json.dumps(events(broker, "phone") + events(broker, "other"))
    for text in (*broker.log.lines, shown):
        assert token.decode() not in text
        assert "do-not-show" not in text


# MARK: hermesctl auth check


@pytest.fixture
def logins(tmp_path, key) -> Path:
    """A configuration with users and tokens."""
    users = tmp_path / "users"
    added = hermesctl(
        "users", "add", "berta", "--password-file", str(users), "--password-stdin",
        stdin=b"b-secret")
    assert added.code == 0, added.errors
    configuration = tmp_path / "hermes.yaml"
    configuration.write_text(
        f"password_file: {users}\nauth:\n  jwt:\n"
        f"    key_file: {key.write(tmp_path / 'login.key')}\n    audience: hermes\n")
    return configuration


@pytest.mark.parametrize(
    ("user", "claims", "code", "words"),
    [
        ("anna", {"aud": "hermes"}, 0, 'let in by jwt as "anna" (ES256, key "key-1") until '),
        ("-", {"aud": "hermes", "publish": []}, 0, "The token narrows the topics"),
        ("berta", {"aud": "hermes"}, 1, 'refused by jwt: its token is for the user "anna"'),
        ("anna", {"aud": "web"}, 1, 'refused by jwt: its token is for "web", and not for "hermes"'),
        ("anna", {"exp": 1}, 1, "refused by jwt: its token expired at 1970-01-01T00:00:01Z"),
        ("berta", b"b-secret", 0, 'let in by file as "berta"'),
        ("berta", b"wrong", 1, "refused by file: the password is wrong"),
        ("nobody", b"wrong", 1, "refused by file: there is no such user"),
    ],
)
def test_auth_check_says_which_source_decides_and_why(user, claims, code, words, logins, key):
    secret = claims if isinstance(claims, bytes) else key.named(**claims)
    for end in (b"", b"\n"):
        checked = hermesctl(
            "auth", "check", user, "--config", str(logins), stdin=secret + end)
        assert (checked.code, checked.errors) == (code, "")
        assert words in checked.output
    told = hermesctl("auth", "check", user, "--config", str(logins), "--json", stdin=secret).json
    assert told["allowed"] is (code == 0)
    assert told["source"] == ("file" if isinstance(claims, bytes) else "jwt")


def test_auth_check_asks_the_url_and_reads_a_file(logins, key, service, tmp_path):
    token = tmp_path / "token"
    token.write_bytes(key.named() + b"\n")
    logins.write_text(f"auth:\n  jwt:\n    jwks_url: {service.url}\n")
    checked = hermesctl("auth", "check", "anna", "--config", str(logins), "--file", str(token))
    assert (checked.code, checked.errors) == (0, "")
    service.close()
    checked = hermesctl("auth", "check", "anna", "--config", str(logins), "--file", str(token))
    assert checked.code > 1
    assert "auth.jwt.jwks_url: " in checked.errors
    assert "refused" in checked.errors


def test_auth_check_without_any_source_says_what_to_do(tmp_path):
    configuration = tmp_path / "hermes.yaml"
    configuration.write_text("sys_interval: 10s\n")
    checked = hermesctl("auth", "check", "anna", "--config", str(configuration), stdin=b"x")
    assert checked.code > 1
    assert "neither users nor keys of tokens" in checked.errors


@pytest.mark.parametrize(("order", "code"), [("jwt,file", 0), ("file,jwt", 4)])
def test_the_order_of_sources_decides_who_is_asked(
    order, code, start_broker, login, key, tmp_path
):
    """With the file first, a token is not looked at where the file knows the user."""
    broker = start_broker(users={"anna": "a-secret"}, environment={
        "HERMES_AUTH_JWT_KEY_FILE": str(key.write(tmp_path / "login.key")),
        "HERMES_AUTH_SOURCES": order,
    })
    assert login(broker, key.token(), "anna")[1] == code
    assert login(broker, b"a-secret", "anna")[1] == 0
    assert login(broker, key.token(sub="berta"), "berta", "other")[1] == 0
