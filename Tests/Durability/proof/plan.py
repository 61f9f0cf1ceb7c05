"""Which kills a proof consists of, and whether those that came suffice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from .disk_record import Loss
from .history import FAILPOINTS, PACKETS, Kill, LifePlan, Trigger

MOVES = ("beforeMove", "afterMove")
EXACTLY_ONCE_ONLY = ("pubrec", "pubrel", "pubcomp")
"""Failpoints that only QoS 2 reaches."""
_MOST_COUNT = {"beforeMove": 4, "afterMove": 4}


def cells() -> list[tuple[str, int]]:
    """Each failpoint with each QoS that reaches it."""
    return [
        (name, qos) for name in FAILPOINTS for qos in (1, 2)
        if qos == 2 or name not in EXACTLY_ONCE_ONLY]


def plan(kills: int, rng: random.Random, *, per_cell: int) -> list[LifePlan]:
    """`per_cell` lives for each failpoint and QoS, the rest at any moment, in any order."""
    triggers = [
        (Trigger("failpoint", name, rng.randint(1, _MOST_COUNT.get(name, 150))), (qos,))
        for name, qos in cells() for _ in range(per_cell)]
    while len(triggers) < kills:
        levels = rng.choice([(1,), (2,), (1, 2)])
        if rng.random() < 0.5:
            # A short life dies while it still gets what its predecessor owes.
            most = rng.choice([60, 400, 2_000])
            triggers.append((Trigger("random", count=rng.randint(1, most)), levels))
        else:
            unheard = {(1,): ("PUBREC", "PUBCOMP"), (2,): ("PUBACK",)}.get(levels, ())
            name = rng.choice([name for name in PACKETS if name not in unheard])
            triggers.append((Trigger("received", name, rng.randint(1, 40)), levels))
    rng.shuffle(triggers)
    # Mostly the power goes too; a killed process alone is the easier case.
    losses = [Loss.EVERYTHING] * 4 + [Loss.PART] * 4 + [Loss.NOTHING]
    return [LifePlan(trigger, levels, rng.choice(losses)) for trigger, levels in triggers]


def missing(kills: Iterable[Kill], per_cell: int) -> dict[tuple[str, int], int]:
    """Cells with too few kills that had acknowledgements of that QoS outstanding."""
    found: Counter[tuple[str, int]] = Counter()
    for kill in kills:
        for qos in (1, 2):
            if kill.outstanding.get(qos):
                found[kill.label, qos] += 1
    return {cell: per_cell - found[cell] for cell in cells() if found[cell] < per_cell}
