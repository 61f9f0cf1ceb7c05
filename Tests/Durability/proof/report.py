"""The result of a proof as a table, and whether it suffices."""

from __future__ import annotations

from collections import Counter

from .disk_record import Loss
from .history import Kill
from .plan import cells
from .runner import Proof


def verdict(proof: Proof) -> tuple[str, bool]:
    """Prints the table and its verdict; false with too few kills."""
    received = ", ".join(
        f"{count} {kind}" for kind, count in sorted(proof.acknowledgements.items()))
    lines = [
        table(proof.kills),
        f"{proof.counted} kills with acknowledgements outstanding, in {proof.histories} histories "
        f"with {proof.messages} messages; {proof.seconds:.0f} s from the first start to the last "
        f"check; seed {proof.seed}",
        f"received: {received}",
    ]
    if proof.counted < proof.wanted:
        lines.append(f"NOT PROVEN: {proof.counted} kills count, {proof.wanted} are wanted")
    for (label, qos), lacking in proof.missing.items():
        lines.append(
            f"NOT PROVEN: {label} needs {lacking} more of {proof.per_cell} kills with QoS {qos} "
            "outstanding")
    is_proven = proof.counted >= proof.wanted and not proof.missing
    if is_proven:
        lines.append("nothing that was acknowledged was lost, and nothing in QoS 2 came twice")
    return "\n".join(lines), is_proven


def table(kills: list[Kill]) -> str:
    """Counted kills, by end of life, outstanding QoS and lost data."""
    labels = sorted({kill.label for kill in kills}, key=_rank)
    lines = [
        f"{'killed at':<20}{'kills':>7}{'counted':>9}{'QoS 1':>7}{'QoS 2':>7}"
        f"{'dropped':>9}{'torn':>6}{'kept':>6}{'rolled back':>13}"]
    for label in [*labels, None]:
        chosen = [kill for kill in kills if label in (None, kill.label)]
        counted = [kill for kill in chosen if kill.counts]
        losses = Counter(kill.loss for kill in counted)
        lines.append(
            f"{label or 'all':<20}{len(chosen):>7}{len(counted):>9}"
            f"{sum(bool(kill.outstanding.get(1)) for kill in counted):>7}"
            f"{sum(bool(kill.outstanding.get(2)) for kill in counted):>7}"
            f"{losses[Loss.EVERYTHING]:>9}{losses[Loss.PART]:>6}{losses[Loss.NOTHING]:>6}"
            f"{sum(bool(kill.cut.writes or kill.cut.names) for kill in counted):>13}")
    return "\n".join(lines)


def _rank(label: str) -> tuple[int, str]:
    first = [label for label, _ in cells()]
    return (first.index(label), "") if label in first else (len(first), label)
