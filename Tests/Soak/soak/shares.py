"""Loads of work that once no turn counted: many small outputs, rules, groups, questions, records."""

from __future__ import annotations

import http.client
import json
import select
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable

from harness import wire
from harness.raw_client import RawClient
from harness.waiting import PATIENCE

from .comings import storm
from .load import STRANGER, Load

QUEUED = 64 << 10
"""Bytes that a publisher sends before it waits for a PINGRESP."""


class Crowd:
    """Clients that read and count what they get, and answer nothing."""

    def __init__(self, load: Load, count: int, subscribe: Callable[[int], Iterable[bytes]]) -> None:
        self._selector = selectors.DefaultSelector()
        self._buffer = bytearray(1 << 20)
        prefix = load.name("crowd")
        for number in range(count):
            one = socket.create_connection(load.target.plain, PATIENCE, (STRANGER, 0))
            one.sendall(wire.connect(f"{prefix}-{number}"))
            self._selector.register(one, selectors.EVENT_READ)
            for packet in subscribe(number):
                one.sendall(packet)
                self.read(0)
        self.read(0.2)

    def read(self, seconds: float) -> int:
        """Reads what there is, and until nothing has come for so long."""
        total, quiet = 0, time.monotonic() + seconds
        while ready := self._selector.select(max(0.0, quiet - time.monotonic())):
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                count = key.fileobj.recv_into(self._buffer)
                assert count, "a subscriber that reads was disconnected"
                total += count
            quiet = time.monotonic() + seconds
        return total

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()


def _is_answered(client: RawClient) -> bool:
    return bool(select.select([client.socket], [], [], 0)[0])


def _publish(
    load: Load, crowd: Crowd, publishers: list[RawClient], packets: Callable[[int], bytes],
    burst: int,
) -> None:
    """Bursts of each publisher in turn, while the crowd reads."""
    number = 0
    try:
        while load.goes_on:
            for one in publishers:
                one.send(b"".join(packets(number + place) for place in range(burst)), wire.PINGREQ)
                number += burst
            for one in publishers:
                while not _is_answered(one):
                    load.notes["KiB received"] += crowd.read(0) >> 10
                one.await_packet(wire.Pingresp, 60)
            load.notes["messages"] += burst * len(publishers)
        crowd.read(0.2)
    finally:
        crowd.close()


