"""Live messages on the operator's page: a client of the broker in the browser, over WebSocket."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.broker import ADMIN_TOKEN, FromFile, Settings, free_port
from harness.operator_page import Browser, OperatorPage
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.hermesd("the operator's page"), pytest.mark.timeout(120)]

HOSTILE = "<img src=x onerror=alert(1)>"
STORM = 20_000
ROWS = 200
"""Messages that the page shows at most."""

OPEN, SHUT, WITH_USERS = 1, 2, 3
"""Listeners of WebSocket by their numbers: one that lists the page's origin and asks for no user,
one that lists another origin, and one that asks for a user."""

RULES = """
deny everyone subscribe secret/#
allow everyone both #
"""


class Station(FromFile):
    """A broker whose page has an origin that is known before the start."""

    def __init__(self) -> None:
        self.admin_port = free_port()
        self.origin = f"http://127.0.0.1:{self.admin_port}"
        websocket = "address: 127.0.0.1, port: 0, protocol: websocket"
        super().__init__(f"""
listeners:
  - {{address: 127.0.0.1, port: 0, allow_anonymous: true}}
  - {{{websocket}, allow_anonymous: true, websocket: {{origins: "{self.origin}"}}}}
  - {{{websocket}, allow_anonymous: true, websocket: {{origins: "https://app.example.org"}}}}
  - {{{websocket}, allow_anonymous: false, websocket: {{origins: "{self.origin}"}}}}
