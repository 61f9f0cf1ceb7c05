"""One run: pushes are scheduled and fire, the broker is killed around and amid them; then each
client must have each push once."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.admin import AdminAPI
from proof.ledger import require
from proof.lives import Lives
from proof.network import Network

from .fleet import TOPIC, Fleet

PATIENCE = 120.0
OPEN_PUSHES = 2
"""Pushes that are under way together."""


@dataclass(frozen=True)
class Verdict:
    clients: int
    pushes: int
    deliveries: int
    kills: int
    kills_before: int
    kills_amid: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.clients} clients, {self.pushes} pushes, {self.kills} kills "
            f"({self.kills_before} before a push had begun, {self.kills_amid} amid one), "
            f"{self.seconds:.0f} s: {self.deliveries} messages, each client has each push once")


@dataclass(frozen=True)
class _Push:
    """One push, and whom it must reach."""

    number: int
    body: dict[str, Any]
    receivers: list[str]

    @property
    def name(self) -> str:
        return f"push-{self.number}"

    @property
    def payload(self) -> bytes:
        return self.name.encode()


def prove(
    clients: int, pushes: int, kills: int, seed: int, say: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Throws ``Violation`` at the first broken promise."""
    with tempfile.TemporaryDirectory(prefix="hermes-pushes-") as folder:
        run = _Run(Path(folder), clients, pushes, kills, seed, say)
        try:
            return run.run()
        finally:
            run.end()


