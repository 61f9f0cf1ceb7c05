"""Identifiers of messages: they stay with the message, on disk too, and clients do not get them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]
UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
LONGEST = "x" * 128


def subscribe(broker: Hermesd, name: str, *filters: str) -> None:
    with closing(RawClient(broker.address)) as client:
        client.connect(name, clean_session=False)
        client.subscribe(*((item, 2) for item in filters))
        client.disconnect()


def publish_everywhere(broker: Hermesd) -> list[str | None]:
    """Publishes a message by each way, and returns their identifiers; an MQTT message has none."""
    api = AdminAPI(broker)
    found: list[str | None] = []
    answer = api.request("POST", f"/v1/publish?topic=t/1&message_id={LONGEST}", b"raw")
    found.append(answer.json["message_id"])
    assert found == [LONGEST]
    answer = api.post_json("/v1/messages", {"topic": "t/2", "payload": "made", "qos": 2})
    found.append(answer.json["message_id"])
    answer = api.post_json("/v1/orders/4711/status", {"sales_id": "7", "status": "APPROVED"})
    found.append(answer.json["message_id"])
    assert all(UUID7.fullmatch(made) for made in found[1:])
    with closing(RawClient(broker.address)) as client:
        client.connect("publisher")
        client.publish("t/3", b"mqtt", qos=1)
        client.disconnect()
    found.append(None)
    lines = [{"topic": "t/4", "payload": "b", "message_id": "given"}, {"topic": "t/5", "payload": ""}]
    answer = api.request(
        "POST", "/v1/messages/batch", b"".join(json.dumps(line).encode() + b"\n" for line in lines),
        {"Content-Type": "application/x-ndjson"})
    found += [json.loads(line)["message_id"] for line in answer.body.splitlines()]
    assert found[-2] == "given"
    answer = api.post_json(
        "/v1/messages",
        {"topic": "t/6", "payload": "later", "message_id": "scheduled", "deliver_in_s": 0})
    assert answer.status == 202
    eventually(lambda: len(queue(broker, "all")) == len(found) + 1, "the scheduled message")
    return found + ["scheduled"]


def queue(broker: Hermesd, client: str) -> list[str | None]:
    messages = AdminAPI(broker).get(f"/v1/clients/{client}/queue")["messages"]
    return [message.get("message_id") for message in messages]


def rows(broker: Hermesd, view: str = "queue_list") -> list[tuple[str, str]]:
    """By position: client and identifier of each row in the database."""
    database = sqlite3.connect(f"file:{broker.data}/hermes.sqlite?mode=ro", uri=True)
    with closing(database):
        return database.execute(
            f"SELECT client, message_id FROM {view} ORDER BY session, position").fetchall()


def test_it_is_shown_after_a_kill_and_from_the_database(hermesd: Start) -> None:
    broker = hermesd()
    subscribe(broker, "all", "t/#", "orders/#")
    published = publish_everywhere(broker)
    assert queue(broker, "all") == published
    broker.kill()
    broker = hermesd(data=broker.data)
    assert queue(broker, "all") == published
    # A stop moves the journal to the database.
    assert broker.stop() == 0
    assert rows(broker) == [('"all"', json.dumps(name)) for name in published]
    broker = hermesd(data=broker.data)
    assert queue(broker, "all") == published
    shown = hermesctl("queue", "show", "all", broker=broker).output.splitlines()
    assert [line.split()[-2] for line in shown] == ["MESSAGE", *(name or "-" for name in published)]

    with closing(RawClient(broker.address)) as client:
        client.connect("all", clean_session=False)
        messages = client.take_messages(len(published))
        client.ping()
        assert queue(broker, "all") == []
    assert [message.payload for message in messages if message.topic.startswith("t/")] == [
        b"raw", b"made", b"mqtt", b"b", b"", b"later"]


def test_receivers_share_it_and_a_retained_message_keeps_it(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    for name in ("a", "b"):
        subscribe(broker, name, "t/#")
    big = {"topic": "t/big", "payload": "x" * 300_000, "message_id": "big"}
    assert api.post_json("/v1/messages", big).json["queued"] == 2
    kept = {"topic": "t/kept", "payload": "k", "message_id": "kept", "retain": True}
    assert api.post_json("/v1/messages", kept).json["queued"] == 2
    assert broker.stop() == 0
    assert len(rows(broker)) == 4
    broker = hermesd(data=broker.data)
    assert queue(broker, "a") == queue(broker, "b") == ["big", "kept"]
    with closing(RawClient(broker.address)) as late:
        late.connect("late", clean_session=False)
        late.send(wire.subscribe(1, ("t/kept", 1)))
        late.receive_publish()
        assert queue(broker, "late") == ["kept"]


def test_the_log_names_the_first_message_that_is_dropped(hermesd: Start) -> None:
    broker = hermesd(environment={
        "HERMES_LIMITS_QUEUE_MESSAGES": "1", "HERMES_LIMITS_QUEUE_POLICY": "drop_newest"})
    subscribe(broker, "phone", "t/#")
    api = AdminAPI(broker)
    for name in ("first", "second", "third"):
        answer = api.post_json("/v1/messages", {"topic": "t/1", "payload": "x", "message_id": name})
        assert answer.json["dropped"] == (name != "first")
    assert queue(broker, "phone") == ["first"]
    line = broker.log.await_match(r".*Messages dropped.*")[0]
    assert "message.id=second" in line and "topic=t/1" in line, line