""", Settings(users={"ann": "secret"}))
        rules = self.directory / "acl"
        rules.write_text(RULES)
        self.rules = rules

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--admin-port") + 1] = str(self.admin_port)
        for flag, arguments in (("--port", 2), ("--no-allow-anonymous", 1)):
            place = command.index(flag)
            del command[place : place + arguments]
        return [*command, "--acl-file", str(self.rules)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with closing(Browser()) as browser:
        browser.show(1280, 900)
        yield browser


@pytest.fixture(scope="module")
def shared_station(broker_class) -> Iterator[Station]:
    station = Station()
    station.start()
    yield station
    try:
        assert station.stop() == 0
    finally:
        station.remove_files()


@pytest.fixture
def station(shared_station: Station) -> Iterator[Station]:
    assert shared_station.is_running, "an earlier test ended the broker"
    yield shared_station
    assert shared_station.is_running, f"the broker ended; its log:\n{shared_station.log.tail()}"


@pytest.fixture
def page(browser: Browser, station: Station) -> OperatorPage:
    return OperatorPage(browser, station).open()


@pytest.fixture
def publisher(station: Station) -> Iterator[RawClient]:
    with closing(RawClient(station.address)) as client:
        client.connect("publisher")
        yield client


def payloads(page: OperatorPage) -> list[str]:
    return [row[4] for row in page.rows("tail-rows")]


def test_messages_are_shown_as_they_come(page, station, publisher):
    publisher.publish("kept", b"before", qos=1, retain=True)
    page.start_tail(OPEN, "orders/#", "kept")
    client = page.tail_client()
    assert page.text("tail-problem") == "" and page.text("tail-missed") == ""
    publisher.publish("orders/1", "schön 🙂".encode(), qos=2)
    publisher.publish("orders/2", b"")
    publisher.publish("other", b"not asked for")
    publisher.publish("orders/3", bytes(range(128, 256)))
    rows = eventually(
        lambda: len(page.rows("tail-rows")) == 4 and page.rows("tail-rows"), "four messages")
    assert [row[1:] for row in reversed(rows)] == [
        ["kept", "0, retained", "6", "before"],
        ["orders/1", "0", "11", "schön 🙂"],
        ["orders/2", "0", "0", "empty"],
        ["orders/3", "0", "128",
         " ".join(f"{one:02x}" for one in range(128, 256)) + "\nnot UTF-8, in hexadecimal"],
    ]
    eventually(lambda: page.text("tail-state").startswith("Live: 4 messages, "), "their number")

    # It is a client as any other, and is seen as one.
    shown = AdminAPI(station).client(client)
    assert shown["connected"] and shown["clean_session"] and shown["protocol"] == "3.1.1"
    assert client in hermesctl("clients", "list", broker=station).output
    page.element("tail-client").find_element("tag name", "a").click()
    eventually(lambda: page.text("client-id") == client, "its view")
    assert sorted(page.rows("subscriptions")) == [["kept", "0"], ["orders/#", "0"]]

    page.element("tail-pause").click()
    publisher.publish("orders/4", b"unseen")
    eventually(lambda: page.text("tail-missed").startswith("1 message came during a pause"), "it")
    assert page.text("tail-state").startswith("Paused: 5 messages")
    page.element("tail-pause").click()
    publisher.publish("orders/5", b"seen")
    eventually(lambda: payloads(page)[0] == "seen", "the message behind the pause")
    assert "unseen" not in payloads(page)

    page.element("tail-clear").click()
    publisher.publish("kept", b"", qos=1, retain=True)
    eventually(lambda: payloads(page) == ["empty"], "a message after the others are cleared")
    assert page.text("tail-missed") == ""
    page.element("tail-clear").click()
    assert page.rows("tail-rows") == []
    publisher.publish("orders/6", b"last")
    eventually(lambda: payloads(page) == ["last"], "the last one")
    page.element("tail-stop").click()
    eventually(lambda: not is_connected(station, client), "its end")
    assert page.text("tail-state") == "Ended." and payloads(page) == ["last"]
    assert page.complaints() == []


def is_connected(station: Station, client: str) -> bool:
    answer = AdminAPI(station).request("GET", f"/v1/clients/{client}")
    return answer.status == 200 and answer.json["connected"]


def test_what_publishers_choose_stays_text(browser, page, publisher):
    page.start_tail(OPEN, "#")
    page.tail_client()
    messages = [
        (HOSTILE, HOSTILE.encode(), HOSTILE, HOSTILE),
        ("a\u202eb", "c\u2066\x1b[31m\n\\".encode(), r"a\u{202E}b", r"c\u{2066}\u{1B}[31m\n\\"),
        ("invalid", b"ab\xff\xc0\x80", "invalid",
         "61 62 ff c0 80\nnot UTF-8, in hexadecimal"),
        # A character that is cut at the last byte that is kept.
        ("cut", b"a" * 1_022 + "€".encode() + b"b", "cut",
         "a" * 1_022 + "\nthe first 1,024 of 1,026 bytes"),
        ("large", b"x" * 65_536, "large", "x" * 1_024 + "\nthe first 1,024 of 65,536 bytes"),
        ("huge", b"\xff" * 900_000, "huge",
         " ".join(["ff"] * 256)
         + "\nnot UTF-8, in hexadecimal, the first 256 of 900,000 bytes"),
        ("t" * 65_535, b"x", "t" * 256 + "\nthe first of 65,535 characters", "x"),
        ("/" * 100, b"</td><script>alert(1)</script>", "/" * 100,
         "</td><script>alert(1)</script>"),
    ]
    for topic, payload, *_ in messages:
        publisher.publish(topic, payload)
    rows = eventually(
        lambda: len(page.rows("tail-rows")) == len(messages) and page.rows("tail-rows"), "them")
    for row, (_, payload, topic, shown) in zip(reversed(rows), messages, strict=True):
        assert (row[1], row[3], row[4]) == (topic, f"{len(payload):,}", shown)
    foreign = "return document.querySelectorAll('#tail-rows :is(img, script)').length"
    assert page.driver.execute_script(foreign) == 0
    assert "<img" not in page.driver.execute_script("return document.body.innerHTML")
    assert page.unlabelled() == []
    try:
        for width, dark in [(360, False), (768, True), (1280, False)]:
            browser.show(width, 800, dark=dark)
            assert page.overflow() <= 0, f"too wide at {width}"
            assert page.faint_texts() == []
    finally:
        browser.show(1280, 900)
    assert page.complaints() == []


FRAMES = """
window.longestGap = 0;
let last = performance.now();
(function frame(now) {
  window.longestGap = Math.max(window.longestGap, now - last);
  last = now;
  requestAnimationFrame(frame);
})(last);
"""


def test_a_storm_does_not_freeze_the_page(page, station, publisher):
    page.start_tail(OPEN, "storm/#")
    client = page.tail_client()
    page.driver.execute_script(FRAMES)
    for number in range(STORM):
        publisher.publish(f"storm/{number % 7}", b"%05d" % number + b"x" * 95)
    publisher.ping()

    shed = lambda: shed_for(station, client)  # noqa: E731
    eventually(lambda: seen(page) + shed() == STORM, "all that came", within=3 * PATIENCE)
    eventually(lambda: payloads(page)[0].startswith("19999"), "the last one")
    assert len(page.rows("tail-rows")) == ROWS
    numbers = [int(text[:5]) for text in payloads(page)]
    assert numbers == sorted(numbers, reverse=True)
    assert "came faster than this page shows them" in page.text("tail-missed")
    # What the broker had to give up is told, and nothing else is told of.
    eventually(lambda: ("slow_reader" in page.text("tail-missed")) == (shed() > 0), "what was shed")
    gap = page.driver.execute_script("return window.longestGap")
    assert gap < 1_000 * PATIENCE / 5, f"the page stood still for {gap:.0f} ms"
    page.element("tail-clear").click()
    assert page.rows("tail-rows") == []
    assert page.complaints() == []


def seen(page: OperatorPage) -> int:
    """The number of messages that the page says came."""
    return int(page.text("tail-state").split(" ")[1].replace(",", ""))


def shed_for(station: Station, client: str) -> int:
    return AdminAPI(station).client(client)["dropped"].get("slow_reader", 0)


STAND_STILL = """
while (true) {
  const request = new XMLHttpRequest();
  request.open("GET", `/v1/clients/${arguments[0]}`, false);
  request.setRequestHeader("Authorization", `Bearer ${arguments[1]}`);
  request.send();
  if (JSON.parse(request.responseText).dropped.slow_reader > 0) return;
}
"""
"""Holds the page's only thread until the broker gives up messages for a client."""


