"""Runs a whole proof: histories of lives, until every cell of the plan has its kills."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .history import History, Kill, LifePlan, Trigger
from .ledger import Violation
from .disk_record import Loss
from .plan import LOSSES, missing, plan, trigger_of

LIVES = 25
"""Lives of one history."""
MOST_EXTRA = 200
"""Lives beyond the plan, for failpoints that were reached with nothing outstanding."""
SETTINGS = (
    {},
    {"HERMES_LIMITS_MAX_IN_FLIGHT": "5", "HERMES_JOURNAL_SEGMENT_BYTES": "65536"},
    {"HERMES_LIMITS_MAX_IN_FLIGHT": "200", "HERMES_JOURNAL_SEGMENT_BYTES": "262144"},
)


@dataclass
class Proof:
    """The results of a run."""

    wanted: int
    """Kills with acknowledgements outstanding."""
    per_cell: int
    """Counted kills for each failpoint and QoS."""
    seed: int
    kills: list[Kill] = field(default_factory=list)
    acknowledgements: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    histories: int = 0
    seconds: float = 0.0
    """Of wall time."""

    @property
    def counted(self) -> int:
        return sum(kill.counts for kill in self.kills)

    @property
    def missing(self) -> dict[tuple[str, int], int]:
        """Number of kills that each cell lacks."""
        return missing(self.kills, self.per_cell)


def prove(
    kills: int, seed: int, *, per_cell: int, settings: Sequence[dict[str, str]] = SETTINGS,
    losses: Sequence[Loss] = LOSSES, say: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Runs at least `kills` counted kills, and `per_cell` for each failpoint and QoS.

    Histories use the broker's `settings` in turn, and each life ends in one of `losses`.

    Raises `Violation` with a command that replays it as far as timing allows.
    """
    rng = random.Random(seed)
    proof = Proof(wanted=kills, per_cell=per_cell, seed=seed)
    begin = time.monotonic()
    lives = _lives(proof, rng, losses)
    for number in itertools.count():
        # So many at once: the plan's end is known only once the kills before it have come.
        first = next(lives, None)
        if first is None:
            break
        _run(proof, itertools.chain([first], itertools.islice(lives, LIVES - 1)),
             seed * 1_000 + number, settings[number % len(settings)])
        say(f"history {number + 1}: {len(proof.kills)} kills, {proof.counted} of them count")
    proof.seconds = time.monotonic() - begin
    return proof


def _lives(proof: Proof, rng: random.Random, losses: Sequence[Loss]) -> Iterator[LifePlan]:
    yield from plan(proof.wanted, rng, per_cell=proof.per_cell, losses=losses)
    for _ in range(MOST_EXTRA):
        if lacking := proof.missing:
            label, qos = rng.choice(list(lacking))
            yield LifePlan(
                trigger_of(label, rng), (qos,), rng.choice(losses))
        elif proof.counted < proof.wanted:
            yield LifePlan(
                Trigger("random", count=rng.randint(1, 2_000)), (1, 2), rng.choice(losses))
        else:
            return


def _run(
    proof: Proof, lives: Iterator[LifePlan], seed: int, settings: dict[str, str]
) -> None:
    history = History(seed, environment=settings)
    try:
        for life in lives:
            try:
                proof.kills.append(history.live(life))
            except Exception as error:
                raise _with_context(error, proof, history, life, settings) from error
        try:
            history.end()
        except Exception as error:
            raise _with_context(error, proof, history, None, settings) from error
    except BaseException:
        history.close(keep_files=True)
        raise
    history.close()
    proof.histories += 1
    for kind, count in history.ledger.acknowledgements.items():
        proof.acknowledgements[kind] = proof.acknowledgements.get(kind, 0) + count
    proof.messages += sum(len(messages) for messages in history.ledger.topics.values())


def _with_context(
    error: Exception, proof: Proof, history: History, life: LifePlan | None,
    settings: dict[str, str],
) -> Violation:
    last = history.kills[-1] if history.kills else None
    return Violation(
        f"{error}\nafter {len(proof.kills)} kills; seed {history.seed}, life {history.ledger.life} ({life or 'the last'}), "
        f"settings {settings}\nthe life before ended: {last}\n"
        f"files: {history.directory}; what this life began with: {history.directory}/before\n"
        f"{history.log}")
