"""One run: statuses are posted, phones come and go, the broker is killed; then all is compared."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.admin import AdminAPI
from proof.ledger import require
from proof.lives import Lives
from proof.network import Network

from .office import Office, Status
from .phone import Phone

PHONES = 8
ORDERS_PER_PHONE = 25
CONNECTIONS = 8
PATIENCE = 30.0


@dataclass(frozen=True)
class Verdict:
    statuses: int
    kills: int
    kills_amid_posts: int
    answers: int
    duplicates: int
    unanswered: int
    refusals: dict[str, int]
    received: int
    repeats: int
    superseded: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.statuses} statuses, {self.kills} kills ({self.kills_amid_posts} amid posts), "
            f"{self.seconds:.0f} s: {self.answers} answers, of these {self.duplicates} to repeats; "
            f"{self.unanswered} posts without an answer; refused {self.refusals or 'none'}; phones "
            f"received {self.received} statuses and {self.repeats} repeats with DUP; "
            f"{self.superseded} statuses were superseded; no hole, nothing twice, every order at "
            "its newest status, every receipt true")


def prove(
    statuses: int, kills: int, seed: int, say: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Throws ``Violation`` at the first broken promise."""
    with tempfile.TemporaryDirectory(prefix="hermes-orders-") as folder:
        run = _Run(Path(folder), statuses, kills, seed, say)
        try:
            return run.run()
        finally:
            run.end()


class _Run:
    def __init__(
        self, folder: Path, statuses: int, kills: int, seed: int, say: Callable[[str], None]
    ) -> None:
        self._lives = Lives(
            folder, {"HERMES_JOURNAL_SEGMENT_BYTES": "131072", "HERMES_ORDERS_QOS": "2"})
        self._say = say
        self._random = random.Random(seed)
        self._network = Network()
        self._kills = kills
        self._phones = [
            Phone(self._network, f"s{number}", 1 + number % 2) for number in range(PHONES)]
        self._statuses = [self._status(number) for number in range(1, statuses + 1)]
        self._office = Office(self._network, self._statuses, seed)

    def _status(self, number: int) -> Status:
        sales = self._random.choice(self._phones).sales
        order = f"{sales}-{self._random.randrange(ORDERS_PER_PHONE)}"
        return Status(number, sales, order, is_named=self._random.random() < 0.5)

    def run(self) -> Verdict:
        begin = time.monotonic()
        self._lives.begin()
        for phone in self._phones:
            phone.connect(self._lives.broker.address)
        self._await(lambda: all(phone.is_ready for phone in self._phones), "subscriptions")
        amid_posts = 0
        for kill in range(1, self._kills + 1):
            # The last life has its share of the statuses, too.
            share = len(self._statuses) * kill // (self._kills + 1)
            self._live(lambda share=share: len(self._office.answered) >= share)
            amid_posts += self._office.under_way > 0
            self._lives.broker.kill()
            self._await(lambda: self._network.open_links == 0, "the ends of connections")
            self._lives.begin()
            if kill % 10 == 0:
                self._say(f"{kill} kills, {len(self._office.answered)} statuses")
        self._live(lambda: self._office.is_done)
        self._settle()
        self._compare()
        self._check_receipts()
        require(self._lives.broker.stop() == 0, "the broker did not end as it should")
        tally = self._office.tally
        return Verdict(
            len(self._statuses), self._kills, amid_posts, tally.answers, tally.duplicates,
            tally.unanswered, tally.refusals, sum(len(phone.updates) for phone in self._phones),
            sum(phone.repeats for phone in self._phones),
            sum(max(phone.updates) - len(phone.updates) for phone in self._phones),
            time.monotonic() - begin)

    def end(self) -> None:
        self._network.close_all()
        self._lives.end()

    def _live(self, condition: Callable[[], bool]) -> None:
        """Traffic until the condition holds, and then for a random moment more."""
        while not condition():
            self._step()
        for _ in range(self._random.randrange(20)):
            self._step()

    def _step(self) -> None:
        self._office.work(self._lives.broker.admin_address, CONNECTIONS)
        phone = self._random.choice(self._phones)
        if phone.link is None:
            if self._random.random() < 0.05:
                phone.connect(self._lives.broker.address)
        elif phone.is_ready and self._random.random() < 0.02:
            phone.leave(abruptly=self._random.random() < 0.5)
        self._network.step(0.001)

    def _settle(self) -> None:
        """Everybody comes, and gets what is left."""
        for phone in self._phones:
            if phone.link is None:
                phone.connect(self._lives.broker.address)
        newest = {
            (status.sales, status.order): status.number for status in self._office.answered}
        by_sales = {phone.sales: phone for phone in self._phones}

        def is_settled() -> bool:
            return all(
                (update := by_sales[sales].newest.get(order)) is not None
                and int(update.reason) == number for (sales, order), number in newest.items())

        self._await(is_settled, "the newest status of every order")

    def _compare(self) -> None:
        names = {status.message_id: status for status in self._office.answered}
        require(len(names) == len(self._statuses), "two statuses have one message_id")
        for phone in self._phones:
            require(not phone.holes, f"{phone} misses the sequences {sorted(phone.holes)}")
            for update in phone.updates.values():
                status = names.get(update.message_id)
                require(
                    status is not None and str(status.number) == update.reason,
                    f"{phone} got {update}, and the office knows {status}")

    def _check_receipts(self) -> None:
        """Each says what its phone knows."""
        api = AdminAPI(self._lives.broker)
        by_sales = {phone.sales: phone for phone in self._phones}
        for status in self._office.answered:
            phone = by_sales[status.sales]
            receipt: dict = {}

            def has_ended(status: Status = status) -> bool:
                receipt.update(api.get(f"/v1/messages/{status.message_id}"))
                return receipt["counts"]["pending"] == 0

            self._await(has_ended, f"the end of the receipt of {status}")
            receivers = [
                (receiver["client_id"], receiver["state"], receiver.get("reason"))
                for receiver in receipt["receivers"]]
            expected = (
                (phone.client, "acknowledged", None) if phone.has(status.message_id)
                else (phone.client, "dropped", "replaced"))
            require(receivers == [expected], f"the receipt of {status} says {receipt}")

    def _await(self, condition: Callable[[], bool], awaited: str) -> None:
        self._network.run_until(condition, PATIENCE, awaited)
