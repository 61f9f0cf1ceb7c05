"""Attacks on a TLS listener: floods, forged tickets, garbage, foreign records.

The attacks are those of docs/security.md; after each the broker still serves connected clients.
"""

from __future__ import annotations

import base64
import random
import re
import socket
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.tls_programs import OpenSSLClient
from harness.tls import RecordClient, TLSClient, client_context, tls_environment
from harness.waiting import PATIENCE, eventually
from harness.wire import Will

pytestmark = pytest.mark.hermesd("its TLS settings are its own")

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture
def held(tls_broker, authority):
    """A client that is connected all the while, and well at the end."""
    client = TLSClient(tls_broker, client_context(authority.certificate))
    client.connect("held")
    client.subscribe(("held", 1))
    yield client
    client.publish("held", b"still here", qos=1)
    assert client.take_message().payload == b"still here"
    client.disconnect()


# --- after the handshake --------------------------------------------------------------------


def test_a_flood_of_renegotiations(tls_broker, authority, held):
    api = AdminAPI(tls_broker)
    before = api.metric("hermes_tls_handshakes_total")
    for _ in range(10):
        with OpenSSLClient(tls_broker, authority.certificate, "-tls1_2") as client:
            client.await_handshake()
            client.command("R", "RENEGOTIATING")
            # The first attempt ends its connection, and costs no handshake.
            assert "no renegotiation" in client.await_end()
    assert api.metric('hermes_connections_closed_total{reason="tls_record"}') == 10
    assert "a handshake anew" in tls_broker.log.await_match(
        "Connection closed, its TLS was broken").string
    assert api.metric("hermes_tls_handshakes_total") == before + 10
    assert api.metric("hermes_tls_handshake_failures_total") == 0


@pytest.mark.parametrize("letter", ["k", "K"], ids=["changes its key", "asks for ours too"])
def test_a_flood_of_key_updates(tls_broker, authority, held, letter):
    with OpenSSLClient(tls_broker, authority.certificate, "-tls1_3") as client:
        client.await_handshake()
        for _ in range(32):
            client.command(letter, "KEYUPDATE")
        assert client.process.poll() is None
        client.command(letter, "KEYUPDATE")
        assert "unexpected message" in client.await_end()
    tls_broker.log.await_match(
        "Connection closed, its TLS was broken.*reason=tls_record.*too many without data")


def test_a_key_update_now_and_then(tls_broker, authority):
    with OpenSSLClient(tls_broker, authority.certificate, "-tls1_3") as client:
        client.await_handshake()
        client.command("K", "KEYUPDATE")
        # Not MQTT: bytes under the new key are parsed, and close the connection.
        assert client.process.stdin is not None
        client.process.stdin.write(b"no packet\n")
        client.process.stdin.flush()
        client.await_end()
    tls_broker.log.await_match("Connection closed after a protocol violation")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tampering", ["repeated", "withheld", "swapped", "changed"])
