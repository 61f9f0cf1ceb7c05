"""One data directory, its shim, and the brokers that a test starts on it."""

from __future__ import annotations

import http.client
import re
import shutil
from pathlib import Path

from harness.admin import AdminAPI
from harness.waiting import PATIENCE

from .broker import ShimmedHermesd
from .shim import Shim


class Bench:
    """`folder` gets the data directory, and the shim's files unless they have a place of their own.

    Only where both are on one file system the shim can record, and a power cut be simulated.
    """

    def __init__(self, folder: Path, *, shim_folder: Path | None = None) -> None:
        self.data = folder / "data"
        self.data.mkdir(mode=0o700)
        self.live = self.data
        """The brokers' data directory: `data`, which the shim watches, or a folder in it."""
        self._shim_folder = shim_folder or folder / "shim"
        self.shim = Shim(self._shim_folder, self.data, records=shim_folder is None)
        self._brokers: list[ShimmedHermesd] = []

    @property
    def broker(self) -> ShimmedHermesd:
        return self._brokers[-1]

    def make(self, *arguments: str, **environment: str) -> ShimmedHermesd:
        """A broker that is not started yet."""
        broker = ShimmedHermesd(
            self.live, self.shim, environment=environment, arguments=arguments)
        self._brokers.append(broker)
        return broker

    def start(self, *arguments: str, **environment: str) -> ShimmedHermesd:
        broker = self.make(*arguments, **environment)
        broker.start()
        return broker

    def refuse(self, *arguments: str, **environment: str) -> str:
        """Runs a start that must fail; returns the error message."""
        broker = self.make(*arguments, **environment)
        try:
            broker.start()
        except AssertionError:
            assert broker.process is not None and broker.log is not None
            code = broker.process.returncode
            assert code not in (0, None) and code > 0, f"it ended with {code}:\n{broker.log.text}"
            return broker.log.text
        raise AssertionError(f"the broker started:\n{broker.log.text if broker.log else ''}")

    def ready(self) -> tuple[int, str]:
        """Status and body of `GET /readyz`."""
        connection = http.client.HTTPConnection(*self.broker.admin_address, timeout=PATIENCE)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """One figure of `GET /metrics` that has no labels."""
        text = AdminAPI(self.broker).request("GET", "/metrics").body.decode()
        values = re.findall(rf"^{name} (\S+)$", text, re.MULTILINE)
        assert len(values) == 1, f"{name}: {values}"
        return float(values[0])

    def segments(self) -> list[Path]:
        """The journal's files, by index."""
        return sorted(
            (self.data / "journal").glob("journal-*.segment"),
            key=lambda path: int(re.sub(r"\D", "", path.name)))

    def close(self) -> None:
        for broker in self._brokers:
            if broker.is_running:
                broker.kill()
            broker.remove_files()
        shutil.rmtree(self._shim_folder, ignore_errors=True)