class Flood(threading.Thread):
    """Publishes large messages until the end of the block, and counts them."""

    def __init__(self, publisher: RawClient) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self._publisher = publisher
        self._ends = threading.Event()

    def run(self) -> None:
        while not self._ends.is_set():
            self._publisher.publish("flood", bytes(65_536))
            self.count += 1

    def __enter__(self) -> Flood:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.join(PATIENCE)


def test_what_the_broker_gives_up_for_a_slow_page_is_told(page, station, publisher):
    page.start_tail(OPEN, "flood")
    client = page.tail_client()
    with closing(RawClient(station.address)) as other, Flood(publisher) as flood:
        page.driver.execute_script(STAND_STILL, client, ADMIN_TOKEN)
        # Others are not held up meanwhile.
        other.connect("other")
        other.subscribe(("flood", 0))
        assert len(other.take_message().payload) == 65_536
    publisher.ping()
    eventually(
        lambda: "never came: the broker gave them up because this page read too slowly"
        in page.text("tail-missed"), "what the broker gave up")
    eventually(lambda: seen(page) + shed_for(station, client) == flood.count, "all that was sent")
    assert page.complaints() == []


SPY = """
window.sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  window.sent.push(new TextDecoder("latin1").decode(data));
  return send.call(this, data);
};
"""
"""Keeps what the page sends by WebSocket, as text of one character for each byte."""

CLOCK = """
const now = Date.now;
Date.now = () => now() + arguments[0];
"""
"""Puts the page's clock forward by so many milliseconds."""


