"""Listeners of WebSocket: requests, frames, closes, TLS, proxies and paho-mqtt."""

from __future__ import annotations

import os

import paho.mqtt.client as paho
import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.paho_client import PahoClient
from harness.proxy import line
from harness.tls import client_context, tls_environment
from harness.websocket import (
    BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Frame, WebSocket, WebSocketClient, closing,
    frame, request, websocket_environment,
)

pytestmark = pytest.mark.hermesd("its listeners of WebSocket are configured in its own way")

ORIGIN = "https://app.example"
CONNACK = b"\x20\x02\x00\x00"


@pytest.fixture(scope="module")
def shared_web_broker(broker_class):
    """A broker whose only listener speaks WebSocket, for the whole module."""
    from harness.broker import Settings

    broker = broker_class(Settings(environment=websocket_environment(origins=ORIGIN)))
    broker.start()
    yield broker
    code = broker.stop()
    assert code == 0, f"ended with {code}; its log:\n{broker.log.tail()}"
    broker.remove_files()


@pytest.fixture
def broker(shared_web_broker):
    assert shared_web_broker.is_running
    yield shared_web_broker
    assert shared_web_broker.is_running, shared_web_broker.log.tail()


@pytest.fixture
def web(broker):
    """Opens connections: `web()`; `web(upgraded=False)` before the request."""
    opened: list[WebSocket] = []

    def open_one(to=None, *, upgraded: bool = True, **options) -> WebSocket:
        one = WebSocket((to or broker).address, **options)
        opened.append(one)
        if upgraded:
            one.upgrade()
        return one

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def framed(broker, names):
    """Connects raw clients whose packets travel in frames."""
    opened: list[WebSocketClient] = []

    def connect(name: str, to=None, *, keep_alive: int = 0, **options) -> WebSocketClient:
        one = WebSocketClient((to or broker).address, **options)
        opened.append(one)
        assert one.connect(names.client(name), keep_alive=keep_alive).return_code == 0
        return one

    yield connect
    for one in opened:
        one.close()


# --- the request ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "status", "header"),
    [
        (request("GET / HTTP/1.1"), 404, None),
        (request("POST /mqtt HTTP/1.1"), 405, ("Allow", "GET")),
        (request("GET /mqtt HTTP/1.0"), 505, None),
        (request(without="Host"), 400, None),
        (request(without="Upgrade"), 426, ("Upgrade", "websocket")),
        (request("GET /mqtt HTTP/1.1", "Sec-WebSocket-Version: 8",
                 without="Sec-WebSocket-Version"), 426, ("Sec-WebSocket-Version", "13")),
        (request(without="Sec-WebSocket-Key"), 400, None),
        (request(without="Sec-WebSocket-Protocol"), 400, None),
        (request("GET /mqtt HTTP/1.1", "Sec-WebSocket-Protocol: chat",
                 without="Sec-WebSocket-Protocol"), 400, None),
        (request("GET /mqtt HTTP/1.1", "Origin: https://other.example"), 403, None),
        (request("GET /mqtt HTTP/1.1", "X: " + "y" * 9_000), 431, None),
        (wire.connect("no-websocket"), 400, None),
    ],
    ids=["path", "method", "http-1.0", "no-host", "no-upgrade", "version", "no-key",
         "no-protocol", "other-protocol", "origin", "long-headers", "mqtt"],
)
def test_a_wrong_request_is_refused_with_a_status_and_a_sentence(
    asked, status, header, web, broker
):
    one = web(upgraded=False)
    response = one.ask(asked)
    assert response.status == status
    assert response.body.startswith(b"This is an MQTT broker")
    assert response.body.endswith(b".\n") and response.body.count(b"\n") == 1
    if header is not None:
        assert response.headers[header[0]] == header[1]
    assert one.await_end() is None
    broker.log.await_match("WebSocket was broken.*reason=websocket.*websocket.failure=")


@pytest.mark.parametrize("offered", ["mqtt", "mqttv3.1", "mqttv3.1, mqtt", "chat, mqtt"])
def test_sub_protocols(offered, web):
    response = web(upgraded=False).ask(
        request("GET /mqtt?x=y HTTP/1.1", f"Sec-WebSocket-Protocol: {offered}", f"Origin: {ORIGIN}",
                without="Sec-WebSocket-Protocol"))
    assert response.status == 101
    chosen = "mqtt" if "mqtt" in offered.split(", ") else "mqttv3.1"
    assert response.headers["Sec-WebSocket-Protocol"] == chosen


def test_a_request_in_single_bytes_and_frames_behind_it(web):
    one = web(upgraded=False)
    for byte in request():
        one.send(bytes([byte]))
    assert one.response().status == 101
    one.send(frame(BINARY, wire.connect("slow-request")))
    assert one.next_frame() == Frame(BINARY, CONNACK)
    early = web(upgraded=False)
    early.send(request() + frame(BINARY, wire.connect("early") + wire.PINGREQ))
    assert early.response().status == 101
    assert early.expect(BINARY).payload.startswith(CONNACK)


