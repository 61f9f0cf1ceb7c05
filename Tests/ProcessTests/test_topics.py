"""Sections 3.8, 3.10 and 4.7: subscriptions, their wildcards and their end."""

import pytest

from harness import wire
from harness.wire import Publish, Suback, Unsuback

TOPICS = [
    "a", "/a", "a/", "/", "a/b", "a//b", "a/b/c", "a/b/d/e", "b", "A", "a b", "\u00e9", "e\u0301",
    "\ufeffa", "a/$x", "$test", "$test/a", "$test/a/b",
]

MATCHES = {
    "a": ["a"],
    "/a": ["/a"],
    "+": ["a", "b", "A", "a b", "\u00e9", "e\u0301", "\ufeffa"],
    "/+": ["/a", "/"],
    "+/+": ["/a", "a/", "/", "a/b", "a/$x"],
    "+/": ["a/", "/"],
    "a/+": ["a/", "a/b", "a/$x"],
    "a/#": ["a", "a/", "a/b", "a//b", "a/b/c", "a/b/d/e", "a/$x"],
    "a/+/#": ["a/", "a/b", "a//b", "a/b/c", "a/b/d/e", "a/$x"],
    "a/+/c": ["a/b/c"],
    "+/b/+": ["a/b/c"],
    "+/+/#": ["/a", "a/", "/", "a/b", "a//b", "a/b/c", "a/b/d/e", "a/$x"],
    "a//b": ["a//b"],
    "a/+/b": ["a//b"],
    "#": [topic for topic in TOPICS if not topic.startswith("$")],
    "/#": ["/a", "/"],
    "$test/#": ["$test", "$test/a", "$test/a/b"],
    "$test/+": ["$test/a"],
    "+/a": ["/a"],
    "a/$x": ["a/$x"],
    "\u00e9": ["\u00e9"],
    "\ufeffa": ["\ufeffa"],
}


@pytest.fixture(scope="module")
def quiet_broker(broker_class):
    """A broker whose whole topic space belongs to this module."""
    broker = broker_class()
    broker.start()
    yield broker
    assert broker.stop() == 0
    broker.remove_files()


@pytest.mark.parametrize("topic_filter", MATCHES)
def test_which_topics_a_filter_matches(topic_filter, quiet_broker, client):
    """[MQTT-4.7.1-2] [MQTT-4.7.1-3] [MQTT-4.7.2-1] [MQTT-4.7.3-4]"""
    subscriber, publisher = client("sub", quiet_broker), client("pub", quiet_broker)
    assert subscriber.subscribe((topic_filter, 0)) == (0,)
    publisher.send(*(wire.publish(topic, topic.encode()) for topic in TOPICS))
    publisher.ping()
    received = [message.topic for message in subscriber.messages_so_far()]
    assert received == [topic for topic in TOPICS if topic in MATCHES[topic_filter]]


@pytest.mark.parametrize("topic_filter", MATCHES)
def test_which_retained_messages_a_filter_matches(topic_filter, quiet_broker, client):
    publisher = client("pub", quiet_broker)
    for topic in TOPICS:
        publisher.publish(topic, b"kept", qos=1, retain=True)
    subscriber = client("sub", quiet_broker)
    subscriber.subscribe((topic_filter, 0))
    received = sorted(message.topic for message in subscriber.messages_so_far())
    assert received == sorted(MATCHES[topic_filter])
    for topic in TOPICS:
        publisher.publish(topic, b"", qos=1, retain=True)


@pytest.mark.parametrize("wide_first", [True, False])
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (0, 1), (0, 2), (1, 2),
        pytest.param(
            2, 0, marks=pytest.mark.mosquitto_deviates("delivers at the narrower filter's QoS")
        ),
    ],
)
def test_overlapping_subscriptions_deliver_one_copy_at_the_highest_qos(
    wide, narrow, wide_first, client, names
):
    """[MQTT-3.3.5-1] whatever the order of subscribing."""
    topic = names.topic("a/b")
    subscriptions = [(names.topic("#"), wide), (topic, narrow)]
    subscriber = client("sub")
    for one in subscriptions if wide_first else reversed(subscriptions):
        subscriber.subscribe(one)
    client("pub").publish(topic, b"x", qos=2)
    message = subscriber.take_messages(1)[0]
    assert message.qos == max(wide, narrow)
    assert subscriber.messages_so_far() == []


