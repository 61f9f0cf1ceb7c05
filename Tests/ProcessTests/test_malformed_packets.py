"""Section 4.8: each violation closes its own connection, and no other."""

import pytest

from harness import wire
from harness.raw_client import RawClient
from harness.wire import PacketType


def row(rule: str, data: bytes | str, *, passes_mosquitto: bool = False) -> object:
    """The rule broken, by statement or section, and the bytes that break it."""
    raw_bytes = bytes.fromhex(data) if isinstance(data, str) else data
    marks = [pytest.mark.mosquitto_deviates(f"lets {rule} pass")] if passes_mosquitto else []
    return pytest.param(raw_bytes, id=rule.replace(" ", "-"), marks=marks)


BAD_TEXT = {
    "1.5.3-1 lone continuation": b"a\x80",
    "1.5.3-1 cut sequence": b"a\xe2\x82",
    "1.5.3-1 overlong slash": b"a\xc0\xaf",
    "1.5.3-1 overlong null": b"a\xc0\x80",
    "1.5.3-1 overlong three": b"a\xe0\x80\xaf",
    "1.5.3-1 high surrogate": b"a\xed\xa0\x80",
    "1.5.3-1 surrogate pair": b"a\xed\xa0\x80\xed\xb0\x80",
    "1.5.3-1 beyond U+10FFFF": b"a\xf4\x90\x80\x80",
    "1.5.3-1 byte FF": b"a\xff",
    "1.5.3-2 null": b"a\x00b",
}

BAD_FILTERS = (
    "#/a", "a/#/b", "a#", "#a", "a/b#", "a/#b", "##", "a+", "+a", "a/+b", "++", "a/b+/c",
)

