"""Messages with keys over HTTP: each is published once, however often it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from harness import wire
from harness.admin import AdminAPI, Answer, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient
from harness.wire import Publish
from test_batches import Batch, line

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]
NAMES = ("message_id", "idempotency_key")


@contextmanager
def subscribed(broker: Hermesd, topics: str = "t/#") -> Iterator[RawClient]:
    """A phone with a persistent session."""
    with closing(RawClient(broker.address)) as client:
        client.connect("phone", clean_session=False)
        client.subscribe((topics, 1))
        yield client


def received(broker: Hermesd, client: RawClient, topic: str = "t/1") -> list[bytes]:
    """All payloads that have come when a last message has."""
    with closing(RawClient(broker.address)) as other:
        other.connect("marker")
        other.publish(topic, b"end", qos=1)
    payloads: list[bytes] = []
    while not payloads or payloads[-1] != b"end":
        packet = client.await_packet(Publish)
        client.send(wire.puback(packet.packet_id or 0))
        payloads.append(packet.payload)
    return payloads[:-1]


def post(api: AdminAPI, key: str | None, payload: str = "x", **fields: object) -> Answer:
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    body = json.dumps({"topic": "t/1", "payload": payload, **fields}).encode()
    return api.request("POST", "/v1/messages", body, headers)


def test_a_repeat_gets_the_first_answer_and_publishes_nothing(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    with subscribed(broker) as phone:
        first = post(api, "k1").json
        assert first["duplicate"] is False and first["online"] == 1
        for _ in range(3):
            assert post(api, "k1").json == first | {"duplicate": True}
        assert post(api, "k2").json["message_id"] != first["message_id"]
        assert received(broker, phone) == [b"x", b"x"]
    assert api.metric("hermes_idempotency_keys ") == 2


def test_every_route_knows_keys(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)

    def order(key: str | None, **fields: object) -> Answer:
        headers = {"Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        body = json.dumps({"sales_id": "7", "status": "SIGNED", **fields}).encode()
        return api.request("POST", "/v1/orders/4711/status", body, headers)

    def raw(key: str) -> Answer:
        return api.request(
            "POST", "/v1/publish?topic=t/1", b"\xff\x00", {"Idempotency-Key": key})

    with subscribed(broker) as phone, closing(RawClient(broker.address)) as sales:
        sales.connect("sales")
        sales.subscribe(("orders/7/#", 1))
        for publish, key in ((order, "o"), (raw, "r")):
            first = publish(key).json
            assert publish(key).json == first | {"duplicate": True}
        named = order(None, message_id="named").json
        assert order(None, message_id="named").json == named | {"duplicate": True}
        # The time of the request, which an order status gets by default, is no part of what was asked.
        assert order("o", updatedAtMs=1).problem(422)["type"].endswith("idempotency-key-reused")
        assert received(broker, phone) == [b"\xff\x00"]
        assert len(received(broker, sales, "orders/7/x")) == 2


def test_another_message_under_the_same_key_is_refused(hermesd: Start) -> None:
    api = AdminAPI(hermesd())
    assert post(api, "k1").status == 200
    for fields in ({"payload": "y"}, {"qos": 2}, {"retain": True}, {"expires_in_s": 9},
                   {"message_id": "m"}, {"topic": "t/2"}):
        problem = post(api, "k1", **fields).problem(422)
        assert problem["type"] == "urn:hermes:problem:idempotency-key-reused"
    assert post(api, "k1").json["duplicate"] is True


def test_an_identifier_is_a_key_of_its_own_kind(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    with subscribed(broker) as phone:
        first = post(api, None, message_id="a").json
        assert post(api, None, message_id="a").json == first | {"duplicate": True}
        post(api, None, "other", message_id="a").problem(422)
        # Beside a key it is a name, which says nothing about repeats.
        assert post(api, "a", message_id="a").json["duplicate"] is False
        assert post(api, "b", message_id="a").json["duplicate"] is False
        assert received(broker, phone) == [b"x"] * 3


def test_repeats_at_the_same_time_are_published_once(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    answers: list[dict] = []
    with subscribed(broker) as phone:
        threads = [
            threading.Thread(target=lambda: answers.append(post(api, "k1").json))
            for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert received(broker, phone) == [b"x"]
    assert sorted(answer["duplicate"] for answer in answers) == [False] + [True] * 15
    assert len({answer["message_id"] for answer in answers}) == 1


def test_keys_belong_to_a_token(hermesd: Start) -> None:
    broker = hermesd()
    first = post(AdminAPI(broker), "k1").json
    made = AdminAPI(broker).post_json("/v1/tokens", {"name": "shop", "scopes": ["publish"]}).json
    shop = AdminAPI(broker, token=made["token"])
    other = post(shop, "k1", "another").json
    assert other["duplicate"] is False and other["message_id"] != first["message_id"]
    assert post(shop, "k1", "another").json["duplicate"] is True


@pytest.mark.parametrize("durability", ["sync", "interval 50ms"])
def test_a_repeat_after_a_kill(hermesd: Start, durability: str) -> None:
    environment = {"HERMES_DURABILITY": durability, "HERMES_JOURNAL_SEGMENT_BYTES": "131072"}
    broker = hermesd(environment=environment)
    answers = {}
    with subscribed(broker):
        # More than a segment holds, so that some keys are in the database and some in the journal.
        for number in range(400):
            answers[number] = post(AdminAPI(broker), f"k{number}", "x" * 500).json
        broker.stop() if durability != "sync" else broker.kill()
    broker = hermesd(data=broker.data, environment=environment)
    api = AdminAPI(broker)
    assert api.metric("hermes_idempotency_keys ") == 400
    for number, first in answers.items():
        assert post(api, f"k{number}", "x" * 500).json == first | {"duplicate": True}
    post(api, "k0", "other").problem(422)


def test_above_the_limit_the_oldest_keys_go(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_IDEMPOTENCY_KEYS": "64"})
    api = AdminAPI(broker)
    for number in range(70):
        assert post(api, f"k{number}").json["duplicate"] is False
    assert post(api, "k69").json["duplicate"] is True
    assert api.metric("hermes_idempotency_keys ") <= 64
    assert 6 <= api.metric("hermes_idempotency_keys_dropped_total") <= 8
    assert post(api, "k0").json["duplicate"] is False


def test_without_keys_a_key_is_refused(hermesd: Start) -> None:
    api = AdminAPI(hermesd(environment={"HERMES_LIMITS_IDEMPOTENCY_KEYS": "0"}))
    problem = post(api, "k1").problem(400)
    assert problem["type"] == "urn:hermes:problem:idempotency-keys-off"
    assert post(api, None, message_id="a").json["duplicate"] is False
    assert post(api, None, message_id="a").json["duplicate"] is False


def test_a_batch_that_was_cut_off_is_completed_by_its_repeat(hermesd: Start) -> None:
    broker = hermesd()
    lines = [
        line("t/1", f"{number}", **{NAMES[number % 2]: f"b{number}"}) for number in range(2_000)]
    with subscribed(broker) as phone:
        cut = Batch(broker)
        cut.send(b"".join(lines[:1_200]))
        done = [cut.result() for _ in range(300)]
        cut.socket.close()
        again = Batch(broker)
        results = []
        for start in range(0, 2_000, 500):
            again.send(b"".join(lines[start : start + 500]))
            results += [again.result() for _ in range(500)]
        again.finish()
        assert again.result() is None
        for first, repeat in zip(done, results):
            assert repeat == first | {"duplicate": True}
        assert received(broker, phone) == [f"{number}".encode() for number in range(2_000)]


def test_keys_that_cannot_be_are_refused(hermesd: Start) -> None:
    api = AdminAPI(hermesd())
    for key in ("", "two words", "x" * 129, "k\u00e9y"):
        problem = post(api, key).problem(400)
        assert problem["field"] == "Idempotency-Key", problem
    answer = api.post_json("/v1/messages", {"topic": "t", "payload": "x", "idempotency_key": ""})
    assert answer.problem(400)["field"] == "idempotency_key"
    for method, path in (
        ("DELETE", "/v1/clients/x"), ("POST", "/v1/messages/batch"), ("GET", "/v1/status")):
        problem = api.request(method, path, headers={"Idempotency-Key": "k"}).problem(400)
        assert problem["type"] == "urn:hermes:problem:unsupported-header", problem


def test_hermesctl_repeats(hermesd: Start) -> None:
    broker = hermesd()
    hello = ("publish", "--key", "k1", "-t", "t/1", "-m", "hello")
    first = hermesctl(*hello, "--json", broker=broker).json
    assert hermesctl(*hello, "--json", broker=broker).json == first | {"duplicate": True}
    assert "published before" in hermesctl(*hello, broker=broker).output
    refused = hermesctl("publish", "--key", "k1", "-t", "t/1", "-m", "bye", broker=broker)
    assert refused.code != 0 and "new key" in refused.errors, refused
