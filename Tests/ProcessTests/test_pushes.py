"""Pushes: one message to many clients, without subscriptions, once each, across kills."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness import wire
from harness.admin import AdminAPI, Answer, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]
TOPIC = "news/1"


def tag(api: AdminAPI, client: str, *names: str) -> None:
    answer = api.request(
        "PUT", f"/v1/clients/{quote(client, safe='')}/tags",
        json.dumps({"add": names}).encode(), {"Content-Type": "application/json"})
    assert answer.status == 200, answer


def session(broker: Hermesd, name: str, **options: Any) -> None:
    """Leaves an offline session without any subscription."""
    client = RawClient(broker.address)
    client.connect(name, clean_session=False, **options)
    client.disconnect()


def push(
    api: AdminAPI, to: dict[str, Any], *, message: dict[str, Any] | None = None, **fields: Any
) -> Answer:
    body = {"to": to, "message": {"topic": TOPIC, "payload": "x", **(message or {})}, **fields}
    return api.post_json("/v1/pushes", body)


def sent(api: AdminAPI, to: dict[str, Any], **fields: Any) -> str:
    """Pushes, and returns the push's identifier."""
    answer = push(api, to, **fields)
    assert answer.status == 202, answer
    assert answer.json["durability"] == "sync" and not answer.json["duplicate"], answer
    return answer.json["push_id"]


def status(api: AdminAPI, push_id: str) -> dict[str, Any]:
    return api.get(f"/v1/pushes/{push_id}")


def await_status(
    api: AdminAPI, push_id: str, is_awaited: Callable[[dict[str, Any]], bool], what: str
) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        found = status(api, push_id)
        return found if is_awaited(found) else None

    return eventually(probe, what, within=2 * PATIENCE)


def done(api: AdminAPI, push_id: str, state: str = "done") -> dict[str, Any]:
    found = await_status(api, push_id, lambda one: one["state"] == state, "the end of the push")
    assert found["reached"] == sum(
        found[count] for count in ("online", "queued", "dropped", "without_session", "denied"))
    return found


def waiting(api: AdminAPI, client: str) -> int:
    """The number of messages in the queue of a client, which all have the topic of pushes."""
    messages = api.get(f"/v1/clients/{quote(client, safe='')}/queue")["messages"]
    assert all(message["topic"] == TOPIC for message in messages), messages
    return len(messages)


def holders(api: AdminAPI, clients: Iterable[str]) -> set[str]:
    """The clients whose queue holds the message; nobody has it twice."""
    counts = {client: waiting(api, client) for client in clients}
    assert set(counts.values()) <= {0, 1}, counts
    return {client for client, count in counts.items() if count}


TAGS = {
    "a": ("north", "shop"), "b": ("north",), "c": ("south", "shop"), "d": ("shop", "closed"),
    "e": (), "ghost": ("north",),
}


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ({"tags": {"any": ["north", "south"]}}, {"a", "b", "c", "ghost"}),
        ({"tags": {"all": ["shop", "north"]}}, {"a"}),
        ({"tags": {"any": ["north", "closed"], "all": ["shop"]}}, {"a", "d"}),
        ({"tags": {"any": ["shop"], "none": ["closed", "south"]}}, {"a"}),
        ({"tags": {"all": ["shop"], "none": ["closed"]}}, {"a", "c"}),
        ({"tags": {"any": ["unknown"]}}, set()),
        ({"tags": {"all": ["shop", "unknown"]}}, set()),
        ({"tags": {"any": ["south"], "none": ["unknown"]}}, {"c"}),
        ({"clients": ["e", "a", "ghost", "a", "e"]}, {"a", "e", "ghost"}),
    ],
)
def test_it_reaches_exactly_those_that_are_chosen(
    hermesd: Start, to: dict[str, Any], expected: set[str]
) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    for client, names in TAGS.items():
        if names:
            tag(api, client, *names)
        if client != "ghost":
            session(broker, client)
    online = RawClient(broker.address)
    online.connect("a", clean_session=False)

    is_online, is_ghost = "a" in expected, "ghost" in expected
    offline = expected - {"a", "ghost"}
    preview = push(api, to, dry_run=True)
    assert preview.status == 200
    assert preview.json == {
        "matched": len(expected), "online": is_online, "offline": len(offline),
        "without_session": is_ghost}
    assert holders(api, TAGS.keys() - {"a", "ghost"}) == set()
    assert api.get("/v1/pushes") == {"pushes": []}

    found = done(api, sent(api, to))
    assert (found["matched"], found["reached"]) == (len(expected), len(expected))
    assert (found["online"], found["queued"]) == (is_online, len(offline))
    assert (found["without_session"], found["denied"]) == (is_ghost, 0)
    assert holders(api, TAGS.keys() - {"a", "ghost"}) == offline
    received = online.messages_so_far()
    assert [packet.topic for packet in received] == [TOPIC] * is_online
    online.close()
    assert [item["state"] for item in api.get("/v1/pushes")["pushes"]] == ["done"]


