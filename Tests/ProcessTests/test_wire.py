"""The harness's own codec: packets it builds and packets it rejects."""

import pytest

from harness import wire
from harness.wire import BrokerViolation, PacketReader, Publish, Suback


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (wire.connect("a"), "10 0d 00044d515454 04 02 0000 0001 61"),
        (
            wire.connect(
                "a", clean_session=False, keep_alive=258,
                will=wire.Will("w", b"x", qos=1, retain=True), user_name="u", password=b"p",
            ),
            "10 19 00044d515454 04 ec 0102 0001 61 0001 77 0001 78 0001 75 0001 70",
        ),
        (wire.publish("a", b"b"), "30 04 0001 61 62"),
        (wire.publish("a", qos=2, dup=True, retain=True, packet_id=7), "3d 05 0001 61 0007"),
        (wire.pubrel(1), "62 02 0001"),
        (wire.subscribe(1, ("a", 1)), "82 06 0001 0001 61 01"),
        (wire.unsubscribe(1, "a"), "a2 05 0001 0001 61"),
        (wire.PINGREQ, "c0 00"),
        (wire.DISCONNECT, "e0 00"),
    ],
)
def test_builders_make_the_bytes_of_the_specification(built: bytes, expected: str) -> None:
    assert built.hex() == expected.replace(" ", "")


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (16383, "ff7f"), (16384, "808001"),
     (268_435_455, "ffffff7f")],
)
def test_remaining_length(value: int, encoded: str) -> None:
    assert wire.remaining_length(value).hex() == encoded


def test_reader_takes_single_bytes() -> None:
    stream = bytes.fromhex("9003000101" + "3205000161000a" + "d000")
    reader, read = PacketReader(), []
    for byte in stream:
        reader.feed(bytes([byte]))
        if (packet := reader.next()) is not None:
            read.append(packet)
    assert read == [Suback(1, (1,)), Publish("a", b"", qos=1, packet_id=10), wire.Pingresp()]
    assert reader.is_between_packets


@pytest.mark.parametrize(
    "stream",
    [
        "00 00", "f0 00",  # reserved packet types
        "c0 00", "80 00", "e0 00",  # packets of clients
        "30 80 80 80 80 01", "d0 80 00",  # remaining length too long, padded
        "21 02 00 00", "20 03 00 00 00", "20 02 02 00", "20 02 01 01", "20 02 00 06",  # CONNACK
        "36 05 00 01 61 00 01", "38 04 00 01 61 62", "30 02 00 00", "30 03 00 01 2b",
        "30 03 00 01 ff", "30 03 00 01 00", "30 03 00 05 61", "32 04 00 01 61 00",
        "32 05 00 01 61 00 00",  # PUBLISH
        "90 02 00 01", "90 03 00 01 03", "90 03 00 00 00",  # SUBACK
        "60 02 00 01", "42 02 00 01", "40 02 00 00", "40 03 00 01 00",  # acknowledgements
        "d0 01 00",  # PINGRESP
    ],
)
def test_reader_refuses_what_no_server_sends(stream: str) -> None:
    reader = PacketReader()
    reader.feed(bytes.fromhex(stream))
    with pytest.raises(BrokerViolation):
        while reader.next() is not None:
            pass
