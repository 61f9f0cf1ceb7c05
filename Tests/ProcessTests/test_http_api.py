"""The back office's HTTP API."""

import base64
import http.client
import json
import socket
import stat
import time
from urllib.parse import quote

import pytest

from harness.admin import AdminAPI, Answer, curl
from harness.broker import ADMIN_TOKEN, assert_names_known_limits
from harness.command_line_clients import Received
from harness.waiting import PATIENCE, eventually
from harness.wire import Publish, Will

pytestmark = pytest.mark.hermesd("the HTTP API")

BEARER = f"Authorization: Bearer {ADMIN_TOKEN}"
RESULT_FIELDS = {
    "message_id", "durability", "matched", "online", "queued", "dropped", "duplicate",
}


# --- publishing ----------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_curl_publishes_raw_bytes(qos, broker, names, mosquitto_sub):
    """Byte for byte, whatever they are."""
    topic, payload = names.topic("raw"), bytes(range(256)) * 4
    subscriber = mosquitto_sub("-t", topic, "-q", "2")
    answer = curl(
        "-H", BEARER, "-H", "Content-Type: image/png", "--data-binary", "@-",
        f"{broker.admin_url}/v1/publish?topic={quote(topic, safe='')}&qos={qos}", stdin=payload,
    )
    assert answer.status == 200, answer
    result = answer.json
    assert set(result) == RESULT_FIELDS
    assert (result["matched"], result["online"], result["queued"], result["dropped"]) == (
        1, 1, 0, 0,
    )
    assert result["durability"] == "sync" and result["duplicate"] is False
    assert result["message_id"]
    assert subscriber.take() == Received(topic, payload, qos)


def test_qos_1_is_the_default(api, client, names):
    subscriber = client("sub")
    subscriber.subscribe((names.topic(), 2))
    assert api.request("POST", f"/v1/publish?topic={names.topic()}", b"x").status == 200
    assert subscriber.take_message().qos == 1


def test_retained_publishes(api, client, names):
    path = f"/v1/publish?topic={names.topic()}&qos=1&retain=true"
    assert api.request("POST", path, b"kept").status == 200
    subscriber = client("sub")
    subscriber.subscribe((names.topic(), 0))
    assert subscriber.take_message() == Publish(names.topic(), b"kept", retain=True)
    assert api.request("POST", path, b"").status == 200
    assert subscriber.take_message() == Publish(names.topic(), b"")
    late = client("late")
    late.subscribe((names.topic(), 0))
    assert late.messages_so_far() == []


@pytest.mark.parametrize(
    ("fields", "payload"),
    [
        ({"payload": "plain"}, b"plain"),
        ({"payload": ""}, b""),
        ({"payload": "\u00fcn\u00efc\u00f6de \U0001f4f1 \u0000"}, "ünïcöde 📱 \0".encode()),
        ({"payload_base64": base64.b64encode(b"\xff\x00").decode()}, b"\xff\x00"),
        ({"payload": "x", "qos": 2, "retain": False, "message_id": "mine-1"}, b"x"),
        ({"payload": "x", "expires_in_s": 60}, b"x"),
    ],
)
def test_json_messages(fields, payload, api, client, names):
    subscriber = client("sub")
    subscriber.subscribe((names.topic(), 2))
    answer = api.post_json("/v1/messages", {"topic": names.topic(), **fields})
    assert answer.status == 200, answer
    assert set(answer.json) == RESULT_FIELDS
    assert answer.json["message_id"] == fields.get("message_id", answer.json["message_id"])
    message = subscriber.take_messages(1)[0]
    assert (message.payload, message.qos) == (payload, fields.get("qos", 1))


def test_the_answer_counts_receivers(api, client, names):
    """Clients connected, offline with a session, offline with QoS 0 only."""
    topic = names.topic()
    for name, qos in (("online1", 0), ("online2", 1)):
        client(name).subscribe((topic, qos))
    for name, qos in (("away", 1), ("unlucky", 0)):
        one = client(name, clean_session=False)
        one.subscribe((topic, qos))
        one.disconnect()
    result = api.post_json("/v1/messages", {"topic": topic, "payload": "x"}).json
    assert (result["matched"], result["online"], result["queued"], result["dropped"]) == (
        4, 2, 1, 1,
    )
    nobody = api.post_json("/v1/messages", {"topic": names.topic("none"), "payload": "x"}).json
    assert (nobody["matched"], nobody["online"]) == (0, 0)
    for name in ("away", "unlucky"):
        client(name)  # Ends the stored session.


