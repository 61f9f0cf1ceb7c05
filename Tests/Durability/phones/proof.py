"""One run: statuses are posted, links are cut, phones and broker are killed, and the phones meet
the edges: messages that they may not publish, apps that acknowledge nothing, wrong passwords, bits
that flip in their files, addresses that nobody listens at. Then all is compared."""

from __future__ import annotations

import json
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from harness.admin import AdminAPI
from harness.relay import Relay
from harness.waiting import eventually
from proof.ledger import require
from proof.lives import Lives

from .holder import FORBIDDEN, Holder, password

GROUP = 40
"""Statuses of one POST."""
BACKLOG = 2_000
"""Statuses that posters are ahead of the phones, so that kills hit posts and deliveries alike."""
SHARE_OF_BROKER = 0.3
"""Of the kills, those that hit the broker."""
SHARE_OF_FORBIDDEN = 0.3
"""Of the kills, those before which a phone publishes what it may not."""
EDGES = (None, None, "forget", "mistake", "flip")
"""What may happen to a phone between two lives, by `Holder`'s names."""


@dataclass(frozen=True)
class Verdict:
    statuses: int
    upwards: int
    cuts: int
    connects: int
    broker_kills: int
    phone_kills: int
    unanswered: int
    repeats: int
    edges: dict[str, int]
    missing: int
    """Messages of phones that a flipped bit has cost, a bit one at most."""
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.statuses} order statuses to phones and {self.upwards} messages of QoS 2 from "
            f"them, {self.seconds:.0f} s: {self.cuts} cuts, {self.connects} connects, "
            f"{self.phone_kills} kills of phones, {self.broker_kills} of the broker, "
            f"{self.unanswered} posts unanswered and posted again. All arrived, in order, none "
            f"twice but {self.repeats} that a kill had caught between a phone's output and its "
            "record. "
            + ", ".join(f"{count} of {name}" for name, count in self.edges.items())
            + f": {self.missing} messages of phones missing, and no loss told but by flips")