def test_a_client_without_subscriptions_gets_it_when_it_connects(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "phone")
    done(api, sent(api, {"clients": ["phone"]}, message={"payload": "hällo", "qos": 2}))
    broker.kill()
    broker = hermesd(data=broker.data)
    with closing(RawClient(broker.address)) as client:
        assert client.connect("phone", clean_session=False).session_present
        (message,) = client.take_messages(1)
        assert (message.topic, message.payload, message.qos, message.retain, message.dup) == (
            TOPIC, "hällo".encode(), 2, False, False)
        assert client.messages_so_far() == []
    assert waiting(AdminAPI(broker), "phone") == 0


def test_qos_0_reaches_those_that_are_connected(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "offline")
    with closing(RawClient(broker.address)) as client:
        client.connect("online")
        found = done(
            api, sent(api, {"clients": ["offline", "online"]}, message={"qos": 0}))
        assert (found["online"], found["dropped"], found["queued"]) == (1, 1, 0)
        assert client.receive_publish().qos == 0
    assert waiting(api, "offline") == 0


def test_the_access_rules_are_asked(hermesd: Start, tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("allow user anna subscribe news/#\nallow user bert subscribe other/#\n")
    users = {"anna": "a", "bert": "b"}
    broker = hermesd(users=users, arguments=("--acl-file", str(rules)))
    api = AdminAPI(broker)
    for user, password in users.items():
        tag(api, f"phone-{user}", "all")
        session(broker, f"phone-{user}", user_name=user, password=password.encode())
    found = done(api, sent(api, {"tags": {"any": ["all"]}}))
    assert (found["reached"], found["queued"], found["denied"]) == (2, 1, 1)
    assert holders(api, ["phone-anna", "phone-bert"]) == {"phone-anna"}


def test_later_and_to_those_that_have_the_tags_then(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "early")
    session(broker, "late")
    tag(api, "early", "shop")
    begun = time.time()
    answer = push(api, {"tags": {"any": ["shop"]}}, deliver_in_s=3)
    due = answer.json["scheduled"]["deliver_at_ms"]
    assert begun * 1_000 + 3_000 <= due + 1 <= time.time() * 1_000 + 3_001
    push_id = answer.json["push_id"]
    found = status(api, push_id)
    assert (found["state"], found["reached"], found["deliver_at_ms"]) == ("scheduled", 0, due)
    assert "matched" not in found and "ended_at_ms" not in found
    assert api.metric("hermes_pushes ") == 1
    tag(api, "late", "shop")
    broker.kill()
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    found = done(api, push_id)
    assert found["ended_at_ms"] >= due
    assert found["matched"] == 2
    assert holders(api, ["early", "late"]) == {"early", "late"}
    assert api.metric("hermes_pushes ") == 0
    assert api.metric("hermes_push_clients_total ") == 2


def test_cancelled_before_its_time(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "phone")
    push_id = sent(api, {"clients": ["phone"]}, deliver_in_s=1)
    cancelled = api.request("DELETE", f"/v1/pushes/{push_id}")
    assert (cancelled.status, cancelled.json["state"], cancelled.json["reached"]) == (
        200, "cancelled", 0)
    broker.kill()
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    # A push that is due later than the cancelled one was has ended.
    session(broker, "other")
    done(api, sent(api, {"clients": ["other"]}, deliver_in_s=2))
    assert holders(api, ["phone", "other"]) == {"other"}
    again = api.request("DELETE", f"/v1/pushes/{push_id}")
    assert (again.status, again.json) == (200, cancelled.json)
    api.request("DELETE", "/v1/pushes/none").problem(404)


def test_cancelled_in_the_midst(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    clients = [f"phone-{number}" for number in range(40)]
    for client in clients:
        session(broker, client)
    push_id = sent(api, {"clients": clients}, spread_s=40)
    await_status(api, push_id, lambda one: one["reached"] >= 2, "two clients that are reached")
    found = api.request("DELETE", f"/v1/pushes/{push_id}").json
    assert found["state"] == "cancelled" and 2 <= found["reached"] < 40, found
    # A list has its own order.
    assert holders(api, clients) == set(clients[:found["reached"]])
    broker.kill()
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    assert status(api, push_id) == found
    assert holders(api, clients) == set(clients[:found["reached"]])


def test_who_loses_the_tags_before_its_turn_is_left_out(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    clients = [f"phone-{number}" for number in range(20)]
    for client in clients:
        session(broker, client)
        tag(api, client, "shop")
    push_id = sent(api, {"tags": {"any": ["shop"]}}, spread_s=10)
    await_status(api, push_id, lambda one: one["reached"] >= 2, "two clients that are reached")
    for client in clients:
        api.request(
            "PUT", f"/v1/clients/{client}/tags", b'{"remove": ["shop"]}',
            {"Content-Type": "application/json"})
    found = done(api, push_id)
    assert 2 <= found["reached"] < 20
    assert len(holders(api, clients)) == found["reached"]


def test_a_push_ends_when_its_message_expires(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    clients = [f"phone-{number}" for number in range(20)]
    for client in clients:
        session(broker, client)
    push_id = sent(api, {"clients": clients}, message={"expires_in_s": 1}, spread_s=60)
    found = done(api, push_id, "expired")
    assert found["matched"] == 20 and found["reached"] < 20, found


def test_receipts_follow_each_receiver(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "away")
    with closing(RawClient(broker.address)) as client:
        client.connect("phone", clean_session=False)
        push_id = sent(
            api, {"clients": ["away", "phone", "ghost"]}, message={"message_id": "sale-1"})
        assert push_id == "sale-1"
        client.take_message()
        eventually(
            lambda: api.get("/v1/messages/sale-1")["counts"]["acknowledged"],
            "the acknowledgement")
    receipt = api.get("/v1/messages/sale-1")
    assert receipt["topic"] == TOPIC
    assert {item["client_id"]: item["state"] for item in receipt["receivers"]} == {
        "away": "queued", "phone": "acknowledged"}
    found = done(api, push_id)
    assert found["receipts"] == receipt["counts"]
    assert (found["matched"], found["without_session"]) == (3, 1)
    plain = sent(api, {"clients": ["away"]}, message={"receipts": False})
    assert "receipts" not in done(api, plain)
    api.request("GET", f"/v1/messages/{plain}").problem(404)


def test_without_receipts_in_the_configuration(hermesd: Start) -> None:
    api = AdminAPI(hermesd(environment={"HERMES_LIMITS_RECEIPTS": "0"}))
    assert "receipts" not in done(api, sent(api, {"clients": ["a"]}))
    problem = push(api, {"clients": ["a"]}, message={"receipts": True}).problem(400)
    assert problem["type"].endswith("receipts-off")


def test_a_repeat_is_a_duplicate_also_after_a_kill(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "phone")
    first = push(api, {"clients": ["phone"]}, idempotency_key="k")
    done(api, first.json["push_id"])
    named = push(api, {"clients": ["phone"]}, message={"message_id": "m"}, deliver_in_s=3_600)
    assert (first.status, named.status) == (202, 202)
    for _ in range(2):
        again = push(api, {"clients": ["phone"]}, idempotency_key="k")
        assert (again.status, again.json["duplicate"], again.json["push_id"]) == (
            202, True, first.json["push_id"])
        again = push(api, {"clients": ["phone"]}, message={"message_id": "m"}, deliver_in_s=3_600)
        assert (again.status, again.json["duplicate"], again.json["push_id"]) == (202, True, "m")
        for fields in ({"spread_s": 1}, {"to": {"clients": ["other"]}}):
            other = push(api, **{"to": {"clients": ["phone"]}, "idempotency_key": "k", **fields})
            assert other.problem(422)["type"].endswith("idempotency-key-reused")
        # Under another key the identifier is that of a push which has not ended.
        taken = push(
            api, {"clients": ["phone"]}, message={"message_id": "m"}, idempotency_key="other")
        assert taken.problem(409)["type"].endswith("push-exists")
        broker.kill()
        broker = hermesd(data=broker.data)
        api = AdminAPI(broker)
    assert waiting(api, "phone") == 1


def test_each_client_once_across_kills(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    clients = [f"phone-{number}" for number in range(150)]
    for client in clients:
        session(broker, client)
        tag(api, client, "all")
    by_tag = sent(api, {"tags": {"any": ["all"]}}, message={"qos": 2}, spread_s=4)
    for kill in range(5):
        await_status(
            api, by_tag, lambda one, kill=kill: one["reached"] > 20 * kill,  # type: ignore[misc]
            f"more than {20 * kill} clients that are reached")
        broker.kill()
        broker = hermesd(data=broker.data)
        api = AdminAPI(broker)
    found = done(api, by_tag)
    assert (found["matched"], found["reached"], found["queued"]) == (150, 150, 150)
    assert holders(api, clients) == set(clients)
    for name in clients[::10]:
        with closing(RawClient(broker.address)) as client:
            client.connect(name, clean_session=False)
            assert client.take_messages(1)[0].payload == b"x"
            assert client.messages_so_far() == []


def test_a_bound_token_pushes_within_its_bounds(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    made = api.post_json(
        "/v1/tokens",
        {"name": "bound", "scopes": ["publish", "read"], "topics": ["news/#"], "rate": "3/h"}).json
    bound = AdminAPI(broker, token=made["token"])
    mine = sent(bound, {"clients": [f"client-{number}" for number in range(1_000)]})
    other = sent(api, {"clients": ["a"]}, message={"topic": "other/1"})
    assert done(bound, mine)["without_session"] == 1_000
    for method in ("GET", "DELETE"):
        bound.request(method, f"/v1/pushes/{other}").problem(404)
    assert [item["push_id"] for item in bound.get("/v1/pushes")["pushes"]] == [mine]
    assert [item["push_id"] for item in api.get("/v1/pushes")["pushes"]] == [other, mine]
    problem = push(bound, {"clients": ["a"]}, message={"topic": "other/1"}).problem(403)
    assert problem["type"].endswith("topic-not-allowed")
    # However many clients it has, a push counts as one message.
    for _ in range(2):
        sent(bound, {"clients": ["a"]})
    assert push(bound, {"clients": ["a"]}).problem(429)["type"].endswith("rate-exceeded")


def test_the_number_of_pushes_is_bounded(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_PUSHES": "2"})
    api = AdminAPI(broker)
    first, second = (sent(api, {"clients": ["a"]}, deliver_in_s=3_600) for _ in range(2))
    assert push(api, {"clients": ["a"]}).problem(507)["type"].endswith("too-many-pushes")
    assert api.request("DELETE", f"/v1/pushes/{first}").status == 200
    third = sent(api, {"clients": ["a"]}, deliver_in_s=3_600)
    # The one that had ended went.
    listed = [item["push_id"] for item in api.get("/v1/pushes")["pushes"]]
    assert listed == [third, second]
    page = api.get("/v1/pushes?limit=1")
    assert [item["push_id"] for item in page["pushes"]] == [third]
    page = api.get(f"/v1/pushes?limit=1&cursor={page['next']}")
    assert [item["push_id"] for item in page["pushes"]] == [second]
    broker.kill()
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    assert [item["push_id"] for item in api.get("/v1/pushes")["pushes"]] == [third, second]


def test_no_pushes_with_a_limit_of_0(hermesd: Start) -> None:
    api = AdminAPI(hermesd(environment={"HERMES_LIMITS_PUSHES": "0"}))
    assert push(api, {"clients": ["a"]}).problem(507)["type"].endswith("too-many-pushes")


def test_a_large_push_holds_up_nobody(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    clients = [f"client-{number}" for number in range(10_000)]
    push_id = sent(api, {"clients": clients})
    with closing(RawClient(broker.address)) as client:
        client.connect("beside")
        while status(api, push_id)["state"] != "done":
            client.send(wire.PINGREQ)
            client.expect(wire.Pingresp, timeout=5)
    found = status(api, push_id)
    assert (found["reached"], found["without_session"]) == (10_000, 10_000)


def test_hermesctl(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "phone")
    tag(api, "phone", "shop")
    arguments = ("push", "-t", TOPIC, "-m", "hello")
    preview = hermesctl(*arguments, "--any", "shop", "--dry-run", "--json", broker=broker).json
    assert preview == {"matched": 1, "offline": 1, "online": 0, "without_session": 0}
    made = hermesctl(
        *arguments, "--any", "shop", "--message-id", "now", "--key", "k", broker=broker)
    assert made.code == 0 and "push        now\n" in made.output, made
    done(api, "now")
    shown = hermesctl("pushes", "show", "now", broker=broker).output
    assert "state            done\n" in shown and "queued           1\n" in shown, shown
    assert "pending       1\n" in hermesctl("message", "now", broker=broker).output
    later = hermesctl(
        *arguments, "--client", "phone", "--in", "1h", "--message-id", "later", broker=broker)
    assert "begins      in 59m" in later.output or "begins      in 1h" in later.output, later
    listing = hermesctl("pushes", "list", broker=broker).output.splitlines()
    assert [line.split()[0] for line in listing] == ["STATE", "scheduled", "done"], listing
    cancelled = hermesctl("pushes", "cancel", "later", broker=broker)
    assert cancelled.output == 'Cancelled "later"; 0 clients had been reached.\n', cancelled
    assert hermesctl("pushes", "show", "none", broker=broker).code == 1
    assert waiting(api, "phone") == 1


def test_a_batch_begins_a_push_for_each_line(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    session(broker, "phone")
    orders = [
        {"to": {"clients": ["phone"]}, "message": {"topic": TOPIC, "payload": "1"}},
        {"to": {"clients": []}, "message": {"topic": TOPIC, "payload": "2"}},
        {"to": {"clients": ["phone"]}, "message": {"topic": TOPIC, "payload": "3"},
         "idempotency_key": "k", "deliver_in_s": 60},
        {"to": {"clients": ["phone"]}, "message": {"topic": TOPIC, "payload": "4"},
         "dry_run": True},
    ]
    orders.append(orders[2])
    answer = api.request(
        "POST", "/v1/pushes/batch", "\n".join(json.dumps(order) for order in orders).encode(),
        {"Content-Type": "application/x-ndjson"})
    assert answer.status == 200, answer
    results = [json.loads(line) for line in answer.body.splitlines()]
    assert [result["line"] for result in results] == [1, 2, 3, 4, 5]
    assert results[1]["error"]["field"] == "to.clients"
    assert results[3]["error"]["field"] == "dry_run"
    assert not results[2]["duplicate"] and results[4]["duplicate"]
    assert results[4]["push_id"] == results[2]["push_id"]
    assert status(api, results[2]["push_id"])["state"] == "scheduled"
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        assert phone.take_message().payload == b"1"
        assert phone.messages_so_far() == []
