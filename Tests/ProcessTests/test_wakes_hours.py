"""Alerts that quiet hours or a cap hold back, across kills; calls, talks and Live Activities."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.apple import Apple
from harness.broker import FromFile
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("wakes")

LEAST = 15
"""Seconds of quiet that a test has at least; it waits for a minute of the wall clock."""


@pytest.fixture
def apple(tmp_path: Path) -> Iterator[Apple]:
    with Apple(tmp_path / "apple") as apple:
        yield apple


def start(from_file, apple: Apple, *rules: str, more: str = "") -> tuple[FromFile, AdminAPI]:
    text = apple.configuration(*rules).replace(
        "wakes:\n", f"wakes:\n  merge: 1s\n  reconnect_window: 0s\n{more}", 1)
    broker = from_file(text)
    return broker, AdminAPI(broker)


def registration(token: str, bundle: str, *, name: str = "", zone: str = "") -> bytes:
    """A hermes.v1.DeviceRegistration, by hand."""

    def part(tag: int, value: bytes) -> bytes:
        return bytes([tag, len(value)]) + value if value else b""

    return (
        part(0x0A, bytes.fromhex(token)) + part(0x12, bundle.encode()) + part(0x2A, name.encode())
        + part(0x32, zone.encode()))


def add_phone(paho_client, broker, api, name: str, *registrations: bytes) -> None:
    phone = paho_client(name, to=broker, clean_session=False)
    phone.subscribe(("#", 1))
    for one in registrations:
        phone.publish("$hermes/device", one, qos=1)
    phone.client.disconnect()
    eventually(lambda: not api.client(name)["connected"], f"{name} is away")


def publish(api: AdminAPI, topic: str, payload: str = "{}") -> None:
    answer = api.request("POST", f"/v1/publish?topic={topic}&qos=1", payload.encode())
    assert answer.status == 200, answer


def device(api: AdminAPI, client: str, name: str = "") -> dict:
    return api.get(f"/v1/clients/{client}/device?name={name}")


def kolkata(at: float) -> str:
    """What a clock in Kolkata shows, which is never set."""
    return time.strftime("%H:%M", time.gmtime(at + 19_800))


@pytest.mark.timeout(200)
def test_quiet_hours_hold_across_kills_and_end_by_themselves(
    from_file, paho_client, apple: Apple
) -> None:
    """By the clock that the phone names: another one, for which it is no quiet time, is told at once."""
    end = (int(time.time() + LEAST) // 60 + 1) * 60
    hours = f"{kolkata(end - 7_200)}-{kolkata(end)}"
    broker, api = start(from_file, apple, "alert orders/#", more=f"  quiet_hours: {hours}\n")
    app = "com.example.app"
    add_phone(paho_client, broker, api, "kolkata", registration("aa", app, zone="Asia/Kolkata"))
    add_phone(paho_client, broker, api, "utc", registration("bb", app))
    add_phone(paho_client, broker, api, "moon", registration("cc", app, zone="Moon/Tycho"))
    publish(api, "orders/1")
    apple.await_accepted(1, "bb")
    apple.await_accepted(1, "cc")
    broker.log.await_match(
        r"Device registered without its time zone.*client\.id=moon.*device\.time_zone=Moon/Tycho")
    eventually(lambda: device(api, "kolkata")["wake"] == "held", "it is held")
    assert device(api, "kolkata")["due_at_ms"] == 1_000 * end
    assert device(api, "kolkata")["time_zone"] == "Asia/Kolkata"
    assert "time zone" in hermesctl("devices", "show", "kolkata", broker=broker).output
    sentences = api.get("/v1/clients/kolkata/explain")["sentences"]
    assert any("quiet hours or a cap hold that back" in one for one in sentences), sentences
    broker.kill()
    broker.start()
    publish(api, "orders/2")
    eventually(lambda: device(api, "kolkata")["wake"] == "held", "it is held again")
    assert not apple.accepted("aa")
    told = apple.await_accepted(1, "aa", within=90)[0]
    assert end <= told.at <= end + 5
    assert told.payload["hermes"]["count"] == 2
    assert api.metric('hermes_wakes_total{outcome="held"}') == 1


@pytest.mark.timeout(200)
def test_a_cap_holds_across_kills(from_file, paho_client, apple: Apple) -> None:
    broker, api = start(
        from_file, apple, "alert alarm/# uncapped", "alert orders/#", more="  cap: 1 per 1m\n")
    add_phone(paho_client, broker, api, "phone", registration("aa", "com.example.app"))
    publish(api, "orders/1")
    first = apple.await_accepted(1, "aa")[0]
    eventually(lambda: device(api, "phone")["wake"] == "none", "the answer is stored")
    broker.kill()
    broker.start()
    publish(api, "orders/2")
    publish(api, "orders/3")
    eventually(lambda: device(api, "phone")["wake"] == "held", "it is held")
    publish(api, "alarm/1")
    alarm = apple.await_accepted(2, "aa")[1]
    assert alarm.payload["hermes"] == {"topic": "alarm/1", "count": 4}
    publish(api, "orders/4")
    last = apple.await_accepted(3, "aa", within=90)[2]
    assert last.payload["hermes"]["topic"] == "orders/4"
    assert 59 <= last.at - first.at <= 70


def test_each_form_goes_to_the_token_that_is_for_it(from_file, paho_client, apple: Apple) -> None:
    """With Apple's push type, topic and priority, and no collapse identifier."""
    broker, api = start(
        from_file, apple, "voip calls/# fields=from", "pushtotalk talk/#",
        "liveactivity delivery/# fields=stage+minutes priority=5", '"alert #"')
    app = "com.example.app"
    add_phone(
        paho_client, broker, api, "phone", registration("aa", app),
        registration("bb", f"{app}.voip", name="calls"),
        registration("cc", f"{app}.voip-ptt", name="talk"),
        registration("dd", f"{app}.push-type.liveactivity", name="delivery"))
    publish(api, "calls/1", '{"from":"ann"}')
    call = apple.await_accepted(1, "bb")[0]
    assert call.payload == {
        "aps": {}, "hermes": {"topic": "calls/1", "count": 1, "fields": {"from": "ann"}}}
    publish(api, "talk/1")
    talk = apple.await_accepted(1, "cc")[0]
    publish(api, "delivery/1", '{"stage":"packed","minutes":20}')
    delivery = apple.await_accepted(1, "dd")[0]
    assert delivery.payload["aps"]["content-state"] == {"stage": "packed", "minutes": 20}
    assert abs(delivery.payload["aps"]["timestamp"] - time.time()) < 30
    for one, kind, topic, priority in (
        (call, "voip", f"{app}.voip", "10"), (talk, "pushtotalk", f"{app}.voip-ptt", "10"),
        (delivery, "liveactivity", f"{app}.push-type.liveactivity", "5"),
    ):
        assert one.headers["apns-push-type"] == kind
        assert one.headers["apns-topic"] == topic
        assert one.headers["apns-priority"] == priority
        assert "apns-collapse-id" not in one.headers
    assert call.headers["apns-expiration"] == "0"
    assert int(delivery.headers["apns-expiration"]) > time.time()
    publish(api, "news/1")
    apple.await_accepted(1, "aa")
    assert len(apple.notifications) == 4, "each went to one token"
    run = hermesctl("devices", "test", "phone", "--name", "calls", broker=broker)
    assert (run.code, apple.accepted("bb")[-1].headers["apns-push-type"]) == (0, "voip")
    run = hermesctl("devices", "test", "phone", "--name", "delivery", broker=broker)
    assert run.code == 1 and "Live Activity" in run.output + run.errors


