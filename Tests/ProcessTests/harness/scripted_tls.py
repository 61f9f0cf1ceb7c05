"""A TLS client built on tlslite-ng: after a normal handshake it sends any records a test wants."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.errors import TLSAbruptCloseError
from tlslite.messages import Message

from .broker import Hermesd
from .tls_suites import Suite
from .waiting import PATIENCE

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23

Record = tuple[int, bytes]
"""The type of a record's content, and the content."""

CLOSE_NOTIFY: Record = (ALERT, b"\x01\x00")


def fatal(description: int) -> Record:
    return ALERT, bytes([2, description])


def key_update(request: int) -> bytes:
    """The handshake message."""
    return bytes([24, 0, 0, 1, request])


class ScriptedClient:
    """Seals and opens records one by one, and checks nothing but their protection."""

    def __init__(self, broker: Hermesd, suite: Suite) -> None:
        self.sealed: list[Record] = []
        """The broker's records as they came, each with its outer type."""
        self._suite = suite
        self._socket = socket.create_connection(broker.address, PATIENCE)
        self._tls = TLSConnection(self._socket)
        self._records = self._tls._recordLayer
        self._listen()
        settings = HandshakeSettings()
        settings.minVersion = settings.maxVersion = (3, 4 if suite.version == "1.3" else 3)
        name = suite.cipher.lower()
        settings.cipherNames = [name if name.startswith("chacha") else name.replace("-", "")]
        self._tls.handshakeClientCert(settings=settings, serverName="localhost")

    def _listen(self) -> None:
        receive = self._records._recordSocket.recv

        def noting() -> Iterator[object]:
            for result in receive():
                if isinstance(result, tuple):
                    self.sealed.append((result[0].type, bytes(result[1])))
                yield result

        self._records._recordSocket.recv = noting

    @property
    def cipher(self) -> str:
        return self._tls.getCipherName()

    def send(self, *records: Record) -> None:
        """In one piece."""
        self._tls.sock.buffer_writes = True
        for kind, content in records:
            for _ in self._records.sendRecord(Message(kind, bytearray(content))):
                pass
        self._tls.sock.flush()

    def pad(self, zeros: int) -> None:
        """Puts so many zeros behind the content of each later record (TLS 1.3)."""
        self._records.padding_cb = lambda length, kind, most: zeros

    def change_sending_key(self) -> None:
        """Takes the next key for sending, after a KeyUpdate was sent."""
        session = self._tls.session
        session.cl_app_secret, _ = self._records.calcTLS1_3KeyUpdate_reciever(
            session.cipherSuite, session.cl_app_secret, session.sr_app_secret)

    def change_receiving_key(self) -> None:
        """Takes the next key for receiving, after a KeyUpdate of the broker."""
        session = self._tls.session
        _, session.sr_app_secret = self._records.calcTLS1_3KeyUpdate_sender(
            session.cipherSuite, session.cl_app_secret, session.sr_app_secret)

    def receive(self) -> Record | None:
        """The next record, session tickets left out; `None` at the end of the stream."""
        while True:
            try:
                for result in self._records.recvRecord():
                    if isinstance(result, tuple):
                        break
            except (TLSAbruptCloseError, ConnectionResetError):
                return None
            kind, content = result[0].type, bytes(result[1].bytes)
            if kind != HANDSHAKE or content[0] != 4:
                return kind, content

    def receive_all(self) -> list[Record]:
        """All records up to the end of the stream."""
        return list(iter(self.receive, None))

    def close(self) -> None:
        self._socket.close()
