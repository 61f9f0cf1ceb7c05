"""Text of strangers that is long to compare as Unicode: runs of combining marks, whose canonical
order takes the square of their number. Each load comes beside a caller or client that must not wait."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.broker import Broker
from harness.login_service import SigningKey, base64url

pytestmark = pytest.mark.hermesd("text of strangers in requests and tokens")


def marks(count: int) -> str:
    """Marks of two classes, of which Unicode puts the second before the first."""
    return "\u0301" * (count // 2) + "\u0316" * (count - count // 2)


PROMPT = 2.0
"""Seconds that others may wait, also beside an unoptimised build; 13 to 110 where text is compared as
Unicode."""


class Pulse:
    """Asks `work` again and again from a thread while a load runs, and keeps the longest time."""

    def __init__(self, work) -> None:
        self.longest = 0.0
        self.count = 0
        self._work = work
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._ends.is_set() or self.count == 0:
            start = time.monotonic()
            try:
                self._work()
            finally:
                self.longest = max(self.longest, time.monotonic() - start)
                self.count += 1

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(120)
        print(f"longest of {self.count} beside: {self.longest * 1000:.1f} ms")


def healthy(broker: Broker):
    api = AdminAPI(broker, token=None)
    return lambda: api.get("/healthz")


@pytest.mark.timeout(200)
def test_a_body_of_300_kilobytes_keeps_no_other_caller_waiting(start_broker):
    broker = start_broker()
    made = hermesctl(
        "tokens", "create", "back-office", "--scope", "publish", "--topics", "orders/#",
        "--data-directory", str(broker.data), token=None)
    api = AdminAPI(broker, token=made.output.strip())
    name = marks(75_000)
    body = f'{{"a{name}":1,"b{name}":2}}'.encode()
    assert len(body) > 300_000
    with Pulse(healthy(broker)) as pulse:
        answer = api.request(
            "POST", "/v1/messages", body, {"Content-Type": "application/json"})
    assert answer.problem(400)
    assert pulse.longest < PROMPT


@pytest.mark.timeout(200)
def test_origins_of_marks_cost_a_server_no_more_than_others(start_broker):
    broker = start_broker()
    api = AdminAPI(broker, token=None)

    def ask(origin: str) -> float:
        start = time.monotonic()
        for _ in range(50):
            api.request("GET", "/healthz", None, {"Origin": origin}).problem(403)
        return (time.monotonic() - start) / 50

    plain = ask("http://" + "o" * 7_200)
    marked = ask("http://" + marks(3_600).encode().decode("latin-1"))
    print(f"a request: {plain * 1000:.1f} ms plain, {marked * 1000:.1f} ms of marks")
    assert marked < 2 * plain + 0.003


@pytest.mark.timeout(200)
def test_forged_tokens_of_marks_delay_no_honest_login(start_broker, raw, tmp_path):
    key = SigningKey("ES256", tmp_path, "key-1")
    broker = start_broker(
        environment={"HERMES_AUTH_JWT_KEY_FILE": str(key.write(tmp_path / "login.key"))})
    names = [letter + marks(1_400) for letter in "ab"]
    header = json.dumps(
        {"alg": "ES256", names[0]: 1, names[1]: 1}, ensure_ascii=False).encode()
    forged = ".".join(map(base64url, [header, b"{}", b"x" * 64])).encode()
    assert len(forged) < 8_192

    def forge(number: int) -> None:
        raw(broker).connect(f"forger-{number}", user_name="", password=forged)

    def log_in() -> None:
        client = raw(broker)
        token = key.token(sub="anna", exp=int(time.time()) + 600, jti=str(time.monotonic()))
        assert client.connect("honest", user_name="", password=token).return_code == 0
        client.close()

    with Pulse(log_in) as pulse, ThreadPoolExecutor(64) as forgers:
        list(forgers.map(forge, range(256)))
    assert pulse.longest < PROMPT / 3


@pytest.mark.timeout(300)
def test_filters_of_marks_stop_no_client_when_a_client_is_explained(start_broker, raw):
    broker = start_broker()
    client, other = raw(broker), raw(broker)
    client.connect("collector")
    other.connect("other")
    for start in range(0x4E00, 0x4E00 + 3_000, 100):
        client.subscribe(
            *[(f"{chr(letter)}{marks(800)}", 0) for letter in range(start, start + 100)])
    with Pulse(other.ping) as pulse:
        answer = AdminAPI(broker).request("GET", "/v1/clients/collector/explain")
    assert answer.status == 200
    assert pulse.longest < PROMPT / 3
