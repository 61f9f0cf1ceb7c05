"""The broker's answers to a client that breaks the record layer's rules, one at a time.

The client is tlslite-ng, whose record layer is neither ours nor OpenSSL's.
"""

from __future__ import annotations

import pytest

from harness import wire
from harness.scripted_tls import (
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, CLOSE_NOTIFY, HANDSHAKE, Record, ScriptedClient,
    fatal, key_update,
)
from harness.tls_suites import SUITES, SUITES_1_2, SUITES_1_3

pytestmark = pytest.mark.hermesd("its TLS settings are its own")

UNEXPECTED_MESSAGE, ILLEGAL_PARAMETER, DECODE_ERROR = fatal(10), fatal(47), fatal(50)
NO_RENEGOTIATION: Record = (ALERT, b"\x01\x64")
USER_CANCELED: Record = (ALERT, b"\x01\x5a")
CONNACK: Record = (APPLICATION_DATA, b"\x20\x02\x00\x00")
PINGRESP: Record = (APPLICATION_DATA, b"\xd0\x00")
PING: Record = (APPLICATION_DATA, b"\xc0\x00")
PIECES: list[Record] = [(HANDSHAKE, key_update(0)[:2]), (HANDSHAKE, key_update(0)[2:])]


@pytest.fixture
def scripted(tls_broker):
    """Shakes hands and connects."""
    opened = []

    def open_one(suite) -> ScriptedClient:
        client = ScriptedClient(tls_broker, suite)
        opened.append(client)
        client.send((APPLICATION_DATA, wire.connect("scripted")))
        assert client.receive() == CONNACK
        return client

    yield open_one
    for client in opened:
        client.close()


# --- rules broken -----------------------------------------------------------------------------

BROKEN_IN_BOTH = {
    "an alert of one byte": ([(ALERT, b"\x02")], [DECODE_ERROR]),
    "two alerts in a record": ([(ALERT, b"\x01\x5a\x01\x00")], [DECODE_ERROR]),
    "an alert without content": ([(ALERT, b"")], [UNEXPECTED_MESSAGE]),
    "a handshake record without content": ([(HANDSHAKE, b"")], [UNEXPECTED_MESSAGE]),
    "an unknown type": ([(24, b"\x01")], [UNEXPECTED_MESSAGE]),
    "a fatal alert": ([fatal(80)], []),
    "a fatal alert behind a packet": ([PING, fatal(80)], []),
    "close_notify": ([CLOSE_NOTIFY], [CLOSE_NOTIFY]),
    "a warning and close_notify": ([USER_CANCELED, CLOSE_NOTIFY], [CLOSE_NOTIFY]),
}
BROKEN_IN_1_3 = {
    "a request that is neither 0 nor 1": ([(HANDSHAKE, key_update(2))], [ILLEGAL_PARAMETER]),
    "a request of 255": ([(HANDSHAKE, key_update(255))], [ILLEGAL_PARAMETER]),
    "a KeyUpdate of length 0": ([(HANDSHAKE, b"\x18\x00\x00\x00")], [DECODE_ERROR]),
    "length 0 in pieces":
        ([(HANDSHAKE, b"\x18\x00"), (HANDSHAKE, b"\x00\x00")], [DECODE_ERROR]),
    "a KeyUpdate of length 2": ([(HANDSHAKE, b"\x18\x00\x00\x02\x00\x00")], [DECODE_ERROR]),
    "a KeyUpdate of length 2 without its content":
        ([(HANDSHAKE, b"\x18\x00\x00\x02")], [DECODE_ERROR]),
    "a KeyUpdate of 65,537 bytes": ([(HANDSHAKE, b"\x18\x01\x00\x01\x00")], [DECODE_ERROR]),
    "something behind a KeyUpdate":
        ([(HANDSHAKE, key_update(0) + key_update(0))], [UNEXPECTED_MESSAGE]),
    "the type of another message": ([(HANDSHAKE, b"\x04")], [UNEXPECTED_MESSAGE]),
    "a ClientHello": ([(HANDSHAKE, b"\x01\x00\x00\x01\x00")], [UNEXPECTED_MESSAGE]),
    "change_cipher_spec": ([(CHANGE_CIPHER_SPEC, b"\x01")], [UNEXPECTED_MESSAGE]),
    "padding alone": ([(0, b"\x00" * 20)], [UNEXPECTED_MESSAGE]),
    "any level of an alert is fatal": ([(ALERT, b"\x01\x50")], []),
    **{
        f"{what} between the pieces": ([PIECES[0], record, PIECES[1]], [UNEXPECTED_MESSAGE])
        for what, record in {
            "data": PING, "no data": (APPLICATION_DATA, b""), "a warning": USER_CANCELED,
            "a close": CLOSE_NOTIFY, "a fatal alert": fatal(80),
        }.items()
    },
}
BROKEN_IN_1_2 = {
    "a ClientHello":
        ([(HANDSHAKE, b"\x01\x00\x00\x01\x00")], [NO_RENEGOTIATION, CLOSE_NOTIFY]),
    "the begin of a ClientHello": ([(HANDSHAKE, b"\x01")], [NO_RENEGOTIATION, CLOSE_NOTIFY]),
    "change_cipher_spec": ([(CHANGE_CIPHER_SPEC, b"\x01")], [UNEXPECTED_MESSAGE]),
    "a level that is none": ([(ALERT, b"\x03\x50")], [ILLEGAL_PARAMETER]),
    **{
        f"handshake message {kind}":
            ([(HANDSHAKE, bytes([kind, 0, 0, 0]))], [UNEXPECTED_MESSAGE])
        for kind in (0, 2, 4, 11, 12, 13, 14, 15, 16, 20, 24, 255)
    },
}


