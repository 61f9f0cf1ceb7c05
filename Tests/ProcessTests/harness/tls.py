"""Brokers and clients that speak TLS."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from . import wire
from .broker import Hermesd
from .certificates import Certificate
from .raw_client import RawClient
from .waiting import PATIENCE
from .wire import Will


def tls_environment(*pairs: Certificate, **keys: object) -> dict[str, str]:
    """Settings of the first listener: `tls_environment(pair, client_certificates="required")`."""
    variables = {
        "certificate": ",".join(str(pair.certificate) for pair in pairs),
        "key": ",".join(str(pair.key) for pair in pairs),
        **{name: str(value) for name, value in keys.items()},
    }
    return {f"HERMES_LISTENERS_0_TLS_{name.upper()}": value for name, value in variables.items()}


def client_context(
    authority: Path,
    *,
    version: ssl.TLSVersion | None = None,
    certificate: Certificate | None = None,
    ciphers: str | None = None,
) -> ssl.SSLContext:
    """A strict client context: it trusts only `authority` and checks the name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if certificate is not None:
        context.load_cert_chain(certificate.certificate, certificate.key)
    if ciphers is not None:
        context.set_ciphers(ciphers)
    return context


class RecordClient:
    """A TLS client whose records a test can inspect, change or hold back."""

    def __init__(
        self, broker: Hermesd, context: ssl.SSLContext, *, server_name: str = "localhost"
    ) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=server_name)
        self.socket = socket.create_connection(broker.address, PATIENCE)

    def hello(self) -> bytes:
        """The record with the first message of the handshake, which has not been sent."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return self._outgoing.read()
        raise AssertionError("a handshake without an answer")

    def shake_hands(self, *packets: bytes) -> None:
        """With packets that leave in one piece with the last message of a TLS 1.3 handshake."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.send(self._outgoing.read())
                self._incoming.write(self._receive())
            else:
                for packet in packets:
                    self._tls.write(packet)
                self.send(self._outgoing.read())
                return

    def seal(self, packet: bytes) -> bytes:
        """One record with this packet in it, which has not been sent."""
        self._tls.write(packet)
        return self._outgoing.read()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> bytes:
        """Some application data; nothing at the end of the stream, and SSLError after an alert."""
        while True:
            try:
                return self._tls.read(1 << 16)
            except ssl.SSLWantReadError:
                data = self._receive()
                if not data:
                    return b""
                self._incoming.write(data)
            except ssl.SSLZeroReturnError:
                return b""

    def connect(self, client_id: str, *, will: Will | None = None) -> None:
        self.send(self.seal(wire.connect(client_id, will=will)))
        assert self.read() == b"\x20\x02\x00\x00"

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(1 << 16)
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        self.socket.close()


class TLSClient(RawClient):
    """A raw client whose packets travel in TLS."""

    def __init__(
        self,
        broker: Hermesd,
        context: ssl.SSLContext,
        *,
        server_name: str = "localhost",
        session: ssl.SSLSession | None = None,
        receive_buffer: int | None = None,
    ) -> None:
        super().__init__(broker.address, receive_buffer=receive_buffer)
        self.plain = self.socket
        try:
            self.socket = context.wrap_socket(
                self.socket, server_hostname=server_name, session=session)
        except BaseException:
            self.plain.close()
            raise
