"""Loads that break rules: of MQTT, of TLS, of HTTP, and of reading what one asked for."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time

from harness import wire
from harness.waiting import PATIENCE
from harness.wire import PacketType, Will

from .load import STRANGER, Load

FIRST = (
    b"", b"\x10", b"\x10\xff\xff\xff\x7f", b"\x30\xff\xff\xff\x7f", b"\x10\x80\x80\x80\x80\x01",
    b"\x20\x02\x00\x00", b"\xf0\x00", b"\x00\x00", wire.PINGREQ, wire.publish("a", b"b"),
    wire.connect_with_flags(0x03, wire.string("r")), wire.connect_with_flags(0x1c, wire.string("w")),
    wire.connect_with_flags(0x40, wire.string("p") + wire.string("x")),
    wire.connect("n", protocol_name="MQTQ"), wire.connect("l", protocol_level=9),
    wire.connect(b"\xc0\x80"), wire.connect("\0"), wire.connect("", clean_session=False),
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
    b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
)
"""First bytes of a connection, of which no CONNACK with code 0 may come."""
SECOND = (
    wire.connect("second"), b"\x20\x02\x00\x00", b"\xd0\x00", b"\xf0\x00", b"\x36\x05\x00\x01aa\x00",
    wire.publish("", b"x"), wire.publish("a/+", b"x"), wire.publish("\0"), wire.publish(b"\xff"),
    wire.publish("a", qos=1, packet_id=0), wire.packet(PacketType.PUBLISH, 2, b"\x00\x01a"),
    wire.packet(PacketType.SUBSCRIBE, 0, b"\x00\x01\x00\x01a\x00"),
    wire.packet(PacketType.SUBSCRIBE, 2, b"\x00\x01\x00\x01a"), wire.subscribe(1),
    wire.subscribe(1, ("a/#/b", 0)), wire.subscribe(1, ("a+", 1)), wire.subscribe(1, ("a", 3)),
    wire.unsubscribe(1), wire.unsubscribe(0, "a"), wire.packet(PacketType.PINGREQ, 1),
    wire.packet(PacketType.PINGREQ, 0, b"x"), wire.packet(PacketType.DISCONNECT, 0, b"x"),
    b"\x30\xff\xff\xff\xff\x01", wire.publish("/".join("deep" for _ in range(500))),
)
"""What ends the connection of a client."""


def malformed(load: Load) -> None:
    """Each broken packet closes its own connection; a will is published, nobody else notices."""
    while load.goes_on:
        first = load.socket(is_tls=load.rng.random() < 0.2)
        with load.may_be_closed():
            first.send(load.rng.choice(FIRST))
            first.socket.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                answer = first.socket.recv(100)
                assert answer[:4] != b"\x20\x02\x00\x00", "a broken CONNECT was accepted"
        load.drop(first)
        if load.rng.random() < 0.3:
            _scrambled(load)
        second = load.client(load.name("malformed"), will=Will("malformed/will", b"w"))
        broken = load.rng.choice(SECOND)
        with load.may_be_closed():
            second.send(broken)
            second.await_closed()
        load.drop(second)
        load.notes["peers"] += 2


def _scrambled(load: Load) -> None:
    """A good stream with some bytes changed: nothing is promised but that nobody else notices."""
    stream = bytearray(
        wire.connect("s", will=Will("scrambled/w", b"x", qos=2), clean_session=True)
        + wire.subscribe(1, ("scrambled/#", 2), ("$share/g/scrambled/#", 1))
        + wire.publish("scrambled/1", b"p" * 50, qos=2, packet_id=7, retain=False)
        + wire.pubrel(7) + wire.unsubscribe(2, "scrambled/#") + wire.PINGREQ)
    for _ in range(load.rng.randrange(1, 5)):
        stream[load.rng.randrange(len(stream))] = load.rng.randrange(256)
    one = load.socket()
    with load.may_be_closed():
        one.send(bytes(stream))
        one.socket.settimeout(0.02)
        with contextlib.suppress(TimeoutError):
            one.socket.recv(4_096)
    load.drop(one)


def wrong_acknowledgements(load: Load) -> None:
    """PUBACK where PUBREC is due and the other way round [MQTT-4.8.0-1], and acknowledgements of
    nothing, which have no effect."""
    topic = load.name("wrong")
    publisher = load.client(f"{topic}-p")
    while load.goes_on:
        qos = load.rng.choice((1, 2))
        receiver = load.client(f"{topic}-r")
        receiver.subscribe((topic, qos))
        receiver.send(*(
            wire.acknowledgement(kind, load.rng.randrange(1, 65_536))
            for kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBCOMP)))
        receiver.packets_so_far()
        publisher.publish(topic, b"x", qos=qos)
        identifier = receiver.receive_publish().packet_id or 0
        if qos == 1:
            receiver.send(wire.pubrec(identifier))
        elif load.rng.random() < 0.5:
            receiver.send(wire.puback(identifier))
        else:
            receiver.send(wire.pubrec(identifier), wire.puback(identifier))
        receiver.await_closed()
        load.drop(receiver)
        load.notes["closed as they must be"] += 1


def broken_tls(load: Load) -> None:
    """Garbage before, in and behind handshakes; records that are none, cut, empty or forged."""
    hello = _hello()
    stalled: list[socket.socket] = []
    while load.goes_on:
        with load.may_be_closed():
            choice = load.rng.randrange(4)
            if choice == 0:
                stalled.append(_tcp(load))
                stalled[-1].sendall(hello[: load.rng.randrange(len(hello))])
                if len(stalled) > 50:
                    stalled.pop(0).close()
                continue
            if choice == 1:
                broken = bytearray(hello)
                broken[load.rng.randrange(len(broken))] ^= 1 << load.rng.randrange(8)
                with _tcp(load) as one:
                    one.sendall(broken)
                    one.settimeout(0.05)
                    with contextlib.suppress(TimeoutError):
                        one.recv(4_096)
                continue
            client = load.client(load.name("tls"), is_tls=True)
            with socket.socket(fileno=client.socket.detach()) as plain:
                plain.settimeout(PATIENCE)
                for _ in range(load.rng.randrange(1, 40)):
                    plain.sendall(_record(load))
                while plain.recv(4_096):
                    pass
        load.notes["peers"] += 1
    for one in stalled:
        one.close()


def _record(load: Load) -> bytes:
    kind = load.rng.choice((20, 21, 22, 23, 23, 23, 24, 0))
    count = load.rng.choice((0, 1, 16, 17, 100, 16_640, 16_641))
    return bytes([kind, 3, 3]) + count.to_bytes(2, "big") + load.rng.randbytes(count)


def _hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def _tcp(load: Load) -> socket.socket:
    return socket.create_connection(load.target.tls, PATIENCE, (STRANGER, 0))


def idle_admin(load: Load) -> None:
    """More idle connections to the HTTP API than it has places, without a token."""
    poll = select.poll()
    held: dict[int, socket.socket] = {}
    while load.goes_on:
        while len(held) < 300 and load.goes_on:
            try:
                one = socket.create_connection(load.target.admin, PATIENCE, (STRANGER, 0))
            except OSError:
                break
            if load.rng.random() < 0.3:
                one.sendall(b"GET /v1/status HTTP/1.1\r\nHost:")
            held[one.fileno()] = one
            poll.register(one, select.POLLIN)
            load.notes["opened"] += 1
        for descriptor, _ in poll.poll(50):
            # Closed, or refused with 503.
            poll.unregister(descriptor)
            held.pop(descriptor).close()
        time.sleep(0.02)
    for one in held.values():
        one.close()


def slow_readers(load: Load) -> None:
    """Twenty clients subscribe to everything and read nothing, while one publishes much."""
    name = load.name("slow")
    for number in range(20):
        one = load.client(
            f"{name}-{number}", is_tls=number % 4 == 0, receive_buffer=4_096)
        one.send(wire.subscribe(1, ("#", number % 3)))
    publisher = load.client(f"{name}-p")
    payload = b"s" * 1_000
    while load.goes_on:
        publisher.send(*(wire.publish(f"slow/{n}", payload) for n in range(20)))
        for _ in range(5):
            identifier = publisher.next_identifier()
            publisher.send(wire.publish("slow/q", payload, qos=1, packet_id=identifier))
            publisher.await_packet(wire.Puback, 60)
        publisher.packets_so_far()
        load.notes["messages"] += 25

