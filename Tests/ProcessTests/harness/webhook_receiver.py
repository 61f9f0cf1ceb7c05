"""A back office that takes receipts: an HTTP server whose answers a test chooses."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .broker import REPOSITORY
from .certificates import Certificate
from .waiting import PATIENCE, eventually

SECRET = b"process-tests-webhook-secret"


@dataclass(frozen=True)
class Delivery:
    """One request, and the status that it was answered with; `None` without an answer."""

    headers: dict[str, str]
    body: bytes
    status: int | None

    @property
    def events(self) -> list[dict[str, Any]]:
        return json.loads(self.body)["events"]

    def is_genuine(self, secret: bytes = SECRET) -> bool:
        """By the example in docs/webhook.md."""
        return _is_genuine(self.headers["hermes-signature"], self.body, secret)


@dataclass(frozen=True)
class Reply:
    """An answer; `hang` gives none until the receiver closes."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b"taken"
    hang: bool = False


class Receiver:
    """Listens on a free loopback port, and on the same one after a pause."""

    def __init__(self, certificate: Certificate | None = None) -> None:
        self._certificate = certificate
        self._lock = threading.Lock()
        self._deliveries: list[Delivery] = []
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self._closed = threading.Event()
        self._connections: list[socket.socket] = []
        self.reply: Callable[[Delivery], Reply] = lambda _: Reply()
        """Chooses the answer to a request."""
        self.open()

    @property
    def url(self) -> str:
        scheme = "https" if self._certificate else "http"
        return f"{scheme}://127.0.0.1:{self._port}/hermes?shop=7"

    @property
    def deliveries(self) -> list[Delivery]:
        with self._lock:
            return list(self._deliveries)

    @property
    def taken(self) -> list[str]:
        """The message identifiers of the events that were answered with 2xx, in order."""
        return [
            event["message_id"] for delivery in self.deliveries
            if delivery.status is not None and delivery.status < 300
            for event in delivery.events
        ]

    def open(self) -> None:
        receiver = self
        self._closed.clear()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                receiver._connections.append(self.request)
                super().setup()

            def do_POST(self) -> None:
                receiver._take(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._port = self._server.server_address[1]
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate.certificate, self._certificate.key)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Refuses connections from now on, and ends those that are open."""
        self._closed.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        while self._connections:
            with contextlib.suppress(OSError):
                self._connections.pop().shutdown(socket.SHUT_RDWR)

    def await_taken(self, count: int, within: float = PATIENCE) -> list[str]:
        """The identifiers of the first events that were taken, at least that many."""
        eventually(lambda: len(self.taken) >= count, f"{count} events", within=within)
        return self.taken

    def await_requests(self, count: int, within: float = PATIENCE) -> list[Delivery]:
        eventually(lambda: len(self.deliveries) >= count, f"{count} requests", within=within)
        return self.deliveries

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        delivery = Delivery({**headers, ":path": handler.path}, body, None)
        reply = self.reply(delivery)
        status = None if reply.hang else reply.status
        with self._lock:
            self._deliveries.append(Delivery(delivery.headers, body, status))
        if reply.hang:
            self._closed.wait(4 * PATIENCE)
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        for name, value in reply.headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        handler.wfile.write(reply.body)


def _example() -> Callable[[str, bytes, bytes], bool]:
    """The function that docs/webhook.md shows to developers."""
    page = (REPOSITORY / "docs/webhook.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None, "docs/webhook.md shows no Python"
    names: dict[str, Any] = {}
    exec(code[1], names)  # noqa: S102: our own page
    return names["is_genuine"]


_is_genuine = _example()
