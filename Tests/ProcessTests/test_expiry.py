"""Messages whose time is over: in queues, among the retained ones, in receipts, across kills."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness import wire
from harness.admin import AdminAPI, Answer
from harness.broker import Hermesd
from harness.raw_client import RawClient
from harness.waiting import eventually
from harness.webhook_receiver import SECRET, Receiver
from harness.wire import Publish

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]

SWEEP = 3.0
"""Seconds within which an expired message has left, on a busy machine."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def post(api: AdminAPI, payload: str, **fields: object) -> Answer:
    answer = api.post_json(
        "/v1/messages", {"topic": "t/1", "qos": 1, "payload": payload, **fields})
    assert answer.status in (200, 202), answer
    return answer


def followed(api: AdminAPI, id: str, **fields: object) -> Answer:
    return post(api, id, message_id=id, receipts=True, **fields)


def states(api: AdminAPI, id: str) -> list[str]:
    return [" ".join(filter(None, (item["state"], item.get("reason"))))
            for item in api.get(f"/v1/messages/{id}")["receivers"]]


def add_phone(broker: Hermesd, name: str = "phone", qos: int = 1) -> None:
    with closing(RawClient(broker.address)) as client:
        client.connect(name, clean_session=False)
        client.subscribe(("#", qos))
        client.disconnect()


def arrivals(broker: Hermesd, name: str = "phone") -> list[str]:
    """What waits for a client, in order; each message is acknowledged."""
    found: list[str] = []
    with closing(RawClient(broker.address)) as client:
        client.connect(name, clean_session=False)
        post(AdminAPI(broker), "end")
        while (message := client.take_message()).payload != b"end":
            found.append(message.payload.decode())
        client.settle()
        client.disconnect()
    return found


def await_queued(api: AdminAPI, count: int, within: float = SWEEP) -> None:
    eventually(
        lambda: api.client("phone")["queued"] == count, f"{count} queued messages", within=within)


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
def test_dead_messages_take_no_place_from_living_ones(hermesd: Start, policy: str) -> None:
    broker = hermesd(queue_limit=3, environment={"HERMES_LIMITS_QUEUE_POLICY": policy})
    api = AdminAPI(broker)
    add_phone(broker)
    post(api, "status")
    for number in range(3):
        followed(api, f"dead-{number}", expires_in_s=1)
        await_queued(api, 2)
        await_queued(api, 1, within=1 + SWEEP)
        assert states(api, f"dead-{number}") == ["expired"]
    broker.kill()
    broker = hermesd(
        data=broker.data, queue_limit=3, environment={"HERMES_LIMITS_QUEUE_POLICY": policy})
    api = AdminAPI(broker)
    assert api.client("phone")["queued"] == 1
    post(api, "second")
    post(api, "third")
    client = api.client("phone")
    assert client["queued"] == 3 and not any(client["dropped"].values()), client
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        assert [one.payload for one in phone.take_messages(3)] == [b"status", b"second", b"third"]


def test_what_expires_while_the_broker_is_down_is_told_at_the_start(
    hermesd: Start, receiver: Receiver, tmp_path: Path
) -> None:
    secret = tmp_path / "webhook.secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    environment = {
        "HERMES_WEBHOOK_URL": receiver.url, "HERMES_WEBHOOK_SECRET_FILE": str(secret)}
    broker = hermesd(environment=environment)
    api = AdminAPI(broker)
    add_phone(broker)
    followed(api, "queued", expires_in_s=1)
    followed(api, "kept", expires_in_s=3600)
    followed(api, "scheduled", expires_in_s=1, deliver_in_s=1)
    post(api, "retained", topic="r/1", retain=True, expires_in_s=1)
    post(api, "lasting", topic="r/2", retain=True, expires_in_s=3600)
    stored = time.time()
    broker.kill()
    eventually(lambda: time.time() > stored + 2.2, "the time of the expiry")
    broker = hermesd(data=broker.data, environment=environment)
    api = AdminAPI(broker)
    assert [item["topic"] for item in api.get("/v1/retained")["retained"]] == ["r/2"]
    assert api.request("GET", "/v1/retained/message?topic=r/1").status == 404
    eventually(lambda: states(api, "queued") == ["expired"], "the receipt", within=SWEEP)
    eventually(
        lambda: api.request("GET", "/v1/messages/scheduled").status == 200, "the receipt of what "
        "was scheduled", within=SWEEP)
    assert states(api, "scheduled") == ["expired"]
    assert states(api, "kept") == ["queued"]
    eventually(
        lambda: {event["message_id"] for delivery in receiver.deliveries
                 for event in delivery.events if event["event"] == "expired"}
        == {"queued", "scheduled"}, "the events")
    broker.log.await_match("Scheduled message expired before it was published.*scheduled")
    assert arrivals(broker) == ["kept", "lasting"]


