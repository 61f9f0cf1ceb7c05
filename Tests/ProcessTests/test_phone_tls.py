"""hermes-phone, and with it HermesClient, against a real broker over TLS with pins."""

from __future__ import annotations

import base64
import hashlib
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.admin import AdminAPI
from harness.broker import Hermesd
from harness.certificates import Authority, Certificate
from harness.phone import Phone
from harness.relay import Relay
from harness.tls import client_context, tls_environment
from harness.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.hermesd("its TLS settings are its own"), pytest.mark.timeout(120)]

StartBroker = Callable[..., Hermesd]
StartPhone = Callable[..., Phone]
FILTER = "orders/s-42/#"
SAFE = "sha256/" + base64.b64encode(bytes(32)).decode()
"""The pin of a key that no broker has."""


def pin(pair: Certificate) -> str:
    """The pin of the certificate's key, made as docs/client.md says."""
    public = subprocess.run(
        ["openssl", "x509", "-in", str(pair.certificate), "-noout", "-pubkey"],
        check=True, capture_output=True, timeout=PATIENCE).stdout
    key = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "der"], input=public,
        check=True, capture_output=True, timeout=PATIENCE).stdout
    return "sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def trust(authority: Authority, *pins: str) -> list[str]:
    """The phone's options for TLS."""
    return ["--roots", str(authority.certificate), *(word for each in pins for word in ("--pin", each))]


def post(broker: Hermesd, order: str) -> None:
    body = {"sales_id": "s-42", "status": "APPROVED"}
    answer = AdminAPI(broker).post_json(f"/v1/orders/{order}/status", body)
    assert answer.status == 200, answer


def serial(address: tuple[str, int], authority: Authority) -> str:
    """The number of the certificate that is served now."""
    context = client_context(authority.certificate)
    with socket.create_connection(address, PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as served:
            return served.getpeercert()["serialNumber"]


def renew(broker: Hermesd, old: Certificate, new: Certificate, authority: Authority) -> None:
    """Puts a certificate in the place of another one; returns when it is served."""
    former = serial(broker.address, authority)
    old.replace(new)
    assert broker.process is not None
    broker.process.send_signal(signal.SIGHUP)
    eventually(lambda: serial(broker.address, authority) != former, "the new certificate")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_12_a_broker_with_a_certificate_of_an_own_root_and_a_pinned_key_is_trusted(
    start_broker: StartBroker, phone: StartPhone, authority: Authority, pair: Certificate, host: str
) -> None:
    broker = start_broker(environment=tls_environment(pair))
    seven = phone(
        (host, broker.port), "phone-7", "-s", FILTER, *trust(authority, SAFE, pin(pair)))
    seven.await_note("subscribed")
    post(broker, "o-1")
    (message,) = seven.await_messages(1)
    assert message["orderStatus"]["orderId"] == "o-1"


def test_12_a_root_that_is_not_ones_own_is_refused(
    start_broker: StartBroker, phone: StartPhone, pair: Certificate, tmp_path: Path
) -> None:
    broker = start_broker(environment=tls_environment(pair))
    other = Authority(tmp_path / "other", "Another authority")
    for roots in (["--roots", str(other.certificate)], []):
        pins = ["--pin", pin(pair), "--pin", SAFE]
        seven = phone(("localhost", broker.port), "phone-7", *roots, *pins)
        seven.await_note(
            "disconnected: .*the certificate does not lead to a trusted root, or is not valid now")
        assert "connected, " not in seven.log.text
    assert AdminAPI(broker).request("GET", "/v1/clients/phone-7").status == 404


def test_12_a_key_that_no_pin_names_is_refused_with_its_pin(
    start_broker: StartBroker, phone: StartPhone, authority: Authority, pair: Certificate
) -> None:
    broker = start_broker(environment=tls_environment(pair))
    other = "sha256/" + base64.b64encode(bytes(range(32))).decode()
    seven = phone(("localhost", broker.port), "phone-7", *trust(authority, SAFE, other))
    line = seven.await_note("disconnected: .*no pin is that of the broker's key")
    assert pin(pair) in line
    seven.await_note("state: waiting")
    assert AdminAPI(broker).request("GET", "/v1/clients/phone-7").status == 404


def test_12_no_credentials_leave_before_the_pin_is_found_right(
    phone: StartPhone, authority: Authority, pair: Certificate
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)

    def bytes_of_a_phone(*pins: str) -> bytes:
        """The first bytes that come in TLS."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(PATIENCE)
            seven = phone(
                server.getsockname(), "phone-7", "--user", "seven", *trust(authority, *pins),
                environment={"HERMES_PASSWORD": "secret"})
            connection, _ = server.accept()
            connection.settimeout(PATIENCE)
            with context.wrap_socket(connection, server_side=True) as tls:
                try:
                    received = tls.recv(1_000)
                except (ssl.SSLEOFError, ConnectionResetError):
                    received = b""
            seven.kill()
            return received

    # The same eye sees them when the pin is right.
    assert b"seven" in bytes_of_a_phone(pin(pair), SAFE)
    assert bytes_of_a_phone("sha256/" + base64.b64encode(bytes(range(32))).decode(), SAFE) == b""


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_12_a_certificate_of_another_host_is_refused(
    start_broker: StartBroker, phone: StartPhone, authority: Authority, host: str
) -> None:
    elsewhere = authority.issue(f"elsewhere-{host}", names="DNS:elsewhere.example,IP:192.0.2.1")
    broker = start_broker(environment=tls_environment(elsewhere))
    seven = phone((host, broker.port), "phone-7", *trust(authority, pin(elsewhere), SAFE))
    seven.await_note("disconnected: .*the certificate is for another host")
    seven.await_note("state: waiting")
    assert AdminAPI(broker).request("GET", "/v1/clients/phone-7").status == 404


def test_12_a_certificate_renewed_with_its_key_needs_no_new_pin_and_drops_nobody(
    start_broker: StartBroker, phone: StartPhone, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "own")
    pair = authority.issue("localhost")
    broker = start_broker(environment=tls_environment(pair))
    relay = Relay(broker.address)
    seven = phone(relay.address, "phone-7", "-s", FILTER, *trust(authority, pin(pair), SAFE))
    seven.await_note("subscribed")
    connected = seven.mark

    renew(broker, pair, authority.issue("renewed", renews=pair), authority)
    post(broker, "o-1")
    seven.await_messages(1)
    assert not any("connected" in line for line in seven.log.lines[connected:])

    relay.cut_all()
    seven.await_note("disconnected", start=connected)
    seven.tell("now")
    seven.await_note("connected, the session goes on", start=connected)
    post(broker, "o-2")
    assert [each["orderStatus"]["orderId"] for each in seven.await_messages(2)] == ["o-1", "o-2"]


def test_12_a_key_replaced_by_the_one_of_the_second_pin_is_trusted_and_any_other_is_not(
    start_broker: StartBroker, phone: StartPhone, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "own")
    pair = authority.issue("localhost")
    successor, stranger = authority.issue("successor"), authority.issue("stranger")
    pins = trust(authority, pin(pair), pin(successor))
    broker = start_broker(environment=tls_environment(pair))
    relay = Relay(broker.address)
    seven = phone(relay.address, "phone-7", *pins)
    seven.await_note("connected, ")

    for new, note in (
        (successor, "connected, the session goes on"),
        (stranger, "no pin is that of the broker's key"),
    ):
        renew(broker, pair, new, authority)
        mark = seven.mark
        relay.cut_all()
        seven.await_note("disconnected", start=mark)
        seven.tell("now")
        seven.await_note(note, start=mark)