def few_receivers(load: Load) -> None:
    """One topic with 64 receivers, then with 65, and so on."""
    topic = load.name("few")
    crowds = [
        Crowd(load, count, lambda _, count=count: [wire.subscribe(1, (f"{topic}/{count}", 0))])
        for count in (64, 65)]
    publisher = load.client(f"{topic}-p")
    packets = [wire.publish(f"{topic}/{count}", b"x" * 200) for count in (64, 65)]
    try:
        while load.goes_on:
            for crowd, packet in zip(crowds, packets, strict=True):
                publisher.send(packet * (QUEUED // len(packet)), wire.PINGREQ)
                while not _is_answered(publisher):
                    load.notes["KiB received"] += crowd.read(0) >> 10
                publisher.await_packet(wire.Pingresp, 60)
            load.notes["bursts"] += 2
    finally:
        for crowd in crowds:
            crowd.close()


def several_topics(load: Load) -> None:
    """Ten topics of sixty receivers, four publishers of 1,000 bytes."""
    topic = load.name("several")
    crowd = Crowd(load, 600, lambda number: [wire.subscribe(1, (f"{topic}/{number % 10}", 0))])
    publishers = [load.client(f"{topic}-{number}") for number in range(4)]
    packets = [wire.publish(f"{topic}/{number}", b"x" * 1_000) for number in range(10)]
    _publish(load, crowd, publishers, lambda number: packets[number % 10], 20)


def retained_walks(load: Load) -> None:
    """Twenty clients fetch 2,000 retained messages of 2 KB again and again."""
    topic = load.name("walks")
    count, walkers = 2_000, 20
    setter = load.client(f"{topic}-setter")
    for begin in range(0, count, 100):
        setter.send(*(
            wire.publish(f"{topic}/{n // 50}/{n}", b"x" * 2_000, retain=True)
            for n in range(begin, begin + 100)))
        setter.ping()
    readers = [load.client(f"{topic}-{number}") for number in range(walkers)]
    while load.goes_on:
        for one in readers:
            one.send(wire.subscribe(one.next_identifier(), (f"{topic}/#", 0)))
        for one in readers:
            one.take_messages(count, 60)
            one.packets_so_far()
        load.notes["walks"] += walkers
    for begin in range(0, count, 100):
        setter.send(*(
            wire.publish(f"{topic}/{n // 50}/{n}", b"", retain=True)
            for n in range(begin, begin + 100)))
        setter.ping()


def new_topics(load: Load) -> None:
    """Ever new topics for 200 receivers; the phase has access rules."""
    topic = load.name("new")
    crowd = Crowd(load, 200, lambda _: [wire.subscribe(1, (f"{topic}/#", 0))])
    publisher = load.client(f"{topic}-p")
    _publish(load, crowd, [publisher], lambda number: wire.publish(f"{topic}/{number}", b"x"), 50)


def many_filters(load: Load) -> None:
    """SUBSCRIBE and UNSUBSCRIBE of 2,000 filters at once; the phase has access rules."""
    client = load.client(load.name("filters"))
    while load.goes_on:
        names = [f"filters/{load.rng.randrange(1 << 40):x}/+" for _ in range(2_000)]
        client.send(wire.subscribe(1, *((name, 0) for name in names)))
        client.await_packet(wire.Suback, 60)
        client.send(wire.unsubscribe(2, *names))
        client.await_packet(wire.Unsuback, 60)
        load.notes["filters"] += 2 * len(names)


def many_groups(load: Load) -> None:
    """50,000 shared groups of 20 clients, whose filters match each message."""
    topic = load.name("groups")
    members, groups, chunk = 20, 50_000, 500

    def subscribe(number: int) -> Iterable[bytes]:
        own = range(number * groups // members, (number + 1) * groups // members)
        for begin in range(own.start, own.stop, chunk):
            yield wire.subscribe(1, *(
                (f"$share/{n:x}/{topic}/#", 0) for n in range(begin, begin + chunk)))

    crowd = Crowd(load, members, subscribe)
    publishers = [load.client(f"{topic}-{number}") for number in range(4)]
    _publish(load, crowd, publishers, lambda number: wire.publish(f"{topic}/{number}", b"x"), 1)


def receivers_route(load: Load) -> None:
    """Twenty connections ask for the receivers of ever new topics, which 9,900 filters match."""
    holder = load.client(load.name("receivers"))
    # 11 levels of a or +, behind which any name stands: 2,048 filters match each topic.
    names = ["/".join("a+"[number >> bit & 1] for bit in range(11)) + "/#"
             for number in range(2_048)]
    for begin in range(0, len(names), 512):
        holder.subscribe(*((name, 0) for name in names[begin:begin + 512]))
    stem = "/".join("a" * 11)
    lock = threading.Lock()

    def ask(place: int) -> None:
        number = 0
        connection = http.client.HTTPConnection(*load.target.admin, timeout=30)
        try:
            while load.goes_on:
                number += 1
                connection.request(
                    "GET", f"/v1/receivers?topic={stem}/{place}-{number}",
                    headers={"Authorization": f"Bearer {load.target.token}"})
                answer = connection.getresponse()
                answer.read()
                assert answer.status in (200, 503), answer.status
                with lock:
                    load.notes[f"answers {answer.status}"] += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def client_details(load: Load) -> None:
    """Eight connections show and explain a client with 100,000 subscriptions, and list these."""
    name = load.name("details")
    holder = load.client(name)
    for begin in range(0, 100_000, 5_000):
        holder.send(wire.subscribe(1, *(
            (f"{name}/{number}/\u00e9\u0301", 0) for number in range(begin, begin + 5_000))))
        holder.await_packet(wire.Suback, 60)
    _ask_all(load, [
        f"/v1/clients/{name}", f"/v1/clients/{name}/explain",
        f"/v1/clients/{name}/explain?topic={name}/1/x", "/v1/subscriptions?limit=1000"])


def retained_lists(load: Load) -> None:
    """Eight connections list pages of 30,000 retained messages."""
    topic = load.name("listed")
    setter = load.client(f"{topic}-setter")
    count = 30_000
    for payload in (b"x", b""):
        for begin in range(0, count, 500):
            setter.send(*(
                wire.publish(f"{topic}/{n}", payload, retain=True)
                for n in range(begin, begin + 500)))
            setter.ping()
        if payload:
            _ask_all(load, ["/v1/retained?limit=1000", f"/v1/retained?filter={topic}/%2B"])


def _ask_all(load: Load, paths: list[str]) -> None:
    """Eight connections ask for each of these in turn, as fast as they are answered."""
    lock = threading.Lock()

    def ask(place: int) -> None:
        connection = http.client.HTTPConnection(*load.target.admin, timeout=60)
        try:
            while load.goes_on:
                place += 1
                connection.request(
                    "GET", paths[place % len(paths)],
                    headers={"Authorization": f"Bearer {load.target.token}"})
                answer = connection.getresponse()
                answer.read()
                assert answer.status in (200, 503), answer.status
                with lock:
                    load.notes[f"answers {answer.status}"] += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def stalled_requests(load: Load) -> None:
    """Requests for retained messages behind one whose client acknowledges nothing."""
    topic = load.name("stalled")
    setter = load.client(f"{topic}-setter")
    setter.send(*(wire.publish(f"{topic}/{n}", b"x", retain=True) for n in range(100)))
    setter.ping()
    while load.goes_on:
        readers = [load.client(load.name("reader")) for _ in range(10)]
        for one in readers:
            one.send(wire.subscribe(1, (f"{topic}/#", 1)))
            for begin in range(0, 10_000, 1_000):
                one.send(wire.subscribe(2, *(
                    (f"{topic}/{n}", 1) for n in range(begin, begin + 1_000))))
        for one in readers:
            one.packets_so_far()
            load.drop(one)
        load.notes["requests"] += 100_000
    setter.send(*(wire.publish(f"{topic}/{n}", b"", retain=True) for n in range(100)))
    setter.ping()


def small_reports(load: Load) -> None:
    """The smallest reports of ever other losses, as fast as they go."""
    name = load.name("reporter")
    client = load.client(name)
    packet = wire.publish(f"hermes/reports/{name}", b"\x08\x01\x30\x80\x80\x80\x80\x10")
    while load.goes_on:
        client.send(packet * 1_000, wire.PINGREQ)
        client.await_packet(wire.Pingresp, 60)
        load.notes["reports"] += 1_000


def bytes_over_tls(load: Load) -> None:
    """PINGREQs in TLS records of one byte each."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(load.target.authority)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(load.target.tls, PATIENCE, (STRANGER, 0)) as plain:
        def exchange(step: Callable[[], object]) -> object:
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    plain.sendall(outgoing.read())
                    incoming.write(plain.recv(65_536))

        exchange(tls.do_handshake)
        tls.write(wire.connect(load.name("tls")))
        assert exchange(lambda: tls.read(4)) == b"\x20\x02\x00\x00"
        burst = 2_000
        while load.goes_on:
            for byte in wire.PINGREQ * burst:
                tls.write(bytes([byte]))
            plain.sendall(outgoing.read())
            answered = 0
            while answered < 2 * burst:
                answered += len(exchange(lambda: tls.read(16_384)))  # type: ignore[arg-type]
            load.notes["records"] += 2 * burst


def traced_storm(load: Load) -> None:
    """A storm of connections while sixteen traces follow it."""
    held = []
    for number in range(16):
        connection = http.client.HTTPConnection(*load.target.admin, timeout=30)
        query = "topic=storm/%23" if number % 2 else f"address={STRANGER}"
        connection.request(
            "GET", f"/v1/trace?{query}&seconds=600",
            headers={"Authorization": f"Bearer {load.target.token}"})
        answer = connection.getresponse()
        if answer.status != 200:
            load.notes[f"trace {answer.status}: {json.loads(answer.read()).get('title')}"] += 1
            connection.close()
            continue
        held.append((connection, answer))
    reader = threading.Thread(target=_drain, args=(load, [answer for _, answer in held]))
    reader.start()
    storm(load)
    reader.join()
    for connection, _ in held:
        connection.close()


def _drain(load: Load, answers: list[http.client.HTTPResponse]) -> None:
    """Reads the lines of traces, so that the broker need not drop them."""
    selector = selectors.DefaultSelector()
    for answer in answers:
        selector.register(answer.fp.raw, selectors.EVENT_READ, answer)  # type: ignore[attr-defined]
    while load.goes_on and selector.get_map():
        for key, _ in selector.select(0.1):
            bytes_read = key.data.read1(65_536)
            load.notes["KiB of traces"] += len(bytes_read) >> 10
            if not bytes_read:
                selector.unregister(key.fileobj)
    selector.close()