AFTER_CONNECT = [
    # Fixed header.
    row("2.2.1 packet type 0", "0000"),
    row("2.2.1 packet type 15", "f000"),
    row("2.2.3 five length bytes", "30ffffffff7f"),
    row("2.2.3 four continuations suffice", "30ffffffff", passes_mosquitto=True),
    row("2.2.2-2 PUBACK flags", "41020001", passes_mosquitto=True),
    row("2.2.2-2 PUBREC flags", "51020001", passes_mosquitto=True),
    row("2.2.2-2 PUBCOMP flags", "71020001", passes_mosquitto=True),
    row("3.6.1-1 PUBREL flags 0000", "60020001"),
    row("3.6.1-1 PUBREL flags 0011", "63020001"),
    row("3.8.1-1 SUBSCRIBE flags 0000", "80060001" "000161" "00"),
    row("3.8.1-1 SUBSCRIBE flags 1010", "8a060001" "000161" "00"),
    row("3.10.1-1 UNSUBSCRIBE flags 0000", "a0050001" "000161"),
    row("2.2.2-2 PINGREQ flags", "c100", passes_mosquitto=True),
    row("3.14.1-1 DISCONNECT flags", "e100"),
    # Packets that only a server sends.
    row("4.8.0-1 CONNACK", "20020000"),
    row("4.8.0-1 SUBACK", "9003000100", passes_mosquitto=True),
    row("4.8.0-1 UNSUBACK", "b0020001", passes_mosquitto=True),
    row("4.8.0-1 PINGRESP", "d000", passes_mosquitto=True),
    row("3.1.0-2 second CONNECT", wire.connect("second")),
    # Exact lengths.
    row("3.4 PUBACK of 1 byte", "400100"),
    row("3.4 PUBACK of 3 bytes", "4003000100", passes_mosquitto=True),
    row("3.4 PUBACK empty", "4000"),
    row("3.5 PUBREC of 3 bytes", "5003000100", passes_mosquitto=True),
    row("3.6 PUBREL of 3 bytes", "6203000100", passes_mosquitto=True),
    row("3.7 PUBCOMP of 3 bytes", "7003000100", passes_mosquitto=True),
    row("3.12 PINGREQ of 1 byte", "c00100", passes_mosquitto=True),
    row("3.14 DISCONNECT of 1 byte", "e00100"),
    # Packet identifiers.
    row("2.3.1-1 PUBLISH QoS 1 id 0", wire.publish("a", b"x", qos=1, packet_id=0)),
    row("2.3.1-1 PUBLISH QoS 2 id 0", wire.publish("a", b"x", qos=2, packet_id=0)),
    row("2.3.1-1 SUBSCRIBE id 0", wire.subscribe(0, ("a", 0))),
    row("2.3.1-1 UNSUBSCRIBE id 0", wire.unsubscribe(0, "a")),
    row("2.3.1-6 PUBACK id 0", "40020000"),
    row("2.3.1-6 PUBREC id 0", "50020000"),
    row("2.3.1-6 PUBREL id 0", "62020000"),
    row("2.3.1-6 PUBCOMP id 0", "70020000"),
    # PUBLISH.
    row("3.3.1-4 QoS 3", "36050001610001"),
    row("3.3.1-4 QoS 3 with DUP", "3e050001610001"),
    row("3.3.1-2 DUP with QoS 0", "3803000161", passes_mosquitto=True),
    row("3.3.2-1 no topic length", "3000"),
    row("3.3.2-1 half a topic length", "300100"),
    row("3.3.2-1 topic beyond the packet", "3003000561"),
    row("3.3 QoS 1 without identifier", "3203000161"),
    row("3.3 QoS 1 with half an identifier", "320400016100"),
    row("3.3 QoS 2 without identifier", "3403000161"),
    row("4.7.3-1 empty topic name", "30020000"),
    row("4.7.3-1 empty topic name with payload", "3004000061" "62"),
    row("3.3.2-2 topic #", wire.publish("#")),
    row("3.3.2-2 topic a/#", wire.publish("a/#")),
    row("3.3.2-2 topic +", wire.publish("+")),
    row("3.3.2-2 topic a+b", wire.publish("a+b")),
    row("3.3.2-2 topic a#b", wire.publish("a#b", qos=1, packet_id=1)),
    # SUBSCRIBE.
    row("3.8.3-3 no filter", "82020001"),
    row("3.8.3-3 no identifier", "8200"),
    row("3.8.3-4 QoS 3", wire.subscribe(1, ("a", 3))),
    row("3.8.3-4 reserved bit 2", wire.subscribe(1, ("a", 4))),
    row("3.8.3-4 reserved bit 7", wire.subscribe(1, ("a", 0x80))),
    row("3.8.3-4 in the second filter", wire.subscribe(1, ("a", 0), ("b", 3))),
    row("3.8.3 options byte missing", "82050001" "000161"),
    row("3.8.3 filter beyond the packet", "82060001" "000561" "00"),
    row("3.8.3 second filter cut", "82080001" "000161" "00" "0001"),
    row("4.7.3-1 empty filter", wire.subscribe(1, ("", 0))),
    # UNSUBSCRIBE.
    row("3.10.3-2 no filter", "a2020001"),
    row("3.10.3-2 no identifier", "a200"),
    row("3.10.3 filter beyond the packet", "a2050001" "000561"),
    row("3.10.3 trailing byte", "a2060001" "000161" "00"),
    row("4.7.3-1 empty filter in UNSUBSCRIBE", wire.unsubscribe(1, "")),
    *(row(f"4.7.1 SUBSCRIBE {bad}", wire.subscribe(1, (bad, 0))) for bad in BAD_FILTERS),
    *(row(f"4.7.1 UNSUBSCRIBE {bad}", wire.unsubscribe(1, bad)) for bad in BAD_FILTERS),
    *(row(f"{name} in PUBLISH", wire.publish(bad)) for name, bad in BAD_TEXT.items()),
    *(row(f"{name} in SUBSCRIBE", wire.subscribe(1, (bad, 0))) for name, bad in BAD_TEXT.items()),
    *(row(f"{name} in UNSUBSCRIBE", wire.unsubscribe(1, bad)) for name, bad in BAD_TEXT.items()),
]

