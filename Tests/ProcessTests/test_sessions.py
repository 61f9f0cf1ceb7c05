"""Sections 3.1.2.4 and 4.4: the state of a session, and re-delivery after a reconnect."""

import paho.mqtt.client as paho
import pytest

from harness import wire
from harness.command_line_clients import Received, mosquitto_pub, mosquitto_sub_once
from harness.wire import Connack, Puback, Pubcomp, Publish, Pubrec, Pubrel


@pytest.fixture
def resume(raw, names):
    """Connects with CleanSession 0 and returns the client with its CONNACK."""

    def connect_one(name, to=None):
        connection = raw(to)
        return connection, connection.connect(names.client(name), clean_session=False)

    yield connect_one


def test_session_present(raw, names):
    """[MQTT-3.2.2-1] [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT-3.1.2-6]"""
    expectations = [
        # CleanSession, session present
        (False, False), (False, True), (False, True), (True, False), (False, False),
        (True, False), (True, False),
    ]
    for step, (clean_session, present) in enumerate(expectations):
        connection = raw()
        connack = connection.connect(names.client(), clean_session=clean_session)
        assert connack == Connack(present, 0), f"step {step}"
        connection.disconnect()


def test_session_present_with_paho(names, paho_client):
    for present in (False, True):
        one = paho_client(names.client(), clean_session=False)
        assert one.session_present is present
        one.stop()
    assert not paho_client(names.client(), clean_session=True).session_present


@pytest.mark.parametrize("ends_cleanly", [True, False])
def test_messages_wait_in_order_for_an_absent_client(ends_cleanly, resume, client, names):
    """[MQTT-3.1.2-5]; QoS 0 is not kept for absent clients."""
    topic = names.topic("orders")
    phone, _ = resume("phone")
    phone.subscribe((topic, 2))
    if ends_cleanly:
        phone.disconnect()
    else:
        phone.reset()
        # The broker has seen the reset once it takes the session over.
        phone, connack = resume("phone")
        assert connack.session_present
        phone.disconnect()

    office = client("office")
    for number in range(30):
        office.publish(topic, str(number).encode(), qos=number % 3)

    phone, connack = resume("phone")
    assert connack == Connack(True, 0)
    received = phone.take_messages(20)
    expected = [number for number in range(30) if number % 3]
    assert [int(message.payload) for message in received] == expected
    assert [message.qos for message in received] == [number % 3 for number in expected]
    assert not any(message.dup or message.retain for message in received)
    assert phone.messages_so_far() == []
    client("phone")  # Ends the stored session.


def test_unacknowledged_qos_1_is_sent_again(resume, client, names):
    """[MQTT-4.4.0-1] same identifiers, same order, DUP; then queued messages without DUP."""
    topic = names.topic()
    phone, _ = resume("phone")
    phone.subscribe((topic, 1))
    office = client("office")
    for number in range(5):
        office.publish(topic, str(number).encode(), qos=1)
    first = [phone.receive_publish() for _ in range(5)]
    assert not any(message.dup for message in first)
    phone.send(wire.puback(first[1].packet_id))
    phone.ping()
    phone.close()
    office.publish(topic, b"queued", qos=1)

    phone, _ = resume("phone")
    again = [phone.receive_publish() for _ in range(5)]
    assert [(message.payload, message.packet_id) for message in again[:4]] == [
        (message.payload, message.packet_id) for message in first if message is not first[1]
    ]
    assert all(message.dup for message in again[:4])
    assert (again[4].payload, again[4].dup) == (b"queued", False)
    assert again[4].packet_id not in {message.packet_id for message in again[:4]}

    # Once acknowledged, nothing comes again.
    phone.send(*(wire.puback(message.packet_id) for message in again))
    phone.ping()
    phone.disconnect()
    phone, _ = resume("phone")
    assert phone.messages_so_far() == []
    client("phone")  # Ends the stored session.


