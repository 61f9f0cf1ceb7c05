"""Batches over HTTP: messages on lines of JSON, a result for each line while the next ones come."""

from __future__ import annotations

import json
import re
import socket
import threading
import time

import pytest
import requests

from harness.admin import AdminAPI, curl, hermesctl
from harness.broker import ADMIN_TOKEN, REPOSITORY, Hermesd
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.hermesd("the HTTP API"), pytest.mark.timeout(300)]

BEARER = f"Authorization: Bearer {ADMIN_TOKEN}"
NDJSON = "Content-Type: application/x-ndjson"


def line(topic: str, payload: str, **fields: object) -> bytes:
    return json.dumps({"topic": topic, "payload": payload, **fields}).encode() + b"\n"


class Batch:
    """A batch on a socket of its own, of which a test sends each chunk and reads each result."""

    def __init__(
        self, broker: Hermesd, path: str = "/v1/messages/batch",
        receive_buffer: int | None = None,
    ) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(broker.admin_address)
        self.socket.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{BEARER}\r\n{NDJSON}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode())
        self._stream = self.socket.makefile("rb")
        self._rest = b""
        status = self._stream.readline()
        assert status.startswith(b"HTTP/1.1 200 "), status
        while self._stream.readline() != b"\r\n":
            pass

    def send(self, data: bytes) -> None:
        self.socket.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def result(self) -> dict | None:
        """The next result; `None` at the end of the answer."""
        while b"\n" not in self._rest:
            size = int(self._stream.readline(), 16)
            self._rest += self._stream.read(size)
            assert self._stream.readline() == b"\r\n"
            if size == 0:
                assert self._rest == b""
                return None
        first, _, self._rest = self._rest.partition(b"\n")
        return json.loads(first)

    def results(self) -> list[dict]:
        """All results to the end of the answer."""
        found = []
        while (result := self.result()) is not None:
            found.append(result)
        return found

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


def subscriber(broker: Hermesd, topic: str, name: str = "reader", **options: object) -> RawClient:
    client = RawClient(broker.address)
    client.connect(name, **options)
    client.subscribe((topic, 1))
    return client


def payloads(client: RawClient, count: int) -> list[bytes]:
    return [client.take_message().payload for _ in range(count)]


def test_50000_lines_by_curl(hermesd, tmp_path):
    """Every line is answered and arrives, once and in order, at those who are there."""
    # The readers are slower than the broker: all of it may wait for them.
    broker, count = hermesd(queue_limit=60_000), 50_000
    readers = [subscriber(broker, "t", f"reader-{number}") for number in range(2)]
    arrived: list[list[bytes]] = [[], []]
    threads = [
        threading.Thread(target=lambda own=own, reader=reader: own.extend(payloads(reader, count)))
        for own, reader in zip(arrived, readers, strict=True)
    ]
    for thread in threads:
        thread.start()
    file = tmp_path / "messages.ndjson"
    file.write_bytes(b"".join(line("t", str(number)) for number in range(count)))
    answer = curl(
        "-T", str(file), "-X", "POST", "-H", BEARER, "-H", NDJSON, "--max-time", "240",
        f"{broker.admin_url}/v1/messages/batch")
    assert (answer.status, answer.content_type) == (200, "application/x-ndjson")
    results = [json.loads(text) for text in answer.body.splitlines()]
    assert [result["line"] for result in results] == list(range(1, count + 1))
    assert all(result["matched"] == 2 and result["dropped"] == 0 for result in results)
    assert len({result["message_id"] for result in results}) == count
    for thread in threads:
        thread.join(240)
    expected = [str(number).encode() for number in range(count)]
    assert arrived[0] == expected and arrived[1] == expected


def test_bad_lines_do_their_neighbours_no_harm(broker, names, client):
    reader = client("reader")
    reader.subscribe((names.topic("#"), 1))
    topic = names.topic("a")
    batch = Batch(broker)
    batch.send(
        line(topic, "1") + b"{\n" + b"\r\n" + b'"text"\n' + line(topic, "2", qos=7)
        + line(topic, "x" * 1_100_000) + b"\xff\xfe\n" + line(topic, "3", unknown=1)
        + line("a/#", "4") + line(topic, "5")[:-1])
    batch.finish()
    results = batch.results()
    assert [result["line"] for result in results] == [1, 2, 4, 5, 6, 7, 8, 9, 10]
    kinds = [result.get("error", {}).get("type", "").rpartition(":")[2] for result in results]
    assert kinds == [
        "", "invalid-json", "invalid-field", "invalid-field", "too-large", "invalid-json",
        "invalid-field", "invalid-topic", "",
    ]
    assert "limits.max_packet" in results[4]["error"]["fix"]
    assert payloads(reader, 2) == [b"1", b"5"]


