"""Section 3.3.1.3: retained messages."""

import pytest

from harness.command_line_clients import Received, mosquitto_pub, mosquitto_sub_once
from harness.wire import Publish


def retained_at(client, name, topic, qos=2):
    """Retained messages for a new subscriber, their exchanges completed."""
    subscriber = client(name)
    subscriber.subscribe((topic, qos))
    messages = subscriber.messages_so_far()
    subscriber.close()
    return messages


def test_set_replace_and_clear(client, names):
    """[MQTT-3.3.1-5] [MQTT-3.3.1-6] [MQTT-3.3.1-10] [MQTT-3.3.1-11]"""
    topic = names.topic("price")
    publisher = client("pub")
    publisher.publish(topic, b"old", retain=True)
    publisher.publish(topic, b"new", retain=True)
    assert retained_at(client, "first", topic) == [Publish(topic, b"new", retain=True)]

    publisher.publish(topic, b"", retain=True)
    assert retained_at(client, "second", topic) == []


def test_retain_flag_live_and_on_subscribing(client, names):
    """[MQTT-3.3.1-8] on subscribing it is set, [MQTT-3.3.1-9] live it is not."""
    topic = names.topic()
    early, publisher = client("early"), client("pub")
    early.subscribe((topic, 0))
    publisher.publish(topic, b"value", retain=True)
    assert early.messages_so_far() == [Publish(topic, b"value", retain=False)]
    assert retained_at(client, "late", topic) == [Publish(topic, b"value", retain=True)]
    publisher.publish(topic, b"", retain=True)
    assert early.messages_so_far() == [Publish(topic, b"", retain=False)], (
        "clearing is delivered live as an ordinary message [MQTT-3.3.1-10]"
    )


def test_an_unretained_publish_leaves_the_retained_message(client, names):
    """[MQTT-3.3.1-12]"""
    topic = names.topic()
    publisher = client("pub")
    publisher.publish(topic, b"kept", retain=True)
    publisher.publish(topic, b"passing")
    publisher.publish(topic, b"")
    assert retained_at(client, "late", topic) == [Publish(topic, b"kept", retain=True)]


@pytest.mark.parametrize("stored", [0, 1, 2])
@pytest.mark.parametrize("subscribed", [0, 1, 2])
def test_retained_messages_come_at_the_lower_qos(stored, subscribed, client, names):
    topic = names.topic()
    client("pub").publish(topic, b"x", qos=stored, retain=True)
    subscriber = client("sub")
    subscriber.subscribe((topic, subscribed))
    message = subscriber.take_messages(1)[0]
    assert (message.qos, message.retain, message.dup) == (min(stored, subscribed), True, False)


def test_a_qos_0_value_replaces_a_qos_1_value(client, names):
    """[MQTT-3.3.1-7]"""
    topic = names.topic()
    publisher = client("pub")
    publisher.publish(topic, b"one", qos=1, retain=True)
    publisher.publish(topic, b"zero", qos=0, retain=True)
    assert retained_at(client, "late", topic) == [Publish(topic, b"zero", retain=True)]


def test_every_subscribe_sends_them_again(client, names):
    """[MQTT-3.8.4-3] also an identical one, and without a gap in the live flow."""
    topic = names.topic()
    publisher, subscriber = client("pub"), client("sub")
    publisher.publish(topic, b"value", retain=True)
    for _ in range(2):
        subscriber.subscribe((topic, 0))
        assert subscriber.messages_so_far() == [Publish(topic, b"value", retain=True)]
    publisher.publish(topic, b"live")
    assert subscriber.messages_so_far() == [Publish(topic, b"live")], "subscribed twice over"


def test_resuming_a_session_sends_none(client, names):
    topic = names.topic()
    client("pub").publish(topic, b"value", retain=True)
    subscriber = client("sub", clean_session=False)
    subscriber.subscribe((topic, 0))
    assert len(subscriber.messages_so_far()) == 1
    subscriber.disconnect()
    assert client("sub", clean_session=False).messages_so_far() == []
    client("sub")  # Ends the stored session.


def test_a_wildcard_subscriber_gets_each_with_its_own_topic(client, names):
    """[MQTT-3.3.2-3]"""
    publisher = client("pub")
    values = {names.topic(f"floor/{number}"): str(number).encode() for number in range(100)}
    for topic, value in values.items():
        publisher.publish(topic, value, qos=1, retain=True)
    subscriber = client("sub")
    subscriber.subscribe((names.topic("floor/+"), 1))
    messages = subscriber.take_messages(len(values))
    assert {message.topic: message.payload for message in messages} == values
    assert all(message.retain for message in messages)
    assert subscriber.messages_so_far() == []


def test_retained_messages_outlive_their_publishers_session(client, names):
    """[MQTT-3.1.2-7]"""
    topic = names.topic()
    publisher = client("pub", clean_session=True)
    publisher.publish(topic, b"value", retain=True)
    publisher.disconnect()
    client("pub").disconnect()
    assert len(retained_at(client, "late", topic)) == 1


def test_with_command_line_clients(broker, names, mosquitto_sub):
    topic = names.topic("shell")
    live = mosquitto_sub("-t", topic, "-q", "1")
    mosquitto_pub(broker, "-t", topic, "-m", "kept", "-r", "-q", "1")
    assert live.take() == Received(topic, b"kept", 1, retain=False)
    late = ("-t", topic, "-C", "1", "-W", "10", "-F", "%r %p")
    assert mosquitto_sub_once(broker, *late) == "1 kept\n"
    mosquitto_pub(broker, "-t", topic, "-n", "-r")
    mosquitto_pub(broker, "-t", topic, "-m", "live")
    assert live.take() == Received(topic, b"", 0)
    assert live.take() == Received(topic, b"live", 0)
    assert mosquitto_sub("-t", topic).stop() == []


def test_with_paho(names, paho_client):
    topic = names.topic("paho")
    publisher = paho_client(names.client("pub"))
    publisher.publish(topic, b"kept", qos=2, retain=True)
    subscriber = paho_client(names.client("sub"))
    subscriber.subscribe((topic, 1))
    assert subscriber.take() == Received(topic, b"kept", 1, retain=True)
