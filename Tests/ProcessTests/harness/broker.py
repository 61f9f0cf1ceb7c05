"""Starts a broker as a child process on a free loopback port, and ends it.

Two backends with one interface: `Hermesd` is under test; `Mosquitto` is an independent broker
that shows whether a test asks only for MQTT 3.1.1.
"""

from __future__ import annotations

import abc
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from .waiting import PATIENCE, Deadline

REPOSITORY = Path(__file__).resolve().parents[3]
ADMIN_TOKEN = "process-tests-admin-token-0123456789abcdef"
STOP_PATIENCE = 1.5 * PATIENCE
"""Seconds that a broker may take to drain and exit; hermesd's own limit is 5 s."""


@dataclass(frozen=True)
class Settings:
    """Options of a test's broker; `None` leaves the default."""

    max_in_flight: int | None = None
    max_packet_bytes: int | None = None
    connect_timeout: str | None = None
    queue_limit: int | None = None
    users: dict[str, str] = field(default_factory=dict)
    """User names and passwords."""
    allow_anonymous: bool | None = None
    """Left out, clients without a user name may come only where there are no users."""
    environment: dict[str, str] = field(default_factory=dict)
    """More settings of hermesd, by environment."""
    makes_its_own_token: bool = False
    """The first start writes `admin.token`; otherwise the token is `ADMIN_TOKEN`."""
    arguments: tuple[str, ...] = ()
    """More flags of hermesd."""


