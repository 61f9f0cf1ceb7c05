"""The soak itself: one broker, phase after phase, and what was seen in each."""

from __future__ import annotations

import http.client
import multiprocessing
import time
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from harness.admin import AdminAPI
from harness.raw_client import RawClient
from harness.waiting import eventually

from . import load as loads
from .broker import SoakBroker
from .figures import Phase
from .household import keep_house
from .plan import CYCLE, EVERYDAY, IDLE, Step
from .watcher import Samples, echo, watch

SPAWN = multiprocessing.get_context("spawn")
LOAD_PATIENCE = 120.0
"""Seconds that a load may take to end behind its time."""
ORDER_PATIENCE = 240.0
MOST_PHASE_SECONDS = 30.0
QUIET_GAUGES = (
    "hermes_connections_pending", "hermes_queued_messages", "hermes_in_flight_messages",
    "hermes_commits_pending", "hermes_retained_walks", "hermes_publishers_paused",
    "hermes_tls_handshakes_under_way", "hermes_unfinished_packet_bytes",
    "hermes_memory_pressure", "hermes_authentications_waiting",
)
"""What is 0 when nothing is under way."""


class Helper:
    """Another process that obeys orders; an answer that does not come is an error."""

    def __init__(self, target, *arguments: object) -> None:
        self.connection, theirs = SPAWN.Pipe()
        self.process: BaseProcess = SPAWN.Process(
            target=target, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()

    def answer(self) -> object:
        if not self.connection.poll(ORDER_PATIENCE):
            raise AssertionError(f"no answer from process {self.process.name}")
        return self.connection.recv()

    def end(self, farewell: object) -> None:
        with suppress(OSError):
            self.connection.send(farewell)
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()


class Soak:
    def __init__(self, seconds: float, seed: int, *, only: str = "", say=print) -> None:
        steps = [one for one in CYCLE if not only or one.name in (IDLE, EVERYDAY, only)]
        self.steps = steps
        self.cycles = max(1, round(seconds / (MOST_PHASE_SECONDS * len(steps))))
        self.phase_seconds = seconds / self.cycles / len(steps)
        self.seed = seed
        self.say = say
        self.phases: dict[str, Phase] = {}
        self.failures: list[str] = []
        self.rests: list[tuple[float, int, int]] = []
        """In the longest life: seconds, resident bytes, descriptors besides connections, each time
        that everything had come to rest."""
        self.restarts: list[tuple[str, float]] = []
        self.idle_cpu = 0.0
        self.log_levels: Counter[str] = Counter()
        self.broker = SoakBroker(memory="2GiB")
        self._begin = time.monotonic()

    # --- the whole -----------------------------------------------------------------------

    def run(self) -> None:
        self.broker.start()
        control = Helper(echo)
        self._watcher = Helper(watch, control.answer())
        self._household = Helper(keep_house, self.broker.target, self.seed)
        try:
            self._arrive()
            for cycle in range(self.cycles):
                for number, step in enumerate(self.steps):
                    self._run_phase(step, self.seed + 100 * cycle + number)
                self._rest()
                if cycle in (0, self.cycles - 1):
                    self._restart(is_killed=cycle == 0)
            self._fall_idle()
        except Exception as error:
            self.fail(f"the soak ended early: {type(error).__name__}: {error}")
        finally:
            self._watcher.end(("end", None))
            self._household.end("end")
            control.end(None)
            self._end()

    def fail(self, what: str) -> None:
        self.failures.append(what)
        self.say(f"FAILED: {what}")

    def _arrive(self) -> None:
        self._order("begin")
        self._watch()

    def _watch(self) -> None:
        self._watcher.connection.send(("watch", self.broker.target))
        self._watcher.answer()

    def _leave(self) -> None:
        self._watcher.connection.send(("leave", None))
        self._watcher.answer()

    def _cut(self) -> Samples:
        self._watcher.connection.send(("cut", None))
        samples, lost = self._watcher.answer()  # type: ignore[misc]
        for one in lost:
            self.fail(one)
        return samples

    def _order(self, order: str) -> object:
        """The household obeys; when it cannot, what it checks is broken, and the soak ends."""
        self._household.connection.send(order)
        kind, what = self._household.answer()  # type: ignore[misc]
        if kind != "done":
            raise AssertionError(f"everyday traffic, {order}: {what}")
        return what

    # --- phases --------------------------------------------------------------------------

    def _run_phase(self, step: Step, seed: int) -> None:
        phase = Phase(step.name)
        if step.household:
            self._order("live")
        else:
            self._order("check")
            time.sleep(min(1.0, self.phase_seconds / 4))
        self.broker.use_rules(step.rules)
        self._cut()
        begin, cpu, lines = time.monotonic(), self.broker.cpu_seconds(), self.broker.log_lines
        runs = [self._start_load(one, step, seed) for one in step.loads]
        next_reload = begin + 1
        while True:
            # What a load cleans up behind its time counts too.
            phase.peak = max(phase.peak, self.broker.resident_bytes())
            if not self.broker.is_running:
                raise AssertionError(f"the broker ended in phase {step.name}")
            if step.reloads and time.monotonic() > next_reload:
                self.broker.reload()
                next_reload += 1
            passed = time.monotonic() - begin
            if passed >= self.phase_seconds and not any(
                process.is_alive() for process, _ in runs):
                break
            if passed >= self.phase_seconds + LOAD_PATIENCE:
                self.fail(f"a load of phase {step.name} did not end")
                break
            self._look_at_health(step)
            time.sleep(0.1 if passed >= self.phase_seconds else 0.5)
        phase.seconds = time.monotonic() - begin
        phase.cpu_seconds = self.broker.cpu_seconds() - cpu
        phase.log_lines = self.broker.log_lines - lines
        for one, (process, report) in zip(step.loads, runs, strict=True):
            self._end_load(f"{step.name}: {one.__name__}", process, report, phase)
        phase.add(self._cut())
        phase.resident.append(self.broker.resident_bytes())
        if self._household.connection.poll():
            _, what = self._household.connection.recv()
            raise AssertionError(f"everyday traffic beside {step.name}: {what}")
        self.phases.setdefault(step.name, Phase(step.name)).merge(phase)
        delivery = phase.quantiles(("delivery",))
        self.say(
            f"{time.monotonic() - self._begin:6.0f} s  {step.name:24} delivery p99 "
            f"{delivery[1]:7.2f} max {delivery[2]:8.1f} ms, {phase.peak >> 20:4} MiB, "
            f"{dict(phase.notes)}")

    def _start_load(
        self, one: loads.Run, step: Step, seed: int
    ) -> tuple[BaseProcess, Connection]:
        ours, theirs = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(
            target=loads.run, daemon=True,
            args=(theirs, one, self.broker.target, self.phase_seconds, seed))
        process.start()
        theirs.close()
        return process, ours

    def _end_load(
        self, name: str, process: BaseProcess, report: Connection, phase: Phase
    ) -> None:
        if process.is_alive():
            process.kill()
        try:
            notes, failure = report.recv() if report.poll(1) else ({}, "it said nothing")
        except EOFError:
            notes, failure = {}, f"it ended with {process.exitcode}"
        phase.notes.update(notes)
        if failure:
            self.fail(f"{name}: {failure}")

    def _look_at_health(self, step: Step) -> None:
        connection = http.client.HTTPConnection(*self.broker.admin_address, timeout=5)
        try:
            connection.request("GET", "/healthz")
            status = connection.getresponse().status
            if status != 200:
                self.fail(f"/healthz answered {status} in phase {step.name}")
        except OSError as error:
            self.fail(f"/healthz in phase {step.name}: {error}")
        finally:
            connection.close()

    # --- rest, restart, end --------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        text = AdminAPI(self.broker).request("GET", "/metrics").body.decode()
        return {
            series: float(value) for series, _, value in
            (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))}

    def _rest(self) -> None:
        """Everything that was acknowledged has come; then every gauge says that nothing is left."""
        self._order("check")
        links = self._order("count_links")
        expected = 4 + int(links) if isinstance(links, int) else 0

        def unrest() -> str:
            seen = self.metrics()
            wrong = [f"{name} {seen[name]:g}" for name in QUIET_GAUGES if seen[name]]
            if seen["hermes_connections"] != expected:
                wrong.append(f"hermes_connections {seen['hermes_connections']:g}, not {expected}")
            closed = sum(
                value for name, value in seen.items()
                if name.startswith("hermes_connections_closed_total"))
            if seen["hermes_connections_opened_total"] - closed != seen["hermes_connections"]:
                wrong.append("connections opened less those closed are not those that are open")
            if seen["hermes_ready"] != 1:
                wrong.append("hermes_ready 0")
            return ", ".join(wrong)

        wrong = [""]

        def is_at_rest() -> bool:
            wrong[0] = unrest()
            return not wrong[0]

        try:
            eventually(is_at_rest, "rest", within=30)
        except AssertionError:
            self.fail(f"at rest: {wrong[0]}")
        self._compare_counts()
        descriptors = self.broker.open_descriptors() - expected
        self.rests.append(
            (time.monotonic() - self._begin, self.broker.resident_bytes(), descriptors))

    def _compare_counts(self) -> None:
        """The counters say exactly what clients count."""
        count, topic = 500, "counted"
        before = self.metrics()
        readers = [RawClient(self.broker.address) for _ in range(3)]
        writer = RawClient(self.broker.address)
        try:
            for number, one in enumerate((writer, *readers)):
                one.connect(f"counting-{number}")
            for one in readers:
                one.subscribe((topic, 2))
            for _ in range(count):
                writer.publish(topic, b"2", qos=2)
            received = sum(len(one.take_messages(count)) for one in readers)
        finally:
            for one in (writer, *readers):
                one.close()
        after = self.metrics()
        for name, expected in (
            ('hermes_publishes_received_total{qos="2"}', count),
            ('hermes_publishes_sent_total{qos="2"}', received),
        ):
            counted = after[name] - before[name]
            if counted != expected:
                self.fail(f"{name} counts {counted:g}, clients count {expected}")

    def _restart(self, *, is_killed: bool) -> None:
        """In the middle of everyday traffic; then everything that was acknowledged is there."""
        self._order("live")
        time.sleep(min(3.0, self.phase_seconds))
        self._order("brace")
        self._leave()
        begin = time.monotonic()
        if is_killed:
            self.broker.kill()
        else:
            code = self.broker.stop()
            if code:
                self.fail(f"the broker ended with {code} at SIGTERM")
        self._note_log()
        # The reloads may have left their mistake.
        self.broker.correct()
        self.broker.start()
        self._watch()
        how = "SIGKILL" if is_killed else "SIGTERM"
        self.restarts.append((how, time.monotonic() - begin))
        self._order("cut")
        self._order("begin")
        self._cut()
        self.say(f"{time.monotonic() - self._begin:6.0f} s  restarted after {how}")
        if self.cycles > 2:
            # The life that is measured begins here, or ends.
            self.rests = self.rests if not is_killed else []

    def _fall_idle(self) -> None:
        self._order("leave")
        self._leave()
        time.sleep(2)
        begin, cpu = time.monotonic(), self.broker.cpu_seconds()
        time.sleep(max(3.0, min(10.0, self.phase_seconds)))
        self.idle_cpu = (self.broker.cpu_seconds() - cpu) / (time.monotonic() - begin)

    def _note_log(self) -> None:
        assert self.broker.log is not None
        for line in self.broker.log.lines:
            parts = line.split(maxsplit=2)
            level = parts[1] if len(parts) > 2 else "?"
            self.log_levels[level] += 1
            if level not in ("DEBUG", "INFO", "NOTICE", "WARNING", "ERROR"):
                self.fail(f"the log says: {line[:500]}")

    def _end(self) -> None:
        if self.broker.process is None:
            return
        try:
            if self.broker.is_running:
                code = self.broker.stop()
                if code:
                    self.fail(f"the broker ended with {code} at SIGTERM")
            else:
                assert self.broker.log is not None
                self.fail(
                    f"the broker ended with {self.broker.process.poll()}; its log:\n"
                    f"{self.broker.log.tail()}")
            self._note_log()
        finally:
            self.broker.remove_files()
