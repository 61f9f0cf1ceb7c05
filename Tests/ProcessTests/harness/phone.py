"""hermes-phone, the client's example program, as a phone in somebody's hand."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from .broker import REPOSITORY, BrokerLog
from .waiting import PATIENCE, Deadline


def executable() -> Path:
    return Path(os.environ.get("HERMES_PHONE", REPOSITORY / ".build/debug/hermes-phone"))


class Phone:
    """A running hermes-phone. `tries_at_once` spares the wait of the reconnect rule: whenever
    the phone waits, its user looks at it."""

    def __init__(
        self, address: tuple[str, int], client_id: str, *arguments: str,
        storage: Path | None = None, environment: dict[str, str] | None = None,
        tries_at_once: bool = False,
    ) -> None:
        command = [
            str(executable()), "--host", address[0], "--port", str(address[1]),
            "--client-id", client_id, *arguments,
        ]
        if storage is not None:
            command += ["--storage", str(storage)]
        self.process = subprocess.Popen(
            command, env=os.environ | (environment or {}), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self._messages: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()
        self.log = BrokerLog(self.process.stderr)
        if tries_at_once:
            threading.Thread(target=self._hurry, daemon=True).start()

    def _collect(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # A kill may cut the last line.
            if line.endswith(b"\n"):
                with self._changed:
                    self._messages.append(json.loads(line))
                    self._changed.notify_all()

    def _hurry(self) -> None:
        looked_at = 0
        while self.process.poll() is None:
            try:
                self.log.await_match("state: waiting", start=looked_at, within=1)
            except AssertionError:
                continue
            lines = self.log.lines
            looked_at = 1 + next(
                index for index in range(looked_at, len(lines)) if "state: waiting" in lines[index])
            try:
                self.tell("now")
            except OSError:
                return

    def tell(self, line: str) -> None:
        """Types a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    @property
    def messages(self) -> list[dict[str, Any]]:
        with self._changed:
            return list(self._messages)

    @property
    def count(self) -> int:
        """Messages so far."""
        with self._changed:
            return len(self._messages)

    def await_messages(self, count: int, within: float = PATIENCE) -> list[dict[str, Any]]:
        deadline = Deadline(within, f"{count} messages at the phone")
        with self._changed:
            while len(self._messages) < count:
                if deadline.is_over:
                    raise deadline.failure(
                        f"{len(self._messages)} came; its notes:\n{self.log.tail()}")
                self._changed.wait(deadline.remaining)
            return list(self._messages)

    def await_note(self, pattern: str, *, start: int = 0, within: float = PATIENCE) -> str:
        return self.log.await_match(pattern, start=start, within=within).string

    @property
    def mark(self) -> int:
        """Notes from now on: `await_note(pattern, start=mark)`."""
        return len(self.log.lines)

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self._end()

    def _end(self) -> int:
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.log.join()
        return code
