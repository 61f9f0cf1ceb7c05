"""The webhook: receipts posted to a back office that may be down, slow or wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.certificates import Authority, self_signed
from harness.waiting import PATIENCE, eventually
from harness.webhook_receiver import SECRET, Receiver, Reply
from harness.wire import Publish

pytestmark = pytest.mark.hermesd("receipts")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "webhook.secret"
    file.write_bytes(SECRET + b"\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def office(hermesd, secret):
    """Starts a broker that posts to a receiver, and publishes to a client that acknowledges."""

    def start(receiver: Receiver, **options: object) -> Office:
        return Office(hermesd, receiver, secret, **options)

    return start


class Office:
    """A broker with a webhook; message identifiers are m-1, m-2 and so on."""

    def __init__(self, hermesd, receiver: Receiver, secret: Path, **options: object) -> None:
        self._hermesd = hermesd
        self._environment = {
            "HERMES_WEBHOOK_URL": receiver.url, "HERMES_WEBHOOK_SECRET_FILE": str(secret),
            "HERMES_WEBHOOK_MAX_PAUSE": "1s",
            **{f"HERMES_WEBHOOK_{key.upper()}": str(value) for key, value in options.items()},
        }
        self.count = 0
        self.broker = hermesd(environment=self._environment)

    def restart(self) -> None:
        """After the broker's end, another one on the same data."""
        self.broker = self._hermesd(data=self.broker.data, environment=self._environment)

    def publish(self, client, count: int) -> None:
        """Publishes messages with receipts, which a client acknowledges at once."""
        phone = client("phone", to=self.broker)
        phone.subscribe(("orders/#", 1))
        api = AdminAPI(self.broker)
        for number in range(self.count + 1, self.count + count + 1):
            answer = api.post_json("/v1/messages", {
                "topic": f"orders/{number % 7}", "payload": "approved", "qos": 1,
                "message_id": f"m-{number}", "receipts": True,
            })
            assert answer.status == 200, answer
        phone.take_messages(count)
        self.count += count
        phone.disconnect()

    @property
    def all(self) -> list[str]:
        return [f"m-{number}" for number in range(1, self.count + 1)]


def test_events_are_posted_in_order_and_signed(office, receiver, client):
    shop = office(receiver)
    shop.publish(client, 20)
    assert receiver.await_taken(20) == shop.all

    for delivery in receiver.deliveries:
        assert delivery.is_genuine()
        assert not delivery.is_genuine(b"another secret of 16")
        assert delivery.headers[":path"] == "/hermes?shop=7"
        assert delivery.headers["content-type"] == "application/json"
        assert delivery.headers["hermes-delivery"] == json.loads(delivery.body)["delivery"]
    events = [event for delivery in receiver.deliveries for event in delivery.events]
    assert [event["number"] for event in events] == sorted({event["number"] for event in events})
    now = time.time() * 1000
    for event in events:
        assert event["event"] == "acknowledged" and event["topic"].startswith("orders/"), event
        assert abs(now - event["at_ms"]) < 60_000, event
    api = AdminAPI(shop.broker)
    # The receiver has taken them before the sender has read that it did.
    eventually(
        lambda: api.status()["webhook"]["events"]["delivered"] == 20, "20 events as delivered")
    status = api.status()["webhook"]
    assert "failure" not in status, status
    assert abs(now - status["last_success_at_ms"]) < 60_000, status


def test_what_is_not_delivered_is_told_with_its_reason(office, receiver, client, names):
    shop = office(receiver)
    phone_id = names.client("phone")
    phone = client("phone", to=shop.broker, clean_session=False)
    phone.subscribe(("orders/#", 1))
    phone.disconnect()
    api = AdminAPI(shop.broker)
    message = {"topic": "orders/7", "payload": "approved", "qos": 1, "receipts": True}
    for more in ({"message_id": "m-1"}, {"message_id": "m-2", "expires_in_s": 1}):
        assert api.post_json("/v1/messages", message | more).status == 200
    eventually(lambda: api.client(phone_id)["queued"] == 2, "both queued")
    time.sleep(1.1)  # The smallest time after which a message expires is a second.
    phone = client("phone", to=shop.broker, clean_session=False)
    phone.take_message()
    receiver.await_taken(2)
    assert api.post_json("/v1/messages", message | {"message_id": "m-3"}).status == 200
    phone.await_packet(Publish)
    phone.disconnect()
    assert api.post_json("/v1/messages", message | {"message_id": "m-4"}).status == 200
    assert api.request("DELETE", f"/v1/clients/{phone_id}/queue").status == 200
    receiver.await_taken(3)
    events = {
        event["message_id"]: (event["event"], event.get("reason"), event["client_id"])
        for delivery in receiver.deliveries for event in delivery.events
    }
    assert events == {
        "m-1": ("acknowledged", None, phone_id), "m-2": ("expired", None, phone_id),
        "m-4": ("dropped", "operator", phone_id),
    }


