"""Collapse keys: the newest state of a thing replaces what is still queued of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

import pytest

from harness.admin import AdminAPI, Answer, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]


def post(api: AdminAPI, path: str, **fields: object) -> Answer:
    return api.request(
        "POST", path, json.dumps(fields).encode(), {"Content-Type": "application/json"})


def publish(api: AdminAPI, payload: str, **fields: object) -> dict[str, object]:
    answer = post(api, "/v1/messages", topic="t/1", payload=payload, **fields)
    assert answer.status == 200, answer
    return answer.json


def add_session(broker: Hermesd, name: str, qos: int = 1, topics: str = "t/#") -> None:
    client = RawClient(broker.address)
    client.connect(name, clean_session=False)
    client.subscribe((topics, qos))
    client.disconnect()


def receive(broker: Hermesd, name: str, count: int) -> list[bytes]:
    """Connects, takes so many messages, and sees that no other comes."""
    with closing(RawClient(broker.address)) as client:
        client.connect(name, clean_session=False)
        messages = client.take_messages(count)
        assert client.messages_so_far() == []
        return [message.payload for message in messages]


def test_what_cannot_take_a_place_removes_nothing_and_what_does_is_named(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    add_session(broker, "phone")
    publish(api, "old", collapse_key="k", message_id="old", receipts=True)
    publish(api, "of QoS 0", collapse_key="k", qos=0)
    assert api.get("/v1/messages/old")["receivers"][0]["state"] == "queued"
    publish(api, "new", collapse_key="k", message_id="new")
    broker.kill()
    broker = hermesd(data=broker.data)
    [receiver] = AdminAPI(broker).get("/v1/messages/old")["receivers"]
    assert (receiver["reason"], receiver["replaced_by"]) == ("replaced", "new")
    assert "replaced by new" in hermesctl("message", "old", broker=broker).output
    told = hermesctl("explain", "phone", "--message", "old", broker=broker).output
    assert "the message new, of the same collapse key, took its place." in told
    assert receive(broker, "phone", 1) == [b"new"]


@pytest.mark.parametrize("qos", [1, 2])
def test_the_newest_remains_across_a_kill(hermesd: Start, qos: int) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    add_session(broker, "phone", qos)
    publish(api, "a1", collapse_key="a", qos=qos, message_id="a1", receipts=True)
    publish(api, "b1", collapse_key="b", qos=qos)
    publish(api, "a2", collapse_key="a", qos=qos)
    publish(api, "plain", qos=qos)
    broker.kill()
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    publish(api, "a3", collapse_key="a", qos=qos)
    listed = api.get("/v1/clients/phone/queue")["messages"]
    assert [message["payload_bytes"] for message in listed] == [2, 5, 2]
    assert receive(broker, "phone", 3) == [b"b1", b"plain", b"a3"]
    [receiver] = api.get("/v1/messages/a1")["receivers"]
    assert (receiver["state"], receiver["reason"]) == ("dropped", "replaced")
    assert api.metric('hermes_messages_dropped_total{reason="replaced"}') == 1
    assert api.metric("hermes_collapsible_messages") == 0


def test_every_route_takes_a_key(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    add_session(broker, "phone")
    publish(api, "1", collapse_key="k")
    answer = api.request("POST", "/v1/publish?topic=t/1&qos=1&collapse_key=k", b"2")
    assert answer.status == 200, answer
    line = json.dumps({"topic": "t/1", "payload": "3", "collapse_key": "k"})
    answer = api.request(
        "POST", "/v1/messages/batch", f"{line}\n".encode(),
        {"Content-Type": "application/x-ndjson"})
    assert answer.status == 200, answer
    hermesctl(
        "publish", "-t", "t/1", "-q", "1", "-m", "4", "--collapse-key", "k", broker=broker)
    # Another topic is another matter.
    assert post(api, "/v1/messages", topic="t/2", payload="5", collapse_key="k").status == 200
    assert receive(broker, "phone", 2) == [b"4", b"5"]


def test_a_wrong_key_is_refused(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    for key in ("", "with space", "x" * 129, "\u00e9"):
        answer = post(api, "/v1/messages", topic="t", payload="x", collapse_key=key)
        assert answer.problem(400)["field"] == "collapse_key"
    answer = post(
        api, "/v1/messages", topic="t", payload="x", collapse_key="k", deliver_in_s=60)
    assert answer.problem(400)["field"] == "collapse_key"
    answer = api.request("POST", "/v1/publish?topic=t&collapse_key=%20", b"")
    assert answer.problem(400)["field"] == "collapse_key"


def test_the_limit_lets_messages_stay(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_COLLAPSIBLE": "0"})
    api = AdminAPI(broker)
    add_session(broker, "phone")
    for payload in ("1", "2"):
        publish(api, payload, collapse_key="k")
    assert receive(broker, "phone", 2) == [b"1", b"2"]