def test_records_of_somebody_in_between(tls_broker, authority, held, version, tampering):
    context = client_context(authority.certificate, version=version)
    watcher = TLSClient(tls_broker, context)
    watcher.connect("watcher")
    watcher.subscribe(("between", 1), ("gone", 1))
    client = RecordClient(tls_broker, context)
    client.shake_hands()
    client.connect("victim", will=Will("gone", b"", qos=1))
    first, second = (client.seal(wire.publish("between", payload)) for payload in (b"1", b"2"))
    changed = second[:-1] + bytes([second[-1] ^ 1])
    client.send({
        "repeated": first + first + second, "withheld": second, "swapped": second + first,
        "changed": first + changed,
    }[tampering])
    with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
        while client.read():
            pass
    tls_broker.log.await_match("Connection closed, its TLS was broken.*was not sealed by")
    # Data before it counts once; nothing after it does.
    expected = [b"1"] if tampering in ("repeated", "changed") else []
    received = [watcher.take_message() for _ in range(len(expected) + 1)]
    assert [one.payload for one in received if one.topic == "between"] == expected
    assert received[-1].topic == "gone"
    assert watcher.messages_so_far() == []
    watcher.disconnect()
    client.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_truncated_stream_is_no_message(tls_broker, authority, held, version):
    context = client_context(authority.certificate, version=version)
    watcher = TLSClient(tls_broker, context)
    watcher.connect("watcher")
    watcher.subscribe(("cut", 1), ("gone", 1))
    # Behind a whole packet come: the head of a record, a record without its end, a record that
    # holds a part of a packet.
    packet = wire.publish("cut", b"second")
    for number, make in enumerate([
        lambda client: client.seal(packet)[:4],
        lambda client: client.seal(packet)[:-1],
        lambda client: client.seal(packet[:-1]),
    ]):
        client = RecordClient(tls_broker, context)
        client.shake_hands()
        client.connect(f"truncated {number}", will=Will("gone", b"", qos=1))
        client.send(client.seal(wire.publish("cut", b"first")) + make(client))
        client.socket.shutdown(socket.SHUT_WR)
        assert watcher.take_message().payload == b"first"
        assert watcher.take_message().topic == "gone"
        client.close()
    assert watcher.messages_so_far() == []
    watcher.disconnect()


# --- in the handshake -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "*", "..", "-", "%s%n", "a" * 255, "\x01\x1b[31m", "localhost.", "*.localhost", "caf\u00e9",
])
def test_a_server_name_that_is_none_gets_the_first_certificate(
    start_broker, authority, pair, name
):
    broker = start_broker(environment=tls_environment(
        pair, authority.issue("other", names="DNS:other.example")))
    with OpenSSLClient(
        broker, authority.certificate, "-servername", name, "-verify_hostname", "localhost",
    ) as client:
        assert client.await_handshake() == "New"
        client.output.await_match(r"Verification: OK")