def test_results_come_while_lines_are_sent_byte_by_byte(broker, names):
    batch = Batch(broker)
    for number in range(1, 4):
        for byte in line(names.topic(), str(number)):
            batch.send(bytes([byte]))
        assert batch.result()["line"] == number
    batch.finish()
    assert batch.result() is None


def test_order_statuses(broker, names, client):
    reader = client("reader")
    reader.subscribe(("orders/batch-7/#", 1))
    batch = Batch(broker, "/v1/orders/batch")
    for order in ("1", "2", "1"):
        batch.send(json.dumps(
            {"order_id": order, "sales_id": "batch-7", "status": "APPROVED"}).encode() + b"\n")
    batch.send(b'{"order_id": "3", "sales_id": "batch-7", "status": "APROVED"}\n')
    batch.finish()
    results = batch.results()
    assert [result.get("error", {}).get("field") for result in results] == [
        None, None, None, "status"]
    topics = [reader.take_message().topic for _ in range(3)]
    assert topics == [f"orders/batch-7/{order}/status" for order in ("1", "2", "1")]


def test_a_cut_connection_leaves_a_clear_state(hermesd):
    """What was answered has been published, in order; a cut line has not."""
    broker = hermesd()
    reader = subscriber(broker, "t")
    batch = Batch(broker)
    batch.send(b"".join(line("t", str(number)) for number in range(500)))
    answered = [batch.result()["line"] for _ in range(500)]
    assert answered == list(range(1, 501))
    batch.send(line("t", "cut off")[:-10])
    batch.close()
    assert payloads(reader, 500) == [str(number).encode() for number in range(500)]
    api = AdminAPI(broker)
    again = Batch(broker)
    again.send(line("t", "after"))
    again.finish()
    assert [result["line"] for result in again.results()] == [1]
    assert payloads(reader, 1) == [b"after"]
    assert api.status()["publishes_received"] == 501


def test_a_body_that_ends_early_says_where(broker, names):
    """The client ends its side in the middle of a chunk."""
    batch = Batch(broker)
    batch.socket.sendall(b"1000\r\n" + line(names.topic(), "1") + b'{"topic"')
    batch.socket.shutdown(socket.SHUT_WR)
    results = batch.results()
    assert [result["line"] for result in results] == [1, 2]
    assert results[1]["error"]["status"] == 400


def test_a_slow_sender_is_not_cut_off_while_it_sends_lines(broker, names):
    """Each line that is answered gives new time; a line that does not come to its end does not."""
    batch = Batch(broker)
    begin = time.monotonic()
    while time.monotonic() < begin + 12:
        batch.send(line(names.topic(), "x"))
        assert "error" not in batch.result()
        time.sleep(3)
    late = time.monotonic()
    batch.send(b'{"topic":')
    last = batch.result()
    assert last["error"]["status"] == 408
    assert time.monotonic() - late > 5
    assert batch.result() is None