def test_a_connection_is_kept_alive_and_one_that_hangs_is_told(page, station, publisher):
    page.driver.execute_script(SPY)
    page.start_tail(OPEN, "#")
    client = page.tail_client()
    # Messages from the broker do not stand for packets to it.
    publisher.publish("busy", b"x")
    page.driver.execute_script(CLOCK, 11_000)
    pings = "return window.sent.filter((packet) => packet === '\\xc0\\0').length"
    eventually(lambda: page.driver.execute_script(pings) == 1, "a PINGREQ")
    publisher.publish("busy", b"y")
    eventually(lambda: payloads(page) == ["y", "x"], "messages behind it")
    assert is_connected(station, client)
    # The answer has come, so there is a further one.
    page.driver.execute_script(CLOCK, 11_000)
    eventually(lambda: page.driver.execute_script(pings) == 2, "a second PINGREQ")

    station.process.send_signal(signal.SIGSTOP)
    try:
        page.driver.execute_script(CLOCK, 11_000)
        eventually(lambda: page.driver.execute_script(pings) == 3, "a third PINGREQ")
        page.driver.execute_script(CLOCK, 16_000)
        problem(page, "The broker does not answer. See whether it hangs, and start again.")
    finally:
        station.process.send_signal(signal.SIGCONT)
    eventually(lambda: not is_connected(station, client), "its end")


def test_the_token_goes_nowhere_and_nothing_is_left_behind(page, station, publisher):
    page.driver.execute_script(SPY)
    page.start_tail(WITH_USERS, "orders/#", user="ann", password="secret")
    client = page.tail_client()
    assert AdminAPI(station).client(client)["user_name"] == "ann"
    publisher.publish("orders/1", b"shown")
    eventually(lambda: payloads(page) == ["shown"], "a message")
    sent = page.driver.execute_script("return window.sent")
    assert "secret" in sent[0] and ADMIN_TOKEN not in "".join(sent)
    page.element("forget").click()
    eventually(lambda: not is_connected(station, client), "its end")
    left = page.driver.execute_script(
        "return document.documentElement.textContent"
        " + [...document.querySelectorAll('input, textarea')].map((one) => one.value).join()")
    for text in ("shown", "orders/1", "secret", "ann,", client):
        assert text not in left, text
    kept = "return [localStorage.length, sessionStorage.length, document.cookie]"
    assert page.driver.execute_script(kept) == [0, 0, ""]
    assert page.complaints() == []


def problem(page: OperatorPage, start: str) -> str:
    """What the page says is wrong, once that begins in such a way."""
    eventually(lambda: page.text("tail-problem").startswith(start), start)
    return page.text("tail-problem")


def test_what_is_refused_is_told_with_its_cure(page, station, publisher):
    for filters, words in [
        ((), "Give a topic filter, such as orders/# or # for all topics."),
        (("a/#/b",), "The topic filter a/#/b has levels behind its #."),
        (("a+",), "The topic filter a+ has a + or # that is not a level of its own."),
        (("$share/group/a",), "A shared subscription would take messages away from"),
        (("a",) * 17, "Give at most 16 topic filters."),
    ]:
        page.start_tail(OPEN, *filters)
        problem(page, words)
    page.start_tail(WITH_USERS, "#", password="secret")
    problem(page, "MQTT 3.1.1 sends a password only with a user name")
    page.start_tail(WITH_USERS, "#", user="ann", password="wrong")
    problem(page, "The user name or the password is wrong, or the token has expired.")
    page.start_tail(WITH_USERS, "#")
    problem(page, "The broker does not let this client in: the listener wants a user name")
    page.element("tail-client").find_element("tag name", "a").click()
    eventually(lambda: "not_authorized" in page.text("events"), "what the broker knows of it")

    page.start_tail(OPEN, "secret/a", "secret/b")
    problem(page, "The broker does not grant secret/a, secret/b: the access rules deny it")
    assert page.text("tail-state") == ""
    page.start_tail(OPEN, "secret/a", "open")
    problem(page, "The broker does not grant secret/a: the access rules deny it")
    client = page.tail_client()
    publisher.publish("open", b"granted")
    eventually(lambda: payloads(page) == ["granted"], "a message of the other filter")
    assert AdminAPI(station).request("DELETE", f"/v1/clients/{client}").status == 200
    problem(page, "The broker closed the connection: an operator disconnected this client")
    # The browser notes the 404 of a client without a session, and nothing else.
    assert all("404" in complaint for complaint in page.complaints())


