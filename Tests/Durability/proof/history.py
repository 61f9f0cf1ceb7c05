"""A broker's history: lives that end by SIGKILL, with one ledger over all of them."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .broker import ShimmedHermesd
from .cast import Cast
from .disk_record import CutReport, Loss, cut_power
from .ledger import Ledger, Violation
from .network import Network
from .shim import Files, Shim

LONGEST_LIFE = 10.0
MOST_PACKETS = 8_000
"""Seconds, and packets, of traffic after which a life ends even if its trigger was not reached."""
PATIENCE = 30.0
HANGS = {"journal": Files.JOURNAL, "database": Files.SQLITE}
LONGEST_HANG = 1.0
QUIET = 0.1
"""Seconds: a kill comes while the disk hangs and so long nothing has come, or after so many."""
FAILPOINTS = (
    "beforeWrite", "afterWrite", "beforeSync", "afterSync", "beforeAcknowledge", "pubrec",
    "pubrel", "pubcomp", "deliver", "beforeMove", "afterMove",
)
PACKETS = ("PUBACK", "PUBREC", "PUBCOMP", "SUBACK", "UNSUBACK", "CONNACK", "HTTP 200")


@dataclass(frozen=True)
class Trigger:
    """The end of a life: a failpoint, a received acknowledgement, a hanging disk (packets sent
    meanwhile must not depend on unsynced records), or any moment."""

    kind: str
    """`failpoint`, `received`, `hang` or `random`."""
    name: str = ""
    count: int = 1

    @property
    def label(self) -> str:
        return {
            "failpoint": self.name, "received": f"on {self.name}", "hang": f"{self.name} hangs",
        }.get(self.kind, "random")


@dataclass(frozen=True)
class LifePlan:
    trigger: Trigger
    levels: Sequence[int]
    """QoS of the messages."""
    loss: Loss


@dataclass
class Kill:
    """The way a life ended."""

    label: str
    loss: Loss
    outstanding: dict[int, int]
    """Exchanges that waited for the broker, by QoS; 0 is anything but a message."""
    cut: CutReport = field(default_factory=CutReport)
    phase: str = "traffic"

    @property
    def counts(self) -> bool:
        """An idle kill proves nothing."""
        return bool(self.outstanding)


class History:
    """Runs lives on one data directory.

    `close` removes it; its folder `before` holds the files found by the last start.
    """

    def __init__(self, seed: int, *, environment: dict[str, str] | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.directory = Path(tempfile.mkdtemp(prefix="hermes-proof-")).resolve()
        self.data = self.directory / "data"
        self.data.mkdir(mode=0o700)
        self.shim = Shim(self.directory / "shim", self.data, records=True)
        self.network = Network()
        self.ledger = Ledger(self.rng)
        self.cast = Cast(self.network, self.ledger)
        self.kills: list[Kill] = []
        self._environment = environment or {}
        self._broker: ShimmedHermesd | None = None
        self._phase = ""

    # --- lives ---------------------------------------------------------------------------

    def live(self, plan: LifePlan) -> Kill:
        """Runs one life from start to kill, and the power failure.

        Raises `Violation` when something acknowledged is missing.
        """
        self.ledger.life += 1
        variables = dict(self._environment)
        if plan.trigger.kind == "failpoint":
            variables["HERMES_FAILPOINT"] = f"{plan.trigger.name}:{plan.trigger.count}"
        self._begin(variables)
        label = plan.trigger.label
        if self._is_up:
            try:
                self._verify(plan.levels)
                label = self._traffic(plan)
            except _Ended:
                pass
        return self._die(label, plan.loss)

    def end(self) -> None:
        """A last life: all clients receive their messages; then the broker stops properly."""
        self.ledger.life += 1
        self._begin(dict(self._environment))
        self._verify((1, 2), everybody=True)
        assert self._broker is not None
        for actor in self.cast.everyone:
            actor.disconnect()
        code = self._broker.stop()
        if code != 0:
            raise Violation(f"the broker ended with {code} at SIGTERM:\n{self.log}")
        self._broker.remove_files()
        self._broker = None

    def close(self, *, keep_files: bool = False) -> None:
        self.network.close_all()
        if self._broker is not None:
            if self._broker.is_running:
                self._broker.kill()
            self._broker.remove_files()
        if not keep_files:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _begin(self, variables: dict[str, str]) -> None:
        self._phase = "start"
        self.ledger.cut_off = {}
        # The data directory before the start, for a failure.
        before = self.directory / "before"
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(self.data, before)
        self._broker = ShimmedHermesd(self.data, self.shim, environment=variables)
        try:
            self._broker.start()
        except AssertionError:
            if not self._broker.was_killed:
                raise

    @property
    def _is_up(self) -> bool:
        return self._broker is not None and self._broker.is_running

    @property
    def log(self) -> str:
        """The end of the running broker's log."""
        return self._broker.log.tail() if self._broker and self._broker.log else ""

    def _die(self, label: str, loss: Loss) -> Kill:
        broker = self._broker
        assert broker is not None and broker.process is not None
        broker.process.kill()
        broker.process.wait()
        self.shim.release()
        # Bytes sent by the broker are still to be read.
        self.network.run_until(lambda: self.network.open_links == 0, PATIENCE, "EOF")
        outstanding = dict(self.ledger.cut_off)
        if not broker.was_killed:
            raise Violation(f"the broker ended with {broker.process.returncode}:\n{self.log}")
        broker.kill()
        broker.remove_files()
        self._broker = None
        cut = cut_power(
            self.data, self.shim.log, self.shim.trash, loss, self.rng,
            before=self.directory / "before")
        kill = Kill(label, loss, outstanding, cut, self._phase)
        self.kills.append(kill)
        return kill

    # --- phases --------------------------------------------------------------------------

    def _await(self, condition: Callable[[], bool], awaited: str) -> None:
        """Waits; ends the life when the broker has ended."""
        self.network.run_until(
            lambda: condition() or not self._is_up, PATIENCE)
        if not self._is_up:
            raise _Ended
        if not condition():
            raise Violation(
                f"waited {PATIENCE:g} s for {awaited}: {self.cast.state()}\n{self.log}")

    def _verify(self, levels: Sequence[int], *, everybody: bool = False) -> None:
        """Checks that nothing acknowledged is missing."""
        self._phase = "verification"
        broker = self._broker
        assert broker is not None
        self.cast.verify(
            broker.address, broker.admin_address, self._await, qos=self.rng.choice(levels),
            everybody=everybody)

    def _traffic(self, plan: LifePlan) -> str:
        """Runs all clients until the trigger; returns the reason for the end."""
        self._phase = "traffic"
        cast, ledger, trigger = self.cast, self.ledger, plan.trigger
        cast.start_traffic(plan.levels)
        begin = self.network.received
        counted = ledger.acknowledgements.get(trigger.name, 0)

        def is_reached() -> bool:
            if trigger.kind == "received":
                return ledger.acknowledgements.get(trigger.name, 0) - counted >= trigger.count
            is_random = trigger.kind in ("random", "hang")
            return is_random and self.network.received - begin >= trigger.count

        def step() -> bool:
            if not self._is_up:
                return True
            cast.move()
            is_due = is_reached() or self.network.received - begin >= MOST_PACKETS
            return is_due and bool(cast.outstanding)

        self.network.run_until(step, LONGEST_LIFE)
        if trigger.kind == "hang":
            self._hang(HANGS[trigger.name])
        return trigger.label if is_reached() or not self._is_up else "random"

    def _hang(self, files: Files) -> None:
        """Traffic goes on while no sync returns, until everybody waits."""
        self.shim.hang(files, PATIENCE)
        received, changed = self.network.received, time.monotonic()

        def is_quiet() -> bool:
            nonlocal received, changed
            self.cast.move()
            if self.network.received != received or not self.shim.is_hanging:
                received, changed = self.network.received, time.monotonic()
            return time.monotonic() - changed >= QUIET

        self.network.run_until(is_quiet, LONGEST_HANG)


class _Ended(Exception):
    """The broker was killed by its failpoint."""