def prove(
    statuses: int, kills: int, phones: int, seed: int, say: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Throws ``Violation`` at the first broken promise."""
    with tempfile.TemporaryDirectory(prefix="hermes-phones-") as folder:
        run = _Run(Path(folder), statuses, kills, phones, seed, say)
        try:
            return run.run()
        finally:
            run.end()


class _Run:
    def __init__(
        self, folder: Path, statuses: int, kills: int, phones: int, seed: int,
        say: Callable[[str], None],
    ) -> None:
        self._random = random.Random(seed)
        self._say = say
        self._kills = kills
        self._each = statuses // phones
        # Every other run has QoS 2 downwards too.
        qos = 1 + seed % 2
        names = ["office", *(f"s-{number}" for number in range(phones))]
        rules = folder / "acl"
        rules.write_text("".join(
            f"allow user {name} subscribe orders/#\nallow user {name} both up/#\n"
            for name in names))
        self._lives = Lives(
            folder, {
                "HERMES_ORDERS_QOS": str(qos), "HERMES_LIMITS_QUEUE_MESSAGES": "60000",
                "HERMES_LIMITS_QUEUE_BYTES": "256MiB"},
            users={name: password(name) for name in names},
            arguments=("--acl-file", str(rules)))
        self._lives.begin()
        self._relay = Relay(
            self._lives.broker.address, cut_between=(500, 20_000), seed=seed)
        # Nobody listens at the first; the second takes connections and says nothing, which costs
        # a phone 5 s, and therefore only one of many phones has it.
        self._dead = [socket.socket(), socket.create_server(("127.0.0.1", 0))]
        self._dead[0].bind(("127.0.0.1", 0))
        also = [f"127.0.0.1:{each.getsockname()[1]}" for each in self._dead]
        self._office, *self._holders = (
            Holder(
                name, self._relay, folder, qos=2, also=(also[number > 2 and number == len(names) - 1],),
                follows="up/#" if name == "office" else f"orders/{name}/#")
            for number, name in enumerate(names))
        self._edges = dict.fromkeys(["forbidden", *filter(None, EDGES)], 0)
        self._posted = 0
        self._unanswered = 0
        self._broker_kills = 0
        self._starting = threading.Lock()
        self._counting = threading.Lock()

    def run(self) -> Verdict:
        begin = time.monotonic()
        for holder in [self._office, *self._holders]:
            holder.begin()
            holder.phone.await_note("subscribed", within=60)
        posters = [
            threading.Thread(target=self._post, args=(holder.name,)) for holder in self._holders]
        for poster in posters:
            poster.start()
        total = self._each * len(self._holders)
        for number in range(self._kills):
            eventually(
                lambda: self._arrived >= total * number / (self._kills + 1),
                "arrivals between two kills", within=600)
            for holder in self._holders:
                holder.say()
            self._strike()
            if number % 10 == 9:
                self._say(f"{number + 1} kills, {self._arrived} statuses, {self._relay.cuts} cuts")
        for poster in posters:
            poster.join()
        require(self._posted == total, f"{self._posted} of {total} statuses were posted")
        for holder in self._holders:
            eventually(
                lambda: holder.distinct == self._each,
                f"{self._each} statuses at {holder.name}", within=120 + self._each / 100)
        cuts = self._relay.cuts
        self._relay.stop_cutting()
        accepted = set().union(*(holder.accepted for holder in self._holders))
        self._empty_outboxes()
        # What has left a phone may still be in the office's session.
        for holder in self._holders:
            eventually(
                lambda: self._lacking(holder) <= holder.flips,
                f"all but {holder.flips} of {holder.name}'s messages at the office", within=120)
        missing = sum(self._lacking(holder) for holder in self._holders)
        return self._compare(accepted, missing, cuts, time.monotonic() - begin)

    @property
    def _at_office(self) -> set[object]:
        return {key for life in self._office.keys("topic") for key in life}

    def _lacking(self, holder: Holder) -> int:
        """Messages of a phone that its program took over and that have not come; a bit may cost one."""
        return len(holder.accepted - self._at_office)

    def _empty_outboxes(self) -> None:
        """What was forbidden is held back and was told; it is discarded, and all else leaves."""
        for holder in self._holders:
            eventually(
                lambda: holder.flips or all(
                    holder.count_notes(f"refused a message to {topic},") for topic in
                    holder.forbidden_and_taken),
                f"{holder.name} tells what was refused", within=120)
        for holder in self._holders:
            eventually(
                lambda: not holder.unsent(), f"an empty outbox at {holder.name}", within=120)

    @property
    def _arrived(self) -> int:
        return sum(holder.received for holder in self._holders)

    def end(self) -> None:
        for holder in [self._office, *self._holders]:
            holder.end()
        for each in self._dead:
            each.close()
        self._relay.close()
        self._lives.end()

    def _strike(self) -> None:
        if self._random.random() < SHARE_OF_BROKER:
            with self._starting:
                self._lives.broker.kill()
                self._lives.begin()
                self._relay.retarget(self._lives.broker.address)
            self._broker_kills += 1
        else:
            holder = self._random.choice([self._office, *self._holders])
            holder.kill()
            self._meet(holder, self._random.choice(EDGES))
            holder.begin()
        if self._random.random() < SHARE_OF_FORBIDDEN:
            self._random.choice(self._holders).misbehave()
            self._edges["forbidden"] += 1

    def _meet(self, holder: Holder, edge: str | None) -> None:
        """What happens to a phone between two lives."""
        if edge is None:
            return
        self._edges[edge] += 1
        if edge == "forget":
            holder.forget(lambda: holder is self._office or holder.distinct == self._each)
        elif edge == "mistake":
            holder.mistake()
        else:
            holder.flip(self._random)

    def _post(self, name: str) -> None:
        """Posts each status until it is answered; its name makes a repeat no second message."""
        number = 0
        while number < self._each:
            eventually(
                lambda: self._posted - self._arrived <= BACKLOG, "phones that keep up", within=600)
            group = range(number, min(number + GROUP, self._each))
            body = b"".join(
                json.dumps({
                    "order_id": f"o-{each}", "sales_id": name, "status": "SIGNED",
                    "message_id": f"{name}-{each}",
                }).encode() + b"\n" for each in group)
            with self._starting:
                api = AdminAPI(self._lives.broker)
            try:
                answer = api.request(
                    "POST", "/v1/orders/batch", body, {"Content-Type": "application/x-ndjson"})
                lines = [json.loads(line) for line in answer.body.splitlines()]
                if answer.status != 200 or sum("message_id" in line for line in lines) < len(group):
                    raise OSError(f"not all of the batch: {answer}")
            except (OSError, ValueError, HTTPException):
                # The broker was killed: the next try waits until it is back.
                with self._counting:
                    self._unanswered += 1
                continue
            with self._counting:
                self._posted += len(group)
            number = group.stop

    def _compare(
        self, accepted: set[str], missing: int, cuts: int, seconds: float
    ) -> Verdict:
        flipped = frozenset(holder.name for holder in self._holders if holder.flips)
        repeats = self._office.check("topic", flipped)
        require(
            not any(str(topic).startswith(FORBIDDEN) for topic in self._at_office),
            "what is forbidden has come")
        for holder in self._holders:
            repeats += holder.check("sequence")
            for life in holder.keys("sequence"):
                require(life == sorted(life), f"{holder.name} got statuses out of order")
            everything = {key for life in holder.keys("sequence") for key in life}
            require(
                everything == set(range(1, self._each + 1)), f"{holder.name} lacks a sequence")
        everyone = [self._office, *self._holders]
        for holder in everyone:
            require(
                holder.flips or holder.count_notes("lost in") == 0, f"{holder.name} told a loss")
            require(
                holder.count_notes("of the storage cannot be read") == holder.flips,
                f"{holder.flips} bits flipped at {holder.name}, and were not told once each")
        return Verdict(
            statuses=self._each * len(self._holders), upwards=len(accepted), cuts=cuts,
            connects=sum(holder.count_notes("state: connected") for holder in everyone),
            broker_kills=self._broker_kills,
            phone_kills=sum(holder.kills for holder in everyone),
            unanswered=self._unanswered, repeats=repeats, edges=self._edges,
            missing=missing, seconds=seconds)
