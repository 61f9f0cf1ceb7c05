"""Phones that are away are woken through Apple's push service, for which a mock stands in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.apple import ANSWERS, TOKEN_LIFE, Apple, make_key, team_of
from harness.broker import FromFile
from harness.certificates import Authority
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("wakes")

RULE = "alert orders/# title=ORDER_TITLE body=ORDER_BODY sound=default badge fields=status"


@pytest.fixture
def apple(tmp_path: Path) -> Iterator[Apple]:
    with Apple(tmp_path / "apple") as apple:
        yield apple


class Office:
    """A broker that wakes phones through a mock of Apple, its API, and phones."""

    def __init__(
        self, from_file, paho_client, apple: Apple, *rules: str, merge: str = "1s",
        more: str = "", more_of_apple: str = "",
    ) -> None:
        text = apple.configuration(*(rules or (RULE,))).replace(
            "wakes:\n", f"wakes:\n  merge: {merge}\n  reconnect_window: 1s\n{more}", 1
        ) + more_of_apple
        self.broker: FromFile = from_file(text)
        self.api = AdminAPI(self.broker)
        self._paho_client = paho_client

    def phone(self, name: str, token: str, message: bytes | None = None) -> None:
        """A phone that registers its device, subscribes and goes away."""
        phone = self._paho_client(name, to=self.broker, clean_session=False)
        phone.subscribe(("#", 1))
        phone.publish(
            "$hermes/device", message or registration(bytes.fromhex(token)), qos=1)
        phone.client.disconnect()
        eventually(
            lambda: not self.api.client(name)["connected"], f"{name} is away"
        )

    def register(self, name: str, token: str, *, environment: int) -> None:
        """The same with an environment: 2 is the sandbox."""
        phone = self._paho_client(name, to=self.broker, clean_session=False)
        phone.subscribe(("#", 1))
        message = registration(bytes.fromhex(token)) + bytes([0x18, environment])
        phone.publish("$hermes/device", message, qos=1)
        phone.client.disconnect()
        eventually(lambda: not self.api.client(name)["connected"], f"{name} is away")

    def publish(self, topic: str = "orders/1", payload: str = '{"status":"paid","sum":7}') -> None:
        answer = self.api.request(
            "POST", f"/v1/publish?topic={topic}&qos=1", payload.encode()
        )
        assert answer.status == 200, answer

    def device(self, name: str) -> dict:
        return self.api.get(f"/v1/clients/{name}/device")


def registration(token: bytes, bundle: bytes = b"com.example.app") -> bytes:
    """A hermes.v1.DeviceRegistration, by hand."""
    return b"\x0a" + bytes([len(token)]) + token + b"\x12" + bytes([len(bundle)]) + bundle


@pytest.fixture
def office(from_file, paho_client, apple) -> Office:
    return Office(from_file, paho_client, apple)


def test_a_phone_that_is_away_is_woken(office: Office, apple: Apple) -> None:
    """Headers, payload and provider token are what Apple asks for; no business data but by name."""
    office.phone("phone", "0102ff")
    office.publish()
    one = apple.await_accepted(1, "0102ff")[0]
    assert one.headers[":method"] == "POST"
    assert one.headers["apns-topic"] == "com.example.app"
    assert one.headers["apns-push-type"] == "alert"
    assert one.headers["apns-priority"] == "10"
    assert one.payload == {
        "aps": {
            "alert": {
                "title-loc-key": "ORDER_TITLE", "loc-key": "ORDER_BODY",
                "loc-args": ["1", "orders/1"],
            },
            "sound": "default", "badge": 1,
        },
        "hermes": {"topic": "orders/1", "count": 1, "fields": {"status": "paid"}},
    }
    eventually(
        lambda: office.api.metric('hermes_wakes_total{outcome="accepted"}') == 1, "the answer"
    )
    assert len(apple.provider_tokens) == 1
    assert apple.provider_tokens[0] not in office.broker.log.text
    assert "0102ff" not in office.broker.log.text


def test_the_badge_goes_once_everything_is_fetched(
    from_file, paho_client, apple: Apple
) -> None:
    """Also after a kill that came before the phone did; and an order's status chooses its text."""
    office = Office(
        from_file, paho_client, apple,
        "alert orders/# body=ORDER_{status} args=orderId badge", more="  clear_badge: true\n")
    office.phone("phone", "ab01")
    answer = office.api.post_json("/v1/orders/4711/status", {"salesId": "s1", "status": "APPROVED"})
    assert answer.status == 200, answer
    first = apple.await_accepted(1)[0]
    assert first.payload["aps"] == {
        "alert": {"loc-key": "ORDER_APPROVED", "loc-args": ["1", "orders/s1/4711/status", "4711"]},
        "badge": 1,
    }
    eventually(lambda: office.device("phone")["wake"] == "none", "the answer is stored")
    office.broker.kill()
    office.broker.start()
    assert len(apple.notifications) == 1
    paho_client("phone", to=office.broker, clean_session=False).take()
    second = apple.await_accepted(2)[1]
    assert second.payload == {"aps": {"badge": 0}}
    assert second.headers["apns-push-type"] == "alert"
    assert second.headers["apns-priority"] == "5"


