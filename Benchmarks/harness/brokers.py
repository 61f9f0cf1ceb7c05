"""Starts the brokers under test, each alone, with its data in a folder that goes when it stops."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

# 60,000 messages that wait for one client, and a window of 16 from each of 100 publishers to one
# receiver, must not meet the queue limit, which is 1,000 by default in both brokers.
QUEUE_LIMIT = 65_000
QUEUE_BYTES = "256MiB"
IN_FLIGHT_LIMIT = 20

MOSQUITTO_CONFIGURATION = """\
listener {port} 127.0.0.1
allow_anonymous true
max_connections -1
persistence {persistence}
persistence_location {folder}/
# Started by root, it would become another user, who may not write there.
user root
set_tcp_nodelay true
max_inflight_messages {in_flight}
max_queued_messages 0
log_dest stderr
log_type error
log_type warning
"""

MOSQUITTO_TLS = """\
listener {port} 127.0.0.1
certfile {certificate}
keyfile {key}
"""


class BrokerError(Exception):
    """A broker that does not start, or has ended before its time."""


class Broker:
    """One process of a broker. Use it in a `with` statement, which starts and stops it."""

    name = ""
    start_seconds = 20.0
    stop_seconds = 20.0
    # True if acknowledged messages survive SIGKILL.
    survives_kill = False

    def __init__(self, *, has_tls: bool = False) -> None:
        self.port = 0
        # Of a second listener, which speaks TLS; 0 without one.
        self.tls_port = _free_port() if has_tls else 0
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker has not been started"
        return self._process.pid

    @property
    def data_directory(self) -> Path:
        """Folder of its persistent data."""
        assert self._folder is not None, "the broker has not been started"
        return self._folder / "data"

    def __enter__(self) -> Broker:
        self._folder = Path(tempfile.mkdtemp(prefix=f"hermes-bench-{self.name}-"))
        try:
            self.launch()
            self._await_listener()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self) -> None:
        """Starts the process, on its former port if it had one, and does not wait for it."""
        assert self._folder is not None, "the broker has not been started"
        self.data_directory.mkdir(mode=0o700, exist_ok=True)
        command = self.command(self._folder)
        with self.log_path.open("ab") as log:
            # In a group of its own, so that ctrl-C reaches it through us alone.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, **self.environment()},
                process_group=0,
            )

    def end(self, how: signal.Signals) -> float:
        """Ends the process by a signal and keeps its folder; returns the seconds that took."""
        process = self._process
        assert process is not None, "the broker has not been started"
        began = time.monotonic()
        process.send_signal(how)
        process.wait(self.stop_seconds)
        return time.monotonic() - began

    def check_running(self) -> None:
        """Raises BrokerError when the process has ended."""
        code = self._process.poll() if self._process else None
        if code is not None:
            raise BrokerError(f"{self.name} ended with code {code}:\n{self._log_tail()}")

    def cpu_seconds(self) -> float:
        """User and system time of all its threads since it was started."""
        # The clock of another process, as clock_getcpuclockid(3) makes its number.
        return time.clock_gettime(~self.pid << 3 | 2)

    def private_bytes(self) -> int:
        """Its private resident memory."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return 1024 * sum(int(kib) for kib in re.findall(r"Private_\w+:\s+(\d+) kB", rollup))

    @property
    def log_path(self) -> Path:
        assert self._folder is not None, "the broker has not been started"
        return self._folder / "log"

    def await_idle(self) -> None:
        """Returns when the broker has stopped working, or after a minute at most."""
        interval = 0.25
        used = self.cpu_seconds()
        for _ in range(int(60 / interval)):
            time.sleep(interval)
            before, used = used, self.cpu_seconds()
            if used - before <= 0.01:
                return

    def command(self, folder: Path) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def admin_port(self) -> int:
        """Of its HTTP API, if it has one."""
        raise BrokerError(f"{self.name} has no HTTP API")

    def listening_port(self) -> int | None:
        """The port once the broker accepts connections there, or None."""
        raise NotImplementedError

    def version(self) -> str:
        raise NotImplementedError

    @property
    def certificate(self) -> Path:
        """A P-256 certificate for this run, its key beside it in `tls.key`."""
        assert self._folder is not None, "the broker has not been started"
        path = self._folder / "tls.crt"
        if not path.exists():
            key = path.with_suffix(".key")
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", path, "-days", "30",
                 "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                check=True, capture_output=True,
            )
            key.chmod(0o600)
        return path

    def stop(self) -> None:
        """Ends the process, gently first, and removes its folder."""
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(self.stop_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _await_listener(self) -> None:
        deadline = time.monotonic() + self.start_seconds
        while time.monotonic() < deadline:
            self.check_running()
            port = self.listening_port()
            if port is not None:
                self.port = port
                return
            time.sleep(0.02)
        raise BrokerError(
            f"{self.name} did not listen within {self.start_seconds:.0f} s:\n{self._log_tail()}"
        )

    def _log_tail(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-10:])


