"""The back office: it posts order statuses, and repeats what was not answered."""

from __future__ import annotations

import json
import random
from collections import deque
from dataclasses import dataclass, field

from harness.broker import ADMIN_TOKEN
from proof.ledger import require
from proof.network import HTTPLink, Link, Network

STATES = ("SUBMITTED", "UNDER_REVIEW", "SUPPLEMENT_REQUIRED", "APPROVED", "SIGNED", "FUNDED")
BATCH_LINES = 20


@dataclass(eq=False)
class Status:
    """One status of an order; `number` says how new it is."""

    number: int
    sales: str
    order: str
    is_named: bool
    """Named by the caller's message_id; otherwise by an Idempotency-Key."""
    posts: int = 0
    message_id: str = ""
    """Of the first answer; empty while there is none."""

    @property
    def collapses(self) -> bool:
        """Half of the orders want to have their newest status alone."""
        return self.order.encode()[-1] % 2 == 0

    @property
    def key(self) -> str:
        return f"status-{self.number}"

    @property
    def fields(self) -> dict[str, object]:
        fields: dict[str, object] = {
            "sales_id": self.sales, "status": STATES[self.number % len(STATES)],
            "reason": str(self.number), "receipts": True}
        if self.is_named:
            fields["message_id"] = self.key
        if self.collapses:
            fields["collapse_key"] = "status"
        return fields

    def answered(self, answer: dict) -> None:
        """Holds one answer of the broker to all that was answered before."""
        require(answer["matched"] == 1, f"{self} matched {answer['matched']} receivers")
        require(self.posts > 1 or not answer["duplicate"], f"{self} was new: {answer}")
        require(not self.message_id or answer["duplicate"], f"{self} was published twice: {answer}")
        require(
            self.message_id in ("", answer["message_id"]),
            f"{self} was {self.message_id}, and now is {answer['message_id']}")
        require(
            not self.is_named or answer["message_id"] == self.key, f"{self} is named {answer}")
        self.message_id = answer["message_id"]


@dataclass
class Tally:
    """What the office saw, for the report."""

    answers: int = 0
    unanswered: int = 0
    duplicates: int = 0
    refusals: dict[str, int] = field(default_factory=dict)


class Office:
    """Posts the statuses of each order one after the other, many orders at a time.

    A status is posted again, with its key, until it is answered, and now and then once more.
    """

    def __init__(self, network: Network, statuses: list[Status], seed: int) -> None:
        self._network = network
        self._random = random.Random(seed)
        self._orders: dict[tuple[str, str], deque[Status]] = {}
        for status in statuses:
            self._orders.setdefault((status.sales, status.order), deque()).append(status)
        self._idle = list(self._orders)
        self._posts: set[_Post] = set()
        self.answered: list[Status] = []
        self.tally = Tally()

    @property
    def is_done(self) -> bool:
        return not self._posts and not self._idle

    @property
    def under_way(self) -> int:
        return len(self._posts)

    def work(self, address: tuple[str, int], connections: int) -> None:
        """Posts as many requests as there may be at a time."""
        while len(self._posts) < connections and self._idle:
            is_batch = self._random.random() < 0.2
            count = min(len(self._idle), BATCH_LINES if is_batch else 1)
            statuses = [self._orders[self._take_idle()][0] for _ in range(count)]
            for status in statuses:
                status.posts += 1
            self._posts.add(
                (_Batch if is_batch else _Single)(self, self._network, address, statuses))

    def _take_idle(self) -> tuple[str, str]:
        place = self._random.randrange(len(self._idle))
        self._idle[place], self._idle[-1] = self._idle[-1], self._idle[place]
        return self._idle.pop()

    def answer(self, status: Status, answer: dict) -> None:
        """An answer to one status; a problem leaves it to be repeated."""
        if "message_id" not in answer:
            name = answer["type"].rpartition(":")[2]
            require(
                answer["status"] in (429, 503), f"{status} was refused: {json.dumps(answer)}")
            self.tally.refusals[name] = self.tally.refusals.get(name, 0) + 1
            return
        self.tally.answers += 1
        self.tally.duplicates += answer["duplicate"]
        is_first = not status.message_id
        status.answered(answer)
        if is_first:
            self.answered.append(status)
        if is_first and self._random.random() < 0.05:
            return  # A nervous caller repeats what was answered.
        self._orders[status.sales, status.order].popleft()

    def ended(self, post: _Post, statuses: list[Status], unanswered: int) -> None:
        self._posts.discard(post)
        self.tally.unanswered += unanswered
        for status in statuses:
            if self._orders[status.sales, status.order]:
                self._idle.append((status.sales, status.order))


