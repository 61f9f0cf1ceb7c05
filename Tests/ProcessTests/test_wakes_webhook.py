"""Phones whose devices have the kind "webhook" are woken by the operator's own service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.waiting import eventually
from harness.webhook_receiver import SECRET, Receiver, Reply

pytestmark = pytest.mark.hermesd("wakes")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


class Office:
    """A broker that wakes phones by a webhook, its API, and phones."""

    def __init__(self, from_file, raw, receiver: Receiver, folder: Path) -> None:
        self.secret = folder / "wakes.secret"
        self.secret.write_bytes(SECRET + b"\n")
        self.secret.chmod(0o600)
        self.broker = from_file(
            "wakes:\n  merge: 1s\n  reconnect_window: 1s\n"
            "  rules: alert orders/# title=T body=B sound=default badge fields=status\n"
            f"  webhook:\n    url: {receiver.url}\n    secret_file: {self.secret}\n"
            "    max_pause: 1s\n    timeout: 2s\n"
        )
        self.api = AdminAPI(self.broker)
        self._raw = raw

    def phone(self, name: str, token: str, **more: str) -> None:
        """A client with a session, away, and its device, registered by the back office."""
        phone = self._raw(self.broker)
        assert phone.connect(name, clean_session=False).return_code == 0
        phone.subscribe(("#", 1))
        phone.disconnect()
        answer = self.api.request(
            "PUT", f"/v1/clients/{name}/device",
            json.dumps({"kind": "webhook", "token": token, **more}).encode(),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status == 200, answer

    def publish(self, topic: str = "orders/1") -> None:
        answer = self.api.request(
            "POST", f"/v1/publish?topic={topic}&qos=1", b'{"status":"paid","card":"4711"}')
        assert answer.status == 200, answer

    def device(self, name: str) -> dict:
        return self.api.get(f"/v1/clients/{name}/device")


@pytest.fixture
def office(from_file, raw, receiver, tmp_path) -> Office:
    return Office(from_file, raw, receiver, tmp_path)


def test_a_wake_is_posted_and_signed(office: Office, receiver: Receiver) -> None:
    office.phone("phone", "fcm-token", bundle="com.example.app", user_name="ann")
    office.phone("other", "fcm-other")
    office.publish()
    receiver.await_requests(1)
    delivery = receiver.deliveries[0]
    assert delivery.is_genuine() and not delivery.is_genuine(b"another secret of 16")
    wake = json.loads(delivery.body)
    assert delivery.headers["hermes-delivery"] == wake.pop("id")
    assert wake.pop("expires_at") > 0 and len(wake.pop("collapse_id")) > 0
    # Registered for ann; the session has no user, so this one is not hers.
    assert wake == {
        "client_id": "other", "token": "fcm-other", "kind": "alert", "topic": "orders/1",
        "count": 1, "title": "T", "body": "B", "sound": "default", "badge": 1,
        "fields": {"status": "paid"},
    }
    eventually(lambda: office.device("other").get("last_outcome") == "accepted", "the answer")
    assert office.device("other")["token"] == "fcm-othe…"
    assert "fcm-other" not in office.broker.log.text
    assert office.api.metric('hermes_wake_webhook_wakes_total{result="accepted"}') == 1


@pytest.mark.parametrize(
    ("status", "outcome"), [(400, "refused"), (413, "refused"), (422, "refused")])
def test_a_wake_that_the_receiver_refuses_is_dropped(
    office: Office, receiver: Receiver, status: int, outcome: str
) -> None:
    receiver.reply = lambda _: Reply(status=status)
    office.phone("phone", "t")
    office.publish()
    eventually(lambda: office.device("phone").get("last_outcome") == outcome, outcome)
    receiver.reply = lambda _: Reply()
    office.publish("orders/2")
    receiver.await_requests(2)
    assert [json.loads(d.body)["topic"] for d in receiver.deliveries] == ["orders/1", "orders/2"]


def test_410_forgets_the_device(office: Office, receiver: Receiver) -> None:
    receiver.reply = lambda _: Reply(status=410)
    office.phone("phone", "t")
    office.publish()
    eventually(
        lambda: office.api.request("GET", "/v1/clients/phone/device").status == 404, "forgotten")


@pytest.mark.parametrize("status", [302, 401, 404, 429, 500, 503])
def test_a_receiver_that_fails_gets_the_wake_again(
    office: Office, receiver: Receiver, status: int
) -> None:
    """Under the same name, and a wrong path (404) forgets no device."""
    receiver.reply = lambda d: Reply(status=status if len(receiver.deliveries) < 2 else 200)
    office.phone("phone", "t")
    office.publish()
    eventually(lambda: office.device("phone").get("last_outcome") == "accepted", "woken")
    assert len({d.headers["hermes-delivery"] for d in receiver.deliveries}) == 1
    assert office.broker.log.await_match(r"The receiver of wakes.webhook takes wakes again")


def test_silence_and_absence_lose_no_wake(office: Office, receiver: Receiver) -> None:
    receiver.reply = lambda _: Reply(hang=True)
    for number in range(3):
        office.phone(f"phone-{number}", f"t-{number}")
    office.publish()
    receiver.await_requests(1)
    receiver.close()
    office.broker.log.await_match(r"The receiver of wakes.webhook takes no wakes")
    status = hermesctl("devices", "status", broker=office.broker).output
    assert "failing: " in status and "off (wakes.apns)" in status
    receiver.reply = lambda _: Reply()
    receiver.open()
    eventually(
        lambda: [office.device(f"phone-{n}").get("last_outcome") for n in range(3)]
        == ["accepted"] * 3, "all are woken",
    )


def test_its_secret_is_read_again(office: Office, receiver: Receiver) -> None:
    office.phone("phone", "t")
    office.secret.write_bytes(b"another-secret-of-16-bytes\n")
    before = office.broker.reload()
    office.broker.log.await_match("Configuration read again", start=before)
    office.publish()
    assert receiver.await_requests(1)[0].is_genuine(b"another-secret-of-16-bytes")
    office.secret.chmod(0o644)
    before = office.broker.reload()
    office.broker.log.await_match(r"wakes.webhook.secret_file: .*chmod 600", start=before)


def test_hermesctl_shows_registers_rings_and_forgets(office: Office, receiver: Receiver) -> None:
    office.phone("phone", "fcm-token")

    def devices(*arguments: str, code: int = 0) -> str:
        result = hermesctl("devices", *arguments, broker=office.broker)
        assert result.code == code, result
        return result.output + result.errors

    assert "abcdefgh…" in devices("register", "new", "--token", "abcdefghijk", "--webhook")
    listed = devices("list")
    assert "phone" in listed and "new" in listed and "abcdefghi" not in listed
    assert devices("test", "phone").split()[:2] == ["notification", "accepted"]
    assert receiver.await_requests(1)
    assert "accepted" in devices("show", "phone")
    explained = hermesctl("explain", "phone", broker=office.broker).output
    assert "taken by the push service" in explained
    assert office.api.client("phone")["devices"][0]["kind"] == "webhook"
    assert "forgotten" in devices("forget", "phone")
    assert 'The client "phone" has no device' in devices("show", "phone", code=1)
    assert "--bundle" in devices("register", "a", "--token", "12", code=64)


def test_a_message_says_whom_it_wakes(office: Office, receiver: Receiver) -> None:
    """Also one that is scheduled, a push, and one that only the store remembers."""
    office.phone("phone", "t")

    def post(path: str, body: dict) -> None:
        answer = office.api.post_json(path, body)
        assert answer.status in (200, 202), answer

    def topics() -> list[tuple[str, str]]:
        wakes = [json.loads(delivery.body) for delivery in receiver.deliveries]
        return [(wake["topic"], wake["kind"]) for wake in wakes]

    post("/v1/messages", {"topic": "orders/1", "payload": "x", "wake": "none"})
    post("/v1/messages", {"topic": "news/1", "payload": "x", "wake": "background"})
    eventually(lambda: topics() == [("news/1", "background")], "the silent one")
    post("/v1/messages", {"topic": "news/2", "payload": "x", "wake": "alert", "deliver_in_s": 1})
    eventually(lambda: topics()[1:] == [("news/2", "alert")], "the scheduled one")
    post("/v1/pushes", {
        "to": {"clients": ["phone"]},
        "message": {"topic": "news/3", "payload": "x", "wake": "alert"},
    })
    eventually(lambda: topics()[2:] == [("news/3", "alert")], "the push")
    for path, body in [
        ("/v1/messages", {"topic": "a", "payload": "", "wake": "loud"}),
        ("/v1/orders/1/status", {"sales_id": "s", "status": "SUBMITTED", "wake": 1}),
    ]:
        answer = office.api.post_json(path, body)
        assert answer.status == 400 and b"wake" in answer.body
    wrong = office.api.request("POST", "/v1/publish?topic=a&wake=", b"x")
    assert wrong.status == 400 and b"must be alert, background or none" in wrong.body


def test_what_a_message_asked_for_outlives_a_kill(
    hermesd, raw, receiver: Receiver, tmp_path: Path
) -> None:
    """No sender ran, so the broker has to read the queue to know whom to wake."""
    broker = hermesd()
    phone = raw(broker)
    assert phone.connect("phone", clean_session=False).return_code == 0
    phone.subscribe(("#", 1))
    phone.disconnect()
    api = AdminAPI(broker)
    answer = api.request(
        "PUT", "/v1/clients/phone/device", b'{"kind":"webhook","token":"t"}',
        headers={"Content-Type": "application/json"})
    assert answer.status == 200, answer
    for topic, wake in [("a", "none"), ("b", "alert"), ("c", "none")]:
        answer = api.post_json("/v1/messages", {"topic": topic, "payload": "x", "wake": wake})
        assert answer.status == 200, answer
    broker.kill()
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET + b"\n")
    secret.chmod(0o600)
    again = hermesd(data=broker.data, environment={
        "HERMES_WAKES_WEBHOOK_URL": receiver.url, "HERMES_WAKES_WEBHOOK_SECRET_FILE": str(secret),
        "HERMES_WAKES_RECONNECT_WINDOW": "0s", "HERMES_WAKES_MERGE": "1s",
    })
    wake = json.loads(receiver.await_requests(1)[0].body)
    assert (wake["topic"], wake["count"], wake["kind"]) == ("b", 1, "alert")
    assert again.is_running
