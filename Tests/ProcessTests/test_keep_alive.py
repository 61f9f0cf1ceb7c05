"""Section 3.1.2.10: keep alive counts complete packets."""

import time

import pytest

from harness import wire
from harness.wire import Will

swept_coarsely_by_mosquitto = pytest.mark.mosquitto_deviates(
    "looks at keep alive only every few seconds", strict=False
)

# One and a half times a keep alive of 1 s, and an allowance for a busy machine.
EARLIEST, LATEST = 1.4, 2.5


@swept_coarsely_by_mosquitto
def test_a_silent_client_is_closed(client, names):
    """[MQTT-3.1.2-24] as a network failure: its will goes out."""
    watcher = client("watcher")
    watcher.subscribe((names.topic("will"), 0))
    begin = time.monotonic()
    silent = client("silent", keep_alive=1, will=Will(names.topic("will"), b"lost"))
    assert silent.await_closed(5) == []
    assert EARLIEST < time.monotonic() - begin < LATEST
    assert watcher.take_message().payload == b"lost"


@swept_coarsely_by_mosquitto
def test_the_time_counts_from_the_last_packet(client):
    silent = client("silent", keep_alive=1)
    assert_no_close_within(silent, 0.8)
    begin = time.monotonic()
    silent.ping()
    assert silent.await_closed(5) == []
    assert EARLIEST < time.monotonic() - begin < LATEST


@swept_coarsely_by_mosquitto
def test_trickled_bytes_are_no_packets(client, names):
    """An incomplete packet, however long it takes, holds nothing open."""
    trickling = client("trickling", keep_alive=1)
    begin = time.monotonic()
    for byte in wire.publish(names.topic(), b"x" * 100):
        trickling.socket.settimeout(0.1)
        try:
            trickling.socket.send(bytes([byte]))
            if trickling.socket.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    else:
        raise AssertionError("a hundred bytes, one in 0.1 s, kept the connection open")
    assert EARLIEST < time.monotonic() - begin < LATEST


@swept_coarsely_by_mosquitto
def test_receiving_alone_does_not_count(client, names):
    """Packets from the broker do not count as signs of life of the client."""
    receiver = client("receiver", keep_alive=1)
    receiver.subscribe((names.topic(), 0))
    begin = time.monotonic()
    publisher = client("publisher")
    while time.monotonic() - begin < LATEST + 1:
        publisher.publish(names.topic(), b"x")
        if is_closed(receiver, within=0.05):
            break
    assert EARLIEST < time.monotonic() - begin < LATEST


@pytest.mark.parametrize("packet", ["PINGREQ", "PUBLISH"])
def test_any_packet_holds_the_connection(packet, client, names):
    active = client("active", keep_alive=1)
    begin = time.monotonic()
    while time.monotonic() - begin < 3:
        data = wire.PINGREQ if packet == "PINGREQ" else wire.publish(names.topic(), b"x")
        active.send(data)
        assert_no_close_within(active, 0.9)
    active.ping()


def test_keep_alive_0_waits_for_ever(client):
    """As far as three seconds tell."""
    patient = client("patient", keep_alive=0)
    assert_no_close_within(patient, 3)
    patient.ping()


def test_paho_stays_connected(names, paho_client):
    """It pings by itself."""
    one = paho_client(names.client(), keep_alive=1)
    one.assert_connected_for(3)
    one.subscribe((names.topic(), 1))
    one.publish(names.topic(), b"alive", 1)
    assert one.take().payload == b"alive"


def is_closed(connection, within):
    """Reads for a while; true once the broker has closed."""
    connection.socket.settimeout(within)
    try:
        return connection.socket.recv(1 << 16) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def assert_no_close_within(connection, seconds):
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        assert not is_closed(connection, left), "closed before its time"
