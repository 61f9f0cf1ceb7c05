"""MQTT 5.0 with foreign clients: paho-mqtt, and mosquitto_pub and mosquitto_sub.

Statements and traps are those of docs/conformance.md. What a restart must keep is here, and what
needs settings that the broker of Tests/ConformanceTests does not have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from harness.admin import AdminAPI
from harness.broker import Broker
from harness.command_line_clients import mosquitto_pub, mosquitto_sub_once
from harness.login_service import SigningKey
from harness.paho5_client import Message, Paho5Client, Will
from harness.raw5_client import DISCONNECT, PUBACK, PUBCOMP, PUBREC, Raw5Client
from harness.raw_client import RawClient
from harness.tls import client_context
from harness.waiting import PATIENCE, eventually
from harness.websocket import websocket_environment

Connect = Callable[..., Paho5Client]

PASSED_ON = {
    "PayloadFormatIndicator": 1,
    "ContentType": "text/plain; charset=utf-8",
    "ResponseTopic": "answers/\N{GRINNING FACE}",
    "CorrelationData": b"\x00\xffid",
    "UserProperty": [("z", "1"), ("a", "2"), ("z", ""), ("a", "2")],
}
"""What a broker passes on unchanged."""


@pytest.fixture
def five() -> Iterator[Connect]:
    """Connects paho clients of 5.0: `five(broker, "name", ReceiveMaximum=3)`."""
    opened: list[Paho5Client] = []

    def connect(broker: Broker, client_id: str, **options: object) -> Paho5Client:
        client = Paho5Client(broker, client_id, **options)  # type: ignore[arg-type]
        opened.append(client)
        return client

    yield connect
    for client in opened:
        client.cut()


def pass_until(moment: float) -> None:
    """Waits for a moment of the wall clock, by which the broker counts."""
    eventually(lambda: time.time() >= moment, "the time", within=PATIENCE + 10)


# --- command line clients ----------------------------------------------------------------


def test_mosquitto_clients_see_each_others_properties(broker, names):
    topic = names.topic()
    mosquitto_pub(
        broker, "-V", "5", "-t", topic, "-m", "{}", "-r", "-q", "1",
        "-D", "publish", "content-type", "application/json",
        "-D", "publish", "response-topic", "answers/here",
        "-D", "publish", "correlation-data", "order-17",
        "-D", "publish", "payload-format-indicator", "1",
        "-D", "publish", "message-expiry-interval", "300",
        "-D", "publish", "user-property", "b", "1",
        "-D", "publish", "user-property", "a", "2",
    )
    # A client identifier of the broker, a subscription identifier, and both versions.
    shown = mosquitto_sub_once(
        broker, "-V", "5", "-t", topic, "-q", "1", "-C", "1", "-W", "10",
        "-D", "subscribe", "subscription-identifier", "7",
        "-F", "%C|%R|%D|%F|%P|%S|%q|%r|%p")
    assert shown == "application/json|answers/here|order-17|1|b:1 a:2|7|1|1|{}\n"
    left = int(mosquitto_sub_once(
        broker, "-V", "5", "-t", topic, "-C", "1", "-W", "10", "-F", "%E"))
    assert 250 < left <= 300
    assert mosquitto_sub_once(
        broker, "-V", "311", "-t", topic, "-C", "1", "-W", "10", "-F", "%r|%p") == "1|{}\n"
    mosquitto_pub(broker, "-V", "5", "-t", topic, "-n", "-r")


# --- one broker --------------------------------------------------------------------------


def test_every_property_arrives_at_every_qos(broker, names, five):
    topic = names.topic()
    subscriber = five(broker, names.client("sub"))
    assert subscriber.subscribe(topic, 2, identifier=268_435_455) == 2
    publisher = five(broker, names.client("pub"))
    expected = {**PASSED_ON, "SubscriptionIdentifier": [268_435_455]}
    for qos in range(3):
        assert publisher.publish(topic, b"x", qos, **PASSED_ON) == 0
        assert subscriber.take() == Message(topic, b"x", qos, False, expected)
    assert subscriber.so_far() == []


@pytest.mark.hermesd("the same over its listener for WebSocket")
def test_every_property_arrives_over_websocket(start_broker, five):
    broker = start_broker(environment=websocket_environment())
    client = five(broker, "browser", websocket_path="/mqtt")
    assert client.subscribe("t", 2) == 2
    assert client.publish("t", b"x", 2, **PASSED_ON) == 0
    assert client.take() == Message("t", b"x", 2, False, PASSED_ON)
    client.stop()


@pytest.mark.hermesd("the same over its listener for TLS")
def test_every_property_arrives_over_tls(tls_broker, authority, five):
    client = five(tls_broker, "phone", context=client_context(authority.certificate), SessionExpiryInterval=9)
    assert client.subscribe("t", 2) == 2
    assert client.publish("t", b"x", 2, **PASSED_ON) == 0
    assert client.take() == Message("t", b"x", 2, False, PASSED_ON)
    five(tls_broker, "phone", context=client_context(authority.certificate)).stop()
    assert client.await_end() == 0x8E


def test_the_broker_assigns_identifiers(broker, five):
    first = five(broker, "", SessionExpiryInterval=60)
    second = five(broker, "", SessionExpiryInterval=60)
    names = [one.properties["AssignedClientIdentifier"] for one in (first, second)]
    assert all(names) and names[0] != names[1]
    first.cut()
    again = five(broker, names[0], clean_start=False)
    assert again.session_present
    again.stop()
    second.stop(SessionExpiryInterval=0)


@pytest.mark.mosquitto_deviates("closes without a word", strict=False)
def test_a_take_over_says_so(broker, names, five, paho_client):
    """Trap 20 and [MQTT5-3.1.4-3], also by a client of 3.1.1."""
    first = five(broker, names.client())
    second = five(broker, names.client())
    assert first.await_end() == 0x8E
    third = paho_client(names.client())
    assert second.await_end() == 0x8E
    third.stop()


def test_retained_messages_come_as_the_subscription_asks(broker, names, five):
    topic = names.topic()
    client = five(broker, names.client())
    assert client.publish(topic, b"kept", 1, True) == 0
    kept = Message(topic, b"kept", 1, True)
    assert client.subscribe(topic, 1, handling=2) == 1
    assert client.so_far() == []
    assert client.subscribe(topic, 1, handling=1) == 1
    assert client.so_far() == []
    assert client.subscribe(topic, 1, handling=0) == 1
    assert client.take() == kept
    client.unsubscribe(topic)
    assert client.subscribe(topic, 1, handling=1, as_published=True) == 1
    assert client.take() == kept
    assert client.publish(topic, b"new", 1, True) == 0
    assert client.take() == Message(topic, b"new", 1, True)
    assert client.publish(topic, b"", 1, True) == 0
    assert client.take() == Message(topic, b"", 1, True)


def test_no_local_holds_back_only_own_messages(broker, names, five):
    topic = names.topic()
    one, other = (five(broker, names.client(name)) for name in ("one", "other"))
    assert one.subscribe(topic, 1, no_local=True) == 1
    assert one.publish(topic, b"own") == 0
    assert other.publish(topic, b"foreign") == 0
    assert one.take().text == "foreign"
    assert one.so_far() == []


def test_a_shared_subscription_serves_each_message_once(broker, names, five):
    topic = names.topic()
    members = [five(broker, names.client(f"m{number}")) for number in range(3)]
    for number, member in enumerate(members):
        assert member.subscribe(f"$share/g/{topic}", 1, identifier=number + 1) == 1
    publisher = five(broker, names.client("pub"))
    for number in range(30):
        assert publisher.publish(topic, b"%d" % number, **PASSED_ON) == 0
    got = {number: member.so_far() for number, member in enumerate(members)}
    assert sorted(int(one.text) for some in got.values() for one in some) == list(range(30))
    for number, some in got.items():
        assert all(
            one.properties == {**PASSED_ON, "SubscriptionIdentifier": [number + 1]} for one in some)


@pytest.mark.mosquitto_deviates("sends one too many", strict=False)
def test_the_window_is_that_of_the_client(broker, names, five):
    topic = names.topic()
    client = five(broker, names.client("slow"), ReceiveMaximum=2, is_acknowledging=False)
    assert client.subscribe(topic, 1) == 1
    publisher = five(broker, names.client("pub"))
    for number in range(5):
        assert publisher.publish(topic, b"%d" % number) == 0
    assert [client.take().text, client.take().text] == ["0", "1"]
    assert client.so_far() == []
    client.client.ack(1, 1)
    assert client.take().text == "2"
    assert client.so_far() == []


def test_the_size_is_that_of_the_client(broker, names, five):
    topic = names.topic()
    client = five(broker, names.client("small"), MaximumPacketSize=200)
    assert client.subscribe(topic, 1) == 1
    publisher = five(broker, names.client("pub"))
    for size in (300, 20, 250, 21):
        assert publisher.publish(topic, b"x" * size) == 0
    assert [len(client.take().payload) for _ in range(2)] == [20, 21]
    assert client.so_far() == []


def test_both_versions_share_a_topic_and_a_session(broker, names, five, paho_client):
    topic = names.topic()
    old = paho_client(names.client("phone"), clean_session=False)
    old.subscribe((topic, 1))
    old.stop()
    publisher = five(broker, names.client("pub"))
    assert publisher.publish(topic, b"one", **PASSED_ON) == 0
    new = five(broker, names.client("phone"), clean_start=False, SessionExpiryInterval=60)
    assert new.session_present
    assert new.take() == Message(topic, b"one", 1, False, PASSED_ON)
    new.so_far()
    new.stop()
    assert publisher.publish(topic, b"two", **PASSED_ON) == 0
    back = paho_client(names.client("phone"), clean_session=False)
    assert back.session_present
    assert back.take().payload == b"two"
    back.publish(topic, b"three", 1)
    assert back.take().payload == b"three"
    back.stop()
    paho_client(names.client("phone")).stop()


@pytest.mark.hermesd("the HTTP API")
def test_the_expiry_of_http_is_that_of_the_message(hermesd, five):
    broker = hermesd()
    phone = five(broker, "phone", SessionExpiryInterval=600)
    assert phone.subscribe("t", 1) == 1
    for fields in ({"expires_in_s": 100}, {}):
        answer = AdminAPI(broker).post_json(
            "/v1/messages", {"topic": "t", "qos": 1, "payload": "x", **fields})
        assert answer.status in (200, 202), answer
    timed, lasting = phone.take(), phone.take()
    assert 80 < timed.properties.pop("MessageExpiryInterval") <= 100
    assert timed == lasting == Message("t", b"x", 1)


OVER_HTTP = {
    "payload_format": "text", "content_type": "text/plain", "response_topic": "answers/7",
    "correlation_data": "AQI=",
    "user_properties": [{"name": "k", "value": "1"}, {"name": "k", "value": "2"}],
}
AS_RECEIVED = {
    "PayloadFormatIndicator": 1, "ContentType": "text/plain", "ResponseTopic": "answers/7",
    "CorrelationData": b"\x01\x02", "UserProperty": [("k", "1"), ("k", "2")],
}


def test_properties_of_http_reach_clients_of_5(hermesd, five):
    """At once, by a schedule that a kill interrupts, and by a push; a repeat asks for the same."""
    broker = hermesd()
    phone = five(broker, "phone", SessionExpiryInterval=600)
    assert phone.subscribe("t/#", 1) == 1
    api = AdminAPI(broker)
    message = {"topic": "t/now", "payload": "x", "message_id": "one", "properties": OVER_HTTP}
    assert api.post_json("/v1/messages", message).status == 200
    assert api.post_json("/v1/messages", message).json["duplicate"] is True
    other = {**message, "properties": {**OVER_HTTP, "content_type": "other"}}
    assert api.post_json("/v1/messages", other).status == 422
    assert phone.take() == Message("t/now", b"x", 1, False, AS_RECEIVED)
    later = {"topic": "t/later", "payload": "x", "deliver_in_s": 1, "properties": OVER_HTTP}
    assert api.post_json("/v1/messages", later).status == 202
    phone.cut()
    broker.kill()
    broker = hermesd(data=broker.data)
    phone = five(broker, "phone", clean_start=False, SessionExpiryInterval=600)
    assert phone.take() == Message("t/later", b"x", 1, False, AS_RECEIVED)
    push = {
        "to": {"clients": ["phone"]},
        "message": {"topic": "p", "payload": "x", "properties": OVER_HTTP},
    }
    assert AdminAPI(broker).post_json("/v1/pushes", push).status in (200, 202)
    assert phone.take() == Message("p", b"x", 1, False, AS_RECEIVED)


@pytest.mark.parametrize(
    ("properties", "field", "word"),
    [
        ({"content": "x"}, "properties.content", "not known"),
        ({"content_type": 7}, "properties.content_type", "must be a string"),
        ({"content_type": "a\0"}, "properties.content_type", "U+0000"),
        ({"response_topic": "a/+"}, "properties.response_topic", "wildcard"),
        ({"response_topic": ""}, "properties.response_topic", "empty"),
        ({"correlation_data": "?"}, "properties.correlation_data", "base64"),
        ({"payload_format": "utf8"}, "properties.payload_format", "neither"),
        ({"user_properties": {"k": "v"}}, "properties.user_properties", "array"),
        ({"user_properties": [{"name": "k"}]}, "properties.user_properties", "without"),
        ({"user_properties": [{"name": "k", "value": "x" * 40_000}] * 2}, "properties", "65535"),
    ],
)
def test_wrong_properties_of_http_are_named(hermesd, properties, field, word):
    answer = AdminAPI(hermesd()).post_json(
        "/v1/messages", {"topic": "t", "payload": "x", "properties": properties})
    assert answer.status in (400, 422)
    assert answer.json["field"] == field
    assert word in answer.json["detail"]


# --- restarts ----------------------------------------------------------------------------


@pytest.mark.hermesd("a data directory that a kill leaves")
def test_properties_outlive_a_kill(hermesd, five):
    """Trap 58: in a queue, in flight and retained, with all options of the subscription."""
    broker = hermesd()
    phone = five(broker, "phone", SessionExpiryInterval=600, is_acknowledging=False)
    assert phone.subscribe("t/#", 2, as_published=True, identifier=9) == 2
    publisher = five(broker, "pub")
    assert publisher.publish("t/flight", b"x", 1, **PASSED_ON) == 0
    assert phone.take().topic == "t/flight"
    phone.cut()
    assert publisher.publish("t/queue", b"x", 2, True, **PASSED_ON) == 0
    broker.kill()
    broker = hermesd(data=broker.data)
    again = five(broker, "phone", clean_start=False, SessionExpiryInterval=600)
    assert again.session_present
    expected = {**PASSED_ON, "SubscriptionIdentifier": [9]}
    assert again.take() == Message("t/flight", b"x", 1, False, expected)
    assert again.take() == Message("t/queue", b"x", 2, True, expected)
    assert five(broker, "pub").publish("t/new", b"y", 1, True) == 0
    assert again.take() == Message("t/new", b"y", 1, True, {"SubscriptionIdentifier": [9]})
    late = five(broker, "late")
    assert late.subscribe("t/queue", 1) == 1
    assert late.take() == Message("t/queue", b"x", 1, True, PASSED_ON)


@pytest.mark.hermesd("a data directory that a kill leaves")
def test_messages_expire_by_the_clock_across_a_kill(hermesd, five):
    """[MQTT5-3.3.2-6]: what is left is counted down while the broker is down."""
    broker = hermesd()
    phone = five(broker, "phone", SessionExpiryInterval=600)
    assert phone.subscribe("t/#", 1) == 1
    phone.stop()
    publisher = five(broker, "pub")
    assert publisher.publish("t/short", b"x", 1, True, MessageExpiryInterval=2) == 0
    assert publisher.publish("t/long", b"x", 1, True, MessageExpiryInterval=100) == 0
    stored = time.time()
    broker.kill()
    pass_until(stored + 3)
    broker = hermesd(data=broker.data)
    again = five(broker, "phone", clean_start=False, SessionExpiryInterval=600)
    one = again.take()
    assert one.topic == "t/long" and 50 < one.properties["MessageExpiryInterval"] <= 97
    assert again.so_far() == []
    late = five(broker, "late")
    late.subscribe("t/#", 1)
    kept = late.take()
    assert kept.topic == "t/long" and 50 < kept.properties["MessageExpiryInterval"] <= 97
    assert late.so_far() == []


@pytest.mark.hermesd("a data directory that a kill leaves")
def test_sessions_expire_by_the_clock_across_a_kill(hermesd, five):
    """Trap 19: the deadline is stored, and does not begin anew."""
    broker = hermesd()
    five(broker, "short", SessionExpiryInterval=2).stop()
    five(broker, "long", SessionExpiryInterval=600).stop()
    five(broker, "changed", SessionExpiryInterval=2).stop(SessionExpiryInterval=600)
    five(broker, "none").stop()
    # Connected when the broker dies: the time begins with the connection's end.
    held = five(broker, "held", SessionExpiryInterval=600)
    ended = time.time()
    broker.kill()
    held.cut()
    pass_until(ended + 3)
    broker = hermesd(data=broker.data)
    api = AdminAPI(broker)
    eventually(lambda: api.request("GET", "/v1/clients/short").status == 404, "the session's end")
    for name, present in (
        ("short", False), ("none", False), ("long", True), ("changed", True), ("held", True),
    ):
        assert five(broker, name, clean_start=False).session_present == present, name


@pytest.mark.hermesd("a data directory that a kill leaves")
def test_a_delayed_will_outlives_a_kill(hermesd, five):
    """[MQTT5-3.1.2-8]: published after its delay, unless the client is back by then."""
    broker = hermesd()
    watcher = five(broker, "watcher", SessionExpiryInterval=600)
    assert watcher.subscribe("wills/#", 1) == 1
    for name in ("gone", "back"):
        will = Will(
            f"wills/{name}", properties={
                "WillDelayInterval": 6, "ContentType": "text/plain",
                "UserProperty": [("b", "1"), ("a", "2")]})
        five(broker, name, SessionExpiryInterval=600, will=will).cut()
    assert watcher.so_far() == []
    watcher.stop()
    broker.kill()
    broker = hermesd(data=broker.data)
    watcher = five(broker, "watcher", clean_start=False, SessionExpiryInterval=600)
    back = five(broker, "back", clean_start=False, SessionExpiryInterval=600)
    assert back.session_present
    assert watcher.take(PATIENCE + 6) == Message(
        "wills/gone", b"gone", 1, False,
        {"ContentType": "text/plain", "UserProperty": [("b", "1"), ("a", "2")]})
    assert watcher.so_far() == []


@pytest.mark.hermesd("a data directory that a kill leaves")
def test_the_will_of_a_client_that_was_connected_outlives_a_kill(hermesd, five):
    broker = hermesd()
    watcher = five(broker, "watcher", SessionExpiryInterval=600)
    assert watcher.subscribe("will", 1) == 1
    client = five(broker, "client", SessionExpiryInterval=600, will=Will("will"))
    broker.kill()
    watcher.cut()
    client.cut()
    broker = hermesd(data=broker.data)
    watcher = five(broker, "watcher", clean_start=False, SessionExpiryInterval=600)
    assert watcher.take().topic == "will"


# --- what an operator does ---------------------------------------------------------------


@pytest.mark.hermesd("its settings")
def test_silence_ends_with_a_reason(hermesd, five):
    """[MQTT5-3.1.2-22], trap 66, and [MQTT5-3.1.2-21]: a longer keep alive is lowered, which CONNACK says."""
    broker = hermesd(environment={"HERMES_LIMITS_MAX_KEEP_ALIVE": "2s"})
    with closing(Raw5Client(broker)) as lowered, closing(Raw5Client(broker)) as kept:
        assert b"\x13\0\x02" in lowered.connect("lowered", keep_alive=60)
        assert b"\x13" not in kept.connect("kept", keep_alive=1)
        begun = time.monotonic()
        kept.expect_end(0x8D)
        assert 1.4 < time.monotonic() - begun < 1.5 + PATIENCE
        lowered.expect_end(0x8D)
        assert 2.9 < time.monotonic() - begun < 3 + PATIENCE


@pytest.mark.hermesd("drains are its own")
def test_a_drain_says_use_another_server(hermesd, five):
    broker = hermesd()
    clients = [five(broker, f"c{number}", SessionExpiryInterval=600) for number in range(5)]
    answer = AdminAPI(broker).post_json("/v1/drain", {"per_second": 50})
    assert answer.status == 200, answer
    assert {client.await_end() for client in clients} == {0x9C}


@pytest.mark.hermesd("drains are its own")
def test_a_drain_names_the_other_broker(hermesd):
    broker = hermesd()
    reference = b"mqtt2.example.com:8883"
    with (
        closing(Raw5Client(broker)) as told, closing(Raw5Client(broker)) as small,
        closing(Raw5Client(broker)) as late, closing(Raw5Client(broker)) as small_and_late,
        closing(RawClient(broker.address)) as old,
    ):
        assert told.connect("told")[1] == 0
        # Maximum Packet Size: room for CONNACK, but not for the name.
        few = b"\x27\0\0\0\x17"
        assert small.connect("small", few)[1] == 0
        assert old.connect("old").return_code == 0
        answer = AdminAPI(broker).post_json(
            "/v1/drain", {"per_second": 1, "server_reference": reference.decode()})
        assert answer.status == 200, answer
        # Those that had connected, but sent no CONNECT before the drain.
        connack = late.connect("late")
        assert connack[:2] == b"\0\x9c" and connack.endswith(reference)
        connack = small_and_late.connect("small_and_late", few)
        assert connack[:2] == b"\0\x9c" and len(connack) <= 21
        kind, body = told.receive()
        assert (kind, body[0]) == (DISCONNECT, 0x9C)
        assert b"\x1c\0" + bytes([len(reference)]) + reference in body
        assert told.receive() == (0, b"")
        kind, body = small.receive()
        assert kind == 0 or (kind, body[0]) == (DISCONNECT, 0x9C) and len(body) <= 21
        assert old.await_closed() == []


@pytest.mark.hermesd("its stop")
def test_a_stop_says_shutting_down(hermesd, five):
    broker = hermesd()
    watcher = five(broker, "watcher")
    assert broker.stop() == 0
    assert watcher.await_end() == 0x8B


@pytest.mark.hermesd("its admin API")
def test_an_operator_ends_a_connection_with_a_reason(hermesd, five):
    broker = hermesd()
    client = five(broker, "client", SessionExpiryInterval=600)
    answer = AdminAPI(broker).request("DELETE", "/v1/clients/client")
    assert answer.status == 200, answer
    assert client.await_end() == 0x98


@pytest.mark.hermesd("bans are its own")
def test_bans_have_their_codes(hermesd, five):
    broker = hermesd()
    client = five(broker, "client", SessionExpiryInterval=600)
    answer = AdminAPI(broker).post_json("/v1/bans", {"client_id": "client"})
    assert answer.status in (200, 201), answer
    assert client.await_end() == 0x98
    assert five(broker, "client").code == 0x8A


@pytest.mark.hermesd("its settings")
def test_sessions_beyond_the_limit_are_refused_by_name(hermesd, five):
    broker = hermesd(environment={"HERMES_LIMITS_MAX_SESSIONS": "1"})
    assert five(broker, "first", SessionExpiryInterval=600).code == 0
    assert five(broker, "second", SessionExpiryInterval=600).code == 0x97
    # A session without expiry takes no place.
    assert five(broker, "third").code == 0


@pytest.mark.hermesd("tokens of a login service")
def test_the_end_of_a_token_has_its_code(hermesd, five, tmp_path):
    key = SigningKey("ES256", tmp_path, "key-1")
    broker = hermesd(environment={
        "HERMES_AUTH_JWT_KEY_FILE": str(key.write(tmp_path / "login.key")),
        "HERMES_AUTH_JWT_LEEWAY": "0s",
    })
    begun = time.time()
    with closing(Raw5Client(broker)) as client:
        connack = client.connect("phone", user_name="", password=key.token(exp=int(begun) + 3))
        assert connack[1] == 0, connack
        client.expect_end(0xA0)
    with closing(Raw5Client(broker)) as late:
        connack = late.connect("phone", user_name="", password=key.token(exp=int(begun) - 60))
        assert connack == b"\0\x86\0"


@pytest.mark.hermesd("rights and passwords of its own")
def test_refusals_have_their_codes(hermesd, five, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("allow user anna both anna/#\n")
    broker = hermesd(users={"anna": "secret"}, arguments=("--acl-file", str(rules)))
    for name, password in (("anna", "wrong"), ("nobody", "secret")):
        assert five(broker, "phone", user_name=name, password=password).code == 0x86
    assert five(broker, "phone").code in (0x86, 0x87)
    watcher = five(broker, "watcher", user_name="anna", password="secret")
    assert watcher.subscribe("other/#", 1) == 0x87
    assert watcher.subscribe("anna/#", 2) == 2
    with closing(Raw5Client(broker)) as client:
        assert client.connect("phone", user_name="anna", password=b"secret")[1] == 0
        assert client.publish("other/x", b"refused", 1, 7) == (PUBACK, 0x87)
        assert client.publish("anna/x", b"one", 1, 7) == (PUBACK, 0)
        assert client.publish("other/x", b"refused", 2, 7) == (PUBREC, 0x87)
        assert client.publish("anna/x", b"two", 2, 7, dup=True) == (PUBREC, 0)
        assert client.publish("anna/x", b"two", 2, 7, dup=True) == (PUBREC, 0)
        client.send(b"\x62\x02\0\x07")
        assert client.receive() == (PUBCOMP, b"\0\x07")
    assert [watcher.take().text, watcher.take().text] == ["one", "two"]
    assert watcher.so_far() == []


@pytest.mark.hermesd("its settings")
def test_a_retained_message_beyond_the_limit_is_refused_by_name(hermesd, five):
    """Trap 67: 0x97 in place of a success that keeps nothing."""
    broker = hermesd(environment={"HERMES_LIMITS_MAX_RETAINED": "1"})
    with closing(Raw5Client(broker)) as client:
        assert client.connect("client")[1] == 0
        assert client.publish("r/1", b"x", 1, 1, retain=True) == (PUBACK, 0)
        assert client.publish("r/2", b"x", 1, 1, retain=True) == (PUBACK, 0x97)
        assert client.publish("r/3", b"x", 2, 1, retain=True) == (PUBREC, 0x97)
        # The identifier is that of a new message [MQTT5-4.3.3-9].
        assert client.publish("r/1", b"y", 2, 1, dup=True, retain=True) == (PUBREC, 0)
    late = five(broker, "late")
    late.subscribe("r/#", 1)
    assert [(one.topic, one.text) for one in late.so_far()] == [("r/1", "y")]
