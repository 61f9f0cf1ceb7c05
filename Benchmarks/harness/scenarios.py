"""What scripts/bench measures: the command lines, the figures to show, and the goals."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One row of the table, from one key of hermes-bench's results."""

    key: str
    label: str
    digits: int = 2
    # hermesd should be below this; None where mosquitto in the same run is the only measure.
    goal: float | None = None


@dataclass(frozen=True)
class Scenario:
    name: str
    command: list[str]
    figures: list[Figure]
    # Part of `scripts/bench --quick`.
    is_quick: bool = False
    # Takes --duration and --warm-up.
    is_timed: bool = True
    # Memory and storms hardly vary, or take long: once is enough.
    repeats_once: bool = False
    # Arguments of the quick form, in place of those above.
    quick_command: list[str] = field(default_factory=list)


def cpu(goal: float | None) -> Figure:
    return Figure("broker_cpu_us_per_delivery", "CPU per delivered message (us)", 2, goal)


RATE = Figure("deliveries_per_second", "delivered per second", 0)
P50 = Figure("latency_p50_us", "latency p50 (us)", 1)
P99 = Figure("latency_p99_us", "latency p99 (us)", 1)
P999 = Figure("latency_p999_us", "latency p99.9 (us)", 1)
# How much of the tail is the generator's own, because the machine was busy.
LAG = Figure("generator_lag_p99_us", "  generator late, p99 (us)", 1)


def pairs(qos: int, goal: float) -> Scenario:
    return Scenario(
        f"pairs-qos{qos}",
        ["pairs", "--pairs", "50", "--window", "16", "--qos", str(qos)],
        [cpu(goal), RATE],
        is_quick=True,
    )


def open_loop(qos: int, goal: float) -> Scenario:
    return Scenario(
        f"open-loop-qos{qos}",
        ["open-loop", "--rate", "5000", "--pairs", "50", "--qos", str(qos)],
        [cpu(goal), P50, P99, P999, LAG],
        is_quick=qos == 1,
    )


def fan_out(qos: int, goal: float) -> Scenario:
    return Scenario(
        f"fan-out-qos{qos}",
        ["fan-out", "--subscribers", "1000", "--window", "16", "--qos", str(qos)],
        [cpu(goal), RATE],
        is_quick=qos == 1,
    )


def fan_in(qos: int, goal: float) -> Scenario:
    return Scenario(
        f"fan-in-qos{qos}",
        ["fan-in", "--publishers", "100", "--window", "16", "--qos", str(qos)],
        [cpu(goal), RATE],
        is_quick=qos == 1,
    )


def connect(name: str, extra: list[str], goal: float) -> Scenario:
    return Scenario(
        name,
        ["connect", "--clients", "2000", "--rounds", "3", "--at-once", "64", *extra],
        [Figure("broker_cpu_us_per_client", "CPU per connect (us)", 1, goal)],
        is_quick=name == "connect",
        is_timed=False,
    )


def idle(name: str, extra: list[str], goal: float) -> Scenario:
    return Scenario(
        name,
        ["idle", "--connections", "1000,10000", *extra],
        [
            Figure("bytes_per_connection_1000", "bytes each at 1,000", 0),
            Figure("bytes_per_connection_10000", "bytes each at 10,000", 0, goal),
            Figure("bytes_per_added_connection_10000", "bytes per one added", 0),
        ],
        is_quick=name == "idle-subscribed",
        is_timed=False,
        repeats_once=True,
        quick_command=["idle", "--connections", "1000", *extra],
    )


SCENARIOS = [
    pairs(0, 1.0),
    pairs(1, 1.8),
    pairs(2, 3.0),
    Scenario(
        "pairs-qos1-persistent",
        ["pairs", "--pairs", "50", "--window", "16", "--qos", "1", "--persistent"],
        [cpu(2.7), RATE],
    ),
    open_loop(0, 20),
    open_loop(1, 26),
    fan_out(0, 2.5),
    fan_out(1, 3.0),
    fan_in(0, 0.8),
    fan_in(1, 1.2),
    connect("connect", [], 25),
    connect("connect-subscribe", ["--subscribe"], 32),
    Scenario(
        "storm",
        ["connect", "--clients", "5000", "--subscribe", "--publish"],
        [
            Figure("milliseconds", "5,000 at once, all done (ms)", 0, 300),
            Figure("broker_cpu_us_per_client", "CPU per client (us)", 1, 40),
            Figure("unanswered", "clients without an answer", 0),
        ],
        is_timed=False,
    ),
    idle("idle", [], 600),
    idle("idle-subscribed", ["--subscribe"], 900),
    idle("idle-persistent", ["--subscribe", "--persistent", "--user-name", "phone-user"], 1_200),
    idle("away", ["--subscribe", "--persistent", "--user-name", "phone-user", "--away"], 400),
]
