"""Brokers and clients that speak TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

from .broker import Hermesd
from .certificates import Certificate
from .raw_client import RawClient


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
    """What a careful client uses: it trusts `authority` alone and checks the name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if certificate is not None:
        context.load_cert_chain(certificate.certificate, certificate.key)
    if ciphers is not None:
        context.set_ciphers(ciphers)
    return context


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
