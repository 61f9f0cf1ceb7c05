"""The scenarios of scripts/bench: command lines, figures to show, and goals."""

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
    # Shown in units of so many of the key's.
    scale: float = 1.0


@dataclass(frozen=True)
class Scenario:
    name: str
    command: list[str]
    figures: list[Figure]
    # Part of `scripts/bench --quick`.
    is_quick: bool = False
    # Stops and starts the broker (restart.py), instead of loading it with one command.
    is_restart: bool = False
    # mosquitto keeps its sessions in its database, too.
    persists: bool = False
    # Takes --duration and --warm-up.
    is_timed: bool = True
    # Memory and storms hardly vary, or take long: once is enough.
    repeats_once: bool = False
    # The broker gets a second listener, with TLS.
    has_tls: bool = False
    # So many clients a second connect meanwhile, by this command; it ends after the measured time.
    background: list[str] = field(default_factory=list)
    background_rate: int = 0
    # Publishes over HTTP (http_publish.py), which mosquitto does not have.
    http_route: str = ""
    # Arguments of the quick form, in place of those above.
    quick_command: list[str] = field(default_factory=list)


def cpu(goal: float | None) -> Figure:
    return Figure("broker_cpu_us_per_delivery", "CPU per delivered message (us)", 2, goal)


MEBIBYTE = 1024.0 * 1024.0

RATE = Figure("deliveries_per_second", "delivered per second", 0)
P50 = Figure("latency_p50_us", "latency p50 (us)", 1)
P99 = Figure("latency_p99_us", "latency p99 (us)", 1)
P999 = Figure("latency_p999_us", "latency p99.9 (us)", 1)
ACKNOWLEDGED = [
    Figure("acknowledged_p50_us", "publish to acknowledgement p50 (us)", 1),
    Figure("acknowledged_p99_us", "publish to acknowledgement p99 (us)", 1),
]
# Share of the tail latency that the generator caused because the machine was busy.
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


def persistent(
    name: str, options: list[str], goal: float | None, *, is_quick: bool = False
) -> Scenario:
    """Pairs with persistent sessions: every message is stored first."""
    return Scenario(
        name,
        ["pairs", *options, "--persistent"],
        [cpu(goal), RATE, *ACKNOWLEDGED],
        is_quick=is_quick,
        persists=True,
    )


def offline(name: str, options: list[str]) -> Scenario:
    return Scenario(
        name,
        ["offline", *options],
        [
            Figure("fill_cpu_us_per_message", "fill: CPU per message (us)", 2, 5.0),
            Figure("fill_per_second", "fill: messages per second", 0),
            Figure("acknowledged_p50_us", "fill: until acknowledged p50 (us)", 0),
            Figure("acknowledged_p99_us", "fill: until acknowledged p99 (us)", 0),
            Figure("acknowledged_max_us", "fill: until acknowledged max (us)", 0),
            Figure("before_memory_bytes", "memory before (MiB)", 1, scale=MEBIBYTE),
            Figure("filled_memory_bytes", "memory with all that waits (MiB)", 1, scale=MEBIBYTE),
            Figure("memory_bytes_per_message", "  more per message that waits (bytes)", 1),
            Figure("disk_bytes_per_message", "disk per message that waits (bytes)", 0),
            Figure("file_bytes_per_message", "  of it in the largest file", 0),
            Figure("drain_cpu_us_per_message", "drain: CPU per message (us)", 2, 4.0),
            Figure("drain_per_second", "drain: messages per second", 0),
            Figure("drained_memory_bytes", "memory after the drain (MiB)", 1, scale=MEBIBYTE),
            Figure("drained_disk_bytes", "disk after the drain (MiB)", 1, scale=MEBIBYTE),
        ],
        is_timed=False,
        persists=True,
    )


RESTARTS = [
    ("killed", "after SIGKILL"),
    ("stopped", "after SIGTERM"),
    ("busy", "killed while filled"),
]


def restarts() -> list[Figure]:
    figures = []
    for stop, words in RESTARTS:
        for cache in ("warm", "cold"):
            key, label = f"{stop}_{cache}", f"{words}, {cache} cache"
            # A figure that a restart does not have is not shown.
            figures += [
                Figure(f"{key}_accepting_ms", f"{label}: start to CONNACK (ms)", 0, 1_000),
                Figure(f"{key}_accepting_cpu_ms", "  CPU until then (ms)", 0),
                Figure(f"{key}_first_message_ms", "  CONNECT to the first message (ms)", 1),
                Figure(f"{key}_memory_bytes", "  memory then (MiB)", 1, scale=MEBIBYTE),
                Figure(f"{key}_journal_bytes", "  journal when killed (MiB)", 0, scale=MEBIBYTE),
                Figure(f"{key}_stop_ms", "  SIGTERM to its end (ms)", 0),
            ]
    return figures


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


def handshakes(name: str, extra: list[str], goal: float) -> Scenario:
    return Scenario(
        name,
        ["connect", "--clients", "1000", "--rounds", "3", "--at-once", "16", "--subscribe",
         "--tls", *extra],
        [
            Figure("broker_cpu_us_per_client", "CPU per TLS connect (us)", 0, goal),
            Figure("clients_per_second", "connects per second", 0),
        ],
        is_timed=False,
        has_tls=True,
    )


