"""The main job: an order status posted by curl reaches phones as Protobuf bytes."""

import importlib
import json
import subprocess
import sys
import time

import paho.mqtt.client as paho
import pytest
from google.protobuf.unknown_fields import UnknownFieldSet

from harness.admin import curl
from harness.broker import ADMIN_TOKEN, REPOSITORY

pytestmark = pytest.mark.hermesd("order status over HTTP")

STATUSES = [
    "UNSPECIFIED", "SUBMITTED", "UNDER_REVIEW", "SUPPLEMENT_REQUIRED", "APPROVED", "REJECTED",
    "SIGNED", "FUNDED", "CANCELLED",
]


@pytest.fixture(scope="session")
def schemas(tmp_path_factory):
    """The Python classes of Protos/, made by protoc for this run."""
    output = tmp_path_factory.mktemp("protos")
    protos = REPOSITORY / "Protos"
    files = sorted(str(file.relative_to(protos)) for file in protos.rglob("*.proto"))
    subprocess.run(
        ["protoc", f"--proto_path={protos}", f"--python_out={output}", *files],
        check=True, timeout=30,
    )
    sys.path.insert(0, str(output))
    try:
        importlib.invalidate_caches()
        yield {
            "Envelope": importlib.import_module("hermes.v1.envelope_pb2").Envelope,
            "OrderStatusUpdate": importlib.import_module(
                "hermes.v1.order_status_pb2"
            ).OrderStatusUpdate,
        }
    finally:
        sys.path.remove(str(output))


def decode(schemas, payload):
    """The Envelope and the OrderStatusUpdate in it; neither may hold unknown bytes."""
    envelope = schemas["Envelope"].FromString(payload)
    update = schemas["OrderStatusUpdate"].FromString(envelope.payload)
    for message in (envelope, update):
        assert len(UnknownFieldSet(message)) == 0, f"fields that no schema has, beside {message}"
    return envelope, update


def post(broker, order_id, body):
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return curl(
        "-H", f"Authorization: Bearer {ADMIN_TOKEN}", "-H", "Content-Type: application/json",
        "--data-binary", "@-", f"{broker.admin_url}/v1/orders/{order_id}/status",
        stdin=text.encode() if isinstance(text, str) else text,
    )


@pytest.mark.parametrize("protocol", [paho.MQTTv31, paho.MQTTv311])
def test_every_field_arrives(protocol, schemas, broker, names, paho_client):
    sales_id = names.client("sales")
    phone = paho_client(names.client("phone"), protocol=protocol)
    phone.subscribe((f"orders/{sales_id}/#", 1))
    before = int(time.time() * 1000)
    answer = post(broker, "A-4711", {
        "sales_id": sales_id, "status": "SUPPLEMENT_REQUIRED",
        "reason": "Gehaltsnachweis fehlt \U0001f4c4", "updated_at_ms": "1763690000123",
        "details": {"bank": "N\u00f6rdlich", "amount": "12000.50", "": "x"},
    })
    after = int(time.time() * 1000)
    assert answer.status == 200, answer
    result = answer.json
    assert (result["matched"], result["online"]) == (1, 1)

    message = phone.take()
    assert message.topic == f"orders/{sales_id}/A-4711/status"
    assert message.qos == 1
    envelope, update = decode(schemas, message.payload)
    assert envelope.message_id == result["message_id"]
    assert envelope.topic == message.topic
    assert envelope.channel == f"orders/{sales_id}"
    assert envelope.sequence == 1
    assert list(envelope.supersedes_sequence) == []
    assert before <= envelope.published_at_ms <= after
    assert envelope.expires_at_ms == 0
    assert envelope.collapse_key == ""
    assert envelope.content_type == "application/protobuf; proto=hermes.v1.OrderStatusUpdate"
    assert update.order_id == "A-4711"
    assert update.sales_id == sales_id
    assert update.status == STATUSES.index("SUPPLEMENT_REQUIRED")
    assert update.reason == "Gehaltsnachweis fehlt \U0001f4c4"
    assert update.updated_at_ms == 1763690000123
    assert dict(update.details) == {"bank": "N\u00f6rdlich", "amount": "12000.50", "": "x"}


def test_a_name_and_a_time_to_live(schemas, broker, names, client):
    """Both are in the envelope."""
    phone = client("phone")
    phone.subscribe((f"orders/{names.client('s')}/+/status", 1))
    answer = post(broker, "1", {
        "sales_id": names.client("s"), "status": 4, "message_id": "crm-7", "expires_in_s": 60,
    })
    assert answer.json["message_id"] == "crm-7"
    envelope, _ = decode(schemas, phone.take_message().payload)
    assert envelope.message_id == "crm-7"
    assert 0 <= envelope.expires_at_ms - envelope.published_at_ms - 60_000 <= 1_000


def test_what_is_left_out(schemas, broker, names, client):
    """The time of the request, and empty fields."""
    phone = client("phone")
    phone.subscribe((f"orders/{names.client('s')}/+/status", 1))
    before = int(time.time() * 1000)
    assert post(broker, "1", {"sales_id": names.client("s"), "status": 4}).status == 200
    envelope, update = decode(schemas, phone.take_message().payload)
    assert before <= update.updated_at_ms <= int(time.time() * 1000)
    assert (update.status, update.reason, dict(update.details)) == (4, "", {})
    assert envelope.sequence == 1


