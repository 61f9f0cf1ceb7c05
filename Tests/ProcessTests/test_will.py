"""Section 3.1.2.5: the will is published at every end but DISCONNECT."""

import pytest

from harness import wire
from harness.command_line_clients import Received
from harness.wire import Publish, Will


def ends_by_fin(device, **_):
    device.close()


def ends_by_reset(device, **_):
    device.reset()


def ends_in_mid_packet(device, names, **_):
    device.send(wire.publish(names.topic("cut"), b"x" * 1000)[:500])
    device.close()


def ends_by_silence(device, **_):
    device.await_closed(timeout=10)


def ends_by_take_over(device, client, **_):
    client("device")
    device.await_closed()


def ends_by_violation(device, **_):
    device.send(bytes.fromhex("3605000161000a"))  # PUBLISH with QoS 3
    device.await_closed()


def ends_by_second_connect(device, names, **_):
    device.send(wire.connect(names.client("device")))
    device.await_closed()


def ends_by_malformed_disconnect(device, **_):
    device.send(wire.packet(14, 1))
    device.await_closed()


ENDS = [
    ends_by_fin, ends_by_reset, ends_in_mid_packet, ends_by_silence, ends_by_take_over,
    ends_by_violation,
    pytest.param(
        ends_by_second_connect,
        marks=pytest.mark.mosquitto_deviates("drops the will at a second CONNECT"),
    ),
    ends_by_malformed_disconnect,
]


@pytest.mark.parametrize("clean_session", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_published_once_at_every_other_end(end, clean_session, client, names):
    """[MQTT-3.1.2-8] [MQTT-3.1.2-10]"""
    topic = names.topic("will")
    watcher = client("watcher")
    watcher.subscribe((topic, 2))
    keep_alive = 1 if end is ends_by_silence else 0
    device = client(
        "device", clean_session=clean_session, keep_alive=keep_alive,
        will=Will(topic, b"gone", qos=1),
    )
    end(device, client=client, names=names)
    message = watcher.take_message()
    assert (message.payload, message.qos, message.retain) == (b"gone", 1, False)
    assert watcher.messages_so_far() == [], "the will was published twice"
    client("device")  # Ends the stored session.


def test_not_published_at_disconnect(client, names):
    """[MQTT-3.14.4-3]"""
    topic = names.topic("will")
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    client("device", will=Will(topic, b"gone")).disconnect()
    assert watcher.messages_so_far() == []

    # Nor later: the next connection of the device has no will to publish.
    client("device").close()
    witness = client("witness", will=Will(topic, b"witness"))
    witness.close()
    assert watcher.take_message().payload == b"witness"
    assert watcher.messages_so_far() == []


def test_bytes_after_disconnect_are_not_processed(client, names):
    topic = names.topic("after")
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    device = client("device", will=Will(topic, b"will"))
    device.send(wire.DISCONNECT, wire.publish(topic, b"too late"))
    device.await_closed()
    assert watcher.messages_so_far() == []


def test_a_disconnect_in_the_last_segment_counts(client, names):
    """PUBLISH, DISCONNECT and FIN arrive at once, as mosquitto_pub sends them."""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    device = client("device", will=Will(topic, b"will"))
    device.send(wire.publish(topic, b"last words"), wire.DISCONNECT)
    device.close()
    assert watcher.take_message().payload == b"last words"
    witness = client("witness", will=Will(topic, b"witness"))
    witness.close()
    assert watcher.take_message().payload == b"witness", "the will of a clean disconnect"


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_retained_will_replaces_the_retained_message(qos, client, names):
    """[MQTT-3.1.2-17]"""
    topic = names.topic("presence")
    watcher = client("watcher")
    watcher.publish(topic, b"online", retain=True)
    watcher.subscribe((topic, 2))
    assert watcher.take_message().payload == b"online"
    client("device", will=Will(topic, b"offline", qos=qos, retain=True)).reset()
    live = watcher.take_messages(1)[0]
    assert (live.payload, live.qos, live.retain) == (b"offline", qos, False)

    late = client("late")
    late.subscribe((topic, 2))
    stored = late.take_messages(1)[0]
    assert (stored.payload, stored.qos, stored.retain) == (b"offline", qos, True)


def test_an_unretained_will_is_not_stored(client, names):
    """[MQTT-3.1.2-16]"""
    topic = names.topic("presence")
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    client("device", will=Will(topic, b"gone", qos=1)).close()
    watcher.take_message()
    late = client("late")
    late.subscribe((topic, 0))
    assert late.messages_so_far() == []


def test_an_empty_will_is_published_and_clears_the_retained_message(client, names):
    topic = names.topic("presence")
    watcher = client("watcher")
    watcher.publish(topic, b"online", retain=True)
    watcher.subscribe((topic, 0))
    watcher.take_message()
    client("device", will=Will(topic, b"", retain=True)).close()
    assert watcher.take_message() == Publish(topic, b"")
    late = client("late")
    late.subscribe((topic, 0))
    assert late.messages_so_far() == []


def test_a_new_connection_brings_its_own_will(client, names):
    """The will belongs to the connection, not to the session."""
    topic = names.topic("will")
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    client("device", clean_session=False, will=Will(topic, b"first")).disconnect()
    client("device", clean_session=False, will=Will(topic, b"second")).close()
    assert watcher.take_message().payload == b"second"
    assert watcher.messages_so_far() == []
    client("device")  # Ends the stored session.


def test_the_will_reaches_an_absent_persistent_session(client, names):
    topic = names.topic("will")
    watcher = client("watcher", clean_session=False)
    watcher.subscribe((topic, 1))
    watcher.disconnect()
    device = client("device", will=Will(topic, b"gone", qos=1))
    client("device")
    device.await_closed()
    assert client("watcher", clean_session=False).take_message().payload == b"gone"
    client("watcher")  # Ends the stored session.


def test_with_paho_cut_off(names, paho_client):
    topic = names.topic("will")
    watcher = paho_client(names.client("watcher"))
    watcher.subscribe((topic, 2))
    device = paho_client(names.client("device"), will=Received(topic, b"gone", 2, True))
    device.cut()
    assert watcher.take() == Received(topic, b"gone", 2)


def test_with_a_killed_mosquitto_sub(names, mosquitto_sub):
    topic = names.topic("will")
    watcher = mosquitto_sub("-t", topic, "-q", "1")
    device = mosquitto_sub(
        "-t", names.topic("other"), "--will-topic", topic, "--will-payload", "gone",
        "--will-qos", "1",
    )
    device.kill()
    assert watcher.take() == Received(topic, b"gone", 1)


@pytest.mark.hermesd("the data directory is Hermes's")
def test_a_stop_leaves_the_will_to_the_next_start(hermesd, raw, tmp_path):
    """The broker closes the connection, not the client: the will is published [MQTT-3.1.2-8]."""
    data = tmp_path / "data"
    first = hermesd(data=data)
    watcher = raw(first)
    watcher.connect("watcher", clean_session=False)
    watcher.subscribe(("w", 1))
    for name, clean_session in (("clean", True), ("persistent", False)):
        raw(first).connect(
            name, clean_session=clean_session, will=Will("w", name.encode(), qos=1))
    polite = raw(first)
    polite.connect("polite", will=Will("w", b"polite", qos=1))
    polite.disconnect()
    assert first.stop() == 0
    second = hermesd(data=data)
    watcher = raw(second)
    assert watcher.connect("watcher", clean_session=False).session_present
    assert {one.payload for one in watcher.take_messages(2)} == {b"clean", b"persistent"}
    assert watcher.messages_so_far() == []
