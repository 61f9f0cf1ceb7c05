"""The kills that a proof consists of, and whether those so far suffice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence

from .disk_record import Loss
from .history import FAILPOINTS, HANGS, PACKETS, Kill, LifePlan, Trigger

EXACTLY_ONCE_ONLY = ("pubrec", "pubrel", "pubcomp")
"""Failpoints that only QoS 2 reaches."""
LOSSES = (*[Loss.EVERYTHING] * 4, *[Loss.PART] * 4, Loss.NOTHING)
"""Mostly the power goes too; a killed process alone is the easier case."""
MOVES = ("beforeMove", "afterMove")
"""Failpoints that a life reaches a few times; the others it reaches hundreds of times."""


def cells() -> list[tuple[str, int]]:
    """The cells that need kills: each failpoint and each hanging disk, with each QoS."""
    labels = [*FAILPOINTS, *(Trigger("hang", name).label for name in HANGS)]
    return [
        (label, qos) for label in labels for qos in (1, 2)
        if qos == 2 or label not in EXACTLY_ONCE_ONLY]


def trigger_of(label: str, rng: random.Random) -> Trigger:
    """One that gives a kill this label, at some moment of the life."""
    if label in FAILPOINTS:
        return Trigger("failpoint", label, rng.randint(1, 4 if label in MOVES else 150))
    return Trigger("hang", label.split()[0], rng.randint(1, 1_000))


def plan(
    kills: int, rng: random.Random, *, per_cell: int, losses: Sequence[Loss] = LOSSES
) -> list[LifePlan]:
    """`per_cell` lives for each cell, the rest at any moment, in any order."""
    triggers: list[tuple[Trigger, Sequence[int]]] = [
        (trigger_of(label, rng), (qos,)) for label, qos in cells() for _ in range(per_cell)]
    while len(triggers) < kills:
        levels = rng.choice([(1,), (2,), (1, 2)])
        if rng.random() < 0.5:
            # A short life ends while it still delivers messages of the previous one.
            most = rng.choice([60, 400, 2_000])
            triggers.append((Trigger("random", count=rng.randint(1, most)), levels))
        else:
            unheard = {(1,): ("PUBREC", "PUBCOMP"), (2,): ("PUBACK",)}.get(levels, ())
            name = rng.choice([name for name in PACKETS if name not in unheard])
            triggers.append((Trigger("received", name, rng.randint(1, 40)), levels))
    rng.shuffle(triggers)
    return [LifePlan(trigger, levels, rng.choice(losses)) for trigger, levels in triggers]


def missing(kills: Iterable[Kill], per_cell: int) -> dict[tuple[str, int], int]:
    """Cells with too few kills that had acknowledgements of that QoS outstanding."""
    found: Counter[tuple[str, int]] = Counter()
    for kill in kills:
        for qos in (1, 2):
            if kill.outstanding.get(qos):
                found[kill.label, qos] += 1
    return {cell: per_cell - found[cell] for cell in cells() if found[cell] < per_cell}