# --- frames --------------------------------------------------------------------------------------


def test_packets_are_split_and_joined_across_frames(framed, names):
    one = framed("pieces")
    topic = names.topic()
    assert one.subscribe((topic, 1)) == (1,)
    packets = b"".join(wire.publish(topic, bytes([number])) for number in range(5))
    # All in one frame; each byte in a frame; in one message of three fragments.
    one.web.send(frame(BINARY, packets))
    one.web.send(*(frame(BINARY, bytes([byte])) for byte in packets))
    one.web.send(
        frame(BINARY, packets[:7], final=False), frame(CONTINUATION, packets[7:8], final=False),
        frame(PING, b"between"), frame(CONTINUATION, packets[8:]))
    received = [one.take_message().payload[0] for _ in range(15)]
    assert received == [0, 1, 2, 3, 4] * 3
    assert Frame(PONG, b"between") in one.web.reader.frames


@pytest.mark.parametrize("size", [0, 100, 125, 126, 8_000, 20_000, 65_535, 200_000, 1_000_000])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_payloads_of_all_sizes(size, qos, framed, names):
    one = framed("sizes")
    topic = names.topic()
    one.subscribe((topic, 2))
    payload = os.urandom(size)
    one.publish(topic, payload, qos=qos)
    assert one.take_message().payload == payload


def test_a_turn_s_output_is_one_frame(framed, names):
    one = framed("turn")
    topic = names.topic()
    one.subscribe((topic, 0))
    one.web.reader.frames.clear()
    one.send(*(wire.publish(topic, bytes(10)) for _ in range(50)))
    one.take_messages(50)
    data = [each for each in one.web.reader.frames if each.opcode == BINARY]
    assert len(data) == 1, f"{len(data)} frames"


def test_a_slow_reader_gets_whole_frames(framed, names, client, broker):
    slow = framed("slow", receive_buffer=4_096)
    topic = names.topic()
    slow.subscribe((topic, 1))
    fast = framed("fast")
    for number in range(60):
        fast.publish(topic, bytes([number]) * 50_000, qos=1)
        slow.web.send(frame(PING, bytes([number])))
    for number in range(60):
        assert slow.take_message().payload == bytes([number]) * 50_000


def test_a_ping_is_answered_and_is_no_keep_alive(web, broker, names):
    one = web()
    one.send(frame(BINARY, wire.connect(names.client(), keep_alive=1)))
    assert one.next_frame() == Frame(BINARY, CONNACK)
    code = None
    pongs = 0
    while code is None:
        # Until the keep alive ends it, in 1.5 s.
        try:
            one.send(frame(PING, b"alive?"))
            each = one.next_frame()
        except (OSError, EOFError):
            break
        if each.opcode == CLOSE:
            code = each.code
        else:
            assert each == Frame(PONG, b"alive?")
            pongs += 1
    assert pongs > 10
    assert code == 1000
    broker.log.await_match(f"{names.client()}.*reason=keep_alive")


# --- broken frames -------------------------------------------------------------------------------

BROKEN = {
    "text": (frame(TEXT, b"hello"), 1003),
    "unmasked": (frame(BINARY, b"hello", mask=None), 1002),
    "reserved-bit": (frame(BINARY, b"hello", reserved=4), 1002),
    "reserved-opcode": (frame(3), 1002),
    "continuation-of-nothing": (frame(CONTINUATION, b"x"), 1002),
    "interrupted": (frame(BINARY, b"", final=False) + frame(BINARY, b"x"), 1002),
    "fragmented-ping": (frame(PING, b"x", final=False), 1002),
    "long-ping": (frame(PING, bytes(126)), 1002),
    "long-form": (frame(BINARY, b"x", form=16), 1002),
    "longer-form": (frame(BINARY, bytes(300), form=64), 1002),
    "over-the-packet-limit": (frame(BINARY, length=1_048_576 + 6), 1009),
    "top-bit": (frame(BINARY, length=1 << 63), 1009),
    "close-of-one-byte": (frame(CLOSE, b"\x03"), 1002),
    "close-1005": (frame(CLOSE, closing(1005)), 1002),
    "close-reason": (frame(CLOSE, closing(1000, b"\xff")), 1007),
    "flood-of-pings": (frame(PING) * 1_000, 1008),
    "flood-of-empty-frames": (frame(BINARY) * 1_000, 1008),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_frame_ends_with_its_code(name, web, broker, names):
    bytes_sent, code = BROKEN[name]
    counter = 'hermes_connections_closed_total{reason="websocket"}'
    before = AdminAPI(broker).metric(counter)
    one = web()
    one.send(frame(BINARY, wire.connect(names.client())))
    assert one.next_frame() == Frame(BINARY, CONNACK)
    one.send(bytes_sent)
    assert one.await_end() == code
    # The log leaves lines of one kind out that come within a second.
    assert AdminAPI(broker).metric(counter) == before + 1


def test_data_before_a_broken_frame_counts(web, framed, names):
    watcher = framed("watcher")
    topic = names.topic()
    watcher.subscribe((topic, 0))
    one = web()
    one.send(
        frame(BINARY, wire.connect(names.client("last"))),
        frame(BINARY, wire.publish(topic, b"counts")), frame(TEXT, b"x"))
    assert watcher.take_message().payload == b"counts"
    assert one.await_end() == 1003


# --- ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("payload", "code"), [(closing(1000), 1000), (closing(4321, b"x"), 4321),
                                              (b"", 1005)])
