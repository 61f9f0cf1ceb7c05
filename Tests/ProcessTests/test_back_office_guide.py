"""docs/back-office.md, followed to the letter: its programs, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from harness.admin import hermesctl
from harness.broker import REPOSITORY, free_port
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("the guide for back offices")

GUIDE = REPOSITORY / "docs/back-office.md"
TOKEN = re.compile(r"^hermesctl tokens create shop (.*) > shop.token$", re.MULTILINE)


class Office:
    """The folder in which somebody has saved the guide's programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, code in re.findall(
                r"```python\n# (\w+\.py)\n(.*?)```", GUIDE.read_text(), re.DOTALL):
            (folder / name).write_text(code)
        secret = folder / "webhook.secret"
        secret.write_text("the secret of the guide's webhook\n".replace(" ", "-"))
        secret.chmod(0o600)
        self.port = free_port()
        self._receiver: subprocess.Popen[bytes] | None = None

    def start_broker(self, hermesd, **options: object):
        broker = hermesd(environment={
            "HERMES_WEBHOOK_URL": f"http://127.0.0.1:{self.port}/",
            "HERMES_WEBHOOK_SECRET_FILE": str(self.folder / "webhook.secret"),
            "HERMES_WEBHOOK_MAX_PAUSE": "1s"}, **options)
        self.url = broker.admin_url
        return broker

    def make_token(self, broker) -> None:
        """By the guide's command."""
        options = TOKEN.search(GUIDE.read_text()).group(1).split()
        made = hermesctl(
            "tokens", "create", "shop", *options, "--data-directory", str(broker.data), token=None)
        assert made.code == 0, made
        (self.folder / "shop.token").write_text(made.output)

    def start_receiver(self) -> None:
        self._receiver = self.begin("receiver.py", str(self.port))

    def begin(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, program, *arguments], cwd=self.folder,
            env={"PATH": os.environ["PATH"]}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def run(self, program: str, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        running = self.begin(program, *arguments)
        output, errors = running.communicate(stdin.encode(), timeout=PATIENCE)
        assert (running.returncode != 0) == fails, errors.decode()
        return (errors if fails else output).decode()

    @property
    def outcomes(self) -> dict[str, str]:
        """What the receiver has stored, by message."""
        with closing(sqlite3.connect(self.folder / "outcomes.db")) as database:
            try:
                return dict(database.execute("SELECT message_id, event FROM outcomes"))
            except sqlite3.OperationalError:
                return {}

    def end(self) -> None:
        if self._receiver:
            self._receiver.kill()
            self._receiver.communicate()


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.end()


def lines(first: int, count: int) -> str:
    return "".join(
        json.dumps({"order_id": str(number), "sales_id": "7", "status": "SIGNED",
                    "message_id": f"row-{number}"}) + "\n"
        for number in range(first, first + count))


def test_the_programs_of_the_guide(office, hermesd):
    broker = office.start_broker(hermesd)
    office.make_token(broker)
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("orders/7/#", 1))
        tell = ("tell.py", office.url, "4711", "7", "APPROVED", "row-1")
        assert office.run(*tell) == "published for 1 phones\n"
        assert office.run(*tell) == "published before for 1 phones\n"
        assert phone.take_message().topic == "orders/7/4711/status"
        assert phone.messages_so_far() == []
        wrong = office.run("tell.py", office.url, "4711", "7", "APROVED", "row-2", fails=True)
        assert "Refused: The field status is" in wrong and "Known statuses" in wrong

        assert eventually(
            lambda: office.run("ask.py", office.url, "row-1"), "the receipt") \
            == "phone acknowledged \n"

        many = office.run("tell_many.py", office.url, stdin=lines(100, 50) + "not json\n")
        assert many.splitlines()[-1] == "50 stored now, 0 before, of 51"
        assert many.startswith("line 51 The line is not JSON")
        again = office.run("tell_many.py", office.url, stdin=lines(100, 50))
        assert again == "0 stored now, 50 before, of 50\n"
        assert len(phone.take_messages(50)) == 50

        # Each result comes while further lines are still to be sent.
        stream = office.begin("tell_stream.py", office.url)
        for number in (200, 201):
            stream.stdin.write(lines(number, 1).encode())
            stream.stdin.flush()
            assert stream.stdout.readline() == f"{number - 199} row-{number}\n".encode()
        _, errors = stream.communicate(timeout=PATIENCE)
        assert stream.returncode == 0, errors
        phone.take_messages(2)


def test_the_receiver_hears_all_and_the_office_survives_a_kill(office, hermesd):
    broker = office.start_broker(hermesd)
    office.make_token(broker)
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("orders/7/#", 1))
        assert office.run("tell.py", office.url, "1", "7", "SIGNED", "row-1").startswith("published")
        phone.take_message()
        # Its receiver was down until now, and the broker dies with the event.
        eventually(lambda: "acknowledged" in office.run("ask.py", office.url, "row-1"), "the end")
    broker.kill()
    telling = office.begin("tell.py", office.url, "2", "7", "SIGNED", "row-2")
    office.start_receiver()
    port = int(office.url.rpartition(":")[2])
    broker = office.start_broker(
        hermesd, data=broker.data, arguments=("--admin-port", str(port)))
    output, errors = telling.communicate(timeout=PATIENCE)
    assert telling.returncode == 0 and output == b"published for 1 phones\n", errors
    with closing(RawClient(broker.address)) as phone:
        assert phone.connect("phone", clean_session=False).session_present
        assert phone.take_message().topic == "orders/7/2/status"
        eventually(
            lambda: office.outcomes == {"row-1": "acknowledged", "row-2": "acknowledged"},
            "both events")


def test_a_page_of_a_proxy_between_is_asked_again(office):
    """First a page for people with a date, then what the broker would say."""
    answers = [(502, "<h1>Bad Gateway</h1>"), (200, json.dumps({"matched": 1, "duplicate": False}))]

    class Between(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = answers.pop(0)
            self.send_response(status)
            self.send_header("Retry-After", "Thu, 26 Nov 2026 09:00:00 GMT")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Between) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (office.folder / "shop.token").write_text("x" * 32)
        url = f"http://127.0.0.1:{server.server_port}"
        told = office.run("tell.py", url, "1", "7", "SIGNED", "row-1")
        server.shutdown()
    assert told == "published for 1 phones\n" and not answers


def test_every_program_of_the_guide_is_tested():
    names = re.findall(r"```python\n# (\w+\.py)\n", GUIDE.read_text())
    own = Path(__file__).read_text()
    # office.py is imported by the others.
    assert len(names) == GUIDE.read_text().count("```python")
    assert all(f'"{name}"' in own for name in names if name != "office.py"), names
