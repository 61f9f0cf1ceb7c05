"""Attacks on the connections of the HTTP API by callers without a token, and who is served meanwhile."""

from __future__ import annotations

import http.client
import itertools
import json
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from harness.admin import AdminAPI, curl, hermesctl
from harness.broker import ADMIN_TOKEN, Hermesd
from harness.certificates import Authority
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("the HTTP API")

PLACES = 256
"""Connections of the TCP listener at a time."""
SOCKETS = PLACES + 44
"""Sockets that an attacker keeps open, more than there are places."""
PROMPT = 5.0
"""Seconds that an answer may take beside an attack, also of an unoptimised build."""

HEAD = "POST /v1/publish?topic=siege HTTP/1.1\r\nHost: localhost\r\n"
CLIENT_HELLO_BEGIN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


class Siege:
    """Keeps many connections open from a thread, and opens a new one for each that is closed.

    A connection sends `opening` once, and after each round one more byte of `drip`.
    """

    def __init__(
        self, target: tuple[str, int], *, opening: bytes = b"", drip: bytes = b"",
        sources: tuple[str, ...] = ("127.0.0.1",), count: int = SOCKETS,
    ) -> None:
        self.opened = 0
        self._target, self._opening, self._drip, self._count = target, opening, drip, count
        self._sources = itertools.cycle(sources)
        self._selector = selectors.DefaultSelector()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Siege:
        self._thread.start()
        eventually(lambda: self.opened >= self._count, "the attack to begin")
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        try:
            while not self._ends.is_set():
                # Bounded: a round opens what the last one lost, a hundred rounds a second at most.
                for _ in range(self._count - len(self._selector.get_map())):
                    self._open()
                self._tend()
                self._ends.wait(0.01)
        finally:
            for key in list(self._selector.get_map().values()):
                key.fileobj.close()
            self._selector.close()

    def _open(self) -> None:
        one = socket.socket()
        one.setblocking(False)
        one.bind((next(self._sources), 0))
        one.connect_ex(self._target)
        self._selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE, data=False)
        self.opened += 1

    def _tend(self) -> None:
        for key, events in self._selector.select(0):
            one: socket.socket = key.fileobj
            try:
                if events & selectors.EVENT_WRITE and not key.data:
                    one.send(self._opening)
                    self._selector.modify(one, selectors.EVENT_READ, data=True)
                if events & selectors.EVENT_READ and not one.recv(65_536):
                    raise ConnectionError
            except BlockingIOError:
                pass
            except OSError:
                self._selector.unregister(one)
                one.close()
        if self._drip:
            for key in list(self._selector.get_map().values()):
                if key.data:
                    try:
                        key.fileobj.send(self._drip)
                    except OSError:
                        pass


def prompt(ask: Callable[[], int], what: str) -> float:
    """Asks a few times; each answer must be 200 and come promptly. Returns the longest time."""
    times = []
    for _ in range(5):
        begin = time.monotonic()
        status = ask()
        times.append(time.monotonic() - begin)
        assert status == 200, f"{what} was answered {status}"
    assert max(times) < PROMPT, f"{what} took {max(times):.2f} s"
    return max(times)


def everyone_is_served(broker: Hermesd) -> None:
    """Health checks, publishers and the operator, each on new connections."""
    api, stranger = AdminAPI(broker), AdminAPI(broker, token=None)
    took = {
        "health": prompt(lambda: stranger.request("GET", "/healthz").status, "/healthz"),
        "publish": prompt(
            lambda: api.request("POST", "/v1/publish?topic=siege", b"x").status, "a publish"),
        "hermesctl": prompt(lambda: 200 if not control(broker).code else 0, "hermesctl"),
        "socket": prompt(
            lambda: 200 if not control(broker, "--socket", str(broker.unix_socket)).code else 0,
            "hermesctl over the Unix socket"),
    }
    print({name: f"{seconds * 1000:.0f} ms" for name, seconds in took.items()})


def control(broker: Hermesd, *options: str):
    return hermesctl("status", *options, broker=None if options else broker)