def test_a_device_that_was_set_aside_is_resumed(office: Office, apple: Apple) -> None:
    """By the operator, once what it was refused for is mended."""
    apple.behaviour.answers["ab02"] = (400, "BadDeviceToken")
    office.phone("phone", "ab02")
    office.publish()
    eventually(lambda: office.device("phone")["wake"] == "set_aside", "it is set aside")
    apple.behaviour.answers.clear()
    run = hermesctl("devices", "resume", "--all", "--bundle", "com.example.other", broker=office.broker)
    assert (run.code, run.output) == (0, "0 devices resumed\n")
    run = hermesctl("devices", "resume", "phone", broker=office.broker)
    assert (run.code, run.output) == (0, "phone: resumed\n")
    apple.await_accepted(1, "ab02")
    office.broker.kill()
    office.broker.start()
    assert office.device("phone")["wake"] != "set_aside", "it is stored"
    run = hermesctl("devices", "retry", "phone", "--json", broker=office.broker)
    assert run.json == {"devices": 0}


def test_apps_of_several_teams_have_keys_and_connections_of_their_own(
    from_file, paho_client, apple: Apple
) -> None:
    """What is wrong with one key stops nobody else, and a cure is taken while the broker runs."""
    team = apple.add_team("com.example.other", "OTHERKEY01", "OTHERTEAM1")
    good = team.key_file.read_bytes()
    make_key(team.key_file)
    apple.teams["com.example.third"] = team
    lines = "".join(
        f"\n      - {team.line(bundle)}" for bundle in ("com.example.other", "com.example.third"))
    office = Office(from_file, paho_client, apple, more_of_apple=f"    apps:{lines}\n")
    office.phone("phone", "ab03")
    for name, token, bundle in (("other", "ab04", b"com.example.other"),
                                ("third", "ab05", b"com.example.third")):
        client = paho_client(name, to=office.broker, clean_session=False)
        client.subscribe(("#", 1))
        client.publish("$hermes/device", registration(bytes.fromhex(token), bundle), qos=1)
        client.client.disconnect()
        eventually(lambda name=name: not office.api.client(name)["connected"], f"{name} is away")
    office.publish()
    apple.await_accepted(1, "ab03")
    line = office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")[0]
    assert "InvalidProviderToken" in line and "com.example.app" not in line
    assert not apple.accepted("ab04") and not apple.accepted("ab05")
    team.key_file.write_bytes(good)
    office.broker.reload()
    for token in ("ab04", "ab05"):
        apple.await_accepted(1, token, within=20)
    teams = {
        n.connection: team_of(n.headers["authorization"].removeprefix("bearer "))
        for n in apple.accepted()
    }
    assert set(teams.values()) == {apple.team_id, "OTHERTEAM1"}
    assert not [n for n in apple.notifications if n.reason == "TopicDisallowed"]
    names = {path.name for path in office.broker.data.glob("apns*")}
    assert names == {"apns.token", "apns-OTHERTEAM1-OTHERKEY01.token"}