def cases(suites, *tables):
    return [
        pytest.param(suite, *rule, id=f"{suite}, {name}")
        for suite in suites for table in tables for name, rule in table.items()]


@pytest.mark.parametrize(
    ("suite", "records", "answer"),
    cases(SUITES_1_3, BROKEN_IN_BOTH, BROKEN_IN_1_3)
    + cases(SUITES_1_2, BROKEN_IN_BOTH, BROKEN_IN_1_2))
def test_the_end_of_a_connection_that_breaks_a_rule(scripted, suite, records, answer):
    client = scripted(suite)
    client.send(*records)
    assert client.receive_all() == answer


# --- what is allowed --------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_packets_in_records_of_any_size(scripted, suite):
    client = scripted(suite)
    subscribe = wire.subscribe(1, ("sizes", 0))
    client.send(*((APPLICATION_DATA, bytes([byte])) for byte in subscribe), USER_CANCELED)
    assert client.receive() == (APPLICATION_DATA, b"\x90\x03\x00\x01\x00")
    packet = wire.publish("sizes", bytes(range(256)) * 160)
    client.send(*(
        (APPLICATION_DATA, packet[start:start + 16_384]) for start in range(0, len(packet), 16_384)
    ))
    received = b""
    while len(received) < len(packet):
        kind, content = client.receive()
        assert kind == APPLICATION_DATA and 0 < len(content) <= 16_384
        received += content
    assert received == packet


@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_the_broker_says_goodbye(scripted, suite):
    client = scripted(suite)
    client.send((APPLICATION_DATA, b""), (APPLICATION_DATA, wire.DISCONNECT))
    assert client.receive_all() == [CLOSE_NOTIFY]


@pytest.mark.parametrize("suite", SUITES_1_3, ids=str)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "in pieces"])
def test_key_updates(scripted, suite, whole):
    client = scripted(suite)
    client.pad(7)
    for round_ in range(5):
        message = key_update(round_ % 2)
        client.send(*(
            [(HANDSHAKE, message)] if whole else [(HANDSHAKE, bytes([one])) for one in message]))
        client.change_sending_key()
        client.send(PING)
        if round_ % 2 == 1:
            assert client.receive() == (HANDSHAKE, key_update(0))
            client.change_receiving_key()
        assert client.receive() == PINGRESP


# --- nonces -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES_1_2[:2], ids=str)
def test_explicit_nonces_go_on_from_that_of_the_handshake(scripted, suite):
    """OpenSSL draws the nonce of its only record, the broker's Finished; each later one adds 1."""
    firsts = set()
    for _ in range(3):
        client = scripted(suite)
        for _ in range(300):
            client.send(PING)
            assert client.receive() == PINGRESP
        client.send(CLOSE_NOTIFY)
        assert client.receive_all() == [CLOSE_NOTIFY]
        types = [kind for kind, _ in client.sealed]
        begin = types.index(CHANGE_CIPHER_SPEC) + 1
        assert types[begin] == HANDSHAKE
        nonces = [int.from_bytes(record[:8], "big") for _, record in client.sealed[begin:]]
        assert nonces == [(nonces[0] + count) % 2**64 for count in range(303)]
        firsts.add(nonces[0])
    assert len(firsts) == 3 and max(firsts) > 2**48