def test_garbage_in_a_client_hello(tls_broker, authority, held):
    api = AdminAPI(tls_broker)
    context = client_context(authority.certificate)
    marker = "x" * 60
    draw = random.Random(1)
    hellos = []
    for number in range(200):
        client = RecordClient(tls_broker, context, server_name=marker)
        hello = bytearray(client.hello())
        client.close()
        if number % 2:
            # The name alone: any bytes, zeros among them.
            at = hello.index(marker.encode())
            hello[at:at + len(marker)] = draw.randbytes(len(marker))
        else:
            # Behind the record's header, so that OpenSSL sees it.
            for _ in range(draw.randint(1, 8)):
                hello[draw.randrange(5, len(hello))] = draw.randrange(256)
        hellos.append(bytes(hello))
    for hello in hellos:
        with socket.create_connection(tls_broker.address, PATIENCE) as raw:
            raw.sendall(hello)
            raw.shutdown(socket.SHUT_WR)
            try:
                while raw.recv(1 << 16):
                    pass
            except ConnectionResetError:
                pass
    # Includes those whose ClientHello has only been read.
    eventually(
        lambda: api.metric("hermes_tls_handshake_failures_total") == 400,
        "every handshake to fail")
    assert api.metric('hermes_tls_handshake_failures_total{reason="internal_error"}') == 0
    assert api.metric("hermes_tls_handshakes_under_way") == 0
    assert api.metric("hermes_tls_handshakes_total") == 1


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_a_ticket_that_is_forged_makes_a_full_handshake(
    tls_broker, authority, tmp_path, held, version
):
    path = tmp_path / "session"

    def handshake(*options: str) -> str:
        with OpenSSLClient(tls_broker, authority.certificate, version, *options) as client:
            how = client.await_handshake()
            if "-sess_out" in options:
                # In TLS 1.3 the ticket comes with the first answer.
                client.send(wire.connect("ticket"))
                eventually(lambda: path.exists() and path.stat().st_size > 0, "a ticket")
            return how

    assert handshake("-sess_out", str(path)) == "New"
    session = base64.b64decode("".join(path.read_text().split("\n")[1:-2]))
    # [10] of the session's ASN.1 is the ticket: key name, nonce, contents, authentication.
    # Random bytes before it may look like its tag, so the length has to be a ticket's, too.
    found = []
    for match in re.finditer(rb"\xaa[\x81\x82]", session):
        header = {0x81: 6, 0x82: 8}[session[match.start() + 1]]
        size = int.from_bytes(session[match.start() + header - (header - 4) // 2:match.start() + header])
        if 100 < size <= len(session) - match.start() - header:
            found.append((match.start(), header, size))
    assert found, "the ticket was not found"
    at, header, length = found[0]
    for place in (0, 16, 32, length // 2, length - 1):
        forged = bytearray(session)
        forged[at + header + place] ^= 1
        text = base64.encodebytes(bytes(forged)).decode()
        path.write_text(
            f"-----BEGIN SSL SESSION PARAMETERS-----\n{text}-----END SSL SESSION PARAMETERS-----\n")
        assert handshake("-sess_in", str(path)) == "New", f"byte {place} of the ticket"
    path.write_text(
        "-----BEGIN SSL SESSION PARAMETERS-----\n"
        f"{base64.encodebytes(session).decode()}-----END SSL SESSION PARAMETERS-----\n")
    assert handshake("-sess_in", str(path)) == "Reused"


def test_half_open_handshakes_keep_nobody_out(tls_broker, authority, held, raw):
    api = AdminAPI(tls_broker)
    descriptors = tls_broker.open_descriptors()
    context = client_context(authority.certificate)
    hello = RecordClient(tls_broker, context)
    begin = hello.hello()
    hello.close()
    stalled = [raw(tls_broker) for _ in range(300)]
    for number, one in enumerate(stalled):
        # Nothing, a part of the first message, all of it: then silence.
        one.send(begin[:[0, 1, 5, 100, len(begin)][number % 5]])
    eventually(
        lambda: api.metric("hermes_tls_handshakes_under_way") == 300, "300 open handshakes")
    for _ in range(5):
        client = TLSClient(tls_broker, context)
        assert client.connect("newcomer").return_code == 0
        client.disconnect()
        held.ping()
    for one in stalled:
        one.socket.close()
    eventually(lambda: api.metric("hermes_tls_handshakes_under_way") == 0, "all of them to end")
    eventually(
        lambda: tls_broker.open_descriptors() <= descriptors, "their descriptors to be closed")


def test_handshakes_that_are_cut_off_leave_nothing(tls_broker, authority, held):
    """A reset while another thread takes the step."""
    api = AdminAPI(tls_broker)
    descriptors = tls_broker.open_descriptors()
    context = client_context(authority.certificate)
    for _ in range(300):
        client = RecordClient(tls_broker, context)
        client.send(client.hello())
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    eventually(
        lambda: api.metric("hermes_tls_handshake_failures_total")
        + api.metric("hermes_connections_closed_total") >= 300, "300 ends")
    eventually(lambda: api.metric("hermes_tls_handshakes_under_way") == 0, "none under way")
    eventually(
        lambda: tls_broker.open_descriptors() <= descriptors, "their descriptors to be closed")


def test_a_flood_of_handshakes(tls_broker, authority, held):
    api = AdminAPI(tls_broker)
    context = client_context(authority.certificate)

    def knock(_: int) -> int:
        client = TLSClient(tls_broker, context)
        code = client.connect("").return_code
        client.disconnect()
        return code

    with ThreadPoolExecutor(16) as pool:
        flood = pool.map(knock, range(400))
        while api.metric("hermes_tls_handshakes_total") < 300:
            held.ping()
        assert set(flood) == {0}
    assert api.metric("hermes_tls_handshakes_total") == 401
    assert api.metric("hermes_tls_handshake_failures_total") == 0