def test_each_device_of_a_client_is_woken(office: Office, apple: Apple) -> None:
    """Also after a kill, and one is forgotten without the others."""
    office.phone("phone", "ab06")
    run = hermesctl(
        "devices", "register", "phone", "--name", "watch", "--token", "ab07",
        "--bundle", "com.example.app", broker=office.broker)
    assert run.code == 0, run.errors
    office.publish()
    for token in ("ab06", "ab07"):
        apple.await_accepted(1, token)
    eventually(
        lambda: all(d["wake"] == "none" for d in office.api.client("phone")["devices"]),
        "the answers")
    office.broker.kill()
    office.broker.start()
    listed = office.api.get("/v1/devices?client_id=phone")["devices"]
    assert [d.get("name") for d in listed] == [None, "watch"]
    assert office.api.get("/v1/clients/phone/device?name=watch")["token"] == "ab07…"
    run = hermesctl("devices", "forget", "phone", broker=office.broker)
    assert run.code == 0, run.errors
    office.publish("orders/2")
    assert apple.await_accepted(2, "ab07")[1].payload["hermes"]["count"] == 2
    assert len(apple.accepted("ab06")) == 1
    office.api.request("GET", "/v1/clients/phone/device").problem(404)


def test_what_follows_is_merged(from_file, paho_client, apple: Apple) -> None:
    office = Office(from_file, paho_client, apple, merge="4s")
    office.phone("phone", "aa01")
    office.publish()
    apple.await_accepted(1)
    for _ in range(5):
        office.publish("orders/2")
    second = apple.await_accepted(2)[1]
    assert second.payload["hermes"] == {
        "topic": "orders/2", "count": 6, "fields": {"status": "paid"},
    }, "the first one waits too"
    assert len(apple.accepted()) == 2


@pytest.mark.parametrize("digits", sorted(d for d, (status, _) in ANSWERS.items() if status < 403))
def test_a_refusal_of_one_notification_stops_no_other(
    office: Office, apple: Apple, digits: str
) -> None:
    """Nothing refused is sent again, except by IdleTimeout, which is about the connection, and what may
    be about the app; a device that Apple does not know is sent nothing more."""
    status, reason = ANSWERS[digits]
    office.phone("bad", digits + "00")
    office.phone("good", "0a0b")
    office.publish()
    apple.await_accepted(1, "0a0b")
    eventually(
        lambda: [n.reason for n in apple.notifications if n.device == digits + "00"][:1]
        == [reason], f"{status} {reason}",
    )
    # A later message of the good one shows that time has passed for the other.
    office.publish("orders/2")
    apple.await_accepted(2, "0a0b")
    tries = [n.payload["hermes"]["topic"] for n in apple.notifications if n.device == digits + "00"]
    repeated = ("IdleTimeout", "BadTopic", "MissingTopic", "TopicDisallowed")
    if reason not in (*repeated, "BadDeviceToken", "DeviceTokenNotForTopic"):
        assert tries.count("orders/1") == 1
    if reason in ("BadDeviceToken", "DeviceTokenNotForTopic"):
        assert tries == ["orders/1"], "it is set aside"


@pytest.mark.parametrize("digits", sorted(d for d, (status, _) in ANSWERS.items() if status >= 403))
def test_every_other_answer_is_about_its_device_while_others_pass(
    office: Office, apple: Apple, digits: str
) -> None:
    """The device is forgotten or set aside, its notification dropped or kept; another is told on."""
    _, reason = ANSWERS[digits]
    office.phone("good", "0a0c")
    office.publish()
    apple.await_accepted(1, "0a0c")
    office.phone("bad", digits + "01")
    office.publish("orders/2")

    def ends(**wanted: str) -> None:
        eventually(
            lambda: {k: office.device("bad").get(k) for k in wanted} == wanted,
            f"{reason}: {wanted}")

    if reason in ("Unregistered", "ExpiredToken"):
        eventually(
            lambda: office.api.request("GET", "/v1/clients/bad/device").status == 404,
            "it is forgotten")
    elif reason in ("Forbidden", "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken"):
        ends(wake="set_aside", last_outcome="bad_device", last_reason=reason)
    elif reason in ("BadPath", "MethodNotAllowed", "PayloadTooLarge"):
        ends(wake="none", last_outcome="refused", last_reason=reason)
    else:
        ends(wake="waiting", last_outcome="later", last_reason=reason)
        assert office.device("bad")["waiting"] == 1, "it is kept"
    office.publish("orders/3")
    eventually(
        lambda: any(
            n.payload["hermes"]["topic"] == "orders/3" for n in apple.accepted("0a0c")),
        "the other is told on")


