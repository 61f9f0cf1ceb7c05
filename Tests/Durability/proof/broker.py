"""hermesd below the shim, started again and again on one data directory."""

from __future__ import annotations

import signal
from pathlib import Path

from harness.broker import Hermesd, Settings

from .shim import Shim

SEGMENT_BYTES = 131_072
"""Small, so that segments fill and are moved while a test runs."""


class ShimmedHermesd(Hermesd):
    """One process; its data directory and its shim may have served others before."""

    def __init__(
        self, data: Path, shim: Shim, *, environment: dict[str, str] | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        settings = Settings(
            environment={
                "HERMES_JOURNAL_SEGMENT_BYTES": str(SEGMENT_BYTES),
                "HERMES_LIMITS_QUEUE_MESSAGES": "60000",
                "HERMES_LIMITS_QUEUE_BYTES": "256MiB",
                **(environment or {}),
            },
            arguments=("--logging-level", "info", *arguments),
        )
        super().__init__(settings, data=data)
        self.shim = shim

    def command(self) -> list[str]:
        command = super().command()
        # Given twice, a flag is an error.
        first = command.index("--logging-level")
        del command[first : first + 2]
        return command

    def environment(self) -> dict[str, str]:
        return super().environment() | self.shim.environment()

    @property
    def was_killed(self) -> bool:
        assert self.process is not None
        return self.process.poll() == -signal.SIGKILL
