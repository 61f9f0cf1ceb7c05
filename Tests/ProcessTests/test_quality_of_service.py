"""Section 4.3: QoS 0, 1 and 2 from publisher to subscriber."""

import paho.mqtt.client as paho
import pytest

from harness import wire
from harness.command_line_clients import Received, mosquitto_pub
from harness.wire import Puback, Pubcomp, Publish, Pubrec, Pubrel

ALL_QOS = (0, 1, 2)
PAYLOADS = [b"first", b"second", b"third"]
PAHO_PROTOCOLS = {"mqttv31": paho.MQTTv31, "mqttv311": paho.MQTTv311}


@pytest.mark.parametrize("subscribed", ALL_QOS)
@pytest.mark.parametrize("published", ALL_QOS)
@pytest.mark.parametrize("version", PAHO_PROTOCOLS)
@pytest.mark.parametrize("subscriber_kind", ["mosquitto_sub", "paho"])
@pytest.mark.parametrize("publisher_kind", ["mosquitto_pub", "paho"])
def test_delivery_at_the_lower_qos(
    publisher_kind, subscriber_kind, version, published, subscribed,
    broker, names, paho_client, mosquitto_sub,
):
    """[MQTT-3.8.4-6] with real clients; every message once and in order."""
    topic = names.topic("status")
    if subscriber_kind == "paho":
        subscriber = paho_client(names.client("sub"), protocol=PAHO_PROTOCOLS[version])
        assert subscriber.subscribe((topic, subscribed)) == [subscribed]
    else:
        subscriber = mosquitto_sub(
            "-V", version, "-i", names.client("sub"), "-q", str(subscribed), "-t", topic
        )

    if publisher_kind == "paho":
        publisher = paho_client(names.client("pub"), protocol=PAHO_PROTOCOLS[version])
        for payload in PAYLOADS:
            publisher.publish(topic, payload, qos=published)
    else:
        mosquitto_pub(
            broker, "-V", version, "-i", names.client("pub"), "-q", str(published), "-t", topic,
            "-l", stdin=b"\n".join(PAYLOADS) + b"\n",
        )

    expected = [Received(topic, payload, min(published, subscribed)) for payload in PAYLOADS]
    assert [subscriber.take() for _ in PAYLOADS] == expected
    assert subscriber.stop() == [], "delivered more than once"


@pytest.mark.parametrize("qos", ALL_QOS)
def test_many_messages_keep_their_order(qos, broker, names, paho_client):
    """[MQTT-4.6.0-6] far more messages than the in-flight window holds."""
    topic, count = names.topic("ordered"), 500
    subscriber = paho_client(names.client("sub"))
    subscriber.subscribe((topic, qos))
    publisher = paho_client(names.client("pub"))
    for number in range(count):
        publisher.client.publish(topic, str(number), qos)
    assert [int(subscriber.take().payload) for _ in range(count)] == list(range(count))


@pytest.mark.parametrize("dup", [False, True])
def test_a_repeated_qos_2_publish_is_delivered_once(dup, client, names):
    """[MQTT-4.3.3-2] until PUBREL every repetition is acknowledged and none is delivered."""
    topic = names.topic()
    subscriber = client("sub")
    subscriber.subscribe((topic, 2))
    publisher = client("pub")
    publisher.send(wire.publish(topic, b"once", qos=2, packet_id=9))
    assert publisher.expect(Pubrec) == Pubrec(9)
    publisher.send(wire.publish(topic, b"once", qos=2, dup=dup, packet_id=9))
    assert publisher.expect(Pubrec) == Pubrec(9)
    publisher.send(wire.pubrel(9))
    assert publisher.expect(Pubcomp) == Pubcomp(9)

    assert subscriber.take_messages(1)[0].payload == b"once"
    assert subscriber.messages_so_far() == []

    # After PUBCOMP the identifier means a new message.
    publisher.send(wire.publish(topic, b"again", qos=2, packet_id=9))
    assert publisher.expect(Pubrec) == Pubrec(9)
    publisher.send(wire.pubrel(9))
    assert publisher.expect(Pubcomp) == Pubcomp(9)
    assert subscriber.take_messages(1)[0].payload == b"again"


@pytest.mark.parametrize("qos", [1, 2])
def test_a_first_publish_with_dup_is_delivered(qos, client, names):
    """DUP alone makes no duplicate; nor is it passed on [MQTT-3.3.1-3]."""
    topic = names.topic()
    subscriber = client("sub")
    subscriber.subscribe((topic, 2))
    publisher = client("pub")
    publisher.send(wire.publish(topic, b"x", qos=qos, dup=True, packet_id=3))
    publisher.expect(Puback if qos == 1 else Pubrec)
    if qos == 2:
        publisher.send(wire.pubrel(3))
        publisher.expect(Pubcomp)
    message = subscriber.receive_publish()
    assert (message.payload, message.qos, message.dup) == (b"x", qos, False)


def test_a_repeated_qos_1_publish_is_a_new_message(client, names):
    """[MQTT-4.3.2-2] after PUBACK the identifier is free, whatever DUP says."""
    topic = names.topic()
    subscriber = client("sub")
    subscriber.subscribe((topic, 1))
    publisher = client("pub")
    for dup in (False, True):
        publisher.send(wire.publish(topic, b"x", qos=1, dup=dup, packet_id=5))
        assert publisher.expect(Puback) == Puback(5)
    assert len(subscriber.take_messages(2)) == 2


def test_a_repeated_pubrel_is_answered_again(client):
    """[MQTT-4.3.3-2] PUBREL is always answered, so that a sender can always finish."""
    publisher = client("pub")
    for _ in range(2):
        publisher.send(wire.pubrel(77))
        assert publisher.expect(Pubcomp) == Pubcomp(77)