def test_410_forgets_the_device_unless_it_registered_later(office: Office, apple: Apple) -> None:
    apple.behaviour.unregistered_at_ms = 1
    phone = registration(bytes.fromhex("d000")) + b"\x2a\x05watch"
    office.phone("phone", "d000", message=phone)
    office.publish()
    eventually(lambda: len(apple.notifications) >= 2, "the wake is tried again")
    apple.behaviour.unregistered_at_ms = None
    office.broker.log.await_match(
        r"Device is gone, says its push service, and is forgotten.*client\.id=phone"
        r".*device\.app=com\.example\.app.*device\.name=watch")
    assert office.api.metric('hermes_wakes_total{outcome="gone"}') == 1
    problem = office.api.request("GET", "/v1/clients/phone/device?name=watch").problem(404)
    assert "Unregistered" in problem["detail"]
    sentences = office.api.get("/v1/clients/phone/explain")["sentences"]
    assert any("its device \"watch\" is gone (Unregistered)" in one for one in sentences)


def test_no_answer_is_repeated_under_the_same_name(office: Office, apple: Apple) -> None:
    """A reset stream, a refused one and a broken connection."""
    apple.behaviour.reset_streams = 1
    apple.behaviour.refuse_streams = 1
    office.phone("phone", "0b01")
    office.publish()
    apple.await_accepted(1, "0b01")
    apple.behaviour.reset_after = 0
    office.phone("other", "0b02")
    office.publish()
    eventually(
        lambda: [n for n in apple.notifications if n.reason == "reset"], "a reset connection"
    )
    apple.behaviour.reset_after = None
    apple.await_accepted(1, "0b02")
    for device in ("0b01", "0b02"):
        assert len(apple.accepted(device)) >= 1
    names = {n.apns_id for n in apple.notifications if n.device == "0b02"}
    assert len(names) == 1


@pytest.mark.parametrize("twice", [False, True])
def test_goaway_sends_what_was_not_answered_again(
    office: Office, apple: Apple, twice: bool
) -> None:
    for number in range(8):
        office.phone(f"phone-{number}", f"0c0{number}")
    apple.behaviour.goaway_after = 3
    apple.behaviour.goaway_twice = twice
    office.publish()
    everyone = {f"0c0{number}" for number in range(8)}
    # An answer that was lost with its connection is given twice, under one name.
    eventually(lambda: {n.device for n in apple.accepted()} == everyone, "every phone woken")
    names = {(n.device, n.apns_id) for n in apple.accepted()}
    assert len(names) == 8
    assert apple.connections >= 2


def test_settings_that_shrink_are_obeyed(office: Office, apple: Apple) -> None:
    office.phone("first", "0d00")
    office.publish()
    apple.await_accepted(1)
    apple.behaviour.shrink_to = 1
    for number in range(1, 6):
        office.phone(f"phone-{number}", f"0d0{number}")
    office.publish()
    for number in range(1, 6):
        apple.await_accepted(1, f"0d0{number}")


def test_small_windows_and_one_connection_are_enough(
    from_file, paho_client, apple: Apple
) -> None:
    apple.behaviour.window = 16
    apple.behaviour.most_connections = 1
    office = Office(from_file, paho_client, apple)
    for number in range(5):
        office.phone(f"phone-{number}", f"0e0{number}")
    office.publish()
    apple.await_accepted(5)


def test_a_key_that_apple_refuses_pauses_the_sender_and_says_so(
    office: Office, apple: Apple
) -> None:
    apple.team_id = "OTHERTEAM1"
    office.phone("phone", "0f01")
    office.publish()
    line = office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")[0]
    assert "InvalidProviderToken" in line
    assert "key_id" in line
    assert not apple.accepted()


