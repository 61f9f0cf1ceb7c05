"""Receipts: what became of a message for each of its receivers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from harness import wire
from harness.admin import AdminAPI, Answer, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient
from harness.wire import Publish

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]


def post(api: AdminAPI, id: str, payload: str = "x", **fields: object) -> Answer:
    body = {"topic": "t/1", "payload": payload, "message_id": id, "receipts": True, **fields}
    return api.request(
        "POST", "/v1/messages", json.dumps(body).encode(), {"Content-Type": "application/json"})


def receipt(api: AdminAPI, id: str) -> dict[str, object]:
    return api.get(f"/v1/messages/{id}")


def states(api: AdminAPI, id: str) -> dict[str, str]:
    """By client: state and reason."""
    return {
        item["client_id"]: " ".join(filter(None, (item["state"], item.get("reason"))))
        for item in receipt(api, id)["receivers"]  # type: ignore[attr-defined]
    }


def await_state(api: AdminAPI, id: str, expected: dict[str, str]) -> None:
    deadline = time.monotonic() + 20
    while (found := states(api, id)) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def subscribe(broker: Hermesd, name: str, qos: int = 1, topics: str = "t/#") -> RawClient:
    client = RawClient(broker.address)
    client.connect(name, clean_session=False)
    client.subscribe((topics, qos))
    return client


@pytest.mark.parametrize("qos", [1, 2])
def test_from_queued_to_acknowledged(hermesd: Start, qos: int) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    subscribe(broker, "away", qos).disconnect()
    with closing(subscribe(broker, "phone", qos)) as client:
        answer = post(api, "m", qos=qos)
        assert answer.json["matched"] == 2
        packet = client.await_packet(Publish)
        assert states(api, "m") == {"away": "queued", "phone": "sent"}
        assert packet.packet_id is not None
        client.send(wire.puback(packet.packet_id) if qos == 1 else wire.pubrec(packet.packet_id))
        await_state(api, "m", {"away": "queued", "phone": "acknowledged"})
    found = receipt(api, "m")
    assert found["counts"] == {
        "receivers": 2, "pending": 1, "acknowledged": 1, "sent": 0, "expired": 0, "dropped": 0}
    assert found["topic"] == "t/1"
    assert "acknowledged" in hermesctl("message", "m", broker=broker).output


def test_receipts_survive_a_kill(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    client = subscribe(broker, "phone")
    post(api, "first")
    packet = client.await_packet(Publish)
    client.send(wire.puback(packet.packet_id or 0))
    await_state(api, "first", {"phone": "acknowledged"})
    client.close()
    clean = RawClient(broker.address)
    clean.connect("clean")
    clean.subscribe(("t/#", 1))
    post(api, "second")
    before = receipt(api, "first")
    broker.kill()
    clean.close()
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    assert receipt(api, "first") == before
    await_state(api, "second", {"phone": "queued", "clean": "dropped session_ended"})
    with closing(RawClient(broker.address)) as again:
        again.connect("phone", clean_session=False)
        packet = again.await_packet(Publish)
        again.send(wire.puback(packet.packet_id or 0))
        await_state(
            api, "second", {"phone": "acknowledged", "clean": "dropped session_ended"})


def test_expired_full_and_dropped_by_an_operator(hermesd: Start) -> None:
    broker = hermesd(queue_limit=2)
    api = AdminAPI(broker)
    subscribe(broker, "phone").disconnect()
    post(api, "full")
    post(api, "expiring", expires_in_s=1)
    post(api, "kept")
    assert states(api, "full") == {"phone": "dropped queue_full"}
    time.sleep(1.1)  # The smallest time after which a message expires is a second.
    with closing(RawClient(broker.address)) as client:
        client.connect("phone", clean_session=False)
        client.await_packet(Publish)
        await_state(api, "expiring", {"phone": "expired"})
    post(api, "cleared")
    api.request("DELETE", "/v1/clients/phone/queue")
    assert states(api, "cleared") == {"phone": "dropped operator"}
    with closing(RawClient(broker.address)) as client:
        client.connect("phone")
    await_state(api, "kept", {"phone": "dropped session_ended"})


@pytest.mark.parametrize("end", ["delete", "clean", "kill amid it"])
def test_a_receipt_follows_the_message_to_another_member(hermesd: Start, end: str) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    group = "$share/g/t/#"
    one = subscribe(broker, "one", topics=group)
    post(api, "flying")
    one.await_packet(Publish)
    assert states(api, "flying") == {"one": "sent"}
    one.close()
    subscribe(broker, "two", topics=group).disconnect()
    post(api, "waiting")
    if end == "clean":
        with closing(RawClient(broker.address)) as again:
            again.connect("one")
    else:
        assert api.request("DELETE", "/v1/clients/one/session").status == 204
    if end == "kill amid it":
        broker.kill()
        broker = hermesd(data=broker.data)
        api = AdminAPI(broker)
    await_state(api, "flying", {"two": "queued"})
    told = hermesctl("explain", "one", "--message", "flying", broker=broker).output
    assert end != "clean" or f"{group} gave it to two" in told, told
    with closing(RawClient(broker.address)) as client:
        client.connect("two", clean_session=False)
        client.take_messages(2)
        await_state(api, "flying", {"two": "acknowledged"})
    found = receipt(api, "flying")
    assert found["counts"]["receivers"] == 1  # type: ignore[index]
    assert found["receivers"][0]["group"] == group  # type: ignore[index]
    shown = hermesctl("message", "flying", broker=broker).output
    assert "AS A MEMBER OF" in shown and group in shown
    member = subscribe(broker, "three", topics=group)
    told = hermesctl("explain", "three", "--message", "flying", broker=broker).output
    assert f"It is a member of {group}, which gives each message to one member: this one went to two (acknowledged)." in told
    member.close()


def test_a_large_fan_out_is_counted(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    for number in range(70):
        subscribe(broker, f"phone-{number}").disconnect()
    post(api, "m")
    found = receipt(api, "m")
    assert "receivers" not in found
    assert found["counts"]["receivers"] == found["counts"]["pending"] == 70  # type: ignore[index]


def test_unknown_identifiers_and_every_route(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    assert api.request("GET", "/v1/messages/none").status == 404
    post(api, "plain", receipts=False)
    assert api.request("GET", "/v1/messages/plain").status == 404
    made = api.request("POST", "/v1/publish?topic=t/1&receipts=true", b"x").json["message_id"]
    assert receipt(api, made)["counts"]["receivers"] == 0  # type: ignore[index]
    body = json.dumps({"sales_id": "7", "status": "SIGNED", "receipts": True}).encode()
    made = api.request(
        "POST", "/v1/orders/4711/status", body, {"Content-Type": "application/json"}
    ).json["message_id"]
    assert receipt(api, made)["topic"] == "orders/7/4711/status"
    hermesctl(
        "publish", "-t", "t/2", "-m", "x", "--receipts", "--message-id", "ctl",
        broker=broker)
    assert receipt(api, "ctl")["topic"] == "t/2"


def test_the_limit_drops_the_oldest(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_RECEIPTS": "6"})
    api = AdminAPI(broker)
    subscribe(broker, "phone").disconnect()
    for number in range(5):
        post(api, f"m{number}")
    deadline = time.monotonic() + 20
    while api.metric("hermes_receipts ") > 6:
        assert time.monotonic() < deadline
    assert api.request("GET", "/v1/messages/m0").status == 404
    assert states(api, "m4") == {"phone": "queued"}
    assert api.metric("hermes_receipts_dropped_total ") == 4


def test_topics_of_the_configuration_and_tokens_bound_to_topics(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_RECEIPTS_TOPICS": "t/#"})
    api = AdminAPI(broker)
    for id, topic, fields in (
        ("by-rule", "t/1", {}), ("refused", "t/1", {"receipts": False}), ("other", "u/1", {}),
        ("asked", "u/1", {"receipts": True}),
    ):
        body = {"topic": topic, "payload": "x", "message_id": id, **fields}
        assert api.post_json("/v1/messages", body).status == 200
    expected = {"by-rule": 200, "refused": 404, "other": 404, "asked": 200}
    found = {id: api.request("GET", f"/v1/messages/{id}").status for id in expected}
    assert found == expected
    made = api.post_json(
        "/v1/tokens", {"name": "bound", "scopes": ["publish", "read"], "topics": ["t/#"]}).json
    bound = AdminAPI(broker, token=made["token"])
    assert bound.request("GET", "/v1/messages/by-rule").status == 200
    assert bound.request("GET", "/v1/messages/asked").problem(404)["field"] == "id"