def test_a_close_frame_is_echoed_and_the_will_is_published(payload, code, web, framed, names):
    watcher = framed("watcher")
    watcher.subscribe((names.topic(), 0))
    one = web()
    one.send(frame(BINARY, wire.connect(names.client("w"), will=wire.Will(names.topic(), b"gone"))))
    one.expect(BINARY)
    one.send(frame(CLOSE, payload))
    assert one.await_end() == code
    assert watcher.take_message().payload == b"gone"


def test_disconnect_ends_with_a_close_frame_and_without_the_will(web, framed, names):
    watcher = framed("watcher")
    watcher.subscribe((names.topic(), 0))
    for extra in (b"", frame(CLOSE, closing(1000))):
        one = web()
        will = wire.Will(names.topic(), b"gone")
        one.send(frame(BINARY, wire.connect(names.client("w"), will=will)))
        one.expect(BINARY)
        one.send(frame(BINARY, wire.DISCONNECT), extra)
        assert one.await_end() == 1000
    assert watcher.messages_so_far() == []


def test_the_broker_tells_why_it_closes(web, broker, names):
    first = web()
    first.send(frame(BINARY, wire.connect(names.client("same"))))
    first.expect(BINARY)
    second = web()
    second.send(frame(BINARY, wire.connect(names.client("same"))))
    second.expect(BINARY)
    assert first.await_end() == 1000
    second.send(frame(BINARY, b"\xf0\x00"))
    assert second.await_end() == 1002
    stranger = web()
    stranger.send(frame(BINARY, wire.PINGREQ))
    assert stranger.await_end() == 1002


def test_a_shutdown_says_going_away(start_broker, names):
    broker = start_broker(environment=websocket_environment())
    one = WebSocket(broker.address)
    one.upgrade()
    one.send(frame(BINARY, wire.connect("a")))
    one.expect(BINARY)
    assert broker.stop() == 0
    assert one.await_end() == 1001
    one.close()


# --- over other stages ---------------------------------------------------------------------------


def test_over_tls_and_behind_a_proxy(start_broker, pair, authority, names):
    context = client_context(authority.certificate)
    broker = start_broker(
        environment={
            **tls_environment(pair), **websocket_environment(),
            "HERMES_LISTENERS_0_PROXY_FROM": "127.0.0.2",
            "HERMES_LISTENERS_0_ALLOW_ANONYMOUS": "true",
        })
    proxied = WebSocketClient(
        broker.address, context=context, prefix=line("192.0.2.7", 50_001), source="127.0.0.2")
    assert proxied.connect(names.client("proxied")).return_code == 0
    direct = WebSocketClient(broker.address, context=context)
    assert direct.connect(names.client("direct")).return_code == 0
    topic = names.topic()
    proxied.subscribe((topic, 1))
    for size in (0, 10, 16_384, 70_000, 500_000):
        payload = os.urandom(size)
        direct.publish(topic, payload, qos=1)
        assert proxied.take_message().payload == payload
    listed = AdminAPI(broker).get("/v1/clients")["clients"]
    addresses = {one["client_id"]: one["address"] for one in listed}
    assert addresses[names.client("proxied")] == "192.0.2.7:50001"
    # A broken frame and a close within TLS.
    direct.web.send(frame(TEXT, b"x"))
    assert direct.web.await_end() == 1003
    proxied.web.send(frame(CLOSE, closing(1001)))
    assert proxied.web.await_end() == 1001


@pytest.mark.parametrize("secured", [False, True], ids=["ws", "wss"])
@pytest.mark.parametrize("protocol", [paho.MQTTv31, paho.MQTTv311])
def test_paho(secured, protocol, start_broker, pair, authority, names):
    environment = websocket_environment(path="/a/path")
    if secured:
        environment |= tls_environment(pair)
    broker = start_broker(environment=environment)
    context = client_context(authority.certificate) if secured else None
    one = PahoClient(
        broker, names.client("paho"), protocol=protocol, context=context, websocket_path="/a/path")
    topic = names.topic()
    assert one.subscribe((topic, 2)) == [2]
    for qos in (0, 1, 2):
        for size in (0, 100, 70_000, 300_000):
            payload = os.urandom(size)
            one.publish(topic, payload, qos=qos)
            received = one.take()
            assert (received.payload, received.qos) == (payload, qos)
    one.stop()