@pytest.mark.parametrize("qos", [1, 2])
def test_both_directions_count_packet_identifiers_apart(qos, client, names):
    """[MQTT-2.3.1-4] the same identifier is in flight in both directions at once."""
    topic_in, topic_out = names.topic("in"), names.topic("out")
    device, office = client("device"), client("office")
    device.subscribe((topic_in, qos))
    office.subscribe((topic_out, qos))
    office.publish(topic_in, b"to the device", qos=qos)
    inbound = device.receive_publish()

    device.send(wire.publish(topic_out, b"out", qos=2, packet_id=inbound.packet_id))
    assert device.expect(Pubrec) == Pubrec(inbound.packet_id)
    if qos == 1:
        device.send(wire.puback(inbound.packet_id))
    else:
        device.send(wire.pubrec(inbound.packet_id))
        assert device.expect(Pubrel) == Pubrel(inbound.packet_id)
        device.send(wire.pubcomp(inbound.packet_id))
    device.send(wire.pubrel(inbound.packet_id))
    assert device.expect(Pubcomp) == Pubcomp(inbound.packet_id)
    assert office.take_messages(1)[0].payload == b"out"

    # Neither exchange left anything behind.
    office.publish(topic_in, b"next", qos=qos)
    assert device.take_messages(1)[0].payload == b"next"


@pytest.mark.mosquitto_deviates("lets the window grow by one with every acknowledgement")
@pytest.mark.parametrize("qos", [1, 2])
def test_the_in_flight_window_is_kept(qos, start_broker, client, names):
    """A client that acknowledges nothing gets as many messages as the window holds."""
    window, count = 3, 10
    broker = start_broker(max_in_flight=window)
    topic = names.topic()
    subscriber, publisher = client("sub", broker), client("pub", broker)
    subscriber.subscribe((topic, qos))
    for number in range(count):
        publisher.publish(topic, str(number).encode(), qos=qos)

    in_flight = [subscriber.receive_publish() for _ in range(window)]
    assert subscriber.messages_so_far() == []
    for number in range(window, count):
        oldest = in_flight.pop(0)
        if qos == 1:
            subscriber.send(wire.puback(oldest.packet_id))
        else:
            subscriber.send(wire.pubrec(oldest.packet_id))
            assert subscriber.await_packet(Pubrel) == Pubrel(oldest.packet_id)
            # The exchange holds its place until PUBCOMP.
            assert subscriber.messages_so_far() == []
            subscriber.send(wire.pubcomp(oldest.packet_id))
        message = subscriber.receive_publish()
        assert message.payload == str(number).encode()
        assert message.packet_id not in [one.packet_id for one in in_flight]
        in_flight.append(message)
        assert subscriber.messages_so_far() == []


@pytest.mark.mosquitto_deviates("passes over some of these", strict=False)
@pytest.mark.parametrize(
    ("qos", "answers"),
    [
        pytest.param(1, [wire.pubrec], id="PUBREC where PUBACK is due"),
        pytest.param(1, [wire.pubcomp], id="PUBCOMP where PUBACK is due"),
        pytest.param(2, [wire.puback], id="PUBACK where PUBREC is due"),
        pytest.param(2, [wire.pubcomp], id="PUBCOMP where PUBREC is due"),
        pytest.param(2, [wire.pubrec, wire.puback], id="PUBACK where PUBCOMP is due"),
    ],
)
def test_another_acknowledgement_than_is_due_ends_the_connection(qos, answers, client, names):
    """[MQTT-4.8.0-1], and the message comes again to the session."""
    topic = names.topic()
    subscriber = client("sub", clean_session=False)
    subscriber.subscribe((topic, qos))
    publisher = client("pub")
    publisher.publish(topic, b"x", qos=qos)
    message = subscriber.receive_publish()
    for answer in answers[:-1]:
        subscriber.send(answer(message.packet_id))
        assert subscriber.expect(Pubrel).packet_id == message.packet_id
    subscriber.send(answers[-1](message.packet_id))
    assert subscriber.await_closed() == []
    again = client("sub", clean_session=False)
    if len(answers) == 1:
        assert again.take_message().payload == b"x"
    else:
        assert again.expect(Pubrel).packet_id == message.packet_id
    publisher.ping()


def test_an_acknowledgement_of_nothing_is_passed_over(client):
    """A repeated one may come late, when its message is done."""
    subscriber = client("sub")
    subscriber.send(wire.puback(7), wire.pubcomp(8), wire.pubrec(9))
    assert subscriber.expect(Pubrel) == Pubrel(9)
    subscriber.ping()


def test_acknowledgements_come_in_the_order_of_the_publishes(client, names):
    """[MQTT-4.6.0-2] [MQTT-4.6.0-3] also when several arrive in one segment."""
    publisher = client("pub")
    topic = names.topic("nobody")
    publisher.send(
        *(wire.publish(topic, b"x", qos=1, packet_id=number) for number in range(1, 51)),
        *(wire.publish(topic, b"x", qos=2, packet_id=number) for number in range(51, 101)),
    )
    assert [publisher.expect(Puback).packet_id for _ in range(50)] == list(range(1, 51))
    assert [publisher.expect(Pubrec).packet_id for _ in range(50)] == list(range(51, 101))
    publisher.send(*(wire.pubrel(number) for number in range(51, 101)))
    assert [publisher.expect(Pubcomp).packet_id for _ in range(50)] == list(range(51, 101))


def test_a_publisher_gets_its_own_message_when_it_subscribes(client, names):
    topic = names.topic()
    both = client("both")
    both.subscribe((topic, 0))
    both.publish(topic, b"echo")
    assert both.messages_so_far() == [Publish(topic, b"echo")]