def test_a_listener_that_does_not_list_the_page_says_what_to_write(page, station):
    page.start_tail(SHUT, "#")
    problem(page, "The listener does not let this page in: the lines above cure that.")
    assert page.text("tail-hint") == (
        f"This listener does not let pages of {station.origin} in. Write this below listeners[2] "
        "in the configuration, and restart the broker:")
    lines = page.text("tail-hint-lines")
    assert lines == (
        f'    websocket:\n      origins: ["https://app.example.org", "{station.origin}"]')
    station.log.await_match("websocket.failure=.*Origin that the listener does not list")
    assert_configures(
        station, "listeners:\n  - port: 8083\n    protocol: websocket\n" + lines)
    # The browser notes that the connection failed, and nothing else.
    assert all("WebSocket connection to" in complaint for complaint in page.complaints())


def test_without_a_listener_of_websocket_the_page_says_what_to_write(browser, start_broker):
    broker = start_broker()
    page = OperatorPage(browser, broker).open()
    eventually(lambda: page.element("tail-none").is_displayed(), "the lines")
    assert not page.element("tail-form").is_displayed()
    lines = page.text("tail-none-lines")
    assert f'      origins: ["{broker.admin_url}"]' in lines
    assert_configures(broker, lines)
    assert AdminAPI(broker).get("/v1/listeners") == {
        "listeners": [{"address": f"127.0.0.1:{broker.port}", "tls": False}]}
    assert page.complaints() == []


def assert_configures(broker, lines: str) -> None:
    """The lines that the page shows are a configuration."""
    file = broker.directory / "shown.yaml"
    file.write_text(lines + "\n")
    done = hermesctl("config", "check", str(file))
    assert done.code == 0, done.output + done.errors


def test_a_broker_that_stops_is_told(browser, broker_class):
    station = Station()
    try:
        station.start()
        page = OperatorPage(browser, station).open()
        page.start_tail(OPEN, "#")
        page.tail_client()
        assert station.stop() == 0
        problem(page, "The broker stopped, or is being drained.")
        page.complaints()
        # After its start the page is told of the listeners anew, whose ports are others now.
        station.start()
        eventually(lambda: page.text("live") == "Live", "live figures of the new start")
        page.start_tail(OPEN, "#")
        assert "This page was not told of 127.0.0.1:" in problem(page, "This page was not told")
        assert station.stop() == 0
    finally:
        if station.is_running:
            station.kill()
        station.remove_files()


# --- Packets, in the browser -------------------------------------------------------------

READ = """
const done = arguments[1];
import("/ui/mqtt.js").then(({ PacketReader, messageIn }) => {
  const read = (chunks) => {
    const reader = new PacketReader();
    const found = [];
    try {
      for (const chunk of chunks) {
        for (const packet of reader.packets(new Uint8Array(chunk))) {
          if (packet.type !== 3) found.push([packet.type, [...packet.body]]);
          else {
            const { topic, isRetained, size, payload } = messageIn(packet);
            found.push([3, topic, isRetained, size, payload.length]);
          }
        }
      }
    } catch (error) {
      found.push(`${error.constructor.name}: ${error.message}`);
    }
    return found;
  };
  done(arguments[0].map(read));
});
"""