def test_retained_messages_end_and_make_room(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_MAX_RETAINED": "2"})
    api = AdminAPI(broker)
    post(api, "a", topic="a", retain=True, expires_in_s=1)
    assert "not_retained" not in post(api, "b", topic="b", retain=True).json
    assert post(api, "c", topic="c", retain=True).json["not_retained"] == "max_retained"
    eventually(
        lambda: api.request("GET", "/v1/retained/message?topic=a").status == 404,
        "the end of the message", within=1 + SWEEP)
    assert [item["topic"] for item in api.get("/v1/retained")["retained"]] == ["b"]
    assert "not_retained" not in post(api, "c", topic="c", retain=True).json
    broker.kill()
    broker = hermesd(data=broker.data)
    topics = [item["topic"] for item in AdminAPI(broker).get("/v1/retained")["retained"]]
    assert topics == ["b", "c"]


def test_a_repeat_is_told_as_well_that_its_message_was_not_retained(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_MAX_RETAINED": "1"})
    first = {"topic": "first", "retain": True, "idempotency_key": "kept-1"}
    second = {"topic": "second", "retain": True, "idempotency_key": "kept-2"}

    def say() -> list[str | None]:
        api = AdminAPI(broker)
        return [post(api, "x", **fields).json.get("not_retained") for fields in (first, second)]

    assert say() == say() == [None, "max_retained"]
    broker.kill()
    broker = hermesd(data=broker.data)
    assert say() == [None, "max_retained"]


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_never_sent_before_a_kill_is_not_sent_dead(hermesd: Start, qos: int) -> None:
    broker = hermesd(max_in_flight=20)
    api = AdminAPI(broker)
    phone = RawClient(broker.address)
    phone.connect("phone", clean_session=False)
    phone.subscribe(("t/#", qos))
    for number in range(100):
        post(api, str(number), qos=qos, expires_in_s=3)
    sent = [phone.receive_publish().payload for _ in range(20)]
    assert sent == [str(number).encode() for number in range(20)]
    stored = time.time()
    broker.kill()
    phone.close()
    eventually(lambda: time.time() > stored + 3.2, "the time of the expiry")
    broker = hermesd(data=broker.data, max_in_flight=20)
    found: list[bytes] = []
    with closing(RawClient(broker.address)) as again:
        again.connect("phone", clean_session=False)
        post(AdminAPI(broker), "end", qos=qos)
        # PUBREL for what was never sent is answered like any other.
        while b"end" not in found:
            packet = again.receive()
            if isinstance(packet, Publish):
                found.append(packet.payload)
                identifier = packet.packet_id or 0
                again.send(wire.puback(identifier) if qos == 1 else wire.pubrec(identifier))
            elif isinstance(packet, wire.Pubrel):
                again.send(wire.pubcomp(packet.packet_id))
        again.disconnect()
    assert found == [*sent, b"end"]
    eventually(
        lambda: AdminAPI(broker).client("phone")["in_flight"] <= 1, "an empty queue")


def test_a_push_that_nobody_could_get_in_time(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    add_phone(broker)
    answer = api.request(
        "POST", "/v1/pushes", json.dumps({
            "message": {"topic": "news", "payload": "x", "message_id": "p", "expires_in_s": 1},
            "to": {"clients": ["phone"]}, "deliver_in_s": 1,
        }).encode(), {"Content-Type": "application/json"})
    assert answer.status in (200, 202), answer
    stored = time.time()
    broker.kill()
    eventually(lambda: time.time() > stored + 2.2, "the time of the expiry")
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    eventually(lambda: api.get("/v1/pushes/p")["state"] == "expired", "the push", within=SWEEP)
    assert api.get("/v1/pushes/p")["reached"] == 0