def test_a_receiver_that_was_down_misses_nothing(office, receiver, client):
    receiver.close()
    shop = office(receiver)
    shop.publish(client, 300)
    shop.broker.log.await_match("webhook's receiver takes no events.*refused")
    api = AdminAPI(shop.broker)
    unreachable = 'hermes_webhook_events_total{result="unreachable"}'
    eventually(lambda: api.metric(unreachable) >= 2, "two attempts")
    assert api.metric("hermes_webhook_last_success_timestamp_seconds") == 0
    shown = hermesctl("status", broker=shop.broker).output
    assert "refused" in next(line for line in shown.splitlines() if line.startswith("webhook"))

    receiver.open()
    assert receiver.await_taken(300) == shop.all
    shop.broker.log.await_match("webhook's receiver takes events again")
    assert api.metric("hermes_webhook_last_success_timestamp_seconds") > 0


@pytest.mark.parametrize(
    ("status", "headers", "line"),
    [
        (500, {}, "takes no events.*status 500"),
        (503, {"Retry-After": "1"}, "takes no events.*status 503"),
        (429, {"Retry-After": "100000"}, "takes no events.*status 429"),
        (404, {}, "refuses the events.*status 404"),
        (400, {}, "refuses the events.*status 400"),
        (302, {"Location": "/elsewhere"}, "refuses the events.*redirection"),
        (307, {"Location": "/elsewhere"}, "refuses the events.*redirection"),
    ],
)
def test_whatever_it_answers_the_batch_comes_again(
    status, headers, line, office, receiver, client
):
    receiver.reply = lambda _: (
        Reply(status, tuple(headers.items())) if len(receiver.deliveries) < 2 else Reply())
    shop = office(receiver)
    shop.publish(client, 10)
    assert receiver.await_taken(10) == shop.all
    shop.broker.log.await_match(line)
    first, second, third = receiver.deliveries[:3]
    assert (first.status, second.status, third.status) == (status, status, 200)
    assert first.body == second.body == third.body
    names = {delivery.headers["hermes-delivery"] for delivery in (first, second, third)}
    assert len(names) == 1
    assert all(delivery.is_genuine() for delivery in (first, second, third))
    assert {delivery.headers[":path"] for delivery in receiver.deliveries} == {"/hermes?shop=7"}


def test_a_receiver_that_hangs_is_asked_again(office, receiver, client):
    receiver.reply = lambda _: Reply(hang=not receiver.deliveries)
    shop = office(receiver, timeout="300ms")
    shop.publish(client, 10)
    assert receiver.await_taken(10) == shop.all
    assert receiver.deliveries[0].body == receiver.deliveries[1].body
    shop.broker.log.await_match("takes no events.*no answer")


def test_a_long_answer_is_not_read_to_its_end(office, receiver, client):
    receiver.reply = lambda _: Reply(body=b"x" * (8 << 20))
    shop = office(receiver)
    shop.publish(client, 10)
    assert receiver.await_taken(10) == shop.all
    eventually(
        lambda: AdminAPI(shop.broker).status()["webhook"]["events"]["delivered"] == 10, "success")
    assert len(receiver.taken) == 10


def test_a_stop_does_not_wait_for_the_receiver(office, receiver, client):
    receiver.reply = lambda _: Reply(hang=True)
    shop = office(receiver, timeout="60s")
    shop.publish(client, 1)
    receiver.await_requests(1)
    assert shop.broker.stop() == 0

    receiver.reply = lambda _: Reply()
    shop.restart()
    assert receiver.await_taken(1) == shop.all


def test_events_come_again_when_the_broker_dies_before_it_has_noted_the_answer(
    office, receiver, client
):
    def reply(_) -> Reply:
        # Between the request and its answer.
        if not receiver.deliveries:
            shop.broker.kill()
        return Reply(hang=not receiver.deliveries)

    shop = office(receiver, timeout="60s")
    receiver.reply = lambda _: Reply(hang=True)
    receiver.close()
    shop.publish(client, 30)
    receiver.reply = reply
    receiver.open()
    receiver.await_requests(1)
    before = receiver.deliveries[0].events
    shop.restart()
    taken = receiver.await_taken(30)
    assert taken == shop.all
    events = [event for delivery in receiver.deliveries[1:] for event in delivery.events]
    assert events[: len(before)] == before