def test_a_test_during_a_pause_says_why(office: Office, apple: Apple) -> None:
    """So does an explanation of the client."""
    apple.team_id = "OTHERTEAM1"
    office.phone("phone", "0f02")
    office.publish()
    office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")
    trial = office.api.request("POST", "/v1/clients/phone/device/test").json
    assert trial["outcome"] == "later"
    assert "InvalidProviderToken" in trial["reason"]
    assert "compare wakes.apns.key_id" in trial["reason"]
    assert "hermesctl devices status" in trial["reason"]
    assert office.device("phone")["waiting"] == 1, "the message's wake is owed still"
    sentence = office.api.get("/v1/clients/phone/explain")["sentences"][-1]
    assert "which goes out later: nothing is sent to Apple: Apple refuses the key" in sentence


def test_a_test_that_is_put_off_leaves_what_is_owed(office: Office, apple: Apple) -> None:
    office.phone("phone", "0f03")
    office.publish()
    apple.await_accepted(1)
    eventually(lambda: office.device("phone")["wake"] == "none", "the answer")
    apple.behaviour.answers["0f03"] = (503, "ServiceUnavailable")
    office.publish("orders/2")
    eventually(
        lambda: office.device("phone").get("last_reason") == "ServiceUnavailable"
        and office.device("phone")["wake"] == "waiting", "it waits for its next attempt",
    )
    trial = office.api.request("POST", "/v1/clients/phone/device/test").json
    assert trial == {"outcome": "later", "reason": "ServiceUnavailable"}
    assert office.device("phone")["waiting"] == 1
    apple.behaviour.answers.clear()
    assert apple.await_accepted(2)[1].payload["hermes"]["topic"] == "orders/2"


def test_the_log_says_that_notifications_are_sent_again_once_one_is(
    from_file, paho_client, apple: Apple, tmp_path: Path
) -> None:
    """Neither the end of a pause nor a further attempt is that."""
    good = apple.ca_file.read_bytes()
    apple.ca_file = tmp_path / "trusted.crt"
    apple.ca_file.write_bytes(Authority(tmp_path / "other").certificate.read_bytes())
    office = Office(from_file, paho_client, apple)
    office.phone("phone", "0f04")
    office.publish()
    office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")
    eventually(
        lambda: office.api.get("/v1/wakes")["apns"]["connections_failed"] >= 2,
        "a further attempt", within=30,
    )
    again = "Notifications are sent to Apple again"
    assert again not in office.broker.log.text
    apple.ca_file.write_bytes(good)
    office.broker.reload()
    # The wake's own pause has grown with its attempts.
    eventually(apple.accepted, "an accepted notification", within=60)
    office.broker.log.await_match(again)
    assert office.broker.log.text.count(again) == 1
    assert office.broker.log.text.count("No notifications are sent to Apple for a while") == 1


@pytest.mark.parametrize(
    "status, reason", [(403, "BadEnvironmentKeyIdInToken"), (403, "Forbidden"),
                       (403, "InvalidProviderToken"), (400, "TopicDisallowed")])
def test_what_one_device_is_refused_stops_no_other(
    office: Office, apple: Apple, status: int, reason: str
) -> None:
    """Neither in its own environment nor in the other, before anything has passed and after."""
    for token in ("2f00", "2f01"):
        apple.behaviour.answers[token] = (status, reason)
    office.phone("first", "2f00")
    office.register("sandbox", "2f01", environment=2)
    office.publish()
    eventually(
        lambda: {n.device for n in apple.notifications} == {"2f00", "2f01"}, "both are refused")
    for number in range(5):
        office.phone(f"good-{number}", f"200{number}")
    office.publish("orders/2")
    for number in range(5):
        apple.await_accepted(1, f"200{number}", within=5)
    if reason in ("BadEnvironmentKeyIdInToken", "Forbidden"):
        eventually(lambda: office.device("first")["wake"] == "set_aside", "it is set aside")
    else:
        assert office.device("first")["waiting"] >= 1, "it is kept"


