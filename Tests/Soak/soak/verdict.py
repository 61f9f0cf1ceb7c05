"""The criteria of a soak, each with its figure."""

from __future__ import annotations

from dataclasses import dataclass

from .figures import Phase, slope
from .plan import IDLE
from .run import Soak
from .watcher import CONTROL, KINDS

LEAST_IDLE_MS = 0.2
"""An idle broker's p99 counts as no less, so that a fast machine makes no test of microseconds."""
MOST_GROWTH = 16 << 20
"""Bytes in an hour, and bytes in all, that a broker may grow at rest."""
MOST_LOG_LINES = 1_800
"""In a minute, in any phase: lines of one kind come once a second, and a load of all mistakes at
once makes some twenty kinds."""
MOST_IDLE_CPU = 0.01
MOST_DESCRIPTORS = 4
"""More than at the first rest."""


@dataclass(frozen=True)
class Bounds:
    """What the quiet clients may have to wait, over what the control waited at the same time."""

    times_idle: float = 3.0
    """p99 beside all loads, in p99 of an idle broker."""
    phase_ms: float = 10.0
    """p99 beside any one load."""
    longest_ms: float = 250.0
    """Any answer."""


QUICK = Bounds(times_idle=20.0, phase_ms=100.0, longest_ms=2_000.0)
"""For a minute beside other work: what an attack does to a broker that it holds up is more."""


@dataclass(frozen=True)
class Check:
    name: str
    holds: bool
    figure: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.holds else 'FAILED'} {self.name}: {self.figure}"


def checks(soak: Soak, bounds: Bounds) -> list[Check]:
    return [*_latency(soak, bounds), *_resources(soak), *_failures(soak)]


def _latency(soak: Soak, bounds: Bounds) -> list[Check]:
    idle = soak.phases.get(IDLE, Phase(IDLE))
    busy = Phase("all loads")
    loaded = [phase for phase in soak.phases.values() if phase.name != IDLE]
    for phase in loaded:
        busy.merge(phase)
    idle_p99 = max(LEAST_IDLE_MS, idle.quantiles(KINDS)[1])

    def p99(phase: Phase) -> float:
        """Each answer without what the control waited at the same time, which is no work of the
        broker: a machine that stalls delays both, a broker only its own clients."""
        return phase.p99_beside_control()

    worst = max(((p99(phase), phase.name) for phase in loaded), default=(0.0, ""))
    noisiest = max(
        ((phase.quantiles((CONTROL,))[1] / 1_000, phase.name) for phase in loaded),
        default=(0.0, ""))
    longest = max(
        ((1_000 * max(phase.stalls, default=0.0), phase.name) for phase in loaded),
        default=(0.0, ""))
    return [
        Check(
            "p99 of the quiet clients beside all loads", p99(busy) <= bounds.times_idle * idle_p99,
            f"{busy.quantiles(KINDS)[1]:.2f} ms, {p99(busy):.2f} without the control's; idle "
            f"{idle_p99:.2f} ms (at most {bounds.times_idle:g} times)"),
        Check(
            "p99 beside each load", worst[0] <= bounds.phase_ms,
            f"{worst[0]:.2f} ms in {worst[1]} (at most {bounds.phase_ms:g}); beyond three times "
            "idle: " + (", ".join(
                f"{phase.name} {p99(phase):.2f}" for phase in loaded
                if p99(phase) > 3 * idle_p99) or "none")
            + f"; the control's worst {1_000 * noisiest[0]:.1f} in {noisiest[1] or 'no phase'}"),
        Check(
            "longest wait of a quiet client", longest[0] <= bounds.longest_ms,
            f"{longest[0]:.1f} ms in {longest[1] or 'no phase'} (at most {bounds.longest_ms:g}); "
            f"{len(busy.stalls)} answers above 20 ms, {busy.excused} more while the machine "
            "stalled"),
    ]


def _resources(soak: Soak) -> list[Check]:
    points = [(seconds / 3_600, float(resident)) for seconds, resident, _ in soak.rests]
    growth = slope(points[1:] if len(points) > 3 else points)
    total = points[-1][1] - points[0][1] if points else 0.0
    loudest = max(
        ((60 * one.log_lines / one.seconds, one.name) for one in soak.phases.values()
         if one.seconds), default=(0.0, ""))
    extra = max((one for _, _, one in soak.rests), default=0) - (
        soak.rests[0][2] if soak.rests else 0)
    return [
        Check(
            "memory at rest",
            growth <= MOST_GROWTH or total <= MOST_GROWTH,
            f"{growth / 2**20:+.1f} MiB an hour over {len(points)} rests "
            f"({', '.join(f'{value / 2**20:.0f}' for _, value in points)} MiB)"),
        Check(
            "descriptors at rest", extra <= MOST_DESCRIPTORS,
            f"{extra:+} since the first rest"),
        Check(
            "log", loudest[0] <= MOST_LOG_LINES,
            f"at most {loudest[0]:.0f} lines a minute, in {loudest[1]}; "
            f"{dict(soak.log_levels)}"),
        Check(
            "processor when nobody is there", soak.idle_cpu <= MOST_IDLE_CPU,
            f"{100 * soak.idle_cpu:.2f} %"),
    ]


def _failures(soak: Soak) -> list[Check]:
    return [
        Check(
            "acknowledged messages, rules, counters, health", not soak.failures,
            f"{len(soak.failures)} failures" if soak.failures else "nothing was wrong"),
    ]