CLIENT_ID = wire.string(b"c")

AS_CONNECT = [
    row("2.2.2-2 CONNECT flags", wire.packet(1, 1, wire.connect("c")[2:])),
    row("3.1.2-1 protocol name MQTX", wire.connect("c", protocol_name="MQTX")),
    row("3.1.2-1 protocol name mqtt", wire.connect("c", protocol_name="mqtt")),
    row("3.1.2-1 empty protocol name", wire.connect("c", protocol_name="")),
    row("3.1.2-1 long protocol name", wire.connect("c", protocol_name="M" * 1_000)),
    row("3.1.2-3 reserved flag", wire.connect_with_flags(0x03, CLIENT_ID)),
    row("3.1.2-11 will QoS 1 without a will", wire.connect_with_flags(0x0A, CLIENT_ID)),
    row("3.1.2-11 will QoS 2 without a will", wire.connect_with_flags(0x12, CLIENT_ID)),
    row("3.1.2-15 will retain without a will", wire.connect_with_flags(0x22, CLIENT_ID)),
    row(
        "3.1.2-14 will QoS 3",
        wire.connect_with_flags(0x1E, CLIENT_ID + wire.string(b"w") + wire.string(b"m")),
    ),
    row(
        "3.1.2-22 password without user name",
        wire.connect_with_flags(0x42, CLIENT_ID + wire.string(b"p")),
    ),
    row("3.1.2-9 will missing", wire.connect_with_flags(0x06, CLIENT_ID)),
    row(
        "3.1.2-9 will message missing",
        wire.connect_with_flags(0x06, CLIENT_ID + wire.string(b"w")),
    ),
    row("3.1.2-19 user name missing", wire.connect_with_flags(0x82, CLIENT_ID)),
    row("3.1.2-21 password missing", wire.connect_with_flags(0xC2, CLIENT_ID + wire.string(b"u"))),
    row("3.1.2-11 will present without its flag", wire.connect_with_flags(
        0x02, CLIENT_ID + wire.string(b"w") + wire.string(b"m"))),
    row("3.1.2-18 user name without its flag", wire.connect_with_flags(
        0x02, CLIENT_ID + wire.string(b"u"))),
    row("3.1.2-20 password without its flag", wire.connect_with_flags(
        0x82, CLIENT_ID + wire.string(b"u") + wire.string(b"p"))),
    row("3.1.3-1 trailing byte", wire.connect_with_flags(0x02, CLIENT_ID + b"x")),
    row("3.1.3-3 no client identifier", wire.connect_with_flags(0x02, b"")),
    row("3.1.3-3 identifier beyond the packet", wire.connect_with_flags(0x02, b"\x00\x05c")),
    row("3.1 empty", "1000"),
    row("3.1 ends in the protocol name", "10040004" "4d51"),
    row("3.1 ends after the level", "1007" "00044d515454" "04"),
    row("3.1 ends in the keep alive", "1009" "00044d515454" "04" "02" "00"),
    row("4.7.3-1 empty will topic", wire.connect("c", will=wire.Will("", b"m"))),
    row("3.3.2-2 wildcard in the will topic", wire.connect("c", will=wire.Will("a/#", b"m"))),
    row("3.3.2-2 plus in the will topic", wire.connect("c", will=wire.Will("a/+", b"m"))),
    *(row(f"{name} in the client identifier", wire.connect(bad)) for name, bad in BAD_TEXT.items()),
    *(
        row(f"{name} in the will topic", wire.connect("c", will=wire.Will(bad)))
        for name, bad in BAD_TEXT.items()
    ),
    *(
        row(f"{name} in the user name", wire.connect("c", user_name=bad))
        for name, bad in BAD_TEXT.items()
    ),
]


