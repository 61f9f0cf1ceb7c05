"""Tags of clients: stored before they are answered, listed in pages, bounded."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from harness.admin import AdminAPI, Answer, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]


def change(api: AdminAPI, client: str, **fields: list[str]) -> Answer:
    return api.request(
        "PUT", f"/v1/clients/{quote(client, safe='')}/tags", json.dumps(fields).encode(),
        {"Content-Type": "application/json"})


def tags(api: AdminAPI, client: str) -> list[str]:
    return api.get(f"/v1/clients/{quote(client, safe='')}/tags")["tags"]


def session(broker: Hermesd, client: str) -> None:
    """Leaves a persistent session with a subscription."""
    phone = RawClient(broker.address)
    phone.connect(client, clean_session=False)
    phone.subscribe(("orders/#", 1))
    phone.disconnect()


def everything(api: AdminAPI, path: str, member: str, limit: int) -> list:
    """All items of a list, page by page."""
    found: list = []
    cursor = ""
    while True:
        page = api.get(f"{path}?limit={limit}{cursor}")
        assert len(page[member]) <= limit, page
        found += page[member]
        if not (follows := page.get("next")):
            return found
        cursor = f"&cursor={follows}"


def test_a_cursor_of_the_former_run_goes_on_or_is_refused(hermesd: Start) -> None:
    """Places in memory are others after a restart; names are not."""
    broker = hermesd()
    api = AdminAPI(broker)
    long = ["l" * 300 + end for end in "ab"]
    clients = sorted(["phone-1", "phone-2", *long])
    for client in clients:
        change(api, client, add=["shop", client[-1]])
        session(broker, client)
    places = ["/v1/tags", "/v1/tags/shop/clients", "/v1/subscriptions"]
    by_place = [f"{path}?limit=1&cursor={api.get(path + '?limit=1')['next']}" for path in places]
    within_long = "/v1/clients?limit=1&prefix=l"
    by_place.append(f"{within_long}&cursor={api.get(within_long)['next']}")
    by_name = "/v1/clients?limit=3&prefix=ph"
    cursor = api.get("/v1/clients?limit=1&prefix=ph")["next"]
    for path in by_place:
        assert api.request("GET", path).status == 200
    broker.stop()
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    for path in by_place:
        assert api.request("GET", path).problem(400)["field"] == "cursor"
    rest = api.get(f"{by_name}&cursor={cursor}")
    assert [client["client_id"] for client in rest["clients"]] == ["phone-2"]


def test_tags_survive_a_kill_and_a_restart(hermesd: Start) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    for client in ("phone/1", "phone 2", "日本"):
        answer = change(api, client, add=["shop", "north", "日本"])
        assert answer.status == 200
        assert answer.json == {"client_id": client, "tags": sorted(["shop", "north", "日本"])}
    assert change(api, "phone 2", add=["south"], remove=["north", "never had"]).status == 200
    assert change(api, "日本", remove=["shop", "north", "日本"]).json["tags"] == []
    for end in (Hermesd.kill, Hermesd.stop):
        end(broker)
        broker = hermesd(data=broker.data)
        api = AdminAPI(broker)
        assert tags(api, "phone/1") == sorted(["shop", "north", "日本"])
        assert tags(api, "phone 2") == sorted(["shop", "south", "日本"])
        assert tags(api, "日本") == tags(api, "unknown") == []
        assert api.metric("hermes_tagged_clients ") == 2
    listed = {item["tag"]: item["clients"] for item in everything(api, "/v1/tags", "tags", 2)}
    assert listed == {"shop": 2, "north": 1, "south": 1, "日本": 2}
    assert sorted(everything(api, f"/v1/tags/{quote('日本')}/clients", "clients", 1)) == [
        "phone 2", "phone/1"]


def test_a_client_has_64_tags(hermesd: Start) -> None:
    api = AdminAPI(hermesd())
    assert change(api, "a", add=[f"t{number}" for number in range(64)]).status == 200
    problem = change(api, "a", add=["t64"]).problem(409)
    assert problem["type"] == "urn:hermes:problem:too-many-tags"
    assert change(api, "a", add=["t0"]).status == 200
    assert change(api, "a", add=["t64"], remove=["t0"]).status == 200
    found = tags(api, "a")
    assert len(found) == 64 and "t64" in found and "t0" not in found


def test_many_clients_are_listed_once(hermesd: Start) -> None:
    api = AdminAPI(hermesd())
    clients = [f"client-{number}" for number in range(300)]
    for number, client in enumerate(clients):
        assert change(api, client, add=["all", f"tenth-{number % 10}"]).status == 200
    for limit in (7, 1_000):
        assert sorted(everything(api, "/v1/tags/all/clients", "clients", limit)) == sorted(clients)
        assert sorted(everything(api, "/v1/tags/tenth-3/clients", "clients", limit)) == sorted(
            clients[3::10])
        page = everything(api, "/v1/tags", "tags", limit)
        listed = {item["tag"]: item["clients"] for item in page}
        assert listed == {"all": 300, **{f"tenth-{number}": 30 for number in range(10)}}
    assert everything(api, "/v1/tags/none/clients", "clients", 10) == []
    for client in clients[:299]:
        assert change(api, client, remove=["all"]).status == 200
    assert everything(api, "/v1/tags/all/clients", "clients", 10) == [clients[299]]


def test_the_bytes_of_tags_are_bounded(hermesd: Start) -> None:
    broker = hermesd(environment={"HERMES_LIMITS_TAG_BYTES": "2KiB"})
    api = AdminAPI(broker)

    def add(number: int) -> Answer:
        return change(api, f"client-{number:03}", add=[f"{number:03}-{'x' * 50}"])

    number = 0
    while (answer := add(number)).status == 200:
        number += 1
        assert number < 1_000
    assert answer.problem(507)["type"] == "urn:hermes:problem:tags-full"
    assert number > 5
    assert tags(api, f"client-{number:03}") == []
    assert 0 < api.metric("hermes_tag_bytes ") <= 2_048
    # What is removed makes room again.
    assert change(api, "client-000", remove=[f"000-{'x' * 50}"]).status == 200
    assert add(number).status == 200


def test_no_tags_with_a_limit_of_0(hermesd: Start) -> None:
    api = AdminAPI(hermesd(environment={"HERMES_LIMITS_TAG_BYTES": "0"}))
    assert change(api, "a", add=["b"]).problem(507)["type"].endswith("tags-full")
    assert everything(api, "/v1/tags", "tags", 10) == []


def test_wrong_changes_and_tokens_bound_to_topics(hermesd: Start) -> None:
    api = AdminAPI(hermesd())
    for fields in ({}, {"add": []}, {"add": ["a,b"]}, {"add": [" a"]}, {"add": ["x" * 65]},
                   {"add": ["a"], "remove": ["a"]}, {"add": ["a\x00"]}):
        problem = change(api, "a", **fields).problem(400)
        assert problem["field"] in ("add", "remove"), problem
    assert tags(api, "a") == []
    made = api.post_json(
        "/v1/tokens", {"name": "bound", "scopes": ["publish", "read"], "topics": ["t/#"]}).json
    bound = AdminAPI(api.broker, token=made["token"])
    assert change(bound, "a", add=["b"]).problem(403)["type"].endswith("bound-token")
    for path in ("/v1/tags", "/v1/tags/b/clients", "/v1/clients/a/tags"):
        assert bound.request("GET", path).problem(403)["type"].endswith("bound-token")


def test_hermesctl(hermesd: Start) -> None:
    broker = hermesd()
    shown = hermesctl("tags", "show", "phone", broker=broker)
    assert shown.output == "client  phone\ntags    none\n", shown
    added = hermesctl("tags", "add", "phone", "north", "shop", broker=broker)
    assert added.output == "client  phone\ntags    north, shop\n", added
    assert hermesctl("tags", "remove", "phone", "north", "--json", broker=broker).json == {
        "client_id": "phone", "tags": ["shop"]}
    assert hermesctl("tags", "list", broker=broker).output == "CLIENTS  TAG\n      1  shop\n"
    assert hermesctl("tags", "clients", "shop", broker=broker).output == "CLIENT\nphone\n"
    refused = hermesctl("tags", "add", "phone", "a,b", broker=broker)
    assert refused.code == 1 and "comma" in refused.errors