def test_message_ids_differ(api, names):
    made = {
        api.request("POST", f"/v1/publish?topic={names.topic()}", b"").json["message_id"]
        for _ in range(20)
    }
    assert len(made) == 20


def test_an_expired_message_is_not_delivered(api, client, names):
    """It waits in a session, and its time runs out before its client comes."""
    topic = names.topic()
    phone = client("phone", clean_session=False)
    phone.subscribe((topic, 1))
    phone.disconnect()
    api.post_json("/v1/messages", {"topic": topic, "payload": "short", "expires_in_s": 1})
    due = time.monotonic() + 1.1
    api.post_json("/v1/messages", {"topic": topic, "payload": "long", "expires_in_s": 3600})
    eventually(lambda: time.monotonic() > due, "the first message to expire")
    phone = client("phone", clean_session=False)
    assert phone.take_message().payload == b"long"
    assert phone.messages_so_far() == []
    client("phone")  # Ends the stored session.


def test_a_raw_message_has_a_name_and_expires(api, client, names):
    topic = names.topic()
    phone = client("phone", clean_session=False)
    phone.subscribe((topic, 1))
    phone.disconnect()
    path = f"/v1/publish?topic={topic}&message_id="
    answer = api.request("POST", path + "note%2F1&expires_in_s=1", b"short")
    assert answer.json["message_id"] == "note/1"
    due = time.monotonic() + 1.1
    assert api.request("POST", path + "note%2F2&expires_in_s=3600", b"long").status == 200
    eventually(lambda: time.monotonic() > due, "the first message to expire")
    phone = client("phone", clean_session=False)
    assert phone.take_message().payload == b"long"
    assert phone.messages_so_far() == []
    client("phone")  # Ends the stored session.


def test_payloads_of_256_kib_pass(api, client, names):
    subscriber = client("sub")
    subscriber.subscribe((names.topic(), 1))
    payload = bytes(range(256)) * 1024
    assert api.request("POST", f"/v1/publish?topic={names.topic()}", payload).status == 200
    assert subscriber.take_message().payload == payload


def test_many_publishes_on_one_connection(broker, client, names):
    """Keep-alive of HTTP; every message arrives, in order."""
    subscriber = client("sub")
    subscriber.subscribe((names.topic(), 1))
    connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)
    for number in range(500):
        connection.request(
            "POST", f"/v1/publish?topic={names.topic()}", str(number),
            {"Authorization": f"Bearer {ADMIN_TOKEN}"},
        )
        response = connection.getresponse()
        response.read()
        assert response.status == 200
    connection.close()
    assert [int(subscriber.take_message().payload) for _ in range(500)] == list(range(500))


