"""Stops a broker in which messages wait, starts it again and measures until it answers."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import generator
from brokers import Broker, Hermesd

SESSIONS = 1_000
MESSAGES_PER_SESSION = 1_000
IDLE_SESSIONS = 99_000
# From the start to the first answer, and from CONNECT to the first message.
LONGEST_START_SECONDS = 60.0
STEP_SECONDS = 300.0
POLL_SECONDS = 0.000_5
# Size at which a broker is killed while it is filled: its journal has five segments, because it
# takes more than it moves to the database.
BUSY_MESSAGES_PER_SESSION = 3_000
BUSY_JOURNAL_BYTES = 80 * 1024 * 1024
LONGEST_BUSY_SECONDS = 30.0
PUBLISH = 3
# Figures of hermes-bench once every queue is empty.
COUNTS = ["delivered", "lost", "duplicated", "out_of_order", "foreign", "forgotten"]

SUBSCRIBED = [
    "offline",
    *("--sessions", str(SESSIONS)),
    *("--idle-sessions", str(IDLE_SESSIONS)),
]
FILL = [*SUBSCRIBED, "--messages", str(MESSAGES_PER_SESSION)]
BUSY_FILL = [*SUBSCRIBED, "--messages", str(BUSY_MESSAGES_PER_SESSION), "--only", "fill"]


def measure(make: Callable[[], Broker]) -> dict:
    """Fills, stops and starts a broker with a warm and with a cold page cache.

    The first stop is a SIGKILL right after the last acknowledgement, which must lose nothing; the
    second is a SIGTERM. In the end everything is drained and counted. Then hermesd is killed once
    more while it is being filled.
    """
    results: dict[str, float] = {}
    for cache in ("warm", "cold"):
        with make() as broker:
            filled = generator.run(broker, [*FILL, "--only", "fill"], seconds=STEP_SECONDS)
            run = filled["parameters"]["run"]
            if broker.survives_kill:
                _restart(broker, run, signal.SIGKILL, cache, results)
            _restart(broker, run, signal.SIGTERM, cache, results)
            drained = generator.run(
                broker, [*FILL, "--only", "drain", "--run", run], seconds=STEP_SECONDS
            )
        for key in COUNTS:
            results[key] = results.get(key, 0) + drained["results"][key]
        with make() as broker:
            if isinstance(broker, Hermesd):
                _kill_while_filling(broker, cache, results)
    return {
        "scenario": "restart",
        "parameters": {
            "sessions": SESSIONS + IDLE_SESSIONS,
            "messages": SESSIONS * MESSAGES_PER_SESSION,
        },
        "results": results,
    }


def _restart(
    broker: Broker, run: str, how: signal.Signals, cache: str, results: dict[str, float]
) -> None:
    name = f"{'killed' if how == signal.SIGKILL else 'stopped'}_{cache}"
    if how == signal.SIGTERM:
        broker.await_idle()
    stopping = broker.end(how)
    if how == signal.SIGTERM:
        results[f"{name}_stop_ms"] = stopping * 1e3
    if cache == "cold":
        results[f"{name}_cached_bytes"] = drop_from_cache(broker.data_directory)
    _start(broker, name, results)
    session = f"bench-{run:0>8}-i00000".encode()
    connected = time.monotonic()
    with _connect(broker, session, clean_session=False) as client:
        first = _receive(client, 1)
        if first[0] >> 4 != PUBLISH:
            raise generator.ScenarioError(f"{name}: packet {first[0]:#x} instead of a PUBLISH")
    results[f"{name}_first_message_ms"] = (time.monotonic() - connected) * 1e3
    broker.await_idle()
    results[f"{name}_memory_bytes"] = broker.private_bytes()


def _kill_while_filling(broker: Hermesd, cache: str, results: dict[str, float]) -> None:
    name = f"busy_{cache}"
    with generator.running(broker, BUSY_FILL) as filling:
        deadline = time.monotonic() + LONGEST_BUSY_SECONDS
        while broker.journal_bytes() < BUSY_JOURNAL_BYTES and time.monotonic() < deadline:
            if filling.poll() is not None:
                break
            time.sleep(0.05)
        results[f"{name}_journal_bytes"] = broker.journal_bytes()
        broker.end(signal.SIGKILL)
    if cache == "cold":
        results[f"{name}_cached_bytes"] = drop_from_cache(broker.data_directory)
    _start(broker, name, results)


def _start(broker: Broker, name: str, results: dict[str, float]) -> None:
    """Starts the process again and measures until it accepts a client."""
    began = time.monotonic()
    broker.launch()
    _connect(broker, b"hermes-restart-probe", clean_session=True).close()
    results[f"{name}_accepting_ms"] = (time.monotonic() - began) * 1e3
    results[f"{name}_accepting_cpu_ms"] = broker.cpu_seconds() * 1e3


def _connect(broker: Broker, identifier: bytes, *, clean_session: bool) -> socket.socket:
    """Connects as soon as the broker lets it; returns the connection behind its CONNACK."""
    variable = b"\x00\x04MQTT\x04" + (b"\x02" if clean_session else b"\x00") + b"\x00\x00"
    body = variable + len(identifier).to_bytes(2) + identifier
    deadline = time.monotonic() + LONGEST_START_SECONDS
    while True:
        broker.check_running()
        client = socket.socket()
        client.settimeout(LONGEST_START_SECONDS)
        try:
            client.connect(("127.0.0.1", broker.port))
            client.sendall(bytes([0x10, len(body)]) + body)
            connack = _receive(client, 4)
            break
        except ConnectionError as error:
            client.close()
            if time.monotonic() > deadline:
                raise generator.ScenarioError(f"no answer after the start: {error}") from error
            time.sleep(POLL_SECONDS)
    expected = bytes([0x20, 2, 0 if clean_session else 1, 0])
    if connack != expected:
        client.close()
        raise generator.ScenarioError(
            f"CONNACK {connack.hex()} instead of {expected.hex()} for {identifier.decode()}"
        )
    return client


def _receive(client: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = client.recv(count - len(received))
        if not part:
            raise ConnectionResetError("closed by the broker")
        received += part
    return received


def drop_from_cache(folder: Path) -> int:
    """Drops the files of a folder, without subfolders, from the page cache.

    Returns the number of bytes still cached, by `fincore`: 0 unless a process maps the files.
    """
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 0]
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # Only clean pages can be dropped.
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    shown = subprocess.run(
        ["fincore", "--bytes", "--noheadings", "--output", "PAGES", *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
    )
    return mmap.PAGESIZE * sum(int(pages) for pages in shown.stdout.split())
