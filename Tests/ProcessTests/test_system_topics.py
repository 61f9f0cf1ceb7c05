"""The broker's own topics $SYS/broker/..., seen by mosquitto_sub (docs/metrics.md)."""

import re

import pytest

from harness.admin import AdminAPI
from harness.broker import REPOSITORY
from harness.command_line_clients import mosquitto_pub, mosquitto_sub_once
from harness.wire import Publish

pytestmark = pytest.mark.hermesd("our $SYS topics")


def documented_topics():
    """From the tables: one topic a line, or one with its siblings behind it."""
    topics = []
    for line in (REPOSITORY / "docs/metrics.md").read_text().splitlines():
        if line.startswith("| `$SYS/"):
            first, *siblings = re.findall(r"`([^`]+)`", line.split("|")[1])
            parent = first.rpartition("/")[0]
            topics += [first, *(f"{parent}/{sibling}" for sibling in siblings)]
    return topics


def test_mosquitto_sub_sees_every_topic(broker):
    count = str(len(documented_topics()))
    lines = mosquitto_sub_once(
        broker, "-t", "$SYS/#", "-q", "2", "-C", count, "-W", "10", "-F", "%r %q %t=%p"
    ).splitlines()
    values = {}
    for line in lines:
        retain, qos, rest = line.split(" ", 2)
        assert (retain, qos) == ("1", "0"), line
        topic, _, payload = rest.partition("=")
        values[topic] = payload
    assert sorted(values) == sorted(documented_topics())
    assert re.fullmatch(r"hermes version [0-9.]+", values["$SYS/broker/version"])
    assert re.fullmatch(r"[0-9]+ seconds", values["$SYS/broker/uptime"])
    assert int(values["$SYS/broker/heap/current"]) > 1_000_000
    for topic, payload in values.items():
        if topic.startswith("$SYS/broker/load/"):
            assert re.fullmatch(r"[0-9]+\.[0-9]{2}", payload), f"{topic}: {payload}"


def test_values_change_while_one_watches(start_broker, client):
    broker = start_broker(environment={"HERMES_SYS_INTERVAL": "1s"})
    watcher = client("watcher", broker)
    watcher.subscribe(("$SYS/broker/clients/connected", 1), ("$SYS/broker/version", 1))
    first = watcher.take_messages(2)
    assert Publish("$SYS/broker/clients/connected", b"1", retain=True) in first
    client("second", broker)
    assert watcher.take_message() == Publish("$SYS/broker/clients/connected", b"2")
    assert watcher.messages_so_far() == []


def test_the_figures_are_those_of_metrics(start_broker, client):
    broker = start_broker(environment={"HERMES_SYS_INTERVAL": "1s"})
    publisher = client("pub", broker)
    for qos in (0, 1, 2):
        publisher.publish("a", b"0123456789", qos=qos)
    publisher.disconnect()
    watcher = client("watcher", broker)
    watcher.subscribe(("$SYS/broker/publish/messages/received", 0),
                      ("$SYS/broker/publish/bytes/received", 0))
    values = {message.topic: message.payload for message in watcher.take_messages(2)}
    assert values == {
        "$SYS/broker/publish/messages/received": b"3",
        "$SYS/broker/publish/bytes/received": b"30",
    }
    text = AdminAPI(broker).request("GET", "/metrics").body.decode()
    assert "\nhermes_publish_received_bytes_total 30\n" in text


def test_clients_do_not_publish_there(start_broker, client):
    """Acknowledged, dropped, counted, and logged once."""
    broker = start_broker()
    watcher = client("watcher", broker)
    watcher.subscribe(("$SYS/broker/uptime", 0), ("$SYS/forged", 0))
    watcher.take_message()
    for _ in range(2):
        mosquitto_pub(broker, "-i", "forger", "-t", "$SYS/forged", "-m", "x", "-q", "1", "-r")
    publisher = client("pub", broker)
    for qos in (0, 1, 2):
        publisher.publish("$SYS/broker/uptime", b"forged", qos=qos, retain=True)
    publisher.ping()
    assert watcher.messages_so_far() == []
    late = client("late", broker)
    late.subscribe(("$SYS/forged", 1))
    assert late.messages_so_far() == []
    api = AdminAPI(broker)
    assert api.status()["dropped"]["reserved_topic"] == 5
    assert "reserved_topic" in api.request("GET", "/metrics").body.decode()
    problem = api.request("POST", "/v1/publish?topic=%24SYS%2Fx", b"x").problem(400)
    assert "$SYS" in problem["detail"]
    broker.log.await_match(r"Messages below \$SYS/, \$CONTROL/ or \$hermes/ dropped.*forger")


def test_they_can_be_turned_off(start_broker, client):
    broker = start_broker(environment={"HERMES_SYS_INTERVAL": "0"})
    watcher = client("watcher", broker)
    assert watcher.subscribe(("$SYS/#", 0)) == (0,)
    assert watcher.messages_so_far() == []