class _Run:
    def __init__(
        self, folder: Path, clients: int, pushes: int, kills: int, seed: int,
        say: Callable[[str], None],
    ) -> None:
        self._lives = Lives(folder, {"HERMES_JOURNAL_SEGMENT_BYTES": "1048576"})
        self._say = say
        self._random = random.Random(seed)
        self._network = Network()
        self._fleet = Fleet(self._network, clients)
        self._pushes = [self._push(number) for number in range(1, pushes + 1)]
        self._kills = kills
        self._kills_before = 0
        self._kills_amid = 0

    def _push(self, number: int) -> _Push:
        names = self._fleet.names
        to, receivers = self._random.choice([
            ({"tags": {"any": ["all"]}}, names),
            ({"tags": {"any": ["all"], "none": ["third"]}},
             sorted(set(names) - set(self._fleet.thirds))),
            ({"tags": {"all": ["third", "all"]}}, self._fleet.thirds),
            ({"clients": names[::2]}, names[::2]),
        ])
        return _Push(
            number,
            {
                "to": to,
                "message": {
                    "topic": TOPIC, "payload": f"push-{number}", "message_id": f"push-{number}",
                    "qos": self._random.choice([1, 2])},
                "deliver_in_s": 1,
                "spread_s": self._random.choice([0, 1, 2, 3]),
            },
            receivers)

    @property
    def _api(self) -> AdminAPI:
        return AdminAPI(self._lives.broker)

    def run(self) -> Verdict:
        begin = time.monotonic()
        self._lives.begin()
        self._fleet.create(self._lives.broker)
        self._say(f"{len(self._fleet.names)} clients have sessions and tags")
        rounds = [
            self._pushes[first : first + OPEN_PUSHES]
            for first in range(0, len(self._pushes), OPEN_PUSHES)]
        past: list[_Push] = []
        for number, pushes in enumerate(rounds, 1):
            share = self._kills * number // len(rounds) - self._kills * (number - 1) // len(rounds)
            self._play(pushes, share, past)
            past += pushes
            self._say(f"{len(past)} pushes, {self._kills * number // len(rounds)} kills")
        expected: dict[str, Counter[bytes]] = {name: Counter() for name in self._fleet.names}
        for push in past:
            for name in push.receivers:
                expected[name][push.payload] += 1
        self._fleet.fetch(self._lives.broker, expected)
        self._await(
            lambda: not any(self._waiting().values()), "queues without a further message")
        self._check_receipts(past)
        require(self._lives.broker.stop() == 0, "the broker did not end as it should")
        return Verdict(
            len(self._fleet.names), len(past), sum(len(push.receivers) for push in past),
            self._kills, self._kills_before, self._kills_amid, time.monotonic() - begin)

    def end(self) -> None:
        self._network.close_all()
        self._lives.end()

    def _play(self, pushes: list[_Push], kills: int, past: list[_Push]) -> None:
        """Sends some pushes together, and kills the broker around and amid them."""
        for push in pushes:
            self._post(push, is_repeat=False)
        for kill in range(kills):
            self._live(pushes, is_early=kill == 0)
            self._note(pushes)
            self._lives.broker.kill()
            self._lives.begin()
            self._check(past, pushes)
            # What was answered is recognised in the next life, too.
            self._post(self._random.choice(pushes), is_repeat=True)
        self._await(
            lambda: all(self._status(push)["state"] == "done" for push in pushes),
            "the end of the pushes")
        for push in pushes:
            found = self._status(push)
            count = len(push.receivers)
            require(
                (found["matched"], found["reached"], found["queued"]) == (count, count, count),
                f"{push.name} to {count} clients ended as {found}")
        self._check(past + pushes, [])

    def _post(self, push: _Push, *, is_repeat: bool) -> None:
        answer = self._api.post_json("/v1/pushes", push.body)
        require(answer.status == 202, f"{push.name} was answered {answer}")
        require(
            (answer.json["push_id"], answer.json["duplicate"]) == (push.name, is_repeat),
            f"{push.name} was answered {answer.json}")

    def _status(self, push: _Push) -> dict[str, Any]:
        return self._api.get(f"/v1/pushes/{push.name}")

    def _live(self, pushes: list[_Push], *, is_early: bool) -> None:
        """Lets the pushes go on until a moment of chance: a time, or a client that is reached."""
        if is_early or self._random.random() < 0.3:
            moment = time.monotonic() + self._random.uniform(0, 0.6 if is_early else 1.2)
            self._await(lambda: time.monotonic() >= moment, "a moment of chance")
            return
        push = self._random.choice([one for one in pushes if one.body["spread_s"]] or pushes)
        reached = self._random.randrange(len(push.receivers))
        self._await(
            lambda: self._status(push)["reached"] >= reached, f"the client {reached} of a push")

    def _note(self, pushes: list[_Push]) -> None:
        found = [self._status(push) for push in pushes]
        self._kills_before += any(status["state"] == "scheduled" for status in found)
        self._kills_amid += any(
            status["state"] == "sending" and status["reached"] for status in found)

    def _waiting(self) -> dict[str, int]:
        """The number of messages that wait for each client."""
        counts: dict[str, int] = {}
        cursor = ""
        while True:
            page = self._api.get(f"/v1/clients?limit=1000{cursor}")
            for client in page["clients"]:
                counts[client["client_id"]] = client["queued"] + client["in_flight"]
            if not (follows := page.get("next")):
                return counts
            cursor = f"&cursor={follows}"

    def _check(self, past: list[_Push], under_way: list[_Push]) -> None:
        """Each client has the pushes that are done once, and others at most once."""
        before = sum(self._status(push)["reached"] for push in under_way)
        waiting = self._waiting()
        after = sum(self._status(push)["reached"] for push in under_way)
        least = Counter(name for push in past for name in push.receivers)
        most = least + Counter(name for push in under_way for name in push.receivers)
        require(waiting.keys() == set(self._fleet.names), "a session is missing, or one too many")
        for name, count in waiting.items():
            require(
                least[name] <= count <= most[name],
                f"{count} messages wait for {name}, and should be {least[name]} to {most[name]}")
        total = sum(waiting.values()) - least.total()
        require(
            before <= total <= after,
            f"{total} messages wait, and the pushes say that they reached {before} to {after}")

    def _check_receipts(self, pushes: list[_Push]) -> None:
        """Each says that all have acknowledged it, if it has not gone because there are too many."""
        for push in pushes:
            answer = self._api.request("GET", f"/v1/messages/{push.name}")
            if answer.status == 404:
                continue
            counts = answer.json["counts"]
            count = len(push.receivers)
            require(
                (counts["receivers"], counts["acknowledged"]) == (count, count),
                f"the receipt of {push.name} to {count} clients says {counts}")

    def _await(self, condition: Callable[[], bool], awaited: str) -> None:
        self._network.run_until(condition, PATIENCE, awaited)
