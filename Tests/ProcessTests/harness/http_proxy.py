"""A proxy of HTTP that opens connections by the method CONNECT, as those of companies do."""

from __future__ import annotations

import base64
import socket
import threading

from .waiting import PATIENCE


class HTTPProxy:
    """Opens connections to `target` alone, which is called `host`; with `login`, "user:password",
    only for who knows it.

    `requests` are the heads of all that was asked.
    """

    def __init__(
        self, target: tuple[str, int], *, login: str | None = None, host: str = "localhost"
    ) -> None:
        self._target = target
        self._host = host
        self._login = login
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def close(self) -> None:
        self._listener.close()
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(PATIENCE)
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(1)
            if not data:
                return
            head += data
        self.requests.append(head.decode())
        refusal = self._refusal(head.decode().split("\r\n"))
        if refusal is not None:
            client.sendall(f"HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            client.close()
            return
        broker = socket.create_connection(self._target, PATIENCE)
        self._open.append(broker)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for pair in ((client, broker), (broker, client)):
            threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _refusal(self, lines: list[str]) -> str | None:
        if lines[0] != f"CONNECT {self._host}:{self._target[1]} HTTP/1.1":
            return "403 Forbidden"
        if self._login is None:
            return None
        proof = "Basic " + base64.b64encode(self._login.encode()).decode()
        return None if f"Proxy-Authorization: {proof}" in lines else "407 Proxy Authentication Required"

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket) -> None:
        source.settimeout(None)
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
