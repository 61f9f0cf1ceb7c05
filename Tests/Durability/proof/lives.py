"""The lives of a broker on one data directory, for proofs that kill it."""

from __future__ import annotations

from pathlib import Path

from harness.broker import Hermesd, Settings


class Lives:
    """Starts the broker again and again; the settings are those of each life."""

    def __init__(
        self, folder: Path, environment: dict[str, str], *, users: dict[str, str] | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        self._data = folder / "data"
        self._data.mkdir(mode=0o700)
        self._settings = Settings(
            environment=environment, users=users or {}, arguments=arguments)
        self._brokers: list[Hermesd] = []

    @property
    def broker(self) -> Hermesd:
        """The present one."""
        return self._brokers[-1]

    def begin(self) -> None:
        self._brokers.append(Hermesd(self._settings, data=self._data))
        self.broker.start()

    def end(self) -> None:
        for broker in self._brokers:
            if broker.is_running:
                broker.kill()
            broker.remove_files()
