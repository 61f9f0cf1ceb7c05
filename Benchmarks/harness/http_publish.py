"""Publishes over hermesd's HTTP API and measures the cost for its HTTP thread.

Each connection has one request in progress; of a batch there is one connection, which sends lines and
reads results as fast as the broker takes and gives them. The generator is slower than the broker and shares
its machine, so the result is the broker's CPU time per publish, by thread.
"""

from __future__ import annotations

import itertools
import json
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path

from brokers import Broker, BrokerError

CONNECTIONS = 32
PAYLOAD = "x" * 64
WARM_UP_SECONDS = 0.5
PATIENCE_SECONDS = 10.0
# The broker's thread for HTTP; its name is SwiftNIO's.
HTTP_THREAD = "NIO-ELT"

# Lines of a batch that are sent at once, and before the first of them is repeated.
CHUNK_LINES = 1_000

ROUTES = {
    "messages": ("/v1/messages", {"topic": "bench/http", "payload": PAYLOAD, "qos": 1}),
    "publish": ("/v1/publish?topic=bench/http&qos=1", None),
    "orders": (
        "/v1/orders/4711/status",
        {"sales_id": "bench", "status": "APPROVED", "reason": PAYLOAD},
    ),
}

# Stands for a number that is another one in each line.
NUMBER = "%016x"

# A retained message is stored, as an order's sequence is, and all that comes with a key.
BATCHES = {
    "batch": ("/v1/messages/batch", {"topic": "bench/http", "payload": PAYLOAD, "qos": 1}),
    "batch-stored": (
        "/v1/messages/batch",
        {"topic": "bench/http", "payload": PAYLOAD, "qos": 1, "retain": True},
    ),
    "batch-orders": (
        "/v1/orders/batch",
        {"order_id": "4711", "sales_id": "bench", "status": "APPROVED", "reason": PAYLOAD},
    ),
    "batch-keys": (
        "/v1/messages/batch",
        {"topic": "bench/http", "payload": PAYLOAD, "qos": 1, "idempotency_key": NUMBER},
    ),
}


def measure(broker: Broker, route: str, seconds: float) -> dict:
    """A document as hermes-bench writes them."""
    if route in BATCHES:
        return _measure_batch(broker, route, seconds)
    request = _request(broker, route)
    poller = selectors.DefaultSelector()
    connections = []
    try:
        for _ in range(CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", broker.admin_port()))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(request)
            poller.register(connection, selectors.EVENT_READ)
            connections.append(connection)
        _exchange(poller, request, WARM_UP_SECONDS)
        before, began = _thread_seconds(broker), time.monotonic()
        publishes = _exchange(poller, request, seconds)
        after, ended = _thread_seconds(broker), time.monotonic()
    finally:
        for connection in connections:
            connection.close()
        poller.close()
    return _document(route, CONNECTIONS, publishes, ended - began, before, after)


def _measure_batch(broker: Broker, route: str, seconds: float) -> dict:
    target, value = BATCHES[route]
    token = (broker.data_directory / "admin.token").read_text().strip()
    template = (json.dumps(value) + "\n").encode()
    has_numbers = NUMBER.encode() in template
    numbers = itertools.count()

    def chunk() -> bytes:
        lines = (
            b"".join(template % next(numbers) for _ in range(CHUNK_LINES))
            if has_numbers else template * CHUNK_LINES)
        return b"%x\r\n%b\r\n" % (len(lines), lines)

    with socket.create_connection(("127.0.0.1", broker.admin_port())) as connection:
        connection.sendall(
            f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        connection.setblocking(False)
        stream = _Stream(connection, chunk)
        stream.run(WARM_UP_SECONDS)
        before, began, results = _thread_seconds(broker), time.monotonic(), stream.results
        stream.run(seconds)
        after, ended = _thread_seconds(broker), time.monotonic()
    return _document(route, 1, stream.results - results, ended - began, before, after)


class _Stream:
    """A batch under way: sends one chunk after the other, and counts the results."""

    def __init__(self, connection: socket.socket, chunk: Callable[[], bytes]) -> None:
        self._connection = connection
        self._make = chunk
        self._chunk = memoryview(b"")
        self._poller = selectors.DefaultSelector()
        self._poller.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self.results = 0

    def run(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ready = self._poller.select(PATIENCE_SECONDS)
            if not ready:
                raise BrokerError(f"a batch stood still for {PATIENCE_SECONDS:.0f} s")
            for _, events in ready:
                if events & selectors.EVENT_READ:
                    self._read()
                if events & selectors.EVENT_WRITE:
                    if not self._chunk:
                        self._chunk = memoryview(self._make())
                    self._chunk = self._chunk[self._connection.send(self._chunk):]

    def _read(self) -> None:
        answer = self._connection.recv(1 << 20)
        # Each result has one, and nothing else of the answer.
        self.results += answer.count(b'{"line":')
        if not answer or b'"error":' in answer:
            raise BrokerError(f"the answer to a batch is no good: {answer[:300]!r}")


def _document(
    route: str, connections: int, publishes: int, seconds: float,
    before: dict[str, float], after: dict[str, float],
) -> dict:
    used = {name: after[name] - before.get(name, 0.0) for name in after}
    http = sum(spent for name, spent in used.items() if name.startswith(HTTP_THREAD))
    return {
        "scenario": "http",
        "parameters": {"route": route, "connections": connections, "payload_bytes": len(PAYLOAD)},
        "results": {
            "http_thread_cpu_us_per_publish": http * 1e6 / publishes,
            "publishes_per_second_and_core": publishes / http,
            "broker_cpu_us_per_publish": sum(used.values()) * 1e6 / publishes,
            "publishes_per_second": publishes / seconds,
        },
    }


def _request(broker: Broker, route: str) -> bytes:
    target, value = ROUTES[route]
    body = PAYLOAD if value is None else json.dumps(value)
    token = (broker.data_directory / "admin.token").read_text().strip()
    return (
        f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def _exchange(poller: selectors.BaseSelector, request: bytes, seconds: float) -> int:
    """Answers in so many seconds; each is read before the next request leaves."""
    answers = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready = poller.select(PATIENCE_SECONDS)
        if not ready:
            raise BrokerError(f"no HTTP answer has come for {PATIENCE_SECONDS:.0f} s")
        for key, _ in ready:
            answer = key.fileobj.recv(65_536)
            # So small an answer comes in one piece.
            if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(b"}\n"):
                raise BrokerError(f"an HTTP answer is no good: {answer[:300]!r}")
            key.fileobj.sendall(request)
            answers += 1
    return answers


def _thread_seconds(broker: Broker) -> dict[str, float]:
    """CPU time of the broker's threads by name, to the nanosecond."""
    times: dict[str, float] = {}
    for thread in Path(f"/proc/{broker.pid}/task").iterdir():
        try:
            name = (thread / "comm").read_text().strip()
            spent = int((thread / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # It has ended meanwhile.
        times[name] = times.get(name, 0.0) + spent
    return times
