"""Attacks by way of WebSocket: each ends its own connection at most, and costs others nothing."""

from __future__ import annotations

import random
import time

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.waiting import Deadline, eventually
from harness.websocket import (
    BINARY, CLOSE, CONTINUATION, PING, PONG, Frame, WebSocket, WebSocketClient, frame, request,
    websocket_environment,
)

pytestmark = pytest.mark.hermesd("its listeners of WebSocket are configured in its own way")

MEBI = 1024 * 1024
ORIGIN = "https://app.example"


@pytest.fixture
def broker(start_broker):
    return start_broker(
        connect_timeout="1500ms", environment=websocket_environment(origins=ORIGIN))


@pytest.fixture
def web(broker):
    opened: list[WebSocket] = []

    def open_one(*, upgraded: bool = True, connected: str | None = None, **options) -> WebSocket:
        one = WebSocket(broker.address, **options)
        opened.append(one)
        if upgraded or connected:
            one.upgrade()
        if connected:
            one.send(frame(BINARY, wire.connect(connected)))
            assert one.next_frame() == Frame(BINARY, b"\x20\x02\x00\x00")
        return one

    yield open_one
    for one in opened:
        one.close()


def closed(broker, reason: str) -> float:
    return AdminAPI(broker).metric(f'hermes_connections_closed_total{{reason="{reason}"}}')


@pytest.mark.parametrize("upgraded", [False, True], ids=["request", "frames"])
def test_a_drip_ends_with_the_deadline_of_connect(upgraded, web, broker):
    """Slowloris: bytes of a request, or of a CONNECT in frames, move no deadline."""
    one = web(upgraded=upgraded)
    start = time.monotonic()
    slow = (
        frame(BINARY, wire.connect("slow" * 500)) if upgraded
        else request()[:-2] + b"X: y\r\n" * 50)
    deadline = Deadline(10, "the deadline of CONNECT")
    sent = 0
    with pytest.raises((EOFError, OSError)):
        while not deadline.is_over and sent < len(slow):
            one.send(slow[sent : sent + 1])
            sent += 1
            time.sleep(0.02)
            one.socket.setblocking(False)
            try:
                if one.socket.recv(1) == b"":
                    raise EOFError
            except BlockingIOError:
                pass
    assert 1 <= time.monotonic() - start < 8
    assert sent < len(slow)
    eventually(lambda: closed(broker, "connect_timeout") == 1, "the count of the deadline")


def test_a_flood_of_headers_is_cut_at_8_kib(web, broker):
    before = broker.resident_bytes()
    many = [web(upgraded=False) for _ in range(50)]
    for one in many:
        assert one.ask(b"GET /mqtt HTTP/1.1\r\n" + b"X: y\r\n" * 20_000).status == 431
        assert one.await_end() is None
    for one in many[:5]:
        one.close()
    # Unfinished requests of just below the limit.
    waiting = [web(upgraded=False) for _ in range(50)]
    for one in waiting:
        one.send(b"GET /mqtt HTTP/1.1\r\nX: " + b"y" * 8_000)
    assert broker.resident_bytes() - before < 4 * MEBI
    assert closed(broker, "websocket") == 50


def test_a_second_request_on_a_connection_is_a_broken_frame(web):
    """No request is smuggled behind another: what follows the first is frames."""
    one = web(upgraded=False)
    one.send(request() + request("GET /admin HTTP/1.1"))
    assert one.response().status == 101
    assert one.await_end() == 1002


def test_a_page_of_another_origin_gets_no_connection(web, broker):
    """Cross-site WebSocket hijacking, and a name that was bound anew to this address."""
    for origin in ("https://evil.example", "null", f"{ORIGIN}.evil.example", "http://app.example",
                   f"http://127.0.0.1:{broker.port}"):
        response = web(upgraded=False).ask(request("GET /mqtt HTTP/1.1", f"Origin: {origin}"))
        assert response.status == 403
    broker.log.await_match("setting=\"?listeners..\\.websocket\\.origins")
    assert web(upgraded=False).ask(
        request("GET /mqtt HTTP/1.1", f"Origin: {ORIGIN}")).status == 101


