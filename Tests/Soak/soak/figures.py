"""Figures of the phases, and what they must be."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .watcher import CONTROL, KINDS, Samples

STALL = 0.020
"""Seconds: an answer that takes longer is looked at."""
MOST_NOISE = 0.002
"""Seconds that the control may take before the machine counts as late for everybody."""


def quantile(values: Sequence[float], share: float) -> float:
    """Of sorted values; 0 without any."""
    if not values:
        return 0.0
    return values[min(len(values) - 1, int(len(values) * share))]


@dataclass
class Phase:
    """What was seen while one load ran; phases of one name are added up over the cycles."""

    name: str
    seconds: float = 0.0
    latencies: dict[str, list[float]] = field(default_factory=dict)
    """By kind, in seconds, unsorted."""
    beside_control: dict[str, list[float]] = field(default_factory=dict)
    """The same, each without what the control waited at the same time: the machine's part."""
    stalls: list[float] = field(default_factory=list)
    """Of the broker: an answer took so long, and the control did not."""
    excused: int = 0
    """Answers that were late while the control was late as well."""
    cpu_seconds: float = 0.0
    log_lines: int = 0
    resident: list[int] = field(default_factory=list)
    """Bytes at the end of each time."""
    peak: int = 0
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, samples: Samples) -> None:
        late = sorted(
            (begin, begin + taken, taken) for begin, taken in samples.get(CONTROL, ())
            if taken > STALL / 2)
        noise = Noise(samples.get(CONTROL, ()))
        for kind, measured in samples.items():
            self.latencies.setdefault(kind, []).extend(taken for _, taken in measured)
            self.beside_control.setdefault(kind, []).extend(
                max(0.0, taken - noise.during(begin, taken)) for begin, taken in measured)
            if kind == CONTROL:
                continue
            for begin, taken in measured:
                if taken <= STALL:
                    continue
                machine = max(
                    (one for start, end, one in late if start < begin + taken and end > begin),
                    default=0.0)
                if machine > taken / 2:
                    self.excused += 1
                else:
                    self.stalls.append(taken)

    def merge(self, other: Phase) -> None:
        self.seconds += other.seconds
        for kind, values in other.latencies.items():
            self.latencies.setdefault(kind, []).extend(values)
        for kind, values in other.beside_control.items():
            self.beside_control.setdefault(kind, []).extend(values)
        self.stalls += other.stalls
        self.excused += other.excused
        self.cpu_seconds += other.cpu_seconds
        self.log_lines += other.log_lines
        self.resident += other.resident
        self.peak = max(self.peak, other.peak)
        self.notes.update(other.notes)

    def sorted(self, kinds: Iterable[str] = KINDS) -> list[float]:
        return sorted(value for kind in kinds for value in self.latencies.get(kind, ()))

    def quantiles(self, kinds: Iterable[str]) -> tuple[float, float, float]:
        """p50, p99 and the longest, in milliseconds."""
        values = self.sorted(kinds)
        return (
            1_000 * quantile(values, 0.5), 1_000 * quantile(values, 0.99),
            1_000 * (values[-1] if values else 0.0))


    def p99_beside_control(self) -> float:
        """p99 of the quiet clients in milliseconds, without what the control waited meanwhile."""
        values = sorted(
            value for kind in KINDS for value in self.beside_control.get(kind, ()))
        return 1_000 * quantile(values, 0.99)


class Noise:
    """When the machine was late for everybody, as the control tells."""

    def __init__(self, control: Iterable[tuple[float, float]]) -> None:
        late = sorted(
            (begin, begin + taken, taken) for begin, taken in control if taken > MOST_NOISE)
        self._late = late
        self._begins = [begin for begin, _, _ in late]
        self._longest = max((taken for _, _, taken in late), default=0.0)

    def during(self, begin: float, taken: float) -> float:
        """The longest that an answer of the control took which was awaited at the same time."""
        first = bisect.bisect_left(self._begins, begin - self._longest)
        last = bisect.bisect_right(self._begins, begin + taken)
        return max(
            (one for _, end, one in self._late[first:last] if end > begin), default=0.0)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Growth in a unit of x, of the line with the least squares; 0 for fewer than three points."""
    if len(points) < 3:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def share_above(values: Sequence[float], bound: float) -> float:
    """Of sorted values."""
    return 1 - bisect.bisect_right(values, bound) / len(values) if values else 0.0


def table(phases: Iterable[Phase]) -> str:
    """One line for each phase."""
    head = (
        f"{'phase':24} {'s':>5} | {'delivery p50':>12} {'p99':>7} {'max':>8} | "
        f"{'ping p99':>8} {'max':>8} | {'TLS p99':>7} {'max':>8} | {'control p99':>11} {'max':>8} | "
        f"{'stalls':>6} {'CPU %':>6} {'MiB':>5} {'peak':>5} {'log/min':>7}")
    lines = [head, "-" * len(head)]
    for phase in phases:
        delivery, ping, tls, control = (
            phase.quantiles((kind,)) for kind in (*KINDS, CONTROL))
        seconds = max(phase.seconds, 0.001)
        lines.append(
            f"{phase.name:24} {phase.seconds:5.0f} | "
            f"{delivery[0]:12.2f} {delivery[1]:7.2f} {delivery[2]:8.1f} | "
            f"{ping[1]:8.2f} {ping[2]:8.1f} | {tls[1]:7.2f} {tls[2]:8.1f} | "
            f"{control[1]:11.2f} {control[2]:8.1f} | "
            f"{len(phase.stalls):6} {100 * phase.cpu_seconds / seconds:6.1f} "
            f"{phase.resident[-1] / 2**20 if phase.resident else 0:5.0f} "
            f"{phase.peak / 2**20:5.0f} {60 * phase.log_lines / seconds:7.0f}")
    return "\n".join(lines) + "\n(milliseconds; control: the same against a process that echoes)"