def test_an_app_that_is_wrong_is_told_and_nothing_is_lost(office: Office, apple: Apple) -> None:
    """Every device is refused by configuration, until that is cured."""
    tokens = [f"21{number:02x}" for number in range(20)]
    for number, token in enumerate(tokens):
        apple.behaviour.answers[token] = (400, "TopicDisallowed")
        office.phone(f"phone-{number}", token)
    office.publish()
    line = office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")[0]
    assert "TopicDisallowed" in line and "com.example.app" in line
    status = office.api.get("/v1/wakes")["apns"]
    assert status["paused"] == 1 and "bundle identifier" in status["pause"]["hint"]
    assert office.api.metric("hermes_apns_paused") == 1
    apple.behaviour.answers.clear()
    for token in tokens:
        apple.await_accepted(1, token, within=20)
    eventually(lambda: office.api.metric("hermes_apns_paused") == 0, "the trouble is over")


def test_goodbye_on_every_connection_is_a_failure_with_its_reason(
    office: Office, apple: Apple
) -> None:
    """A connection that is open and gives no answer is no success."""
    apple.behaviour.goaway_at_once = True
    office.phone("phone", "2201")
    office.publish()
    line = office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")[0]
    assert "said goodbye" in line
    eventually(lambda: apple.connections >= 3, "further attempts")
    assert office.api.get("/v1/wakes")["apns"]["connections_failed"] >= 2
    assert office.device("phone")["waiting"] == 1
    apple.behaviour.goaway_at_once = False
    apple.await_accepted(1, "2201", within=20)
    eventually(lambda: office.api.get("/v1/wakes")["apns"]["troubles"] == [], "all is well")


def test_a_service_that_gives_no_answer_is_told(office: Office, apple: Apple) -> None:
    apple.behaviour.hold = True
    office.phone("phone", "2801")
    office.publish()
    status = eventually(
        lambda: office.api.get("/v1/wakes")["apns"].get("pause"), "it is told", within=15)
    assert "no answer for more than 5 s" in status["reason"]
    apple.behaviour.hold = False
    apple.await_accepted(1, "2801")
    eventually(lambda: office.api.get("/v1/wakes")["apns"]["troubles"] == [], "all is well")


def test_shutdown_of_one_stream_leaves_the_others_open(office: Office, apple: Apple) -> None:
    office.phone("first", "23ff")
    office.publish()
    apple.await_accepted(1)
    apple.behaviour.hold = True
    apple.behaviour.answers["23aa"] = (503, "Shutdown")
    office.phone("stopped", "23aa")
    for number in range(10):
        office.phone(f"phone-{number}", f"230{number}")
    office.publish("orders/2")
    apple.await_requests(13)
    apple.behaviour.answers.clear()
    apple.behaviour.shutdown_next = True
    apple.behaviour.hold = False
    for number in range(10):
        apple.await_accepted(1, f"230{number}")
    apple.await_accepted(1, "23aa")
    assert max(len(apple.accepted(f"230{number}")) for number in range(10)) == 1
    assert any(n.reason == "Shutdown" for n in apple.notifications)


def test_a_client_that_comes_back_is_not_told(office: Office, apple: Apple, paho_client) -> None:
    """Its notification waits in the sender for a stream, the first of which has no answer."""
    apple.behaviour.hold = True
    office.phone("first", "2401")
    office.publish()
    apple.await_requests(1)
    office.phone("second", "2402")
    office.publish("orders/2")
    eventually(lambda: office.device("second")["wake"] == "sent", "it is with the sender")
    again = paho_client("second", to=office.broker, clean_session=False)
    again.take()
    eventually(lambda: office.device("second")["wake"] in ("watched", "none"), "it is given back")
    apple.behaviour.hold = False
    apple.await_accepted(1, "2401")
    # A later one shows that the sender has come to what it held.
    office.publish("orders/3")
    apple.await_accepted(2, "2401")
    assert not [n for n in apple.notifications if n.device == "2402"]


def test_after_an_outage_all_are_told_at_once(
    office: Office, apple: Apple, tmp_path: Path
) -> None:
    """However often connecting has failed, and although each wake has waited."""
    apple.close()
    tokens = [f"25{number:02x}" for number in range(10)]
    for number, token in enumerate(tokens):
        office.phone(f"phone-{number}", token)
    office.publish()
    eventually(
        lambda: office.api.get("/v1/wakes")["apns"]["connections_failed"] >= 5, "attempts",
        within=30)
    assert {office.device(f"phone-{number}")["wake"] for number in range(10)} <= {"ready", "sent"}
    with Apple(tmp_path / "apple", port=apple.port) as back:
        began = time.monotonic()
        for token in tokens:
            back.await_accepted(1, token, within=10)
        assert time.monotonic() - began < 8
    assert office.api.metric('hermes_wakes_total{outcome="later"}') == 0