class BrokerLog:
    """The broker's standard error, line by line, kept whole and awaited with deadlines."""

    def __init__(self, stream) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        for line in self._stream:
            with self._changed:
                self._lines.append(line.rstrip(b"\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def join(self) -> None:
        """Waits until the process has closed its end, so that the log is whole."""
        self._thread.join(PATIENCE)
        self._stream.close()

    @property
    def raw_lines(self) -> list[bytes]:
        with self._changed:
            return list(self._lines)

    @property
    def lines(self) -> list[str]:
        return [line.decode(errors="backslashreplace") for line in self.raw_lines]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def tail(self, count: int = 40) -> str:
        return "\n".join(self.lines[-count:])

    def await_match(
        self, pattern: str, *, start: int = 0, within: float = PATIENCE
    ) -> re.Match[str]:
        """The first match among the lines from `start` on; fails when the process ends first."""
        deadline = Deadline(within, f"a log line that matches {pattern!r}")
        looked_at = start
        while True:
            with self._changed:
                fresh = self._lines[looked_at:]
                ended = self._ended
                if not fresh and not ended:
                    self._changed.wait(deadline.remaining)
            for line in fresh:
                match = re.search(pattern, line.decode(errors="backslashreplace"))
                if match:
                    return match
            looked_at += len(fresh)
            if ended and not fresh:
                raise deadline.failure(f"the broker ended; its log:\n{self.tail()}")
            if deadline.is_over:
                raise deadline.failure(f"the log:\n{self.tail()}")


class Broker(abc.ABC):
    """A running broker."""

    is_hermesd = False

    def __init__(self, settings: Settings = Settings()) -> None:
        self.settings = settings
        # Short paths: a Unix socket's path has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="hermes-test-"))
        self.process: subprocess.Popen[bytes] | None = None
        self.log: BrokerLog | None = None
        self.address = ("127.0.0.1", 0)

    @property
    def port(self) -> int:
        return self.address[1]

    def start(self) -> None:
        """Starts the process and returns once it accepts connections."""
        self.process = subprocess.Popen(
            self.command(), env=inherited_environment() | self.environment(),
            cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.log = BrokerLog(self.process.stderr)
        try:
            self.await_ready()
        except BaseException:
            self.kill()
            raise

    @abc.abstractmethod
    def command(self) -> list[str]: ...

    @abc.abstractmethod
    def await_ready(self) -> None: ...

    def environment(self) -> dict[str, str]:
        return {}

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self.process is not None
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)
        return self.await_exit()

    def await_exit(self, within: float = STOP_PATIENCE) -> int:
        assert self.process is not None and self.log is not None
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"the broker did not exit within {within:g} s; its log:\n{self.log.tail()}"
            ) from None
        self.log.join()
        return code

    def kill(self) -> None:
        assert self.process is not None and self.log is not None
        self.process.kill()
        self.process.wait()
        self.log.join()

    def remove_files(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def resident_bytes(self) -> int:
        """Resident memory of the process."""
        assert self.process is not None
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def peak_resident_bytes(self) -> int:
        """The most resident memory that the process has had."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1_024

    def open_descriptors(self) -> int:
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Hermesd(Broker):
    """Our broker, with its admin API on a free port and a Unix socket."""

    is_hermesd = True

    def __init__(self, settings: Settings = Settings(), *, data: Path | None = None) -> None:
        """`data` reuses the data directory of an earlier broker."""
        super().__init__(settings)
        self.data = data or self.directory / "data"
        self.admin_address = ("127.0.0.1", 0)

    @staticmethod
    def executable() -> Path:
        return Path(os.environ.get("HERMESD", REPOSITORY / ".build/release/hermesd"))

    @staticmethod
    def control_executable() -> Path:
        return Path(os.environ.get("HERMESCTL", REPOSITORY / ".build/release/hermesctl"))

    @property
    def unix_socket(self) -> Path:
        return self.directory / "admin.sock"

    @property
    def admin_url(self) -> str:
        return "http://{}:{}".format(*self.admin_address)

    def command(self) -> list[str]:
        settings = self.settings
        command = [
            str(self.executable()), "--port", "0", "--admin-port", "0",
            "--data-directory", str(self.data), "--logging-level", "debug",
        ]
        for flag, value in (
            ("--max-in-flight", settings.max_in_flight),
            ("--max-packet", settings.max_packet_bytes),
            ("--connect-timeout", settings.connect_timeout),
            ("--queue-messages", settings.queue_limit),
        ):
            if value is not None:
                command += [flag, str(value)]
        if settings.users:
            command += ["--password-file", str(self._password_file())]
        if settings.allow_anonymous is not None or settings.users:
            prefix = "" if settings.allow_anonymous else "no-"
            command.append(f"--{prefix}allow-anonymous")
        return [*command, *settings.arguments]

    def _password_file(self) -> Path:
        path = self.directory / "passwords"
        for name, password in self.settings.users.items():
            subprocess.run(
                [str(self.control_executable()), "users", "add", name,
                 "--password-file", str(path), "--password-stdin"],
                input=password.encode(), check=True, capture_output=True, timeout=PATIENCE,
            )
        return path

    def environment(self) -> dict[str, str]:
        variables = {
            "HERMES_ADMIN_TOKEN": ADMIN_TOKEN,
            "HERMES_ADMIN_UNIX_SOCKET": str(self.unix_socket),
            **self.settings.environment,
        }
        if self.settings.makes_its_own_token:
            del variables["HERMES_ADMIN_TOKEN"]
        return variables

    def await_ready(self) -> None:
        assert self.log is not None
        self.address = self._announced("MQTT listener ready", "listener.address")
        self.admin_address = self._announced("Admin API ready", "admin.address")

    def _announced(self, message: str, key: str) -> tuple[str, int]:
        assert self.log is not None
        # key=value in text, "key":"value" in JSON.
        pattern = rf'{message}.*\b{re.escape(key)}"?[=:]"?([0-9.]+):([0-9]+)'
        match = self.log.await_match(pattern)
        return match[1], int(match[2])


class FromFile(Hermesd):
    """A broker whose log level and limits come from its file alone."""

    def __init__(self, configuration: str, settings: Settings = Settings()) -> None:
        super().__init__(settings)
        self.file = self.directory / "hermes.yaml"
        self.file.write_text(configuration)

    def command(self) -> list[str]:
        command = super().command()
        level = command.index("--logging-level")
        del command[level : level + 2]
        return [*command, "--config", str(self.file)]

    def reload(self, configuration: str | None = None) -> int:
        """Sends SIGHUP; returns the number of log lines before it."""
        assert self.process is not None and self.log is not None
        if configuration is not None:
            self.file.write_text(configuration)
        lines = len(self.log.lines)
        self.process.send_signal(signal.SIGHUP)
        return lines


class Mosquitto(Broker):
    """Debian's mosquitto with an equivalent configuration."""

    def command(self) -> list[str]:
        self.address = ("127.0.0.1", free_port())
        settings = self.settings
        lines = [
            f"listener {self.port} {self.address[0]}",
            "user root",
            "log_dest stderr",
            f"allow_anonymous {str(settings.allow_anonymous or not settings.users).lower()}",
            f"max_inflight_messages {settings.max_in_flight or 20}",
            f"max_packet_size {settings.max_packet_bytes or 1024 * 1024}",
            f"max_queued_messages {settings.queue_limit or 1000}",
        ]
        if settings.users:
            lines.append(f"password_file {self._password_file()}")
        configuration = self.directory / "mosquitto.conf"
        configuration.write_text("\n".join(lines) + "\n")
        return [_mosquitto(), "-c", str(configuration)]

    def _password_file(self) -> Path:
        path = self.directory / "passwords"
        path.touch()
        for name, password in self.settings.users.items():
            subprocess.run(["mosquitto_passwd", "-b", str(path), name, password], check=True)
        return path

    def await_ready(self) -> None:
        assert self.log is not None
        self.log.await_match(r"mosquitto version \S+ running")


def assert_names_known_limits(text: str) -> None:
    """The text names at least one limit, and none that the sample configuration lacks."""
    sample = (REPOSITORY / "Config/hermes.yaml").read_text()
    section = sample.split("\nlimits:\n")[1].split("\nlogging:")[0]
    known = {"limits." + key for key in re.findall(r"^  (?:# )?(\w+):", section, re.MULTILINE)}
    named = set(re.findall(r"\blimits\.\w+", text))
    assert named, f"names no limit: {text}"
    assert named <= known, f"{named - known} cannot be set, but is named in: {text}"


def inherited_environment() -> dict[str, str]:
    """The environment without variables that configure the broker."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}


def _mosquitto() -> str:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    found = shutil.which("mosquitto", path=path)
    assert found, "mosquitto is not installed; scripts/install-dependencies test installs it"
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
