"""A company's service that is asked about logins: an HTTP server whose answers a test chooses."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from .certificates import Certificate
from .waiting import PATIENCE, eventually

Question = dict[str, Any]


def allow(**members: Any) -> bytes:
    return json.dumps({"result": "allow", **members}).encode()


def deny(**members: Any) -> bytes:
    return json.dumps({"result": "deny", **members}).encode()


def response(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


class CompanyService:
    """Listens on a free loopback port, and on the same one after a pause.

    `answer` gives the body of an answer; `wire` instead acts on the socket itself, and returns
    whether the connection goes on.
    """

    def __init__(self, certificate: Certificate | None = None) -> None:
        self._certificate = certificate
        self._port = 0
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self.questions: list[Question] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[Question], bytes] = lambda question: (
            allow() if question.get("password") == "right" else deny())
        self.wire: Callable[[socket.socket, Question], bool] | None = None
        self.released = threading.Event()
        # Called with the number of a connection before its handshake; false ends it.
        self.before_handshake: Callable[[int], bool] = lambda _: True
        self.accepted = 0
        self.open()

    @property
    def url(self) -> str:
        scheme = "https" if self._certificate else "http"
        return f"{scheme}://127.0.0.1:{self._port}/logins?shop=7"

    def hang(self, sock: socket.socket, question: Question) -> bool:
        """Answers nothing until it is released."""
        self.released.wait(4 * PATIENCE)
        return False

    def await_questions(self, count: int) -> list[Question]:
        eventually(lambda: len(self.questions) >= count, f"{count} questions")
        return self.questions

    def open(self) -> None:
        self.released.clear()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        listener.listen(128)
        self._port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        """Refuses connections from now on, and ends those that are open."""
        self.released.set()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections.append(connection)
                self.accepted += 1
                number = self.accepted
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ssl.SSLError), connection:
            if not self.before_handshake(number):
                return
            if self._certificate:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self._certificate.certificate, self._certificate.key)
                connection = context.wrap_socket(connection, server_side=True)
            stream = connection.makefile("rb")
            while self._take(connection, stream):
                pass

    def _take(self, connection: socket.socket, stream: Any) -> bool:
        line = stream.readline()
        if not line:
            return False
        headers = {":line": line.decode().strip()}
        while (line := stream.readline().decode().strip()):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        question = json.loads(stream.read(int(headers["content-length"])))
        with self._lock:
            self.headers.append(headers)
            self.questions.append(question)
        if self.wire is not None:
            return self.wire(connection, question)
        connection.sendall(response(self.answer(question)))
        return True


def drip(connection: socket.socket, question: Question) -> bool:
    """An answer of one byte each tenth of a second."""
    body = allow()
    connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) + 1_000}\r\n\r\n".encode())
    for _ in range(200):
        connection.sendall(b" ")
        time.sleep(0.1)
    return False