ATTACKS = {
    "silence": {},
    "half a head": {"opening": b"GET /v1/status HTTP/1.1\r\nHost: loc", "drip": b"a"},
    "a body without a token": {
        "opening": f"{HEAD}Content-Length: 1000\r\n\r\n".encode(), "drip": b"b"},
    "a body with a wrong token": {
        "opening": f"{HEAD}Authorization: Bearer wrong\r\nContent-Length: 1000\r\n\r\n".encode(),
        "drip": b"c"},
    "health checks without end": {
        "opening": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 30},
    "many addresses": {"sources": tuple(f"127.0.1.{number}" for number in range(1, 251))},
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_callers_without_a_token_keep_nobody_out(attack, start_broker):
    broker = start_broker()
    with Siege(broker.admin_address, **ATTACKS[attack]) as siege:
        everyone_is_served(broker)
        assert broker.open_descriptors() < 2 * PLACES
    assert siege.opened >= SOCKETS


def test_a_publisher_keeps_its_connection(start_broker):
    """One that has shown a good token makes room for nobody."""
    broker = start_broker()
    connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)
    connection.request("GET", "/v1/status", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
    assert connection.getresponse().read()
    own = connection.sock
    with Siege(broker.admin_address) as siege:
        eventually(lambda: siege.opened > 2 * SOCKETS, "everybody else to have made room")
        for _ in range(5):
            connection.request(
                "POST", "/v1/publish?topic=siege", b"x", {"Authorization": f"Bearer {ADMIN_TOKEN}"})
            assert connection.getresponse().read()
            assert connection.sock is own, "the connection was another one"
    connection.close()


def test_what_happened_is_said_and_counted(start_broker):
    broker = start_broker()
    begin = time.monotonic()
    with Siege(broker.admin_address, sources=("127.0.0.2",)) as siege:
        eventually(lambda: siege.opened > 2 * SOCKETS, "many to have made room")
        displaced = AdminAPI(broker).metric("hermes_admin_connections_displaced_total")
        assert displaced >= SOCKETS - PLACES
    lines = [line for line in broker.log.lines if "Admin connection closed to make room" in line]
    assert "WARNING" in lines[0] and "admin.peer=127.0.0.2:" in lines[0]
    assert len(lines) <= time.monotonic() - begin + 2, "more than one line a second"


@pytest.fixture
def https_broker(start_broker, tmp_path) -> Iterator[tuple[Hermesd, Authority]]:
    authority = Authority(tmp_path / "authority")
    pair = authority.issue("admin")
    yield start_broker(environment={
        "HERMES_ADMIN_TLS_CERTIFICATE": str(pair.certificate),
        "HERMES_ADMIN_TLS_KEY": str(pair.key),
    }), authority


@pytest.mark.parametrize("opening", [b"", CLIENT_HELLO_BEGIN], ids=["silent", "half a handshake"])
def test_unfinished_handshakes_keep_nobody_out(opening, https_broker):
    broker, authority = https_broker
    url = f"https://127.0.0.1:{broker.admin_address[1]}"
    trust = str(authority.certificate)
    bearer = f"Authorization: Bearer {ADMIN_TOKEN}"
    with Siege(broker.admin_address, opening=opening):
        took = {
            "health": prompt(
                lambda: curl("--cacert", trust, f"{url}/healthz").status, "/healthz"),
            "publish": prompt(
                lambda: curl(
                    "--cacert", trust, "-H", bearer, "--data-binary", "x",
                    f"{url}/v1/publish?topic=siege").status, "a publish"),
            "hermesctl": prompt(
                lambda: 200 if not control(broker, "--url", url, "--ca-file", trust).code else 0,
                "hermesctl"),
            "socket": prompt(
                lambda: 200
                if not control(broker, "--socket", str(broker.unix_socket)).code else 0,
                "hermesctl over the Unix socket"),
        }
        print({name: f"{seconds * 1000:.0f} ms" for name, seconds in took.items()})
        assert broker.open_descriptors() < 2 * PLACES


def test_finished_handshakes_make_room_at_once(https_broker):
    """A peer that answers no close_notify holds its place no longer than others."""
    broker, authority = https_broker
    context = ssl.create_default_context(cafile=str(authority.certificate))
    held = []
    for _ in range(SOCKETS):
        plain = socket.create_connection(broker.admin_address, timeout=PATIENCE)
        held.append(context.wrap_socket(plain, server_hostname="localhost"))
    assert broker.open_descriptors() < PLACES + 64
    connection = http.client.HTTPSConnection(
        "localhost", broker.admin_address[1], timeout=PATIENCE, context=context)
    connection.request("GET", "/healthz")
    assert json.loads(connection.getresponse().read())["status"] == "ok"
    connection.close()
    for one in held:
        one.close()
