"""OpenSSL's and GnuTLS's own clients: every suite, key updates, small records, alerts and ends."""

from __future__ import annotations

import pytest

from harness import wire
from harness.tls import TLSClient, client_context
from harness.tls_programs import GnuTLSClient, OpenSSLClient
from harness.tls_suites import SUITES, SUITES_1_2, SUITES_1_3

pytestmark = pytest.mark.hermesd("its TLS settings are its own")


@pytest.fixture(params=[OpenSSLClient, GnuTLSClient], ids=["openssl", "gnutls"])
def program(request, tls_broker, authority):
    """Starts a client that is subscribed to `line` and prints what is published there."""
    started = []

    def start(suite, **options):
        client = request.param.start(tls_broker, authority.certificate, suite, **options)
        started.append(client)
        client.send(wire.connect("program") + wire.subscribe(1, ("line", 0)))
        talk(client, "hello")
        return client

    yield start
    for client in started:
        client.close()


def talk(client, text: str) -> None:
    """Publishes a line, which comes back."""
    client.send(wire.publish("line", f"{text}\n".encode()))
    client.output.await_match(f"line{text}$")


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_traffic_and_the_broker_s_goodbye(tls_broker, authority, program, suite):
    client = program(suite)
    other = TLSClient(tls_broker, client_context(authority.certificate))
    other.connect("other")
    other.subscribe(("line", 1))
    for number in range(5):
        talk(client, f"round {number}")
        assert other.take_message().payload == f"round {number}\n".encode()
    text = "0123456789" * 9_000
    other.publish("line", f"{text}\n".encode())
    client.output.await_match(f"line{text}$")
    other.disconnect()

    client.send(wire.DISCONNECT)
    client.await_end()
    assert client.process.returncode == 0
    assert client.was_told_of_the_end and client.alerts == set()


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_a_client_that_closes(tls_broker, program, suite):
    client = program(suite)
    client.hang_up()
    assert client.process.returncode == 0
    assert client.alerts == set()
    tls_broker.log.await_match("Connection closed client.id=program.*reason=peer_closed")


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_small_records(tls_broker, authority, program, suite):
    client = program(suite, fragment=512)
    other = TLSClient(tls_broker, client_context(authority.certificate))
    other.connect("other")
    text = "0123456789" * 500
    other.publish("line", f"{text}\n".encode())
    client.output.await_match(f"line{text}$")
    for letter in "abc":
        talk(client, 400 * letter)
    other.disconnect()


@pytest.mark.parametrize("suite", SUITES_1_3, ids=str)
def test_key_updates(program, suite):
    client = program(suite)
    for number in range(4):
        client.change_key(asks=number % 2 == 0)
        talk(client, f"key {number}")
    client.change_key(asks=True)
    client.change_key(asks=True)
    talk(client, "two in a row")
    assert client.alerts == set()


@pytest.mark.parametrize("suite", SUITES_1_3, ids=str)
def test_an_alert(tls_broker, program, suite):
    """One KeyUpdate more than a peer may send."""
    client = program(suite)
    for _ in range(32):
        client.change_key()
    assert client.alerts == set()
    client.change_key()
    client.await_end()
    assert client.alerts == {10}
    tls_broker.log.await_match("Connection closed, its TLS was broken.*reason=tls_record")


@pytest.mark.parametrize("suite", SUITES_1_2, ids=str)
def test_a_new_handshake_is_refused_and_the_end_is_announced(tls_broker, program, suite):
    client = program(suite)
    client.renegotiate()
    client.await_end()
    assert client.was_told_of_the_end
    assert client.alerts == {100}
    tls_broker.log.await_match("Connection closed, its TLS was broken.*a handshake anew")