def test_a_new_secret_signs_after_a_reload(office, receiver, client, secret):
    shop = office(receiver)
    shop.publish(client, 1)
    receiver.await_taken(1)
    new = b"process-tests-second-secret"
    secret.write_bytes(new)
    start = len(shop.broker.log.lines)
    shop.broker.process.send_signal(1)
    line = shop.broker.log.await_match("Configuration read again", start=start).string
    assert "webhook" in line
    shop.publish(client, 1)
    assert receiver.await_taken(2) == shop.all
    assert receiver.deliveries[0].is_genuine() and not receiver.deliveries[0].is_genuine(new)
    assert receiver.deliveries[-1].is_genuine(new) and not receiver.deliveries[-1].is_genuine()


def test_a_bad_secret_at_a_reload_leaves_the_old_one(office, receiver, client, secret):
    shop = office(receiver)
    secret.write_bytes(b"short")
    start = len(shop.broker.log.lines)
    shop.broker.process.send_signal(1)
    shop.broker.log.await_match("Unusable file of webhook.*webhook.secret_file", start=start)
    shop.broker.log.await_match("everything stays as it was", start=start)
    shop.publish(client, 1)
    receiver.await_taken(1)
    assert receiver.deliveries[0].is_genuine()


def test_https_to_a_receiver_that_the_authority_vouches_for(office, authority, client):
    receiver = Receiver(authority.issue("receiver"))
    shop = office(receiver, ca_file=authority.certificate)
    shop.publish(client, 10)
    assert receiver.await_taken(10) == shop.all
    receiver.close()


@pytest.mark.parametrize("flaw", ["unknown", "name", "expired", "self-signed"])
def test_a_receiver_with_a_wrong_certificate_gets_nothing(
    flaw, office, authority: Authority, client, tmp_path
):
    good = authority.issue("good")
    match flaw:
        case "unknown":
            bad = Authority(tmp_path / "other").issue("receiver")
        case "name":
            bad = authority.issue("elsewhere", names="DNS:office.example")
        case "expired":
            bad = authority.issue("old", valid_from_days=-3, valid_until_days=-1)
        case _:
            bad = self_signed(tmp_path / "self", "127.0.0.1")
    receiver = Receiver(bad)
    shop = office(receiver, ca_file=authority.certificate)
    shop.publish(client, 3)
    line = shop.broker.log.await_match("takes no events.*").string
    assert ("another name" if flaw == "name" else "certificate_verify_failed") in line
    assert receiver.deliveries == []

    receiver.close()
    receiver._certificate = good
    receiver.open()
    assert receiver.await_taken(3) == shop.all
    receiver.close()


def test_proxies_of_the_environment_are_not_used(hermesd, receiver, client, secret, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    shop = Office(hermesd, receiver, secret)
    shop.publish(client, 1)
    assert receiver.await_taken(1) == shop.all


def test_mqtt_does_not_wait_for_the_receiver(office, receiver, client):
    receiver.reply = lambda _: Reply(hang=True)
    shop = office(receiver, timeout="60s")
    shop.publish(client, 1)
    receiver.await_requests(1)
    shop.publish(client, 400)
    client("other", to=shop.broker).ping()
    assert receiver.taken == []
    receiver.close()
    receiver.reply = lambda _: Reply()
    receiver.open()
    assert receiver.await_taken(401, within=2 * PATIENCE) == shop.all


@pytest.mark.parametrize(
    ("contents", "mode", "complaint"),
    [
        (b"short", 0o600, "holds no secret"),
        (SECRET, 0o644, "can be read by others"),
        (None, None, "there is no file"),
    ],
)
def test_a_file_that_cannot_be_used_ends_the_start(
    contents, mode, complaint, hermesd, receiver, tmp_path
):
    secret = tmp_path / "secret"
    if contents is not None:
        secret.write_bytes(contents)
        secret.chmod(mode)
    file = tmp_path / "hermes.yaml"
    file.write_text(f"webhook: {{url: '{receiver.url}', secret_file: '{secret}'}}\n")
    with pytest.raises(AssertionError, match=f"webhook.secret_file: .*{complaint}"):
        hermesd(arguments=("--config", str(file)))
    checked = hermesctl("config", "check", str(file), token=None)
    assert checked.code != 0 and complaint in checked.errors, checked