@pytest.fixture(scope="module")
def bystander(shared_broker):
    """A client of the same broker, connected throughout."""
    one = RawClient(shared_broker.address)
    one.connect("bystander-of-violations")
    yield one
    one.disconnect()


@pytest.mark.parametrize("data", AFTER_CONNECT)
def test_a_violation_closes_the_connection(data, client, bystander):
    """[MQTT-4.8.0-1] without an answer, and other clients are not affected."""
    connection = client("violator")
    connection.send(data)
    assert connection.await_closed() == []
    bystander.ping()


@pytest.mark.parametrize("data", AS_CONNECT)
def test_a_malformed_connect_is_not_answered(data, raw, bystander):
    """[MQTT-3.1.4-1] closed without a CONNACK."""
    connection = raw()
    connection.send(data)
    assert connection.await_closed() == []
    bystander.ping()


@pytest.mark.parametrize(
    "packet_type", [number for number in range(16) if number != PacketType.CONNECT]
)
def test_only_connect_may_come_first(packet_type, raw, bystander):
    """[MQTT-3.1.0-1] every other packet type, well formed where there is a form."""
    connection = raw()
    connection.send(WELL_FORMED.get(packet_type, wire.packet(packet_type, 0)))
    assert connection.await_closed() == []
    bystander.ping()


WELL_FORMED = {
    PacketType.CONNACK: bytes.fromhex("20020000"),
    PacketType.PUBLISH: wire.publish("a", b"x"),
    PacketType.PUBACK: wire.puback(1),
    PacketType.PUBREC: wire.pubrec(1),
    PacketType.PUBREL: wire.pubrel(1),
    PacketType.PUBCOMP: wire.pubcomp(1),
    PacketType.SUBSCRIBE: wire.subscribe(1, ("a", 0)),
    PacketType.SUBACK: bytes.fromhex("9003000100"),
    PacketType.UNSUBSCRIBE: wire.unsubscribe(1, "a"),
    PacketType.UNSUBACK: bytes.fromhex("b0020001"),
    PacketType.PINGREQ: wire.PINGREQ,
    PacketType.PINGRESP: bytes.fromhex("d000"),
    PacketType.DISCONNECT: wire.DISCONNECT,
}


@pytest.mark.parametrize(
    "data",
    [wire.puback(9), wire.pubcomp(9), wire.pubrec(9), wire.pubrel(9)],
    ids=["PUBACK", "PUBCOMP", "PUBREC", "PUBREL"],
)
def test_an_acknowledgement_of_nothing_does_no_harm(data, client):
    """It may be a repetition from an earlier connection: the connection goes on."""
    connection = client("confused")
    connection.send(data)
    connection.ping()
    connection.disconnect()


def test_a_password_is_binary(raw, names):
    """It is no string: any bytes will do (section 3.1.3.5)."""
    connection = raw()
    connack = connection.connect(names.client(), user_name="u", password=b"\x00\xff\xed\xa0\x80")
    assert connack.return_code in (0, 4, 5)


@pytest.mark.hermesd("its log names what was broken")
def test_the_log_names_the_statement(start_broker, client, names):
    """So that an operator finds the statement of the standard, and the client."""
    broker = start_broker()
    violator = client("named", broker)
    violator.send(bytes.fromhex("36050001610001"))
    violator.await_closed()
    line = broker.log.await_match(r".*after a protocol violation.*")[0]
    assert "MQTT-3.3.1-4" in line and names.client("named") in line


def test_a_violation_discards_what_follows_it(client, names):
    """Packets behind the violation, in the same segment, have no effect; those before it have."""
    topic = names.topic()
    watcher = client("watcher")
    watcher.subscribe((topic, 0))
    violator = client("violator")
    violator.send(
        wire.publish(topic, b"before"), bytes.fromhex("f000"), wire.publish(topic, b"after")
    )
    violator.await_closed()
    assert [message.payload for message in watcher.messages_so_far()] == [b"before"]