def test_an_unknown_time_zone_is_refused_where_it_can_be(from_file, apple: Apple) -> None:
    broker, api = start(from_file, apple, "alert orders/#")
    body = {"token": "aa", "bundle": "b", "time_zone": "Moon/Tycho"}
    problem = api.request(
        "PUT", "/v1/clients/a/device", json.dumps(body).encode(),
        {"Content-Type": "application/json"}).problem(400)
    assert "Moon/Tycho" in problem["detail"]
    run = hermesctl(
        "devices", "register", "a", "--token", "aa", "--bundle", "b", "--time-zone", "Europe/Berlin",
        broker=broker)
    assert run.code == 0 and "Europe/Berlin" in run.output


def test_config_check_names_what_is_wrong_with_hours(tmp_path: Path, apple: Apple) -> None:
    config = tmp_path / "hermes.yaml"
    for more, complaint in (
        ("  time_zone: Moon/Tycho\n", "wakes.time_zone"),
        ("  quiet_hours: 22-7\n", "22:00-07:00"),
        ("  cap: many\n", "20 per 1d"),
    ):
        config.write_text(apple.configuration("alert a").replace("wakes:\n", f"wakes:\n{more}", 1))
        run = hermesctl("config", "check", str(config))
        assert run.code != 0 and complaint in run.errors, run.errors
