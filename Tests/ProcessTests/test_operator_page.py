"""The operator's page at /ui/: as a browser shows it, and the stream that feeds it."""

from __future__ import annotations

import http.client
import http.server
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from harness.admin import AdminAPI
from harness.broker import ADMIN_TOKEN, Hermesd
from harness.operator_page import Browser, OperatorPage
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.hermesd("the operator's page"), pytest.mark.timeout(120)]

HOSTILE = "<img src=x onerror=alert(1)>"
VIEWERS = 32
"""Viewers at a time (docs/limits.md)."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with closing(Browser()) as browser:
        browser.show(1280, 900)
        yield browser


class Publishing:
    """Publishes one message after another with QoS 1, until the end of the block."""

    def __init__(self, broker: Hermesd, topic: str) -> None:
        self._broker, self._topic = broker, topic
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with closing(RawClient(self._broker.address)) as publisher:
            publisher.connect("publisher")
            while not self._ends.wait(0.01):
                publisher.publish(self._topic, b"x", qos=1)

    def __enter__(self) -> Publishing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(PATIENCE)


def test_the_figures_are_the_brokers_and_move(browser, start_broker):
    broker = start_broker(environment={"HERMES_LIMITS_QUEUE_MESSAGES": "2"})
    with closing(RawClient(broker.address)) as away:
        away.connect("away", clean_session=False)
        away.subscribe(("lost/#", 1))
        away.disconnect()
    page = OperatorPage(browser, broker).open()
    assert page.text("ready") == "Ready"
    assert page.text("durability") == "Durability sync: what is acknowledged is on the disk."
    assert page.text("no-certificates") == "No listener speaks TLS."
    assert page.text("no-drops") == "None since the start."
    assert page.number("connections") == 0
    eventually(lambda: page.number("offline") == 1, "the client that is away")
    with Publishing(broker, "lost/1"):
        eventually(lambda: page.number("connections") == 1, "the publisher")
        eventually(lambda: page.number("in-1") > 0, "messages a second")
        assert page.number("rate-in") > 0
        assert page.number("in-0") == 0 and page.number("in-2") == 0
        eventually(lambda: page.number("commit-rate") > 0, "commits a second")
        assert page.text("sync-time").endswith(("µs", "ms", " s"))
        assert page.text("commit-longest").endswith(("µs", "ms", " s"))
        for shares in ("sync-shares", "commit-shares"):
            median, p99 = page.text(shares).split(", ")
            assert median.endswith(("µs", "ms", " s")) and p99.endswith(("µs", "ms", " s"))
        eventually(lambda: page.number("queued") == 2, "queued messages")
        drops = eventually(lambda: page.rows("drops"), "messages given up")
        assert [row[0].split("\n")[0] for row in drops] == ["queue_full"]
        eventually(
            lambda: int(page.rows("drops")[0][2].replace(",", ""))
            > int(drops[0][2].replace(",", "")), "more of them")
        assert int(page.rows("drops")[0][1].replace(",", "")) > 0
        assert any(row[0] == "limits.queue_messages" for row in page.rows("limits"))
    eventually(lambda: page.number("in-1") == 0, "no messages a second", within=2 * PATIENCE)
    assert page.number("connections") == 0
    assert page.text("memory-used").endswith("MiB")
    assert page.complaints() == []


def test_a_client_is_found_explained_and_disconnected(browser, start_broker):
    broker = start_broker()
    with ExitStack() as open_clients:
        for number in range(30):
            client = open_clients.enter_context(closing(RawClient(broker.address)))
            client.connect(f"other-{number:02}")
        phone = open_clients.enter_context(closing(RawClient(broker.address)))
        phone.connect("phone/1 ä", clean_session=False)
        phone.subscribe(("orders/#", 1), ("alerts/+", 0))
        page = OperatorPage(browser, broker).open()
        eventually(lambda: "the first 25" in page.text("found"), "the first part of the list")
        page.element("more").click()
        eventually(lambda: page.text("found") == "Showing 31 clients.", "all of the list")
        page.search("phone")
        eventually(lambda: page.text("found") == "Showing 1 client.", "the one that was sought")
        page.search("nobody")
        eventually(lambda: page.text("found").startswith("No client"), "none")
        page.search("phone/1 ")
        page.choose("phone/1 ä")
        assert page.sentences()[0].startswith("It is connected since ")
        assert "It subscribes to alerts/+ (QoS 0), orders/# (QoS 1)." in page.sentences() or (
            "It subscribes to orders/# (QoS 1), alerts/+ (QoS 0)." in page.sentences())
        assert sorted(page.rows("subscriptions")) == [["alerts/+", "0"], ["orders/#", "1"]]
        assert page.rows("events")[0][1:3] == ["connected", "new"]
        assert "Protocol" in page.text("facts") and "MQTT 3.1.1" in page.text("facts")

        page.element("disconnect").click()
        assert page.text("confirm-id") == "phone/1 ä"
        page.element("confirm-no").click()
        assert not page.element("confirm").is_displayed()
        phone.ping()
        page.element("disconnect").click()
        page.element("confirm").send_keys(Keys.ESCAPE)
        phone.ping()
        page.element("disconnect").click()
        page.element("confirm-yes").click()
        phone.await_closed()
        eventually(
            lambda: page.text("client-result").startswith("Its connection was closed at"),
            "the result")
        eventually(lambda: page.sentences()[0].startswith("It is offline since"), "its new state")
        assert "an operator closed the connection" in page.sentences()[0]
        assert page.rows("events")[0][1:3] == ["disconnected", "administrator"]
        assert not page.element("disconnect").is_enabled()
        page.element("close-client").click()
        eventually(lambda: not page.element("client").is_displayed(), "the end of the view")
    assert page.complaints() == []


def test_an_unknown_client_and_a_refused_one_are_explained(browser, start_broker):
    broker = start_broker(users={"ann": "secret"})
    with closing(RawClient(broker.address)) as stranger:
        assert stranger.connect("stranger", user_name="ann", password=b"no").return_code != 0
    page = OperatorPage(browser, broker).open()
    for client, words in [("stranger", "wrong user name or password"), ("ghost", "knows no client")]:
        page.search(client)
        eventually(
            lambda: page.text("unknown-link") == f"What is known of {client}", "a link to it")
        page.element("unknown-link").click()
        eventually(lambda: words in page.text("sentences"), words)
        assert page.text("client-id") == client
        assert not page.element("disconnect").is_enabled()
    # The browser notes the 404 of a client without a session, and nothing else.
    assert all("404" in complaint for complaint in page.complaints())


def test_what_clients_choose_stays_text(browser, start_broker):
    broker = start_broker()
    control = "a\u202eb\n\x1b[31m\\"
    with ExitStack() as open_clients:
        for identifier in (HOSTILE, control):
            client = open_clients.enter_context(closing(RawClient(broker.address)))
            client.connect(identifier, clean_session=False, user_name=HOSTILE)
            client.subscribe((f"{HOSTILE}/#", 1))
        page = OperatorPage(browser, broker).open()
        for identifier, shown in [(HOSTILE, HOSTILE), (control, r"a\u{202E}b\n\u{1B}[31m\\")]:
            page.choose(shown)
            assert f"It subscribes to {HOSTILE}/# (QoS 1)." in page.sentences()
            assert page.rows("subscriptions") == [[f"{HOSTILE}/#", "1"]]
            assert HOSTILE in page.text("facts")
            page.element("disconnect").click()
            assert page.text("confirm-id") == shown
            page.element("confirm-yes").click()
            eventually(
                lambda: not AdminAPI(broker).client(identifier)["connected"],
                f"the end of {shown}")
        assert page.driver.execute_script("return document.querySelectorAll('img').length") == 0
        source = page.driver.execute_script("return document.body.innerHTML")
        assert "<img" not in source and "&lt;img" in source
    assert page.complaints() == []


def test_names_that_differ_in_blanks_alone_look_different(browser, start_broker):
    broker = start_broker()
    names = {
        "a b": "a b", "a  b": "a␣␣b", " a b": "␣a b", "a b ": "a b␣", "a\u00a0b": r"a\u{A0}b",
        "a\u2423b": r"a\u{2423}b"}
    with ExitStack() as open_clients:
        for name in names:
            client = open_clients.enter_context(closing(RawClient(broker.address)))
            client.connect(name, user_name=name)
        page = OperatorPage(browser, broker).open()
        eventually(lambda: page.text("found") == "Showing 6 clients.", "all of them")
        assert sorted(row[0] for row in page.rows("list")) == sorted(names.values())
        assert sorted(row[5] for row in page.rows("list")) == sorted(names.values())
    assert page.complaints() == []


def test_tokens_that_do_not_do_are_told(browser, start_broker):
    broker = start_broker()
    api = AdminAPI(broker)
    page = OperatorPage(browser, broker)
    page.type_token("two words")
    assert page.text("token-error").startswith("A token is letters, digits and signs")
    assert page.complaints() == []
    page.element("token").clear()
    page.type_token("not-a-token-of-this-broker")
    eventually(
        lambda: page.text("token-error").startswith("The broker does not know this token."), "401")
    assert page.element("token").get_attribute("value") == ""
    secrets = {
        scope: api.post_json("/v1/tokens", {"name": scope, "scopes": [scope]}).json["token"]
        for scope in ("publish", "read")
    }
    page.type_token(secrets["publish"])
    eventually(lambda: "this request needs read." in page.text("token-error"), "403")
    assert not page.element("board").is_displayed()
    page.complaints()

    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone")
        page.open(secrets["read"])
        page.choose("phone")
        assert not page.element("disconnect").is_displayed()
        # A token that is revoked while the page is open ends it.
        assert api.request("DELETE", "/v1/tokens/read").status == 200
        eventually(lambda: page.element("entry").is_displayed(), "the form for a token")
        assert page.text("token-error").startswith("The broker does not know this token.")
        assert not page.element("board").is_displayed()
        # Nor is anything left behind of the client that was shown.
        left = page.driver.execute_script("return document.body.textContent")
        assert "phone" not in left and "It is connected" not in left
    # Nothing of the token outlives the page.
    page.open()
    page.driver.refresh()
    assert page.element("entry").is_displayed() and not page.element("board").is_displayed()
    kept = "return [localStorage.length, sessionStorage.length, document.cookie]"
    assert page.driver.execute_script(kept) == [0, 0, ""]


class SameAddress(Hermesd):
    """A broker whose HTTP API comes back at its old address."""

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--admin-port") + 1] = str(self.admin_address[1])
        return command


def test_a_broker_that_hangs_or_stops_is_told(browser, broker_class, request):
    broker = SameAddress()
    broker.start()
    request.addfinalizer(broker.remove_files)
    request.addfinalizer(broker.stop)
    page = OperatorPage(browser, broker).open()
    assert broker.process is not None
    broker.process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: page.text("live") == "Not live", "the silence to be told")
        assert page.text("banner").startswith("These figures are of ")
        assert page.complaints() == []
    finally:
        broker.process.send_signal(signal.SIGCONT)
    eventually(lambda: page.text("live") == "Live", "live figures again")
    assert not page.element("banner").is_displayed()

    assert broker.stop() == 0
    eventually(lambda: page.text("live") == "Not live", "the end to be told")
    eventually(lambda: "The broker does not answer." in page.text("banner"), "the reason")
    # What was true of it before is not shown as if it were so.
    assert page.text("ready") == "No answer"
    assert "bad" in page.element("readiness").get_attribute("class").split()
    assert page.text("banner").startswith("These figures are of ")
    assert page.text("banner").endswith("Trying again.")
    assert page.element("board").is_displayed()

    # It comes back by itself, as the broker does.
    broker.start()
    eventually(lambda: page.text("live") == "Live", "live figures of the new start")
    assert page.text("ready") == "Ready"
    assert not page.element("banner").is_displayed()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_on_a_phone_and_by_weak_eyes(browser, start_broker, dark):
    broker = start_broker()
    try:
        with closing(RawClient(broker.address)) as client:
            client.connect("c" * 200, clean_session=False)
            client.subscribe(("f" * 200, 1))
            page = OperatorPage(browser, broker).open()
            page.choose("c" * 200)
            for width in (360, 768, 1280):
                browser.show(width, 800, dark=dark)
                assert page.overflow() <= 0, f"too wide at {width}"
                assert page.faint_texts() == []
                # "connected" breaks in no place: one line at each width.
                assert page.lines_of("#list td.short") == 1
        assert page.complaints() == []
    finally:
        browser.show(1280, 900)


def test_it_works_without_a_mouse(browser, start_broker):
    broker = start_broker()
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        page = OperatorPage(browser, broker)
        focused = lambda: page.driver.switch_to.active_element  # noqa: E731
        assert focused().get_attribute("id") == "token"
        focused().send_keys(ADMIN_TOKEN, Keys.ENTER)
        eventually(lambda: page.rows("list"), "the list")
        passed = []
        page.element("forget").send_keys("")
        page.driver.execute_script("document.getElementById('forget').focus()")
        while focused().text != "phone":
            assert len(passed) < 10, f"no link among {passed}"
            focused().send_keys(Keys.TAB)
            passed.append(focused().get_attribute("id"))
            outline = page.driver.execute_script(
                "const style = getComputedStyle(document.activeElement);"
                "return style.outlineStyle + ' ' + style.outlineWidth")
            assert outline == "solid 2px", f"the focus cannot be seen: {passed} {outline}"
        focused().send_keys(Keys.ENTER)
        eventually(lambda: page.text("client-id") == "phone", "the client")
        eventually(lambda: page.element("disconnect").is_enabled(), "its button")
        assert focused().get_attribute("id") == "client"
        focused().send_keys(Keys.TAB)
        assert focused().get_attribute("id") == "disconnect"
        focused().send_keys(Keys.ENTER)
        # What does no harm has the focus.
        assert focused().get_attribute("id") == "confirm-no"
        focused().send_keys(Keys.TAB)
        focused().send_keys(Keys.ENTER)
        phone.await_closed()
        assert page.unlabelled() == []
    assert page.complaints() == []


def test_another_site_cannot_hold_it_in_a_frame(browser, start_broker):
    broker = start_broker()
    page = f"<iframe id=frame src='{broker.admin_url}/ui/'></iframe>".encode()

    class OtherSite(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherSite) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.driver.get(f"http://localhost:{server.server_port}/")
        eventually(
            lambda: any("frame-ancestors 'none'" in entry["message"]
                        for entry in browser.driver.get_log("browser")), "the refusal")
        browser.driver.switch_to.frame(browser.driver.find_element(By.ID, "frame"))
        assert browser.driver.find_elements(By.ID, "token-form") == []
        browser.driver.switch_to.default_content()
        server.shutdown()


VISIBILITY = """
Object.defineProperty(document, "hidden", {value: arguments[0], configurable: true});
document.dispatchEvent(new Event("visibilitychange"));
"""


def test_a_page_that_nobody_sees_leaves_its_place(browser, start_broker):
    broker = start_broker()
    page = OperatorPage(browser, broker).open()
    with ExitStack() as viewers:
        for _ in range(VIEWERS - 1):
            viewers.enter_context(closing(Stream(broker)))
        assert enter(broker) is None
        page.driver.execute_script(VISIBILITY, True)
        viewers.enter_context(closing(eventually(lambda: enter(broker), "the page's place")))
        page.driver.execute_script(VISIBILITY, False)
        eventually(
            lambda: f"{VIEWERS} viewers follow the broker, which is the limit."
            in page.text("banner"), "the reason why there are no figures")
        assert page.text("live") == "Not live"
    eventually(lambda: page.text("live") == "Live", "a place of its own")


# --- Without a browser -------------------------------------------------------------------


def test_it_is_off_beyond_loopback_unless_switched_on(start_broker):
    beyond = {"HERMES_ADMIN_ADDRESS": "0.0.0.0", "HERMES_ADMIN_ALLOW_PLAIN": "true"}
    for environment, status in [
        (beyond, 404), (beyond | {"HERMES_ADMIN_PAGE": "on"}, 200), ({}, 200),
        ({"HERMES_ADMIN_PAGE": "off"}, 404),
    ]:
        broker = start_broker(environment=environment)
        api = AdminAPI(broker, token=None)
        for path in ("/ui", "/ui/", "/ui/page.css", "/ui/page.js", "/ui/tail.js", "/ui/mqtt.js"):
            answer = api.request("GET", path)
            if status == 404:
                assert "Set admin.page: on" in answer.problem(404)["fix"]
            else:
                assert answer.status == 200
                assert answer.headers["content-security-policy"].startswith("default-src 'none';")
        assert broker.stop() == 0


class Stream:
    """One viewer of GET /v1/events."""

    def __init__(self, broker: Hermesd) -> None:
        self._connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)
        self._connection.request(
            "GET", "/v1/events", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self.response = self._connection.getresponse()

    def event(self) -> tuple[str, dict]:
        name = self.response.readline().decode()
        data = self.response.readline().decode()
        assert self.response.readline() == b"\n", "an event is a name, one line of data, and a gap"
        assert name.startswith("event: ") and data.startswith("data: "), (name, data)
        return name[7:].strip(), json.loads(data[6:])

    def close(self) -> None:
        self.response.close()
        self._connection.close()


def enter(broker: Hermesd) -> Stream | None:
    """A viewer; `None` when there is no place for one."""
    stream = Stream(broker)
    return stream if stream.response.status == 200 else stream.close()


def test_so_many_viewers_and_no_more(start_broker):
    broker = start_broker()
    with ExitStack() as viewers:
        streams = [viewers.enter_context(closing(Stream(broker))) for _ in range(VIEWERS)]
        seen = [stream.event() for stream in streams]
        assert all(name == "snapshot" for name, _ in seen)
        problem = AdminAPI(broker).request("GET", "/v1/events").problem(503)
        assert problem["detail"] == f"{VIEWERS} viewers follow the broker, which is the limit."
        streams[0].close()

        viewers.enter_context(
            closing(eventually(lambda: enter(broker), "the place of the one that left")))
        # One snapshot for all: the same text for each that took it.
        first, second = ([stream.event()[1] for _ in range(3)] for stream in streams[1:3])
        assert [one for one in first if one in second]
        before = [stream.event()[1]["clock_ms"] for stream in streams[1:2]]
        after = streams[1].event()[1]["clock_ms"]
        assert 500 <= after - before[0] <= 1_000 * PATIENCE
        assert broker.stop() == 0
        for stream in streams[1:]:
            name, value = stream.event()
            while name == "snapshot":
                name, value = stream.event()
            assert name == "end" and value["type"] == "urn:hermes:problem:stopping"