def test_one_suback_for_several_filters(client, names):
    """[MQTT-3.8.4-4] [MQTT-3.8.4-5] [MQTT-3.9.3-1]"""
    subscriber = client("sub")
    filters = [(names.topic(str(number)), number % 3) for number in range(9)]
    subscriber.send(wire.subscribe(1234, *filters))
    assert subscriber.expect(Suback) == Suback(1234, (0, 1, 2) * 3)


def test_an_identical_filter_replaces_the_subscription(client, names):
    """[MQTT-3.8.4-3] one copy, at the new QoS."""
    topic = names.topic()
    subscriber, publisher = client("sub"), client("pub")
    for qos in (2, 0, 1):
        assert subscriber.subscribe((topic, qos)) == (qos,)
        publisher.publish(topic, b"x", qos=2)
        assert subscriber.take_messages(1)[0].qos == qos
        assert subscriber.messages_so_far() == []


def test_unsubscribing_compares_literally(client, names):
    """[MQTT-3.10.4-1]"""
    topic = names.topic("a/b")
    subscriber, publisher = client("sub"), client("pub")
    subscriber.subscribe((topic, 0))
    subscriber.unsubscribe(names.topic("a/+"), names.topic("#"), topic + "/", topic.upper())
    publisher.publish(topic, b"still")
    assert subscriber.messages_so_far() == [Publish(topic, b"still")]
    subscriber.unsubscribe(topic)
    publisher.publish(topic, b"gone")
    assert subscriber.messages_so_far() == []


def test_unsubscribing_leaves_overlapping_subscriptions(client, names):
    topic = names.topic("a/b")
    subscriber, publisher = client("sub"), client("pub")
    subscriber.subscribe((names.topic("a/+"), 0), (topic, 0), (names.topic("#"), 0))
    for topic_filter in (names.topic("a/+"), topic):
        subscriber.unsubscribe(topic_filter)
        publisher.publish(topic, b"x")
        assert subscriber.messages_so_far() == [Publish(topic, b"x")]


def test_unsubscribing_from_nothing_is_acknowledged(client, names):
    """[MQTT-3.10.4-5] [MQTT-3.10.4-6]"""
    subscriber = client("sub")
    subscriber.send(wire.unsubscribe(77, names.topic("x"), names.topic("y")))
    assert subscriber.expect(Unsuback) == Unsuback(77)


def test_unsubscribing_with_paho(names, paho_client):
    topic = names.topic()
    subscriber = paho_client(names.client("sub"))
    subscriber.subscribe((topic, 1), (names.topic("other"), 1))
    subscriber.unsubscribe(topic)
    publisher = paho_client(names.client("pub"))
    publisher.publish(topic, b"no", 1)
    publisher.publish(names.topic("other"), b"yes", 1)
    assert subscriber.take().payload == b"yes"
    assert subscriber.stop() == []


def test_wildcards_with_mosquitto_sub(names, paho_client, mosquitto_sub):
    """Several filters in one client, one of them with both wildcards."""
    subscriber = mosquitto_sub(
        "-t", names.topic("orders/+/status/#"), "-t", names.topic("alarm")
    )
    publisher = paho_client(names.client("pub"))
    wanted = ["orders/1/status", "orders/2/status/x/y", "alarm"]
    for rest in ["orders/1", "orders/1/statuses", *wanted, "alarm/1"]:
        publisher.publish(names.topic(rest), b"x")
    publisher.publish(names.topic("alarm"), b"end")
    assert [subscriber.take().topic for _ in wanted] == [names.topic(rest) for rest in wanted]
    assert subscriber.take().payload == b"end"


def test_thousands_of_subscriptions_of_one_client(client, names):
    """Every filter counts, and so does every removal."""
    subscriber, publisher = client("sub"), client("pub")
    filters = [names.topic(f"{number}/+") for number in range(2_000)]
    codes = subscriber.subscribe(*((one, 1) for one in filters))
    assert codes == (1,) * len(filters)
    subscriber.unsubscribe(*filters[::2])
    for number in (0, 1, 998, 999, 1_998, 1_999):
        publisher.publish(names.topic(f"{number}/x"), str(number).encode())
    assert [int(message.payload) for message in subscriber.messages_so_far()] == [1, 999, 1_999]
