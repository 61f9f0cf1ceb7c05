"""Two services with a token each: neither meets the other's identifiers, keys or room."""

import pytest

from harness.admin import AdminAPI
from test_tokens import create

pytestmark = pytest.mark.hermesd("another broker has no such tokens")

HOUR = {"deliver_in_s": 3600}


def message(message_id: str, **more) -> dict:
    return {"topic": "t/1", "payload": "x", "message_id": message_id, **more}


def test_one_identifier_names_a_message_of_each_token_also_after_a_crash(hermesd):
    broker = hermesd()
    tokens = [create(broker, name, "publish", "read") for name in ("shop", "news")]
    shop, news = (AdminAPI(broker, token=token) for token in tokens)
    for api, topic in ((shop, "t/shop"), (news, "t/news")):
        later = message("one", **HOUR) | {"topic": topic}
        assert api.post_json("/v1/messages", later).status == 202
        sent = message("two", receipts=True) | {"topic": topic}
        assert api.post_json("/v1/messages", sent).status == 200
        push = {"message": {"topic": topic, "payload": "x", "message_id": "three"},
                "to": {"clients": ["phone"]}, **HOUR}
        assert api.post_json("/v1/pushes", push).status == 202
    refused = shop.post_json("/v1/messages", message("one", **HOUR, qos=0)).problem(422)
    assert refused["type"].endswith(":idempotency-key-reused")

    broker.kill()
    broker = hermesd(data=broker.data)
    shop, news = (AdminAPI(broker, token=token) for token in tokens)
    for api, topic in ((shop, "t/shop"), (news, "t/news")):
        assert api.get("/v1/scheduled/one")["topic"] == topic
        assert api.get("/v1/messages/two")["topic"] == topic
        assert api.get("/v1/pushes/three")["topic"] == topic
    assert news.request("DELETE", "/v1/scheduled/one").json["topic"] == "t/news"
    # Its own is gone; the other's is named, and stays until somebody who may cancels it.
    assert shop.get("/v1/scheduled/one")["topic"] == "t/shop"
    assert news.request("DELETE", "/v1/pushes/three").json["topic"] == "t/news"
    assert shop.get("/v1/pushes/three")["state"] == "scheduled"


def test_no_token_makes_the_broker_forget_anothers_keys(start_broker):
    broker = start_broker(environment={"HERMES_LIMITS_IDEMPOTENCY_KEYS": "320"})
    shop, news = (AdminAPI(broker, token=create(broker, name, "publish"))
                  for name in ("shop", "news"))
    first = shop.post_json("/v1/messages", message("order-1")).json
    for number in range(30):
        lines = "\n".join(
            f'{{"topic":"t","payload":"x","message_id":"n-{number}-{line}"}}' for line in range(50))
        assert news.request("POST", "/v1/messages/batch", lines.encode(), {
            "Content-Type": "application/x-ndjson"}).status == 200
    assert AdminAPI(broker).metric("hermes_idempotency_keys_dropped_total ") > 1000
    again = shop.post_json("/v1/messages", message("order-1")).json
    assert again["duplicate"] is True and again["message_id"] == first["message_id"]


def test_no_token_pushes_out_anothers_receipts_also_after_a_crash(hermesd):
    limit = {"HERMES_LIMITS_RECEIPTS": "50"}
    broker = hermesd(environment=limit)
    tokens = [create(broker, name, "publish", "read") for name in ("shop", "news")]
    shop, news = (AdminAPI(broker, token=token) for token in tokens)
    orders = [f"order-{number}" for number in range(5)]
    for order in orders:
        assert shop.post_json("/v1/messages", message(order, receipts=True)).status == 200
    for number in range(10):
        lines = "\n".join(
            f'{{"topic":"t","payload":"x","message_id":"n-{number}-{line}","receipts":true}}'
            for line in range(50))
        assert news.request("POST", "/v1/messages/batch", lines.encode(), {
            "Content-Type": "application/x-ndjson"}).status == 200
    for start in (0, 1):
        if start:
            broker.kill()
            broker = hermesd(data=broker.data, environment=limit)
            shop, news = (AdminAPI(broker, token=token) for token in tokens)
        for order in orders:
            assert shop.get(f"/v1/messages/{order}")["topic"] == "t/1"
        assert news.get("/v1/messages/n-9-49")["topic"] == "t"
        assert news.request("GET", "/v1/messages/n-0-0").status == 404
        assert AdminAPI(broker).metric("hermes_receipts ") == 50
    # What the store dropped is gone for good, though older receipts stay.
    assert AdminAPI(broker).metric("hermes_receipts_dropped_total ") == 0


def test_no_token_takes_all_room_for_pushes_and_scheduled_messages(start_broker):
    broker = start_broker(environment={
        "HERMES_LIMITS_SCHEDULED": "40", "HERMES_LIMITS_PUSHES": "20"})
    shop, news = (AdminAPI(broker, token=create(broker, name, "publish"))
                  for name in ("shop", "news"))

    def push(number: int) -> dict:
        return {"message": {"topic": "t", "payload": "x", "message_id": f"p-{number}"},
                "to": {"clients": ["phone"]}, **HOUR}

    for path, made, most in (
            ("/v1/messages", lambda number: message(f"m-{number}", **HOUR), 31),
            ("/v1/pushes", push, 16)):
        answers = [news.post_json(path, made(number)).status for number in range(most + 1)]
        assert answers[:most].count(507) == 0 and answers[most] == 507
        assert shop.post_json(path, made(0)).status in (200, 202)