def test_an_unfinished_qos_2_delivery_goes_on_where_it_was(resume, client, names):
    """[MQTT-4.3.3-1] PUBLISH with DUP before PUBREC; after it PUBREL and never the PUBLISH."""
    topic = names.topic()
    phone, _ = resume("phone")
    phone.subscribe((topic, 2))
    office = client("office")
    for payload in (b"released", b"unreleased", b"unseen"):
        office.publish(topic, payload, qos=2)
    released, unreleased, unseen = (phone.receive_publish() for _ in range(3))
    phone.send(wire.pubrec(released.packet_id))
    assert phone.expect(Pubrel) == Pubrel(released.packet_id)
    phone.send(wire.pubcomp(released.packet_id), wire.pubrec(unreleased.packet_id))
    assert phone.expect(Pubrel) == Pubrel(unreleased.packet_id)
    phone.reset()

    for _ in range(2):
        phone, _ = resume("phone")
        assert phone.packets_so_far() == [
            Pubrel(unreleased.packet_id),
            Publish(topic, b"unseen", 2, dup=True, packet_id=unseen.packet_id),
        ]
        phone.close()

    phone, _ = resume("phone")
    assert phone.receive() == Pubrel(unreleased.packet_id)
    phone.send(wire.pubcomp(unreleased.packet_id))
    assert phone.take_messages(1)[0].payload == b"unseen"
    phone.disconnect()
    phone, _ = resume("phone")
    assert phone.packets_so_far() == []
    client("phone")  # Ends the stored session.


def test_received_qos_2_identifiers_outlive_the_connection(resume, client, names):
    """[MQTT-4.3.3-2] a PUBLISH repeated after a reconnection is not delivered again."""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    phone, _ = resume("phone")
    phone.send(wire.publish(topic, b"once", qos=2, packet_id=7))
    assert phone.expect(Pubrec) == Pubrec(7)
    phone.reset()

    phone, _ = resume("phone")
    phone.send(wire.publish(topic, b"once", qos=2, dup=True, packet_id=7))
    assert phone.expect(Pubrec) == Pubrec(7)
    phone.send(wire.pubrel(7))
    assert phone.expect(Pubcomp) == Pubcomp(7)
    assert [message.payload for message in watcher.messages_so_far()] == [b"once"]
    client("phone")  # Ends the stored session.


def test_a_clean_session_forgets_received_qos_2_identifiers(resume, client, names):
    """[MQTT-3.1.2-6]"""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    phone, _ = resume("phone")
    phone.send(wire.publish(topic, b"first", qos=2, packet_id=7))
    phone.expect(Pubrec)
    phone.close()
    phone = client("phone", clean_session=True)
    phone.send(wire.publish(topic, b"second", qos=2, packet_id=7))
    assert phone.expect(Pubrec) == Pubrec(7)
    phone.send(wire.pubrel(7))
    phone.expect(Pubcomp)
    assert watcher.messages_so_far()[-1].payload == b"second"


def test_a_clean_session_discards_everything(resume, client, names):
    """[MQTT-3.1.2-6] subscriptions, queue and in-flight messages."""
    topic = names.topic()
    phone, _ = resume("phone")
    phone.subscribe((topic, 1))
    office = client("office")
    office.publish(topic, b"in flight", qos=1)
    phone.receive_publish()
    phone.close()
    office.publish(topic, b"queued", qos=1)

    phone = client("phone", clean_session=True)
    office.publish(topic, b"live", qos=1)
    assert phone.messages_so_far() == []
    phone.disconnect()
    phone, connack = resume("phone")
    assert connack == Connack(False, 0)
    office.publish(topic, b"live", qos=1)
    assert phone.messages_so_far() == []
    client("phone")  # Ends the stored session.


def test_a_clean_session_ends_with_its_connection(client, resume, names):
    topic = names.topic()
    phone = client("phone", clean_session=True)
    phone.subscribe((topic, 1))
    phone.disconnect()
    client("office").publish(topic, b"missed", qos=1)
    phone, connack = resume("phone")
    assert not connack.session_present
    assert phone.messages_so_far() == []
    client("phone")  # Ends the stored session.


def test_subscriptions_are_kept(resume, client, names):
    topic = names.topic()
    phone, _ = resume("phone")
    phone.subscribe((topic, 2))
    phone.disconnect()
    phone, _ = resume("phone")
    client("office").publish(topic, b"live", qos=2)
    message = phone.take_messages(1)[0]
    assert (message.payload, message.qos) == (b"live", 2)
    client("phone")  # Ends the stored session.


def test_deliveries_begun_are_finished_after_unsubscribing(resume, client, names):
    """[MQTT-3.10.4-2] [MQTT-3.10.4-3] also across a reconnection."""
    topic = names.topic()
    phone, _ = resume("phone")
    phone.subscribe((topic, 1))
    office = client("office")
    office.publish(topic, b"begun", qos=1)
    begun = phone.receive_publish()
    phone.unsubscribe(topic)
    office.publish(topic, b"after", qos=1)
    assert phone.messages_so_far() == []
    phone.close()
    phone, _ = resume("phone")
    assert phone.packets_so_far() == [
        Publish(topic, b"begun", 1, dup=True, packet_id=begun.packet_id)
    ]
    client("phone")  # Ends the stored session.