def test_the_provider_token_outlives_a_restart(office: Office, apple: Apple) -> None:
    office.phone("phone", "1001")
    office.publish()
    apple.await_accepted(1)
    assert office.broker.stop() == 0
    office.broker.start()
    office.publish("orders/2")
    apple.await_accepted(2)
    assert len(apple.provider_tokens) == 1


def test_too_many_new_provider_tokens_pause_the_sender(office: Office, apple: Apple) -> None:
    """The kept token has been lost, and a new one comes too soon after the last."""
    office.phone("phone", "1002")
    office.publish()
    apple.await_accepted(1)
    assert office.broker.stop() == 0
    (office.broker.data / "apns.token").unlink()
    office.broker.start()
    office.publish("orders/2")
    line = office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")[0]
    assert "too many new provider tokens" in line
    assert [n.reason for n in apple.notifications[1:]] == ["TooManyProviderTokenUpdates"]


def test_a_provider_token_that_is_too_old_for_apple_is_made_anew_or_told(
    office: Office, apple: Apple
) -> None:
    """Apple's clock is ahead: the token is young here, so that a new one would be no better."""
    apple.clock = lambda: time.time() + TOKEN_LIFE + 60
    office.phone("phone", "1003")
    office.publish()
    line = office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")[0]
    assert "a new one can be made later only" in line and "clock" in line
    assert {n.reason for n in apple.notifications} == {"ExpiredProviderToken"}
    assert len(apple.provider_tokens) == 1


def test_a_certificate_takes_the_place_of_a_key(
    from_file, paho_client, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "clients")
    certificate = authority.issue("com.example.app")
    with Apple(tmp_path / "apple", client_authority=authority) as apple:
        text = apple.configuration(RULE)
        for line in ("key_file", "key_id", "team_id"):
            text = re.sub(rf"    {line}: .*\n", "", text)
        apple.configuration = lambda *_: (  # type: ignore[method-assign]
            f"{text}    certificate: {certificate.certificate}\n"
            f"    certificate_key: {certificate.key}\n")
        office = Office(from_file, paho_client, apple)
        office.phone("phone", "1004")
        office.publish()
        one = apple.await_accepted(1, "1004")[0]
        assert "authorization" not in one.headers
        assert apple.provider_tokens == []


def test_the_mock_keeps_a_ledger(tmp_path: Path, from_file, paho_client) -> None:
    """Device, time, connection, headers without the token, answer and payload of each request."""
    with (tmp_path / "ledger").open("w") as file, Apple(tmp_path / "a", ledger=file) as apple:
        office = Office(from_file, paho_client, apple)
        office.phone("phone", "1005")
        office.publish()
        apple.await_accepted(1)
        entry = json.loads((tmp_path / "ledger").read_text())
        assert entry["device"] == "1005" and entry["status"] == 200 and entry["connection"] >= 0
        assert entry["headers"]["apns-topic"] == "com.example.app"
        assert "authorization" not in entry["headers"]
        assert entry["payload"]["hermes"]["count"] == 1


def test_the_mock_keeps_key_and_authority(tmp_path: Path, from_file, paho_client) -> None:
    """A configuration holds across its restarts; another key is unknown even then."""
    directory = tmp_path / "kept"
    with Apple(directory) as first:
        port, text = first.port, first.configuration(RULE)
    with Apple(directory, port=port) as second:
        assert second.configuration(RULE) == text
        office = Office(from_file, paho_client, second)
        office.phone("phone", "1006")
        office.publish()
        second.await_accepted(1)
    make_key(directory / "AuthKey.p8")
    with Apple(directory, port=port) as third:
        assert office.broker.stop() == 0
        (office.broker.data / "apns.token").unlink()
        office.broker.start()
        office.publish("orders/2")
        eventually(
            lambda: [n.reason for n in third.notifications[:1]] == ["InvalidProviderToken"],
            "the other key is refused",
        )


