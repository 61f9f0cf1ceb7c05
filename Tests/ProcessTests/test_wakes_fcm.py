"""Android phones that are away are woken through Firebase Cloud Messaging, for which a stand-in stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.broker import FromFile
from harness.google import ANSWERS, Google
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("wakes")

RULE = (
    "alert orders/# title=ORDER_TITLE body=ORDER_BODY sound=default badge category=OPEN_ORDER "
    "channel=orders level=time-sensitive expires=1h fields=status"
)


@pytest.fixture
def google(tmp_path: Path) -> Iterator[Google]:
    with Google(tmp_path / "google") as google:
        yield google


class Office:
    """A broker that wakes phones through a stand-in for Google, its API, and phones."""

    def __init__(
        self, from_file, paho_client, google: Google, *rules: str, more: str = "",
    ) -> None:
        text = google.configuration(*(rules or (RULE,))).replace(
            "wakes:\n", "wakes:\n  merge: 1s\n  reconnect_window: 1s\n", 1) + more
        self.broker: FromFile = from_file(text)
        self.api = AdminAPI(self.broker)
        self._paho_client = paho_client

    def phone(self, name: str, token: str, bundle: str = "com.example.app") -> None:
        """A phone that registers its device, subscribes and goes away."""
        phone = self._paho_client(name, to=self.broker, clean_session=False)
        phone.subscribe(("#", 1))
        phone.publish("$hermes/device", registration(token, bundle), qos=1)
        phone.client.disconnect()
        eventually(lambda: not self.api.client(name)["connected"], f"{name} is away")

    def publish(self, topic: str = "orders/1", payload: str = '{"status":"paid","sum":7}') -> None:
        answer = self.api.request("POST", f"/v1/publish?topic={topic}&qos=1", payload.encode())
        assert answer.status == 200, answer

    def device(self, name: str) -> dict:
        return self.api.get(f"/v1/clients/{name}/device")

    def await_device(self, name: str, **expected: object) -> None:
        eventually(
            lambda: {key: self.device(name).get(key) for key in expected} == expected,
            f"{name} has {expected}")


def registration(token: str, bundle: str) -> bytes:
    """A hermes.v1.DeviceRegistration of the kind fcm, by hand."""
    one, two = token.encode(), bundle.encode()
    return b"\x0a" + bytes([len(one)]) + one + b"\x12" + bytes([len(two)]) + two + b"\x20\x03"


@pytest.fixture
def office(from_file, paho_client, google) -> Office:
    return Office(from_file, paho_client, google)


def test_an_android_phone_that_is_away_is_woken(office: Office, google: Google) -> None:
    """One access token for all, by a signed assertion; no business data but by name."""
    office.phone("phone", "good-1")
    office.publish()
    one = google.await_accepted(1, "good-1")[0]
    assert one.path == "/v1/projects/test-project/messages:send"
    android = one.message["android"]
    assert one.message["data"] == {
        "hermes_kind": "alert", "hermes_count": "1", "hermes_topic": "orders/1",
        "hermes_fields": '{"status":"paid"}',
    }
    assert android["priority"] == "HIGH"
    assert 3_590 <= int(android["ttl"][:-1]) <= 3_600
    assert android["notification"] == {
        "tag": one.name, "title_loc_key": "ORDER_TITLE", "title_loc_args": ["1", "orders/1"],
        "body_loc_key": "ORDER_BODY", "body_loc_args": ["1", "orders/1"], "sound": "default",
        "notification_count": 1, "click_action": "OPEN_ORDER", "channel_id": "orders",
        "notification_priority": "PRIORITY_HIGH",
    }
    office.await_device("phone", wake="none", kind="fcm", last_outcome="accepted")
    for number in range(2, 6):
        office.publish(f"orders/{number}")
        google.await_accepted(number, "good-1")
    collapse = {m.message["android"]["collapse_key"] for m in google.messages}
    assert collapse <= {f"hermes-{number}" for number in range(4)}
    assert len({m.name for m in google.messages}) == 5
    assert google.token_requests == 1
    eventually(
        lambda: office.api.metric('hermes_fcm_answers_total{reason="Success"}') == 5, "the figures")
    log = office.broker.log.text
    assert "good-1" not in log and google.tokens[0] not in log


def test_a_background_rule_sends_data_alone(from_file, paho_client, google: Google) -> None:
    office = Office(from_file, paho_client, google, "background orders/#")
    office.phone("phone", "good-1")
    office.publish()
    one = google.await_accepted(1)[0]
    assert one.message["android"]["priority"] == "NORMAL"
    assert "notification" not in one.message["android"]
    assert one.message["data"]["hermes_kind"] == "background"


def test_unregistered_forgets_the_device(office: Office, google: Google) -> None:
    office.phone("phone", "unregistered-1")
    office.publish()
    office.broker.log.await_match(r"Device is gone.*client\.id=phone")
    assert "UNREGISTERED" in office.api.request(
        "GET", "/v1/clients/phone/device").problem(404)["detail"]
    assert len(google.messages) == 1


@pytest.mark.parametrize("token", ["invalid-1", "badtoken-1"])
def test_a_token_that_google_does_not_know_is_set_aside(
    office: Office, google: Google, token: str
) -> None:
    office.phone("phone", token)
    office.publish()
    office.await_device("phone", wake="set_aside", last_reason="INVALID_ARGUMENT")
    assert len(google.messages) == 1
    office.phone("other", "good-1")
    office.publish("orders/2")
    google.await_accepted(1, "good-1")
    google.behaviour.answers[token] = ANSWERS["internal"]
    assert hermesctl("devices", "resume", "phone", broker=office.broker).code == 0
    office.await_device("phone", wake="waiting", last_outcome="later", last_reason="INTERNAL")


def test_a_refused_field_drops_one_message_and_no_device(office: Office, google: Google) -> None:
    office.phone("phone", "badfield-1")
    office.publish()
    office.await_device("phone", wake="none", last_outcome="refused", last_reason="INVALID_ARGUMENT")


def test_a_token_of_another_project_is_set_aside_while_others_pass(
    office: Office, google: Google
) -> None:
    office.phone("other", "good-1")
    office.publish()
    google.await_accepted(1, "good-1")
    office.phone("phone", "mismatch-1")
    office.publish("orders/2")
    office.await_device("phone", wake="set_aside", last_reason="SENDER_ID_MISMATCH")


@pytest.mark.parametrize("word", ["denied", "lost", "mismatch", "thirdparty"])
def test_what_is_wrong_with_the_account_loses_nothing(
    office: Office, google: Google, word: str
) -> None:
    """Nothing passes, so nobody is set aside; all is told after the cure."""
    for number in range(3):
        google.behaviour.answers[f"{number}-x"] = ANSWERS[word]
        office.phone(f"phone-{number}", f"{number}-x")
    office.publish()
    eventually(lambda: office.api.get("/v1/wakes")["fcm"]["paused"] == 1, "it pauses")
    status = hermesctl("devices", "status", broker=office.broker).output
    assert f"({ANSWERS[word].word or 'status 404'})" in status and "Google" in status
    sentences = office.api.get("/v1/clients/phone-0/explain")["sentences"]
    assert any("nothing is sent to Google" in one for one in sentences)
    google.behaviour.answers.clear()
    for number in range(3):
        google.await_accepted(1, f"{number}-x", within=30)
    office.broker.log.await_match(r"Notifications are sent to Google again")


@pytest.mark.parametrize("word", ["quota", "busy"])
def test_a_pause_that_google_asks_for_is_kept_by_all(
    office: Office, google: Google, word: str
) -> None:
    """Retry-After is of the project: while nothing passes, nobody else asks before it is over."""
    for number in range(3):
        google.behaviour.answers[f"{number}-x"] = ANSWERS[word]
        office.phone(f"phone-{number}", f"{number}-x")
    office.publish()
    eventually(lambda: len(google.messages) >= 2, "it is asked again")
    google.behaviour.answers.clear()
    for number in range(3):
        google.await_accepted(1, f"{number}-x", within=20)
    refused = [m.at for m in google.messages if m.status != 200]
    told = min(m.at for m in google.accepted())
    # What was under way with the first refusal is no second question.
    later = [at for at in refused if at > refused[0] + 0.5] + [told]
    assert later[0] - refused[0] >= 1.9
    assert all(two - one >= 1.9 for one, two in zip(later, later[1:]))


@pytest.mark.parametrize("word", ["unavailable", "internal"])
def test_troubles_of_the_service_are_repeated(office: Office, google: Google, word: str) -> None:
    office.phone("phone", f"{word}-1")
    office.publish()
    office.await_device("phone", wake="waiting", last_outcome="later")
    office.phone("other", "good-1")
    office.publish("orders/2")
    google.await_accepted(1, "good-1")
    google.behaviour.answers[f"{word}-1"] = None
    assert hermesctl("devices", "retry", "phone", broker=office.broker).code == 0
    google.await_accepted(1, f"{word}-1", within=30)


def test_an_access_token_is_renewed_ahead_and_after_a_refusal(
    office: Office, google: Google
) -> None:
    """One that lasts 20 s is renewed after 15 s, and what was refused meanwhile is told."""
    google.behaviour.token_life = 20
    office.phone("phone", "good-1")
    office.publish()
    google.await_accepted(1)
    assert google.token_requests == 1
    google.behaviour.token_life = 3_600
    google.revoke_tokens()
    office.publish("orders/2")
    eventually(lambda: any(m.status == 401 for m in google.messages), "it is refused")
    google.await_accepted(2, within=90)
    assert len(google.tokens) == 2


@pytest.mark.parametrize(
    ("error", "word"),
    [
        ((400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}), "invalid_grant"),
        ((401, {"error": "invalid_client"}), "invalid_client"),
        ((503, {}), "status 503"),
    ])
def test_a_refused_account_is_told_and_loses_nothing(
    office: Office, google: Google, error: tuple[int, dict], word: str
) -> None:
    google.behaviour.token_error = error
    office.phone("phone", "good-1")
    office.publish()
    eventually(lambda: office.api.get("/v1/wakes")["fcm"]["paused"] == 1, "it pauses")
    status = office.api.get("/v1/wakes")["fcm"]
    assert word in status["pause"]["reason"], status
    office.broker.log.await_match(r"No notifications are sent to Google for a while")
    google.behaviour.token_error = None
    google.await_accepted(1, within=20)
    assert google.messages[0].status == 200, "nothing went without a token"


def test_no_service_is_no_attempt(office: Office, google: Google) -> None:
    """An outage of token service and messages; all is told soon after it."""
    office.phone("phone", "good-1")
    google.behaviour.silent_tokens = True
    office.publish()
    eventually(lambda: office.device("phone")["wake"] in ("sent", "ready"), "it is under way")
    google.behaviour.silent_tokens = False
    google.drop_connections()
    google.await_accepted(1, within=20)
    assert office.api.metric('hermes_wakes_total{outcome="later"}') == 0


def test_an_app_of_another_project_has_an_account_of_its_own(
    from_file, paho_client, google: Google, tmp_path: Path
) -> None:
    other = google.add_account("other-project", tmp_path / "other.json")
    office = Office(
        from_file, paho_client, google,
        more=f"    apps: com.example.other service_account={other}\n")
    office.phone("phone", "good-1")
    office.phone("tablet", "good-2", "com.example.other")
    office.publish()
    google.await_accepted(2)
    paths = {m.device: m.path for m in google.accepted()}
    assert paths == {
        "good-1": "/v1/projects/test-project/messages:send",
        "good-2": "/v1/projects/other-project/messages:send",
    }
    assert len(google.tokens) == 2


def test_a_new_account_is_taken_without_a_restart(office: Office, google: Google) -> None:
    google.behaviour.token_error = (400, {"error": "invalid_grant"})
    office.phone("phone", "good-1")
    office.publish()
    eventually(lambda: office.api.get("/v1/wakes")["fcm"]["paused"] == 1, "it pauses")
    google.behaviour.token_error = None
    google.account_file.write_text(google.account_file.read_text() + "\n")
    office.broker.log.await_match(r"Files of wakes\.fcm read again")
    google.await_accepted(1, within=20)


def test_a_kill_repeats_under_the_same_tag(office: Office, google: Google) -> None:
    google.behaviour.hold = True
    office.phone("phone", "good-1")
    office.publish()
    eventually(lambda: office.device("phone")["wake"] == "sent", "it is under way")
    office.broker.kill()
    google.behaviour.hold = False
    office.broker.start()
    office.await_device("phone", wake="none")
    assert len({m.name for m in google.messages}) == 1


def test_the_back_office_registers_and_tries_a_device(office: Office, google: Google) -> None:
    run = hermesctl(
        "devices", "register", "phone", "--fcm", "--token", "good-1", "--bundle", "com.example.app",
        broker=office.broker)
    assert run.code == 0 and "fcm" in run.output
    run = hermesctl("devices", "test", "phone", broker=office.broker)
    assert (run.code, "accepted" in run.output) == (0, True), run.output
    one = google.accepted("good-1")[0]
    assert one.message["android"]["notification"]["body_loc_key"] == "HERMES_MESSAGES"
    problem = office.api.request(
        "PUT", "/v1/clients/a/device",
        json.dumps({"kind": "fcm", "token": "a", "bundle": "b", "environment": "sandbox"}).encode(),
        {"Content-Type": "application/json"},
    ).problem(400)
    assert "sandbox" in problem["detail"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"type": "authorized_user"}, "service_account"),
        ({"private_key": "none"}, "RSA key"),
        ({"project_id": "a/b"}, "project"),
        ({"token_uri": "http://localhost/token"}, "token_uri"),
        ({"client_email": ""}, "client_email"),
    ])
def test_config_check_names_what_is_wrong_with_an_account(
    google: Google, tmp_path: Path, change: dict, complaint: str
) -> None:
    account = json.loads(google.account_file.read_text()) | change
    google.account_file.write_text(json.dumps(account))
    config = tmp_path / "hermes.yaml"
    config.write_text(google.configuration("alert orders/#"))
    run = hermesctl("config", "check", str(config))
    assert run.code != 0
    assert "wakes.fcm" in run.errors and complaint in run.errors, run.errors
