"""Scheduled messages: published once at their time, across kills."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from harness import wire
from harness.admin import AdminAPI, Answer, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient
from harness.wire import Publish

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]
JSON = {"Content-Type": "application/json"}


def post(api: AdminAPI, id: str, **fields: object) -> Answer:
    body = {"topic": "t/1", "payload": id, "message_id": id, **fields}
    return api.request("POST", "/v1/messages", json.dumps(body).encode(), JSON)


def scheduled(api: AdminAPI) -> int:
    return int(api.metric("hermes_scheduled_messages "))


def await_none(api: AdminAPI) -> None:
    deadline = time.monotonic() + 30
    while scheduled(api):
        assert time.monotonic() < deadline, scheduled(api)
        time.sleep(0.02)


def subscribe(broker: Hermesd) -> None:
    client = RawClient(broker.address)
    client.connect("phone", clean_session=False)
    client.subscribe(("t/#", 1))
    client.disconnect()


def received(broker: Hermesd, count: int) -> list[str]:
    """The messages that wait for the client, up to one that is published now."""
    api = AdminAPI(broker)
    assert post(api, f"end-{count}").status == 200
    found: list[str] = []
    with closing(RawClient(broker.address)) as client:
        client.connect("phone", clean_session=False)
        while True:
            packet = client.receive()
            assert isinstance(packet, Publish), packet
            client.send(wire.puback(packet.packet_id))
            if packet.payload == f"end-{count}".encode():
                client.disconnect()
                return found
            found.append(packet.payload.decode())


def test_published_at_its_time(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    subscribe(broker)
    due = datetime.now(timezone(timedelta(hours=8))) + timedelta(seconds=2)
    first = post(api, "a", deliver_at=due.isoformat())
    assert first.status == 202
    assert first.json["scheduled"]["deliver_at_ms"] == int(due.timestamp() * 1000)
    assert post(api, "b", deliver_in_s=0).status == 202
    repeat = post(api, "a", deliver_at=due.isoformat())
    assert (repeat.status, repeat.json["duplicate"]) == (202, True)
    await_none(api)
    assert datetime.now(timezone.utc) >= due
    assert received(broker, 1) == ["b", "a"]
    assert api.metric("hermes_scheduled_fired_total") == 2


def test_shown_moved_and_cancelled(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_SCHEDULED": "3"})
    api = AdminAPI(broker)
    subscribe(broker)
    for id in "abc":
        assert post(api, id, deliver_in_s=3600, expires_in_s=60).status == 202
    assert post(api, "d", deliver_in_s=3600).json["type"].endswith("too-many-scheduled")
    assert api.get("/v1/scheduled/b")["expires_in_s"] == 60
    ids, cursor = set(), ""
    while True:
        page = api.get(f"/v1/scheduled?limit=2{cursor}")
        ids |= {item["message_id"] for item in page["messages"]}
        if not (follows := page.get("next")):
            break
        cursor = f"&cursor={follows}"
    assert ids == {"a", "b", "c"}
    assert api.request("DELETE", "/v1/scheduled/a").status == 200
    assert api.request("DELETE", "/v1/scheduled/a").status == 404
    move = json.dumps({"deliver_in_s": 0}).encode()
    assert api.request("PATCH", "/v1/scheduled/b", move, JSON).status == 200
    deadline = time.monotonic() + 20
    while scheduled(api) != 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert api.request("PATCH", "/v1/scheduled/b", move, JSON).status == 404
    broker.kill()
    broker = hermesd(data=broker.data)
    assert received(broker, 1) == ["b"]
    assert scheduled(AdminAPI(broker)) == 1


def test_hermesctl_lists_and_cancels(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    for name in ("a", "b"):
        answer = api.post_json(
            "/v1/messages",
            {"topic": "t/1", "payload": "x", "message_id": name, "deliver_in_s": 3_600})
        assert answer.status == 202, answer
    listing = hermesctl("scheduled", "list", broker=broker).output
    assert "59m" in listing or "1h" in listing, listing
    assert "t/1" in listing and len(listing.splitlines()) == 3, listing
    assert '"a"' in hermesctl("scheduled", "cancel", "a", broker=broker).output
    assert hermesctl("scheduled", "cancel", "a", broker=broker).code == 1
    page = hermesctl("scheduled", "list", "--json", broker=broker).json
    assert [message["message_id"] for message in page["messages"]] == ["b"]


@pytest.mark.parametrize(
    "fields",
    [
        {"deliver_at": "2020-01-01T00:00:00Z"},
        {"deliver_at": "2999-01-01T00:00:00Z"},
        {"deliver_at": "2026-11-23T09:00:00"},
        {"deliver_at": "2026-11-23T09:00:00Z", "deliver_in_s": 5},
        {"deliver_in_s": 366 * 86_400 + 1},
        {"deliver_in_s": -1},
    ],
)
def test_wrong_times_are_refused(hermesd: Start, fields: dict[str, object]) -> None:
    api = AdminAPI(hermesd())
    answer = post(api, "a", **fields)
    assert answer.status == 400, answer.json
    assert answer.json["field"] in ("deliver_at", "deliver_in_s")
    assert scheduled(api) == 0


def test_published_once_across_kills(hermesd: Start) -> None:
    broker = hermesd()
    subscribe(broker)
    expected: list[str] = []
    for run in range(6):
        api = AdminAPI(broker)
        for number in range(50):
            id = f"{run}-{number}"
            assert post(api, id, deliver_in_s=1).status == 202
            expected.append(id)
        # The kill falls before, around and after the time of the last ones.
        time.sleep(0.2 * run)
        broker.kill()
        broker = hermesd(data=broker.data)
    await_none(AdminAPI(broker))
    found = received(broker, 1)
    assert sorted(found) == sorted(expected)


def test_expired_while_down(hermesd: Start) -> None:
    broker = hermesd()
    subscribe(broker)
    api = AdminAPI(broker)
    assert post(api, "gone", deliver_in_s=1, expires_in_s=1).status == 202
    assert post(api, "late", deliver_in_s=1).status == 202
    broker.kill()
    time.sleep(2.1)
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    await_none(api)
    assert received(broker, 1) == ["late"]
    assert api.metric("hermes_scheduled_expired_total") == 1


def test_a_batch_that_is_due_at_once(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    lines = [
        json.dumps({"topic": "none/1", "payload": "x", "deliver_in_s": 2}) for _ in range(10_000)
    ]
    answer = api.request(
        "POST", "/v1/messages/batch", "\n".join(lines).encode(),
        {"Content-Type": "application/x-ndjson"})
    results = [json.loads(line) for line in answer.body.splitlines()]
    assert len(results) == 10_000
    assert all(result["scheduled"]["deliver_at_ms"] for result in results)
    # Others are served while they are published.
    with closing(RawClient(broker.address)) as client:
        client.connect("beside")
        while scheduled(api):
            client.ping()
    assert api.metric("hermes_scheduled_fired_total") == 10_000