class _Post:
    """A request under way on a connection of its own."""

    def __init__(
        self, office: Office, network: Network, address: tuple[str, int],
        statuses: list[Status],
    ) -> None:
        self._office = office
        self._statuses = statuses
        self._open = list(statuses)
        self._link = self._send(network, address)

    def _send(self, network: Network, address: tuple[str, int]) -> Link:
        raise NotImplementedError

    def _answer(self, answer: dict) -> None:
        self._office.answer(self._open.pop(0), answer)
        if not self._open:
            self._link.close()

    def _closed(self) -> None:
        self._office.ended(self, self._statuses, len(self._open))


class _Single(_Post):
    def _send(self, network: Network, address: tuple[str, int]) -> Link:
        status = self._statuses[0]
        link = HTTPLink(
            network, address, lambda _, body: self._answer(json.loads(body)), self._closed)
        link.post(
            f"/v1/orders/{status.order}/status", json.dumps(status.fields).encode(), ADMIN_TOKEN,
            "application/json", {} if status.is_named else {"Idempotency-Key": status.key})
        return link


class _Batch(_Post):
    def _send(self, network: Network, address: tuple[str, int]) -> Link:
        lines = [
            status.fields | {"order_id": status.order}
            | ({} if status.is_named else {"idempotency_key": status.key})
            for status in self._statuses]
        body = "".join(json.dumps(line) + "\n" for line in lines)
        link = _ResultLink(network, address, self._result, self._closed)
        link.post("/v1/orders/batch", body.encode(), ADMIN_TOKEN, "application/x-ndjson")
        return link

    def _result(self, result: dict) -> None:
        number = len(self._statuses) - len(self._open) + 1
        require(result.pop("line") == number, f"line {number} of a batch got {result}")
        self._answer(result.get("error", result))


class _ResultLink(HTTPLink):
    """The results of a batch as they come, in chunks (RFC 9112, section 7.1)."""

    def __init__(self, network: Network, address: tuple[str, int], on_result, on_closed) -> None:
        super().__init__(network, address, lambda *_: None, on_closed)
        self._on_result = on_result
        self._data = bytearray()
        self._lines = bytearray()
        self._has_head = False

    def receive(self, data: bytes) -> None:
        self._data += data
        if not self._has_head:
            head, separator, rest = bytes(self._data).partition(b"\r\n\r\n")
            if not separator:
                return
            if not head.startswith(b"HTTP/1.1 200 "):
                # The broker stops, or is full: all lines are to be repeated.
                require(head[9:12] in (b"429", b"503"), f"a batch was refused: {head!r}")
                self.close()
                return
            self._has_head = True
            self._data = bytearray(rest)
        while (end := self._data.find(b"\r\n")) >= 0:
            length = int(self._data[:end], 16)
            if len(self._data) < end + 2 + length + 2:
                break
            self._lines += self._data[end + 2 : end + 2 + length]
            del self._data[: end + 2 + length + 2]
        while self.is_open and (end := self._lines.find(b"\n")) >= 0:
            line = bytes(self._lines[:end])
            del self._lines[: end + 1]
            self._on_result(json.loads(line))