class Hermesd(Broker):
    """hermesd with its defaults, but for the limits of a queue."""

    name = "hermesd"
    survives_kill = True

    def __init__(
        self, binary: Path, durability: str = "sync", *, has_tls: bool = False
    ) -> None:
        super().__init__(has_tls=has_tls)
        self.binary = binary
        self.durability = durability

    def command(self, folder: Path) -> list[str]:
        return [
            str(self.binary),
            *("--admin-port", "0"),
            *("--data-directory", str(self.data_directory)),
            *("--durability", self.durability),
            *("--max-in-flight", str(IN_FLIGHT_LIMIT)),
            *("--queue-messages", str(QUEUE_LIMIT)),
        ]

    def journal_bytes(self) -> int:
        """Of the segments that it has made so far."""
        segments = (self.data_directory / "journal").glob("*.segment")
        return sum(path.stat().st_size for path in segments)

    def environment(self) -> dict[str, str]:
        variables = {
            # With --port there would be no second listener.
            "HERMES_LISTENERS_0_PORT": str(self.port),
            "HERMES_LIMITS_QUEUE_BYTES": QUEUE_BYTES,
        }
        if self.tls_port:
            variables |= {
                "HERMES_LISTENERS_1_PORT": str(self.tls_port),
                "HERMES_LISTENERS_1_TLS_CERTIFICATE": str(self.certificate),
                "HERMES_LISTENERS_1_TLS_KEY": str(self.certificate.with_suffix(".key")),
            }
        return variables

    def listening_port(self) -> int | None:
        log = self.log_path.read_text(errors="replace")
        ports = [
            int(port) for port in re.findall(r"MQTT listener ready.*?127\.0\.0\.1:(\d+)", log)
        ]
        if self.tls_port and self.tls_port not in ports:
            return None
        # The HTTP API is ready a moment later.
        if self._admin_port(log) is None:
            return None
        return next((port for port in ports if port != self.tls_port), None)

    def admin_port(self) -> int:
        port = self._admin_port(self.log_path.read_text(errors="replace"))
        assert port, "the broker has not been started"
        return port

    def _admin_port(self, log: str) -> int | None:
        found = re.search(r"Admin API ready.*?127\.0\.0\.1:(\d+)", log)
        return int(found.group(1)) if found else None

    def version(self) -> str:
        shown = subprocess.run(
            [str(self.binary), "--version"], capture_output=True, text=True, check=True
        )
        return shown.stdout.strip()


class HermesdInCallgrind(Hermesd):
    """hermesd under valgrind's callgrind, which writes its counts when the broker has stopped."""

    # Everything is some fifty times slower there.
    start_seconds = 180.0
    stop_seconds = 180.0

    def __init__(
        self,
        binary: Path,
        counts: Path,
        access_rules: Path | None = None,
        *,
        has_tls: bool = False,
    ) -> None:
        super().__init__(binary, has_tls=has_tls)
        self.counts = counts
        self.access_rules = access_rules

    def command(self, folder: Path) -> list[str]:
        return [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={self.counts}",
            "--quiet",
            *super().command(folder),
            *(("--acl-file", str(self.access_rules)) if self.access_rules else ()),
        ]

    def environment(self) -> dict[str, str]:
        # Hash tables of the standard library otherwise differ from run to run.
        return {**super().environment(), "SWIFT_DETERMINISTIC_HASHING": "1"}


class Mosquitto(Broker):
    """Debian's mosquitto, without limits that a scenario would meet.

    With `persists` it writes what it knows to its database every 30 minutes and when it stops;
    otherwise it keeps everything in memory.

    Its queue limit is off rather than equal to ours: with any number there, 2.0.11 drops QoS 1
    messages in the fan-in scenarios long before the number is reached.
    """

    name = "mosquitto"

    def __init__(self, persists: bool, *, has_tls: bool = False) -> None:
        super().__init__(has_tls=has_tls)
        self.persists = persists
        self._configured_port = 0

    def command(self, folder: Path) -> list[str]:
        if self._configured_port == 0:
            self._configured_port = _free_port()
        configuration = folder / "mosquitto.conf"
        text = MOSQUITTO_CONFIGURATION.format(
            port=self._configured_port,
            in_flight=IN_FLIGHT_LIMIT,
            persistence="true" if self.persists else "false",
            folder=self.data_directory,
        )
        if self.tls_port:
            text += MOSQUITTO_TLS.format(
                port=self.tls_port,
                certificate=self.certificate,
                key=self.certificate.with_suffix(".key"),
            )
        configuration.write_text(text)
        return [mosquitto_binary(), "-c", str(configuration)]

    def listening_port(self) -> int | None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", self._configured_port)) != 0:
                return None
        return self._configured_port

    def version(self) -> str:
        shown = subprocess.run([mosquitto_binary(), "-h"], capture_output=True, text=True)
        found = re.search(r"mosquitto version (\S+)", shown.stdout)
        return found.group(1) if found else "unknown"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def mosquitto_binary() -> str:
    """The path of mosquitto, which Debian keeps in a folder for root."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    binary = shutil.which("mosquitto", path=path)
    if binary is None:
        raise BrokerError("mosquitto is missing. Run: scripts/install-dependencies test")
    return binary