def test_an_acknowledgement_from_the_last_moment_counts(resume, client, names):
    """PUBACK and FIN in one segment."""
    topic = names.topic()
    phone, _ = resume("phone")
    phone.subscribe((topic, 1))
    client("office").publish(topic, b"x", qos=1)
    phone.send(wire.puback(phone.receive_publish().packet_id))
    phone.close()
    phone, _ = resume("phone")
    assert phone.packets_so_far() == []
    client("phone")  # Ends the stored session.


def test_many_resumptions_redeliver_without_growing(resume, client, names):
    """A client that resumes again and again gets its one message, each time once."""
    topic = names.topic()
    phone, _ = resume("phone")
    phone.subscribe((topic, 1))
    client("office").publish(topic, b"x", qos=1)
    identifier = phone.receive_publish().packet_id
    for _ in range(50):
        phone.disconnect()
        phone, _ = resume("phone")
        assert phone.packets_so_far() == [
            Publish(topic, b"x", 1, dup=True, packet_id=identifier)
        ]
    client("phone")  # Ends the stored session.


def test_identifiers_in_flight_are_not_used_for_new_messages(resume, start_broker, client, names):
    """[MQTT-2.3.1-2] after a resumption the numbering does not start over."""
    broker = start_broker(max_in_flight=5)
    topic = names.topic()
    phone, _ = resume("phone", broker)
    phone.subscribe((topic, 1))
    office = client("office", broker)
    for number in range(3):
        office.publish(topic, str(number).encode(), qos=1)
    held = [phone.receive_publish().packet_id for _ in range(3)]
    phone.close()
    phone, _ = resume("phone", broker)
    assert [phone.receive_publish().packet_id for _ in range(3)] == held
    for number in range(3, 5):
        office.publish(topic, str(number).encode(), qos=1)
    assert not set(held) & {phone.receive_publish().packet_id for _ in range(2)}


@pytest.mark.hermesd("mosquitto's queue limit counts otherwise and drops the newest")
def test_a_full_queue_gives_up_its_oldest_messages(resume, start_broker, client, names):
    broker = start_broker(queue_limit=5)
    topic = names.topic()
    phone, _ = resume("phone", broker)
    phone.subscribe((topic, 1))
    phone.disconnect()
    office = client("office", broker)
    for number in range(8):
        office.publish(topic, str(number).encode(), qos=1)
    phone, _ = resume("phone", broker)
    assert [int(message.payload) for message in phone.take_messages(5)] == [3, 4, 5, 6, 7]
    assert phone.messages_so_far() == []


def test_publishers_are_acknowledged_while_receivers_are_away(resume, client, names):
    """[MQTT-4.5.0-1] storing is the broker's business, not the receivers'."""
    topic = names.topic()
    for number in range(10):
        phone, _ = resume(f"phone{number}")
        phone.subscribe((topic, 2))
        phone.disconnect()
    office = client("office")
    office.send(wire.publish(topic, b"x", qos=1, packet_id=1))
    assert office.expect(Puback) == Puback(1)
    for number in range(10):
        phone, _ = resume(f"phone{number}")
        assert phone.take_message().payload == b"x"
        client(f"phone{number}")  # Ends the stored session.


def test_with_mosquitto_sub(broker, names):
    topic = names.topic("shell")
    session = ("-i", names.client("phone"), "-c", "-q", "1", "-t", topic)
    mosquitto_sub_once(broker, *session, "-E")
    mosquitto_pub(broker, "-t", topic, "-q", "2", "-l", stdin=b"one\ntwo\nthree\n")
    received = mosquitto_sub_once(broker, *session, "-C", "3", "-W", "10", "-F", "%q %p")
    assert received == "1 one\n1 two\n1 three\n"


@pytest.mark.parametrize("protocol", [paho.MQTTv31, paho.MQTTv311])
def test_with_paho(protocol, names, paho_client):
    topic = names.topic("paho")
    options = {"protocol": protocol, "clean_session": False}
    phone = paho_client(names.client("phone"), **options)
    phone.subscribe((topic, 2))
    phone.stop()
    office = paho_client(names.client("office"), protocol=protocol)
    for number in range(50):
        office.publish(topic, str(number).encode(), qos=1 + number % 2)
    phone = paho_client(names.client("phone"), **options)
    received = [phone.take() for _ in range(50)]
    # paho shows a QoS 2 message at its PUBREL, so each QoS has its own order here.
    for qos in (1, 2):
        assert [message for message in received if message.qos == qos] == [
            Received(topic, str(number).encode(), qos) for number in range(qos - 1, 50, 2)
        ]
    assert phone.stop() == []