# --- problems ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "JSON"), (b"{", "JSON"), (b"nonsense", "JSON"), (b"[]", "object"),
        (b'{"topic":"a","payload":"x"', "JSON"), (b'{"topic":"a","payload":"\xff"}', ""),
        (b'{"topic":"a","payload":"x"} x', "JSON"),
        ({"payload": "x"}, "topic"), ({"topic": "a"}, "payload"),
        ({"topic": 1, "payload": "x"}, "topic"),
        ({"topic": "", "payload": "x"}, "topic"),
        ({"topic": "a/+", "payload": "x"}, "+"), ({"topic": "#", "payload": "x"}, "#"),
        ({"topic": "a\0b", "payload": "x"}, "topic"),
        ({"topic": "x" * 65_536, "payload": "x"}, "topic"),
        ({"topic": "/" * 200, "payload": "x"}, "level"),
        ({"topic": "a", "payload": "x", "qos": 3}, "qos"),
        ({"topic": "a", "payload": "x", "qos": -1}, "qos"),
        ({"topic": "a", "payload": "x", "qos": "1"}, "qos"),
        ({"topic": "a", "payload": "x", "retain": "yes"}, "retain"),
        ({"topic": "a", "payload": "x", "payload_base64": "eA=="}, "payload"),
        ({"topic": "a", "payload_base64": "%%%"}, "base64"),
        ({"topic": "a", "payload": "x", "expires_in_s": 0}, "expires_in_s"),
        ({"topic": "a", "payload": "x", "Qos": 1}, "Qos"),
        ({"topic": "a", "payload": "x", "message_id": ""}, "message_id"),
    ],
)
def test_a_bad_message_is_explained(body, words, api):
    """The error names the fault and its place, and nothing is published."""
    before = api.status()["publishes_received"]
    problem = api.post_json("/v1/messages", body).problem(400)
    assert words in json.dumps(problem, ensure_ascii=False), problem
    assert api.status()["publishes_received"] == before


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "topic"), ("topic=", "topic"), ("topic=a%2F%23", "topic"), ("topic=%FF", "topic"),
        ("topic=a/+/b", "%20"),
        ("topic=a&qos=3", "qos"), ("topic=a&qos=one", "qos"), ("topic=a&retain=maybe", "retain"),
        ("topic=a&retain=1", "retain"),
        ("topic=a&topic=b", "topic"), ("topic=a&unknown=1", "unknown"),
    ],
)
def test_a_bad_query_is_explained(query, field, api):
    problem = api.request("POST", f"/v1/publish?{query}", b"x").problem(400)
    assert field in json.dumps(problem), problem


def test_a_header_that_changes_the_meaning_is_refused(api, names):
    before = api.status()["publishes_received"]
    for header in ("If-None-Match", "X-HTTP-Method-Override", "Content-Range"):
        answer = api.request("POST", f"/v1/publish?topic={names.topic()}", b"x", {header: "*"})
        assert answer.problem(400)["field"] == header
    assert api.status()["publishes_received"] == before


def test_untrusted_text_is_escaped_in_problems(api):
    answer = api.post_json("/v1/messages", {"topic": "a", "payload": "x", "\x1b[31m\n\u202e": 1})
    text = answer.problem(400)
    flat = json.dumps(text, ensure_ascii=False)
    assert not any(ord(character) < 32 or character == "\u202e" for character in flat), text


def test_too_large_a_message(api, names):
    """The cure names a setting that exists."""
    payload = b"x" * (1024 * 1024)
    problem = api.request("POST", f"/v1/publish?topic={names.topic()}", payload).problem(413)
    assert_names_known_limits(problem["fix"])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404), ("GET", "/v1/nothing", 404), ("GET", "/v1/publish", 405),
        ("PUT", "/v1/status", 405), ("DELETE", "/v1/clients/no-such-client", 404),
        ("GET", "/v1/clients/no-such-client", 404), ("GET", "/v1/clients?limit=0", 400),
        ("GET", "/v1/clients?limit=5000", 400), ("GET", "/v1/clients?connected=maybe", 400),
    ],
)
def test_wrong_routes_and_queries(method, path, status, api):
    answer = api.request(method, path)
    answer.problem(status)
    if status == 405:
        assert answer.headers["allow"]


def test_json_needs_its_content_type(api):
    answer = api.request(
        "POST", "/v1/messages", b'{"topic":"a","payload":"x"}', {"Content-Type": "text/plain"}
    )
    answer.problem(415)


# --- authorization -------------------------------------------------------------------------

GUARDED = [
    ("POST", "/v1/publish?topic=a"), ("POST", "/v1/messages"), ("POST", "/v1/orders/1/status"),
    ("GET", "/v1/status"), ("GET", "/v1/clients"), ("GET", "/v1/clients/x"),
    ("DELETE", "/v1/clients/x"),
]


@pytest.mark.parametrize("token", [None, "wrong", ADMIN_TOKEN[:-1], ADMIN_TOKEN + "x"])
@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_a_token_is_needed(method, path, token, broker):
    answer = AdminAPI(broker, token=token).request(method, path, b"" if method == "POST" else None)
    answer.problem(401)
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_other_schemes_are_refused(api):
    credentials = base64.b64encode(f"admin:{ADMIN_TOKEN}".encode()).decode()
    answer = AdminAPI(api.broker, token=None).request(
        "GET", "/v1/status", headers={"Authorization": f"Basic {credentials}"}
    )
    answer.problem(401)


