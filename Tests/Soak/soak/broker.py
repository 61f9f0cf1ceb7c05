"""The broker under the soak: one configuration file, two listeners, one data directory."""

from __future__ import annotations

import os
import random
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from harness.broker import ADMIN_TOKEN, Hermesd, Settings
from harness.certificates import Authority

CONFIGURATION = """\
listeners:
  - {{address: 127.0.0.1, port: {plain}}}
  - address: 127.0.0.1
    port: {tls}
    tls: {{certificate: {certificate}, key: {key}}}
data_directory: {data}
admin: {{address: 127.0.0.1, port: {admin}}}
limits:
  memory: {memory}
  queue_messages: 20000
  session_expiry: {session_expiry}
  connect_timeout: {connect_timeout}
# Who comes and goes has a bound of its own, of 1,000 lines a second; the check is for the rest.
logging: {{level: info, connections: debug}}
"""


@dataclass(frozen=True)
class Target:
    """What a load needs to know about the broker; it goes to other processes."""

    plain: tuple[str, int]
    tls: tuple[str, int]
    admin: tuple[str, int]
    authority: Path
    token: str = ADMIN_TOKEN


class SoakBroker(Hermesd):
    """Starts again on the same ports and the same data."""

    def __init__(self, *, memory: str) -> None:
        super().__init__(Settings())
        plain, tls, admin = _free_ports(3)
        authority = Authority(self.directory / "ca")
        self.pair = authority.issue("localhost")
        self._other = authority.issue("localhost")
        self._file = self.directory / "hermes.yaml"
        self._values = {
            "plain": plain, "tls": tls, "admin": admin, "data": self.data, "memory": memory,
            "certificate": self.pair.certificate, "key": self.pair.key, "session_expiry": "2m",
            "connect_timeout": "10s",
        }
        self._rules = 0
        self.correct()
        self.address = ("127.0.0.1", plain)
        self.admin_address = ("127.0.0.1", admin)
        self.target = Target(
            self.address, ("127.0.0.1", tls), self.admin_address, authority.certificate)
        self._reloads = 0

    def command(self) -> list[str]:
        return [str(self.executable()), "--config", str(self._file)]

    def environment(self) -> dict[str, str]:
        return {"HERMES_ADMIN_TOKEN": ADMIN_TOKEN}

    def await_ready(self) -> None:
        assert self.log is not None
        self.log.await_match("Admin API ready", within=60)

    def correct(self) -> None:
        """Writes a configuration without mistakes, with which the broker can start."""
        self._file.write_text(self._configuration())

    def _configuration(self, **changed: str) -> str:
        text = CONFIGURATION.format(**self._values | changed)
        return f"{text}acl_file: {self._rule_file}\n" if self._rules else text

    @property
    def _rule_file(self) -> Path:
        return self.directory / "acl"

    def use_rules(self, count: int) -> None:
        """Has the running broker use so many access rules that deny nothing that anybody does; none
        for 0."""
        if count == self._rules:
            return
        assert self.process is not None and self.log is not None
        self._rules = count
        rules = [f"deny everyone both nobody/{number}" for number in range(count)]
        self._rule_file.write_text("\n".join([*rules, "allow everyone both #", ""]))
        self._rule_file.chmod(0o600)
        self.correct()
        self.process.send_signal(signal.SIGHUP)

    def reload(self) -> None:
        """Sends SIGHUP with, in turns: another limit, a mistake, another certificate, nothing new."""
        assert self.process is not None
        self._reloads += 1
        turn = self._reloads % 4
        text = self._configuration(connect_timeout=f"{10 + self._reloads % 8 // 4}s")
        if turn == 1:
            text = text.replace("queue_messages: 20000", "queue_messages: many")
        elif turn == 2:
            self.pair.replace(self._other if self._reloads % 8 == 2 else self.pair)
        self._file.write_text(text)
        self.process.send_signal(signal.SIGHUP)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def cpu_seconds(self) -> float:
        """User and system time of all threads, from /proc/PID/stat."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def log_lines(self) -> int:
        return len(self.log.raw_lines) if self.log is not None else 0


def _free_ports(count: int) -> list[int]:
    """Ports below those that the kernel gives to clients, so that a restart finds them free."""
    found: list[int] = []
    for port in random.sample(range(20_000, 30_000), 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")
