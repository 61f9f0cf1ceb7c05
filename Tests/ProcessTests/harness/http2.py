"""A server's half of HTTP/2, as the stand-ins of push services share it."""

from __future__ import annotations

import ssl

import h2.config
import h2.connection
import h2.events
import h2.settings


class HTTP2Connection:
    """One connection, on a thread of its own: reads requests, and sends what was answered."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._socket = connection
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self._requests: dict[int, tuple[dict[str, str], bytearray]] = {}
        self._held: list[int] = []
        self._ends = False

    def settings(self) -> dict[h2.settings.SettingCodes, int]:
        """What the service announces."""
        raise NotImplementedError

    def _take(self, event: h2.events.Event) -> None:
        raise NotImplementedError

    def _release_held(self) -> None:
        """Answers what has waited, if it may be answered by now."""
        raise NotImplementedError

    def run(self) -> None:
        self._h2.initiate_connection()
        self._h2.update_settings(self.settings())
        self._send()
        self._socket.settimeout(0.02)
        while not self._ends:
            try:
                data = self._socket.recv(65_536)
            except TimeoutError:
                self._release_held()
                continue
            if not data:
                return
            for event in self._h2.receive_data(data):
                self._take(event)
            self._release_held()
            self._send()

    def _send(self) -> None:
        data = self._h2.data_to_send()
        if data:
            self._socket.settimeout(10)
            self._socket.sendall(data)
            self._socket.settimeout(0.02)
