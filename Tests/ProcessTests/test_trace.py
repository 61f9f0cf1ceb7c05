"""Live traces of clients, topics and addresses: `hermesctl trace`, `GET /v1/trace`."""

from __future__ import annotations

import http.client
import json
import select
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import quote

import pytest

from harness.admin import AdminAPI
from harness.broker import ADMIN_TOKEN, Hermesd, inherited_environment
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually
from harness.wire import Will

pytestmark = pytest.mark.hermesd("traces")


class Trace:
    """A trace that is read by a thread of its own."""

    def __init__(self, broker, query: str) -> None:
        self._connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)
        self._connection.request(
            "GET", f"/v1/trace?{query}", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        self.lines: list[dict] = []
        self.is_over = False
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for line in self._response:
                if line.strip():
                    self.lines.append(json.loads(line))
            self.is_over = True
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def texts(self, kind: str) -> list[str]:
        return [line["text"] for line in self.lines if line["kind"] == kind]

    def await_text(self, kind: str, beginning: str) -> str:
        def found() -> str | None:
            return next((text for text in self.texts(kind) if text.startswith(beginning)), None)

        return eventually(found, f"a line {kind} {beginning}; there are {self.lines}")

    def close(self) -> None:
        if not self.is_over:
            self._connection.sock.shutdown(2)
        self._thread.join(PATIENCE)
        self._connection.close()


@contextmanager
def traced(broker, **query: str) -> Iterator[Trace]:
    trace = Trace(broker, "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items()))
    try:
        yield trace
    finally:
        trace.close()


def connect(broker, stack: ExitStack, client_id: str, **more: object) -> RawClient:
    client = stack.enter_context(closing(RawClient(broker.address)))
    client.connect(client_id, **more)
    return client


def test_a_client_is_followed_from_before_its_connect(hermesd):
    broker = hermesd()
    with traced(broker, client_id="phone") as trace, ExitStack() as stack:
        phone = connect(broker, stack, "phone", clean_session=False, keep_alive=30)
        phone.subscribe(("orders/#", 1), ("x", 0))
        office = connect(broker, stack, "office")
        office.publish("orders/1", b"secret", qos=1, retain=True)
        phone.take_message()
        phone.ping()
        phone.disconnect()
        trace.await_text("event", "connection ended: disconnect")
        assert trace.texts("received") == [
            "CONNECT 3.1.1, client phone, persistent session, keep alive 30 s",
            "SUBSCRIBE id 1, orders/# QoS 1, x QoS 0",
            "PUBACK id 1", "PINGREQ", "DISCONNECT",
        ]
        assert trace.texts("sent") == [
            "CONNACK 0", "SUBACK id 1, QoS 1, QoS 0",
            "PUBLISH orders/1, QoS 1, id 1, 6 bytes", "PINGRESP",
        ]
        assert trace.texts("event") == [
            "is admitted, its session is new", "connection ended: disconnect"]
        assert all(line["client_id"] == "phone" for line in trace.lines)
        assert all("payload" not in line for line in trace.lines)


def test_a_client_that_is_connected_already_and_its_payloads(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        phone = connect(broker, stack, "phone")
        with traced(broker, client_id="phone", payloads="true") as trace:
            phone.publish("a", b"see \x1b[31m this", qos=0)
            assert trace.await_text("received", "PUBLISH") == "PUBLISH a, QoS 0, 14 bytes"
            assert trace.lines[0]["payload"] == "see \x1b[31m this"


def test_a_refused_connect_tells_why_and_no_password(start_broker):
    broker = start_broker(users={"ann": "secret"})
    with traced(broker, client_id="phone", payloads="true") as trace:
        with closing(RawClient(broker.address)) as phone:
            assert phone.connect("phone", user_name="ann", password=b"hunter2").return_code != 0
        trace.await_text("event", "CONNECT refused: bad_user_name_or_password")
        assert trace.await_text("received", "CONNECT").endswith(", user ann, with password")
        trace.await_text("sent", "CONNACK 4")
        assert "hunter2" not in json.dumps(trace.lines)


def test_a_topic_tells_what_becomes_of_each_message(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        connect(broker, stack, "here").subscribe(("orders/#", 1))
        away = connect(broker, stack, "away", clean_session=False)
        away.subscribe(("orders/+", 1))
        away.disconnect()
        office = connect(broker, stack, "office")
        with traced(broker, topic="orders/+") as trace:
            office.publish("orders/1", b"x", qos=1)
            office.publish("orders/1", b"x", qos=0)
            office.publish("other", b"x", qos=1)
            AdminAPI(broker).request("POST", "/v1/publish?topic=orders%2F2&qos=1", b"yz")
            trace.await_text("event", "publishes orders/2")
            told = [(line.get("client_id"), line["text"]) for line in trace.lines]
        assert told[0] == ("office", "publishes orders/1, QoS 1, 1 bytes")
        assert told[1] == (None, "2 receive orders/1, after its commit")
        assert sorted(told[2:4]) == [
            ("away", "is offline: kept, 1 waiting, QoS 1"), ("here", "gets it, QoS 1")]
        assert ("away", "is offline and loses it, QoS 0") in told
        assert (None, "publishes orders/2, QoS 1, 2 bytes, over HTTP") in told
        assert not any("other" in text for _, text in told)


def test_an_address_is_followed_whoever_connects(hermesd):
    broker = hermesd()
    with traced(broker, address="127.0.0.0/30") as trace, ExitStack() as stack:
        connect(broker, stack, "one").ping()
        trace.await_text("sent", "PINGRESP")
        host, port = broker.address
        with closing(RawClient((host, port))) as stranger:
            stranger.send(b"\x10\x05hello")
            stranger.await_closed()
        assert trace.texts("received")[0].startswith("CONNECT 3.1.1, client one")
    with traced(broker, address="10.0.0.0/8") as trace, ExitStack() as stack:
        with traced(broker, client_id="two") as other:
            connect(broker, stack, "two").ping()
            other.await_text("sent", "PINGRESP")
        assert trace.lines == []


def test_wills_and_banned_addresses_are_told(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        topic = stack.enter_context(traced(broker, topic="wills/#", payloads="true"))
        client = stack.enter_context(traced(broker, client_id="phone"))
        address = stack.enter_context(traced(broker, address="127.0.0.9"))
        phone = RawClient(broker.address)
        phone.connect("phone", will=Will("wills/phone", b"gone", qos=1))
        phone.reset()
        told = topic.await_text("event", "leaves its will on wills/phone")
        assert told == "leaves its will on wills/phone, QoS 1, 4 bytes"
        line = next(line for line in topic.lines if line["text"] == told)
        assert (line["client_id"], line["payload"]) == ("phone", "gone")
        assert client.await_text("event", "its will is published on wills/phone")
        ban = AdminAPI(broker).post_json("/v1/bans", {"address": "127.0.0.9"}).json["ban"]
        with closing(RawClient(broker.address, source="127.0.0.9")) as banned:
            banned.await_closed()
        refused = address.await_text("event", "connection closed at once")
        assert refused.endswith(f"its address is banned ({ban['id']})")


def test_packets_in_pieces_large_ones_and_what_is_over_the_rate(hermesd):
    broker = hermesd()
    with traced(broker, client_id="phone", rate="5") as trace, ExitStack() as stack:
        phone = connect(broker, stack, "phone")
        packet = b"\x30\xa4\x9c\x01\x00\x01a" + bytes(20_001)
        for place in range(0, len(packet), 1_000):
            phone.send(packet[place:place + 1_000])
        trace.await_text("received", "PUBLISH a, QoS 0, 20001 bytes")
        for _ in range(20):
            phone.ping()
        left_out = trace.await_text("trace", "")
        assert left_out.endswith(" lines are left out")


def test_a_trace_ends_by_its_time_and_hermesctl_with_it(hermesd):
    broker = hermesd()
    command = [
        str(Hermesd.control_executable()), "trace", "client", "phone", "--for", "1s",
        "--url", broker.admin_url]
    environment = inherited_environment() | {"HERMES_ADMIN_TOKEN": ADMIN_TOKEN}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done
    assert done.stdout.endswith("-- the time is over\n"), done


def test_only_so_many_traces_and_one_whose_viewer_has_gone_makes_room(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        traces = [stack.enter_context(traced(broker, client_id=f"c{n}")) for n in range(16)]
        answer = AdminAPI(broker).request("GET", "/v1/trace?client_id=one-more")
        assert "16 traces are under way" in answer.problem(503)["detail"]
        traces[0].close()

        def has_room() -> bool:
            connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)
            with closing(connection):
                connection.request(
                    "GET", "/v1/trace?client_id=one-more&seconds=1",
                    headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
                return connection.getresponse().status == 200

        eventually(has_room, "room for a trace")


@pytest.mark.parametrize(("query", "field"), [
    ("", "client_id"), ("client_id=a&topic=b", "client_id"), ("topic=a%23", "topic"),
    ("address=here", "address"), ("client_id=a&seconds=0", "seconds"),
    ("client_id=a&rate=1001", "rate"), ("client_id=a&payloads=yes", "payloads"),
])
def test_a_wrong_query_is_refused_by_name(hermesd, query, field):
    problem = AdminAPI(hermesd()).request("GET", f"/v1/trace?{query}").problem(400)
    assert problem["field"] == field


def test_hostile_names_reach_the_terminal_as_text(hermesd):
    broker = hermesd()
    name = "a\x1b[2Jb\nc"
    with closing(RawClient(broker.address)) as client:
        client.connect(name)
        process = subprocess.Popen(
            [str(Hermesd.control_executable()), "trace", "address", "127.0.0.1", "--for", "30s",
             "--url", broker.admin_url],
            env=inherited_environment() | {"HERMES_ADMIN_TOKEN": ADMIN_TOKEN},
            stdout=subprocess.PIPE, text=True)
        try:
            def has_begun() -> bool:
                client.ping()
                return select_line(process)

            assert eventually(has_begun, "a line")
            with closing(RawClient(broker.address)) as other:
                other.connect(name, clean_session=True)
                line = ""
                while "CONNECT " not in line:
                    line = process.stdout.readline()
                assert "a\\u{1B}[2Jb\\nc" in line and "\x1b" not in line, line
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def select_line(process: subprocess.Popen) -> bool:
    return bool(select.select([process.stdout], [], [], 0.2)[0])