@pytest.mark.parametrize("spelling", ["short", "full", "number"])
@pytest.mark.parametrize("number", range(len(STATUSES)))
def test_every_status_in_every_spelling(number, spelling, schemas, broker, names, client):
    phone = client("phone")
    phone.subscribe((f"orders/{names.client('s')}/#", 1))
    status = {
        "short": STATUSES[number], "full": "ORDER_STATUS_" + STATUSES[number], "number": number,
    }[spelling]
    answer = post(broker, "1", {"sales_id": names.client("s"), "status": status})
    assert answer.status == 200, answer
    assert decode(schemas, phone.take_message().payload)[1].status == number


def test_sequences_count_per_channel(schemas, broker, names, client):
    """One by one for each sales person, with or without subscribers."""
    phone = client("phone")
    phone.subscribe((f"orders/{names.client('a')}/#", 1), (f"orders/{names.client('b')}/#", 1))
    for number in range(20):
        sales_id = names.client("ab"[number % 2])
        post(broker, f"order-{number}", {"sales_id": sales_id, "status": "SIGNED"})
    seen = {"a": [], "b": []}
    for _ in range(20):
        envelope, update = decode(schemas, phone.take_message().payload)
        seen["a" if update.sales_id == names.client("a") else "b"].append(envelope.sequence)
    assert seen == {"a": list(range(1, 11)), "b": list(range(1, 11))}

    # Numbers advance without subscribers, so that the phone sees the gap.
    phone.disconnect()
    post(broker, "unheard", {"sales_id": names.client("a"), "status": "FUNDED"})
    phone = client("phone")
    phone.subscribe((f"orders/{names.client('a')}/#", 1))
    post(broker, "heard", {"sales_id": names.client("a"), "status": "FUNDED"})
    assert decode(schemas, phone.take_message().payload)[0].sequence == 12


def test_a_phone_that_was_away_gets_all_in_order(schemas, broker, names, client):
    phone = client("phone", clean_session=False)
    phone.subscribe((f"orders/{names.client('s')}/#", 1))
    phone.disconnect()
    for status in STATUSES[1:]:
        result = post(broker, "77", {"sales_id": names.client("s"), "status": status}).json
        assert (result["matched"], result["online"], result["queued"]) == (1, 0, 1)
    phone = client("phone", clean_session=False)
    updates = [decode(schemas, phone.take_message().payload) for _ in STATUSES[1:]]
    assert [update.status for _, update in updates] == list(range(1, len(STATUSES)))
    assert [envelope.sequence for envelope, _ in updates] == list(range(1, len(STATUSES)))
    client("phone")  # Ends the stored session.


def test_mosquitto_sub_receives_the_bytes(schemas, broker, names, mosquitto_sub):
    phone = mosquitto_sub("-t", f"orders/{names.client('s')}/#", "-q", "1")
    post(broker, "A%20B", {"sales_id": names.client("s"), "status": "APPROVED"})
    message = phone.take()
    assert message.topic.startswith(f"orders/{names.client('s')}/A")
    envelope, update = decode(schemas, message.payload)
    assert (update.order_id, update.status, envelope.sequence) == ("A B", 4, 1)


@pytest.mark.parametrize(
    ("order_id", "body", "words"),
    [
        ("1", "{", "JSON"),
        ("1", {"status": "SIGNED"}, "sales_id"),
        ("1", {"sales_id": "s"}, "status"),
        ("1", {"sales_id": "s", "status": "LOST"}, "FUNDED"),
        ("1", {"sales_id": "s", "status": "signed"}, "SIGNED"),
        ("1", {"sales_id": "s", "status": 99}, "FUNDED"),
        ("1", {"sales_id": "s", "status": True}, "status"),
        ("1", {"sales_id": "", "status": "SIGNED"}, "sales_id"),
        ("1", {"sales_id": "a/b", "status": "SIGNED"}, "sales_id"),
        ("1", {"sales_id": "#", "status": "SIGNED"}, "sales_id"),
        ("a%2Fb", {"sales_id": "s", "status": "SIGNED"}, "order_id"),
        ("%2B", {"sales_id": "s", "status": "SIGNED"}, "order_id"),
        ("1", {"sales_id": "s", "status": "SIGNED", "order_id": "2"}, "order_id"),
        ("1", {"sales_id": "s", "status": "SIGNED", "updated_at_ms": "soon"}, "updated_at_ms"),
        ("1", {"sales_id": "s", "status": "SIGNED", "details": {"a": 1}}, "details"),
        ("1", {"sales_id": "s", "status": "SIGNED", "reasons": "x"}, "reasons"),
        ("1", {"sales_id": "s", "salesId": "s", "status": "SIGNED"}, "sales_id"),
        ("1", {"sales_id": "s", "status": "SIGNED", "reason": "a\0b"}, "reason"),
    ],
)
def test_a_bad_update_is_explained(order_id, body, words, broker):
    problem = post(broker, order_id, body).problem(400)
    assert words in json.dumps(problem), problem


def test_a_refused_update_takes_no_sequence(schemas, broker, names, client):
    phone = client("phone")
    phone.subscribe((f"orders/{names.client('s')}/#", 1))
    post(broker, "1", {"sales_id": names.client("s"), "status": "LOST"}).problem(400)
    post(broker, "1", {"sales_id": names.client("s"), "status": "SIGNED"})
    assert decode(schemas, phone.take_message().payload)[0].sequence == 1