def test_a_reader_that_stands_still_stops_the_batch_and_nothing_else(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    reader = subscriber(broker, "t")
    batch = Batch(broker, receive_buffer=4_096)
    batch.socket.settimeout(3)
    data = b"".join(line("nobody", str(number), qos=0) for number in range(1_000))
    before = broker.resident_bytes()
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < 2_000:
            batch.send(data)
            sent += 1
    assert sent < 200, "the client was read on and on"
    assert broker.resident_bytes() - before < 64 << 20
    # Others are served.
    other = Batch(broker)
    other.send(line("t", "1"))
    assert other.result()["matched"] == 1
    assert payloads(reader, 1) == [b"1"]
    other.finish()
    assert other.result() is None
    eventually(
        lambda: any("takes no answer" in text for text in broker.log.lines),
        "the end of the connection that takes no results", within=60)
    batch.close()
    assert api.status()["connections"] == 1


def test_a_stop_ends_batches_with_a_line_that_says_so(hermesd):
    broker = hermesd()
    batch = Batch(broker)
    batch.send(line("t", "1"))
    assert batch.result()["line"] == 1
    code: list[int] = []
    stopping = threading.Thread(target=lambda: code.append(broker.stop()))
    stopping.start()
    last = batch.result()
    assert last["line"] == 2 and last["error"]["type"].endswith(":stopping")
    assert batch.result() is None
    stopping.join(PATIENCE)
    assert code == [0]


def test_kill_in_the_middle_loses_nothing_that_was_answered(hermesd):
    """SIGKILL while lines are being published: each line with a result waits for its phone."""
    broker, count = hermesd(queue_limit=65_000), 20_000
    phone = subscriber(broker, "t", "phone", clean_session=False)
    phone.disconnect()
    batch = Batch(broker)
    answered: list[int] = []
    sent: list[int] = []
    enough = threading.Event()

    def read() -> None:
        try:
            while (result := batch.result()) is not None:
                answered.append(result["line"])
                if len(answered) > 3_000:
                    enough.set()
        except (OSError, ValueError):
            enough.set()

    reading = threading.Thread(target=read)
    reading.start()

    def send() -> None:
        try:
            for start in range(0, count, 100):
                sent.append(start + 100)
                batch.send(b"".join(
                    line("t", str(number)) for number in range(start + 1, start + 101)))
        except OSError:
            pass

    sending = threading.Thread(target=send)
    sending.start()
    assert enough.wait(PATIENCE)
    broker.kill()
    reading.join(PATIENCE)
    sending.join(PATIENCE)
    assert len(answered) > 3_000

    after = hermesd(data=broker.data, queue_limit=65_000)
    # The repeat begins behind the last answer.
    again = Batch(after)
    for start in range(answered[-1], count, 1_000):
        end = min(start + 1_000, count)
        again.send(b"".join(line("t", str(number)) for number in range(start + 1, end + 1)))
        for _ in range(start, end):
            assert again.result()["queued"] == 1
    again.finish()
    assert again.result() is None
    phone = RawClient(after.address)
    phone.connect("phone", clean_session=False)
    numbers: list[int] = []
    while not numbers or numbers[-1] != count:
        numbers.append(int(phone.take_message().payload))
    # Lines had no key: those that were sent before the kill and whose result the caller never
    # read may be there twice. The broker's side of the connection dies with it, and with that
    # what the system still held of its answer, so that no number of lines bounds this.
    assert set(numbers) == set(range(1, count + 1))
    assert len(numbers) - count <= sent[-1] - answered[-1]
    firsts = list(dict.fromkeys(numbers))
    assert firsts == list(range(1, count + 1))


def test_hermesctl_sends_a_file_and_counts(hermesd, tmp_path):
    broker, count = hermesd(), 20_000
    reader = subscriber(broker, "t")
    file = tmp_path / "messages.ndjson"
    file.write_bytes(b"".join(line("t", str(number)) for number in range(count)))
    done = hermesctl("publish", "--batch", str(file), broker=broker)
    assert (done.code, done.errors) == (0, "")
    assert done.output.split() == ["lines", "20000", "published", "20000", "failed", "0"]
    assert payloads(reader, count) == [str(number).encode() for number in range(count)]
    done = hermesctl("publish", "--batch", "-", broker=broker, stdin=line("t", "1") + b"{\n")
    assert done.code == 1
    assert "line 2: The line is not JSON at column" in done.output
    assert done.errors == "hermesctl: 1 of 2 lines were not published.\n"
    done = hermesctl("publish", "--batch", "-", "--json", broker=broker, stdin=line("t", "2"))
    assert done.code == 0 and done.json["line"] == 1


def test_a_client_that_sends_everything_first_gets_one_answer(start_broker):
    """100,000 lines by requests, which reads nothing while it sends; two of them are wrong."""
    broker = start_broker()
    lines = [line("t/1", "x", message_id=f"m-{number}") for number in range(100_000)]
    lines[7] = b"not json\n"
    lines[99_999] = line("t/+", "x")
    url = f"{broker.admin_url}/v1/messages/batch"
    headers = {"Authorization": BEARER.partition(": ")[2], "Content-Type": "application/x-ndjson"}

    def send(answer: str) -> requests.Response:
        return requests.post(
            f"{url}?answer={answer}", data=b"".join(lines), headers=headers, timeout=PATIENCE)

    first = send("errors").json()
    counts = {name: first[name] for name in ("lines", "done", "duplicates", "failed")}
    assert counts == {"lines": 100_000, "done": 99_998, "duplicates": 0, "failed": 2}
    assert [error["line"] for error in first["errors"]] == [8, 100_000]
    assert first["errors"][1]["error"]["type"] == "urn:hermes:problem:invalid-topic"
    again = send("errors").json()
    assert (again["duplicates"], again["failed"]) == (99_998, 2)

    lines[:] = [line("t/+", "x")] * 1_500
    many = send("errors").json()
    assert many["failed"] == 1_500 and len(many["errors"]) == 1_000
    wrong = send("all")
    assert wrong.status_code == 400 and wrong.json()["field"] == "answer"


def test_the_documented_client_of_batches(start_broker, tmp_path, monkeypatch, capsys):
    """The code of docs/http-api.md, with 20,000 lines of which one is wrong."""
    text = (REPOSITORY / "docs/http-api.md").read_text()
    codes = [code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
             if "?answer=errors" in code]
    assert len(codes) == 1
    broker = start_broker()
    lines = [line("t/1", "x", message_id=f"m-{number}") for number in range(20_000)]
    lines[10] = line("t/#", "x")
    (tmp_path / "messages.ndjson").write_bytes(b"".join(lines))
    monkeypatch.chdir(tmp_path)
    code = compile(codes[0], "docs/http-api.md", "exec")
    exec(code, {"api": broker.admin_url, "token": ADMIN_TOKEN})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1 and printed[0].startswith("11 Publish to one topic")
    eventually(
        lambda: AdminAPI(broker).metric("hermes_idempotency_keys ") == 19_999, "all keys")