def test_health_needs_no_token(broker):
    answer = curl(f"{broker.admin_url}/healthz")
    assert answer.status == 200 and answer.json["status"] == "ok"


def test_the_unix_socket_needs_no_token(broker, names, client):
    assert stat.S_IMODE(broker.unix_socket.stat().st_mode) == 0o600
    subscriber = client("sub")
    subscriber.subscribe((names.topic(), 1))
    socket_option = ("--unix-socket", str(broker.unix_socket))
    status = curl(*socket_option, "http://localhost/v1/status")
    assert status.status == 200 and status.json["connections"] >= 1
    published = curl(
        *socket_option, "--data-binary", "hello",
        f"http://localhost/v1/publish?topic={names.topic()}",
    )
    assert published.status == 200, published
    assert subscriber.take_message().payload == b"hello"


def test_a_first_start_makes_a_token(start_broker):
    """No default password; the file is the operator's alone."""
    broker = start_broker(makes_its_own_token=True)
    file = broker.data / "admin.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = file.read_text().strip()
    assert len(token) >= 32
    assert AdminAPI(broker, token=token).status()["connections"] == 0
    AdminAPI(broker, token=ADMIN_TOKEN).request("GET", "/v1/status").problem(401)
    assert broker.log is not None and token not in broker.log.text


def test_a_page_of_another_site_is_refused(api):
    """A browser on the operator's machine is no way in (DNS rebinding, cross-site requests)."""
    assert api.request("GET", "/v1/status", headers={"Host": "evil.example"}).status == 421
    answer = api.request(
        "POST", "/v1/publish?topic=a", b"x", {"Origin": "http://evil.example"}
    )
    answer.problem(403)


# --- clients -------------------------------------------------------------------------------


def test_one_client_in_full(api, client, names):
    topic = names.topic()
    phone = client(
        "phone", clean_session=False, keep_alive=120, will=Will(names.topic("will"), b"secret")
    )
    phone.subscribe((topic, 1), (names.topic("+/x"), 2))
    api.request("POST", f"/v1/publish?topic={topic}", b"x")
    phone.receive_publish()

    detail = api.client(names.client("phone"))
    assert detail["client_id"] == names.client("phone")
    assert (detail["connected"], detail["clean_session"]) == (True, False)
    assert (detail["keep_alive_s"], detail["protocol"]) == (120, "3.1.1")
    assert detail["address"] == "{}:{}".format(*phone.socket.getsockname())
    assert (detail["subscriptions"], detail["in_flight"], detail["queued"]) == (2, 1, 0)
    assert {one["filter"]: one["qos"] for one in detail["subscription_list"]} == {
        topic: 1, names.topic("+/x"): 2,
    }
    assert detail["will_topic"] == names.topic("will")
    assert "secret" not in json.dumps(detail)
    assert detail["publishes_sent"] == 1 and detail["publishes_acknowledged"] == 0

    phone.disconnect()
    away = api.client(names.client("phone"))
    assert away["connected"] is False
    assert away["last_disconnect_reason"]
    client("phone")  # Ends the stored session.


def test_the_list_filters_and_pages(api, client, names):
    prefix = names.client("p-")
    for number in range(7):
        client(f"p-{number}")
    away = client("p-away", clean_session=False)
    away.disconnect()
    expected = sorted([f"{prefix}{number}" for number in range(7)] + [f"{prefix}away"])

    found, path = [], f"/v1/clients?prefix={prefix}&limit=3"
    page = api.get(path)
    while True:
        assert len(page["clients"]) <= 3
        found += [one["client_id"] for one in page["clients"]]
        if page.get("next") is None:
            break
        page = api.get(f"{path}&cursor={quote(page['next'], safe='')}")
    assert found == expected, "every client once, in order"
    api.request("GET", f"{path}&cursor=zz").problem(400)

    connected = api.get(f"/v1/clients?prefix={prefix}&connected=false")["clients"]
    assert [one["client_id"] for one in connected] == [f"{prefix}away"]
    client("p-away")  # Ends the stored session.


