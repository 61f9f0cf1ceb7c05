"""Runs hermes-bench against a broker and reads its figures."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers import REPOSITORY, Broker

BENCH = REPOSITORY / "Benchmarks/.build/release/hermes-bench"


class ScenarioError(Exception):
    """hermes-bench failed in a scenario; holds its output."""


def build(*, broker: bool = True) -> None:
    """Builds hermesd and hermes-bench in release, with the Swift runtime linked in."""
    options = ["--configuration", "release", "--static-swift-stdlib"]
    if broker:
        subprocess.run([REPOSITORY / "scripts/build"], check=True)
    subprocess.run(
        ["swift", "build", "--package-path", REPOSITORY / "Benchmarks", *options], check=True
    )


def _command(broker: Broker, arguments: list[str]) -> list[str]:
    command = [
        str(BENCH),
        *arguments,
        *("--port", str(broker.tls_port if "--tls" in arguments else broker.port)),
        *("--pid", str(broker.pid)),
        "--quiet",
    ]
    if arguments[0] == "offline":
        command += ["--data-directory", str(broker.data_directory)]
    return command


@contextmanager
def running(
    broker: Broker, arguments: list[str], *, seconds: float
) -> Iterator[Callable[[], dict]]:
    """hermes-bench in the background; what it yields waits for its end and returns its figures.

    It has `seconds` for that, and is killed when it is still there on leaving.
    """
    with tempfile.NamedTemporaryFile(suffix=".json") as document:
        process = subprocess.Popen(
            [*_command(broker, arguments), "--json", document.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

        def finish() -> dict:
            try:
                _, said = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired as error:
                raise ScenarioError(f"the background did not end in {seconds:.0f} s") from error
            if process.returncode != 0:
                raise ScenarioError(f"in the background: {said.decode(errors='replace').strip()}")
            return json.loads(Path(document.name).read_text())["results"]

        try:
            yield finish
        finally:
            process.kill()
            process.communicate()


def run(broker: Broker, arguments: list[str], *, seconds: float) -> dict:
    """The document that hermes-bench writes; `seconds` bounds the run from outside."""
    with tempfile.NamedTemporaryFile(suffix=".json") as document:
        command = [*_command(broker, arguments), "--json", document.name]
        try:
            # Killed, and waited for, when the time is up or we are interrupted.
            finished = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as error:
            raise ScenarioError(f"not finished after {seconds:.0f} s") from error
        if finished.returncode != 0:
            raise ScenarioError(finished.stderr.decode(errors="replace").strip())
        return json.loads(Path(document.name).read_text())


def commit() -> str:
    """The short commit id, with `-dirty` behind it when the tree differs from it."""
    git = ["git", "-C", str(REPOSITORY)]
    shown = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    if shown.returncode != 0:
        return "uncommitted"
    sources = ["Sources", "Benchmarks/Sources", "Package.swift"]
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--", *sources], capture_output=True, text=True
    )
    return shown.stdout.strip() + ("-dirty" if changed.stdout.strip() else "")
