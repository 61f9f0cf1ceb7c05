"""TLS as clients see it: versions, ciphers, records cut and joined, ends."""

from __future__ import annotations

import re
import ssl

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.command_line_clients import mosquitto_pub
from harness.tls import RecordClient, TLSClient, client_context, tls_environment
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("its TLS settings are its own")

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@pytest.mark.parametrize("version", VERSIONS)
def test_mosquitto_clients(tls_broker, authority, mosquitto_sub, version):
    options = ("--cafile", str(authority.certificate), "--tls-version", f"tlsv{version}")
    subscriber = mosquitto_sub(*options, "-t", "orders/#", "-q", "1", to=tls_broker)

    mosquitto_pub(tls_broker, *options, "-t", "orders/1", "-m", "approved", "-q", "1")

    received = subscriber.take()
    assert (received.topic, received.payload, received.qos) == ("orders/1", b"approved", 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_paho(tls_broker, authority, paho_client, names, version):
    context = client_context(authority.certificate, version=VERSIONS[version])
    client = paho_client(names.client(), to=tls_broker, context=context)
    assert client.subscribe(("a/#", 2)) == [2]

    client.publish("a/b", b"x" * 100_000, qos=2)

    assert client.take().payload == b"x" * 100_000


@pytest.mark.parametrize(
    ("version", "cipher"),
    [
        ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("1.3", None),
    ],
)
def test_every_cipher_both_ways(tls_broker, authority, version, cipher):
    context = client_context(
        authority.certificate, version=VERSIONS[version], ciphers=cipher)
    client = TLSClient(tls_broker, context)
    if cipher is not None:
        assert client.socket.cipher()[0] == cipher
    assert client.connect("ciphers").return_code == 0
    client.subscribe(("c", 1))
    for size in (0, 1, 100, 16_383, 16_384, 16_385, 300_000):
        payload = bytes(index & 0xFF for index in range(size))
        client.publish("c", payload, qos=1)
        assert client.take_message().payload == payload
    client.disconnect()


def test_many_packets_share_a_record(tls_broker, authority):
    client = TLSClient(tls_broker, client_context(authority.certificate))
    client.connect("batch")
    client.subscribe(("b", 0))
    client.send(*(wire.publish("b", b"%d" % index) for index in range(1_000)))
    assert [client.take_message().payload for _ in range(1_000)] == [
        b"%d" % index for index in range(1_000)]


# --- keys in memory ---------------------------------------------------------------------------


def copies(broker, secret: bytes) -> int:
    """Number of times the broker's memory contains these bytes."""
    count = 0
    with (
        open(f"/proc/{broker.process.pid}/maps") as maps,
        open(f"/proc/{broker.process.pid}/mem", "rb", buffering=0) as memory,
    ):
        for line in maps:
            if place := re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line):
                begin, end = (int(number, 16) for number in place.groups())
                memory.seek(begin)
                count += memory.read(end - begin).count(secret)
    return count


@pytest.mark.measures("memory")
def test_keys_are_in_no_free_place_and_are_wiped_at_the_end(tls_broker, authority, tmp_path):
    context = client_context(authority.certificate, version=ssl.TLSVersion.TLSv1_3)
    context.keylog_filename = str(tmp_path / "keys")
    clients = []
    for number in range(3):
        clients.append(TLSClient(tls_broker, context))
        clients[-1].connect(f"client {number}")
        clients[-1].ping()
    secrets = [
        bytes.fromhex(line.split()[2])
        for line in (tmp_path / "keys").read_text().splitlines()
        if "_TRAFFIC_SECRET_0 " in line]
    assert len(secrets) == 6
    # One place is the connection's; the compiler may have left others on a stack. A copy per
    # connection would make hundreds.
    held = [copies(tls_broker, secret) for secret in secrets]
    assert all(1 <= count <= 8 for count in held), held

    for client in clients:
        client.send(wire.DISCONNECT)
        client.await_closed()
    eventually(
        lambda: "hermes_tls_connections 0"
        in AdminAPI(tls_broker).request("GET", "/metrics").body.decode().splitlines(),
        "all connections to be closed")
    left = [copies(tls_broker, secret) for secret in secrets]
    assert all(after < before for before, after in zip(held, left)), (held, left)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_comes_with_the_end_of_the_handshake_counts(tls_broker, authority, version):
    """CONNECT and the begin of a SUBSCRIBE in the very segment of the client's Finished."""
    client = RecordClient(
        tls_broker, client_context(authority.certificate, version=VERSIONS[version]))
    subscribe = wire.subscribe(1, ("a", 0))
    client.shake_hands(wire.connect("early"), subscribe[:3])
    assert client.read() == b"\x20\x02\x00\x00"
    client.send(client.seal(subscribe[3:]))
    assert client.read() == b"\x90\x03\x00\x01\x00"
    client.close()


def test_a_client_that_says_nothing_more_is_closed_in_time(start_broker, pair, authority):
    """Nothing waits for the ticket: the end of the connection is announced, and comes."""
    broker = start_broker(connect_timeout="300ms", environment=tls_environment(pair))
    client = RecordClient(broker, client_context(authority.certificate))
    client.shake_hands()
    assert client.read() == b""
    client.close()