def test_the_mock_knows_devices_of_its_app_only(
    tmp_path: Path, from_file, paho_client
) -> None:
    with Apple(tmp_path / "apple", bundle="com.example.other") as apple:
        office = Office(from_file, paho_client, apple)
        office.phone("phone", "1007")
        office.publish()
        eventually(lambda: office.device("phone")["wake"] == "set_aside", "it is set aside")
        assert office.device("phone")["last_reason"] == "DeviceTokenNotForTopic"


def test_the_mock_lists_what_it_refuses() -> None:
    text = subprocess.run(
        [sys.executable, "-m", "harness.apple", "--help"], check=True, capture_output=True,
        text=True, cwd=Path(__file__).parent, timeout=60,
    ).stdout
    for digits, (status, reason) in ANSWERS.items():
        assert f"{digits}…  {status} {reason}\n" in text


def test_a_kill_repeats_a_wake_and_loses_none(office: Office, apple: Apple) -> None:
    apple.behaviour.hold = True
    office.phone("phone", "1101")
    office.publish()
    eventually(lambda: apple.connections >= 1, "a connection")
    office.broker.kill()
    apple.behaviour.hold = False
    office.broker.start()
    apple.await_accepted(1, "1101")


def test_nobody_reaches_the_service(office: Office, apple: Apple) -> None:
    """What is owed waits in the broker, and goes out once the service is back."""
    apple.close()
    office.phone("phone", "1201")
    office.publish()
    line = office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")[0]
    assert "Connection refused" in line or "refused" in line


def test_a_device_over_http(office: Office, apple: Apple, paho_client) -> None:
    """It is woken for what waits already; of its token answers show the beginning."""
    phone = paho_client("phone", to=office.broker, clean_session=False)
    phone.subscribe(("#", 1))
    phone.client.disconnect()
    eventually(
        lambda: not office.api.client("phone")["connected"], "the phone is away"
    )
    office.publish()
    path, token = "/v1/clients/phone/device", "13" * 32
    assert office.api.request("GET", path).problem(404)["type"].endswith("device-not-found")
    answer = office.api.request(
        "PUT", path, f'{{"token": "{token}", "bundle": "com.example.app"}}'.encode(),
        {"Content-Type": "application/json"},
    )
    assert answer.status == 200
    assert answer.json["token"] == token[:8] + "…"
    apple.await_accepted(1, token)
    eventually(lambda: office.device("phone").get("last_outcome") == "accepted", "the answer")
    assert office.device("phone")["wake"] == "none"
    trial = office.api.request("POST", f"{path}/test")
    assert trial.json == {"outcome": "accepted"}
    assert [one["client_id"] for one in office.api.get("/v1/devices")["devices"]] == ["phone"]
    eventually(
        lambda: office.api.metric('hermes_apns_answers_total{reason="Success"}') == 2, "the figures"
    )
    assert office.api.request("DELETE", path).status == 204
    office.publish("orders/2")
    assert office.api.request("GET", path).status == 404
    assert len(apple.accepted(token)) == 2


def test_a_new_key_is_taken_at_once(office: Office, apple: Apple) -> None:
    """After a key that Apple refuses; an unusable one is told and changes nothing."""
    good = apple.key_file.read_bytes()
    make_key(apple.key_file)
    assert office.broker.stop() == 0
    (apple.directory / "public.pem").unlink(missing_ok=True)
    apple.key_file.with_name("known.p8").write_bytes(good)
    apple.key_file = apple.key_file.with_name("known.p8")
    office.broker.start()
    office.phone("phone", "1401")
    office.publish()
    office.broker.log.await_match(r"No notifications are sent to Apple for a while.*")
    apple.key_file.with_name("AuthKey.p8").write_text("nonsense")
    office.broker.reload()
    office.broker.log.await_match(r"Reload refused")
    apple.key_file.with_name("AuthKey.p8").write_bytes(good)
    office.broker.reload()
    office.broker.log.await_match(r"Configuration read again changed=wakes.apns")
    apple.await_accepted(1)