CONNACK, SUBACK, PINGRESP = b"\x20\x02\x00\x00", b"\x90\x03\x00\x01\x80", b"\xd0\x00"
MESSAGE = b"\x31\x06\x00\x03a/bx"


def read(page: OperatorPage, *streams: list[bytes]) -> list[list]:
    """What the page's reader finds in streams of bytes, which come in pieces."""
    return page.driver.execute_async_script(
        READ, [[list(piece) for piece in stream] for stream in streams])


def test_packets_are_read_however_they_are_cut(page):
    large = b"\x30\x84\x80\x04\x00\x01l" + b"y" * (4 + 4 * 16_384 - 3)
    stream = CONNACK + SUBACK + MESSAGE + PINGRESP + MESSAGE
    wanted = [
        [2, [0, 0]], [9, [0, 1, 128]], [3, "a/b", True, 1, 1], [13, []], [3, "a/b", True, 1, 1]]
    cuts = [[stream[:at], stream[at:]] for at in range(len(stream) + 1)]
    bytewise = [bytes([one]) for one in stream]
    assert read(page, *cuts, bytewise) == [wanted] * (len(cuts) + 1)
    # Of a large one only the first bytes are kept.
    kept = [[3, "l", False, 65_537, 1_024], [13, []]]
    pieces = [large[at : at + 1_000] for at in range(0, len(large), 1_000)] + [PINGRESP]
    assert read(page, [large + PINGRESP], pieces) == [kept, kept]


def test_random_bytes_are_packets_or_are_refused(page):
    random = Random(17)
    streams = [
        [bytes([random.choice((0x20, 0x30, 0x31, 0x90, 0xD0, random.randrange(256)))])
         + bytes([random.randrange(random.choice((4, 32, 256)))]) + random.randbytes(40)]
        for _ in range(2_000)
    ]
    found = read(page, *streams)
    said = [each[-1] for each in found if each and isinstance(each[-1], str)]
    assert len(said) > 1_000 and all(text.startswith("MalformedPacket: ") for text in said)
    assert page.complaints() == []


def test_what_is_no_packet_is_refused(page):
    # The bytes, and what is said of them.
    broken = [
        ("10 00", "a packet of type 1"), ("c0 00", "a packet of type 12"),
        ("00 00", "a packet of type 0"), ("f0 00", "a packet of type 15"),
        ("21 02 00 00", "reserved flags [MQTT-2.2.2-2]"), ("d1 00", "reserved flags"),
        ("20 01", "a packet of type 2 of 1 bytes"), ("20 03", "a packet of type 2 of 3 bytes"),
        ("90 02", "a packet of type 9 of 2 bytes"), ("d0 01", "a packet of type 13 of 1 bytes"),
        ("90 13", "a packet of type 9 of 19 bytes"), ("30 01", "a packet of type 3 of 1 bytes"),
        ("30 ff ff ff ff", "a length of more than four bytes"),
        ("30 80 80 80 80", "a length of more than four bytes"),
        ("30 03 00 02 61", "a topic name that is longer than its packet"),
        ("30 02 ff ff", "a topic name that is longer than its packet"),
        ("30 03 00 01 ff", "a topic name that is not UTF-8 [MQTT-1.5.3-1]"),
        ("32 05 00 01 61 00 01", "a message of QoS 1, though 0 was subscribed"),
        ("36 05 00 01 61 00 01", "a message of QoS 3, though 0 was subscribed"),
    ]
    found = read(page, *([bytes.fromhex(one)] for one, _ in broken))
    for (packet, words), said in zip(broken, found, strict=True):
        assert len(said) == 1 and said[0].startswith(f"MalformedPacket: {words}"), (packet, said)
    # The longest announced length takes no memory of its own.
    assert read(page, [bytes.fromhex("30 ff ff ff 7f"), bytes(100)]) == [[]]
    assert json.dumps(page.complaints()) == "[]"