def test_client_identifiers_are_escaped_in_paths(api, raw, names):
    """A slash, a percent sign and others that a path means something by."""
    odd = names.topic("a b%2F?&\u00e9")
    connection = raw()
    connection.connect(odd)
    assert api.client(odd)["client_id"] == odd


def test_disconnecting_a_client(api, client, names):
    """As a network failure: the will is published, the session stays."""
    watcher = client("watcher")
    watcher.subscribe((names.topic("will"), 0))
    phone = client("phone", clean_session=False, will=Will(names.topic("will"), b"kicked"))
    answer = api.request("DELETE", f"/v1/clients/{names.client('phone')}")
    assert answer.status == 200, answer
    assert answer.json == {"client_id": names.client("phone"), "disconnected": True}
    assert phone.await_closed() == []
    assert watcher.take_message().payload == b"kicked"

    again = api.request("DELETE", f"/v1/clients/{names.client('phone')}")
    assert (again.status, again.json["disconnected"]) == (200, False)
    assert client("phone", clean_session=False)
    client("phone")  # Ends the stored session.


def test_the_status_counts(start_broker, client, names):
    broker = start_broker()
    api = AdminAPI(broker)
    one, two = client("one", broker), client("two", broker, clean_session=False)
    one.subscribe((names.topic(), 1))
    two.subscribe((names.topic(), 1), (names.topic("x"), 0))
    two.disconnect()
    one.publish(names.topic(), b"x", qos=1, retain=True)
    one.take_message()
    one.ping()
    status = api.status()
    assert status["durability"] == "sync"
    assert status["listeners"] == ["{}:{}".format(*broker.address)]
    assert (status["connections"], status["connections_total"]) == (1, 2)
    assert (status["sessions"], status["persistent_sessions"]) == (2, 1)
    assert (status["subscriptions"], status["retained"]) == (3, 1)
    assert (status["queued"], status["in_flight"]) == (1, 0)
    assert (status["publishes_received"], status["publishes_sent"]) == (1, 1)
    assert status["bytes_received"] > 0 and status["bytes_sent"] > 0


# --- the connection itself -----------------------------------------------------------------


def test_a_request_that_never_ends_holds_nobody_up(broker, api):
    """Half a head, and half a body: others are served meanwhile."""
    head = f"POST /v1/publish?topic=a HTTP/1.1\r\nHost: localhost\r\n{BEARER}\r\n"
    for text in ("GET /v1/sta", head + "Content-Length: 1000\r\n\r\nhalf"):
        with socket.create_connection(broker.admin_address, timeout=PATIENCE) as one:
            one.sendall(text.encode())
            assert api.status()


def test_bytes_that_are_no_http(broker, api):
    for junk in (b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01a", b"\x00" * 100, b"\r\n\r\n"):
        with socket.create_connection(broker.admin_address, timeout=PATIENCE) as one:
            one.sendall(junk)
            assert api.status()


@pytest.mark.parametrize(
    ("request_text", "words"),
    [
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", "listeners"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1"),
        (b"get /healthz HTTP/1.1\r\n\r\n", "capitals"),
        (b"GET /\r\n\r\n", "HTTP/1.1"),
        (b"GET /a b HTTP/1.1\r\n\r\n", "%20"),
        (b"GET /\xc3\xbc HTTP/1.1\r\n\r\n", "%XX"),
        (b"GET /healthz HTTP/1.1\r\nHo st: localhost\r\n\r\n", "header"),
        (b"GET /healthz HTTP/1.1\r\nX: a\rb\r\n\r\n", "header"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", "digits"),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "more than one"),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n", "100 fields"),
    ],
)
def test_malformed_http_is_explained_in_words_of_http(request_text, words, broker):
    """Each with a cure, and without the words of the parser."""
    with socket.create_connection(broker.admin_address, timeout=PATIENCE) as one:
        one.sendall(request_text)
        with one.makefile("rb") as stream:
            head, _, body = stream.read().partition(b"\r\n\r\n")
    status = int(head.split()[1])
    answer = Answer(status, "application/problem+json", body, {})
    problem = answer.problem(status)
    assert status in (400, 431) and words in problem["detail"] + problem["fix"], problem
    for leak in ("parser", "token", "strict", "constant", "paused", "unknown"):
        assert leak not in problem["detail"], problem