def tls_pairs(qos: int) -> Scenario:
    return Scenario(
        f"tls-pairs-qos{qos}",
        ["pairs", "--pairs", "50", "--window", "16", "--qos", str(qos), "--tls"],
        [cpu(None), RATE],
        has_tls=True,
    )


def beside_handshakes(name: str, rate: int, extra: list[str]) -> Scenario:
    """Established clients, plain and steady, while others connect with TLS all the time."""
    return Scenario(
        name,
        ["open-loop", "--rate", "1000", "--pairs", "50", "--qos", "1"],
        [
            P50,
            P99,
            P999,
            LAG,
            Figure("background_clients_per_second", "TLS connects per second meanwhile", 0),
            Figure("background_done_p99_us", "  each takes, p99 (ms)", 1, scale=1_000),
        ],
        has_tls=True,
        background=["connect", "--tls", *extra] if rate > 0 else [],
        background_rate=rate,
    )


def http(route: str, goal: float | None, *, is_quick: bool = False) -> Scenario:
    return Scenario(
        f"http-{route}",
        [],
        [
            Figure("http_thread_cpu_us_per_publish", "HTTP thread per publish (us)", 1, goal),
            Figure("publishes_per_second_and_core", "publishes/s of one core for HTTP", 0),
            Figure("broker_cpu_us_per_publish", "CPU of all threads per publish (us)", 1),
            Figure("publishes_per_second", "published per second", 0),
        ],
        is_quick=is_quick,
        http_route=route,
    )


# mosquitto cuts off a publisher with more unreleased QoS 2 messages than max_inflight_messages.
NARROW = ["--publishers", "50", "--window", "20"]
# Subscribers that answer so many milliseconds late.
LATE = ["--acknowledge-after", "50"]

SCENARIOS = [
    pairs(0, 1.0),
    pairs(1, 1.8),
    pairs(2, 3.0),
    persistent(
        "pairs-qos1-persistent",
        ["--pairs", "50", "--window", "16", "--qos", "1"],
        2.7,
        is_quick=True,
    ),
    persistent("pairs-qos2-persistent", ["--pairs", "50", "--window", "16", "--qos", "2"], None),
    persistent("pairs-qos1-late", ["--pairs", "500", "--window", "16", "--qos", "1", *LATE], None),
    persistent("pairs-qos2-late", ["--pairs", "500", "--window", "16", "--qos", "2", *LATE], None),
    Scenario(
        "lone-qos1",
        ["pairs", "--pairs", "1", "--window", "1", "--qos", "1", "--persistent"],
        [*ACKNOWLEDGED, P50, P99, cpu(None)],
        is_quick=True,
        persists=True,
    ),
    offline("offline", ["--sessions", "1000", "--messages", "1000"]),
    offline("offline-qos2", ["--sessions", "1000", "--messages", "1000", "--qos", "2", *NARROW]),
    offline("offline-few-each", ["--sessions", "50000", "--messages", "20"]),
    offline("offline-one", ["--sessions", "1", "--messages", "60000", "--window", "1000"]),
    Scenario(
        "restart",
        [],
        restarts(),
        is_restart=True,
        is_timed=False,
        repeats_once=True,
        persists=True,
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
    # One core carries 12,000 publishes per second when each takes it 83 us.
    http("messages", 83.3, is_quick=True),
    http("publish", None),
    http("orders", None),
    # 150,000 a second of one core, and 100,000 that are stored.
    http("batch", 6.6),
    http("batch-stored", 10.0),
    http("batch-orders", None),
    http("batch-keys", None),
    idle("idle", [], 600),
    idle("idle-subscribed", ["--subscribe"], 900),
    idle("idle-persistent", ["--subscribe", "--persistent", "--user-name", "phone-user"], 1_200),
    handshakes("tls-full", [], 500),
    handshakes("tls-resumed", ["--resume"], 300),
    Scenario(
        "tls-idle",
        ["idle", "--connections", "1000,5000", "--subscribe", "--tls"],
        [
            Figure("bytes_per_connection_1000", "bytes each at 1,000", 0),
            Figure("bytes_per_connection_5000", "bytes each at 5,000", 0, 14_000),
            Figure("bytes_per_added_connection_5000", "bytes per one added", 0),
        ],
        is_timed=False,
        repeats_once=True,
        has_tls=True,
    ),
    Scenario(
        "tls-open-loop-qos1",
        ["open-loop", "--rate", "5000", "--pairs", "50", "--qos", "1", "--tls"],
        [cpu(None), P50, P99, LAG],
        has_tls=True,
    ),
    tls_pairs(0),
    tls_pairs(1),
    beside_handshakes("beside-no-handshakes", 0, []),
    beside_handshakes("beside-handshakes", 500, []),
    beside_handshakes("beside-resumptions", 500, ["--resume"]),
    idle("away", ["--subscribe", "--persistent", "--user-name", "phone-user", "--away"], 400),
]