def test_an_announced_length_allocates_nothing(web, broker):
    many = [web(connected=f"c{number}") for number in range(100)]
    before = broker.resident_bytes()
    for one in many:
        one.send(frame(BINARY, b"0", length=MEBI))
    eventually(lambda: AdminAPI(broker).status(), "an answer")
    assert broker.resident_bytes() - before < 4 * MEBI


def test_half_frames_take_little_memory_and_are_counted(web, broker):
    many = [web(connected=f"c{number}") for number in range(200)]
    api = AdminAPI(broker)
    api.metric("hermes_unfinished_packet_bytes")
    before = broker.resident_bytes()
    for one in many:
        one.send(frame(PING, bytes(125))[:-1])
    eventually(
        lambda: api.metric("hermes_unfinished_packet_bytes") == 200 * 192,
        "the memory of half frames")
    assert broker.resident_bytes() - before < 2 * MEBI
    for one in many:
        one.send(frame(PING, bytes(125))[-1:])
        assert one.expect(PONG).payload == bytes(125)
    eventually(
        lambda: api.metric("hermes_unfinished_packet_bytes") == 0, "its release")


@pytest.mark.parametrize("piece", [frame(PING, bytes(125)), frame(PING), frame(BINARY),
                                   frame(PONG, b"x")], ids=["pings", "empty", "no-data", "pongs"])
def test_a_flood_of_frames_without_data_ends(piece, web, broker):
    one = web(connected="flood")
    witness = WebSocketClient(broker.address)
    witness.connect("witness")
    try:
        for _ in range(200):
            one.send(piece * 1_000)
    except OSError:
        pass  # It has been closed.
    assert one.await_end() in (1008, None)
    broker.log.await_match("websocket.failure=.*frames without data")
    witness.ping()
    witness.close()


def test_pings_of_a_client_that_reads_nothing_take_no_memory(web, broker):
    one = web(connected="deaf", receive_buffer=4_096)
    before = broker.resident_bytes()
    one.socket.settimeout(0.2)
    sent = 0
    try:
        while sent < 60_000:
            one.socket.sendall(frame(PING, bytes(125)) * 20)
            sent += 20
    except OSError:
        pass
    AdminAPI(broker).status()
    assert broker.resident_bytes() - before < 4 * MEBI
    # It still speaks to others.
    web(connected="other")


def test_a_packet_in_a_frame_for_each_byte(web):
    one = web(connected="bytes")
    packet = wire.publish("topic", bytes(3_000), qos=1, packet_id=7)
    one.send(b"".join(
        frame(BINARY if index == 0 else CONTINUATION, bytes([byte]), final=index == len(packet) - 1)
        for index, byte in enumerate(packet)))
    assert one.expect(BINARY).payload == b"\x40\x02\x00\x07"


def test_random_bytes_end_their_connections_only(web, broker):
    generator = random.Random(7)
    witness = WebSocketClient(broker.address)
    witness.connect("witness")
    for number in range(150):
        one = web(upgraded=False)
        data = generator.randbytes(generator.choice([1, 10, 100, 5_000]))
        if number % 3:
            one.send(request())
            assert one.response().status == 101
        if number % 3 == 2:
            data = frame(generator.choice([BINARY, PING, CLOSE, CONTINUATION]), data)
        try:
            one.send(data)
        except OSError:
            pass
        one.close()
    witness.ping()
    witness.close()


def test_a_client_that_never_closes_is_let_go(web, broker):
    """A peer that ignores the close frame keeps its socket for two seconds at most."""
    one = web(connected="stays")
    one.send(frame(BINARY, b"\xf0\x00"))
    assert one.expect(CLOSE).code == 1002
    eventually(lambda: broker.open_descriptors() < 60, "some descriptors")
    api = AdminAPI(broker)
    eventually(lambda: api.status()["connections"] == 0, "the end of the connection")
