"""Debian machines to install into: one that systemd boots, and one without a service manager.

Both are a copy of a base folder, with a loopback network of their own and nothing beyond it.
"""

from __future__ import annotations

import abc
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which what is awaited will not come."""

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8", "HOME": "/root", "TERM": "dumb", "DEBIAN_FRONTEND": "noninteractive",
}


class Machine(abc.ABC):
    """A Debian system in a folder, which runs while the context manager is open."""

    boots_systemd: bool
    leader: int
    """A process of the machine: whoever enters its namespaces is inside."""

    def __init__(self, base: Path, folder: Path) -> None:
        self.root = folder
        subprocess.run(["cp", "--archive", "--reflink=auto", base, folder], check=True)

    @abc.abstractmethod
    def running(self) -> contextlib.AbstractContextManager[None]: ...

    @abc.abstractmethod
    def service(self, verb: str) -> None:
        """`start` or `stop` of the broker; returns once it serves, or has ended."""

    @abc.abstractmethod
    def broker(self) -> int | None:
        """The broker's process, as the machine numbers it."""

    @abc.abstractmethod
    def log(self) -> str:
        """The broker's log."""

    def run(self, *command: str, check: bool = True) -> str:
        """Standard output of a command inside; standard error is shown when it fails."""
        done = subprocess.run(
            ["nsenter", f"--target={self.leader}", *self.namespaces(), *command],
            env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if check and done.returncode != 0:
            raise AssertionError(
                f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    @abc.abstractmethod
    def namespaces(self) -> list[str]: ...

    def client(self, *command: str) -> str:
        """Standard output of a program of this machine's host, in the machine's network."""
        done = subprocess.run(
            ["nsenter", f"--target={self.leader}", "--net", *command],
            capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise AssertionError(
                f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def install(self, package: Path, *options: str) -> str:
        """apt-get install of a package that lies outside; everything it needs is there."""
        shutil.copy(package, self.root / "var/tmp" / package.name)
        try:
            return self.run(
                "apt-get", "install", "--yes", "--no-install-recommends", *options,
                f"/var/tmp/{package.name}")
        finally:
            (self.root / "var/tmp" / package.name).unlink()


class Booted(Machine):
    """systemd is process 1, in a container of systemd-nspawn."""

    boots_systemd = True

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        # Not registered: no machined, no bus, no unit of the host takes part.
        container = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network",
             "--console=pipe", "--boot", f"--directory={self.root}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
            await_true("the container's first process",
                       lambda: container.poll() is None and children.read_text().strip())
            self.leader = int(children.read_text().split()[0])
            await_true("systemd's start", lambda: self.run(
                "systemctl", "is-system-running", check=False).strip() in ("running", "degraded"))
            yield
        finally:
            container.terminate()
            try:
                container.wait(PATIENCE / 2)
            except subprocess.TimeoutExpired:
                container.kill()
                container.wait()

    def namespaces(self) -> list[str]:
        return ["--all"]

    def service(self, verb: str) -> None:
        self.run("systemctl", verb, "hermes.service")

    def broker(self) -> int | None:
        shown = self.run("systemctl", "show", "--property=MainPID", "--value", "hermes.service")
        return int(shown) or None

    def log(self) -> str:
        return self.run("journalctl", "--unit=hermes.service", "--output=cat", "--no-pager")


class WithoutServiceManager(Machine):
    """A chroot in which the unit's own command line is run as the unit's user."""

    boots_systemd = False
    process: subprocess.Popen | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "--propagation=private", "sh", "-c",
             'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/run" && echo ready && '
             'exec chroot "$0" sleep infinity', str(self.root)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            assert holder.stdout is not None
            if holder.stdout.readline().strip() != "ready":
                raise AssertionError("a chroot cannot be made here; the message is above")
            self.leader = holder.pid
            await_true("the chroot", lambda: os.readlink(
                f"/proc/{holder.pid}/root") == str(self.root))
            self.client("ip", "link", "set", "lo", "up")
            yield
        finally:
            if self.process is not None and self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            holder.kill()
            holder.wait()

    def namespaces(self) -> list[str]:
        return ["--mount", "--net", "--root", "--wd"]

    def service(self, verb: str) -> None:
        if verb == "stop":
            self._stop()
        else:
            self._start()

    def _start(self) -> None:
        unit = (self.root / "lib/systemd/system/hermes.service").read_text()
        values = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
        user, group = values["User"], values["Group"]
        variables = re.findall(r"^Environment=(.*)$", unit, re.MULTILINE)
        # What systemd does for RuntimeDirectory=.
        self.run("install", "-d", f"--owner={user}", f"--group={group}", "--mode=0700",
                 f"/run/{values['RuntimeDirectory']}")
        log = self.root / "var/tmp/broker.log"
        with log.open("a") as stream:
            self.process = subprocess.Popen(
                ["nsenter", f"--target={self.leader}", *self.namespaces(),
                 "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups",
                 "env", "--ignore-environment", f"--chdir={values['WorkingDirectory']}",
                 *variables, *values["ExecStart"].split()],
                env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        begin = len(self.log())

        def serves() -> bool:
            if self.process is not None and self.process.poll() is not None:
                self.process = None
                raise AssertionError(f"the broker ended:\n{self.log()[-4_000:]}")
            return "Admin API ready" in self.log()[begin:]

        await_true("the broker's start", serves)

    def _stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self.process = None
        if code != 0:
            raise AssertionError(f"the broker ended with {code}:\n{self.log()[-4_000:]}")

    def broker(self) -> int | None:
        return self.process.pid if self.process is not None else None

    def log(self) -> str:
        return (self.root / "var/tmp/broker.log").read_text()


def await_true(what: str, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {PATIENCE:g} s for {what}")
        time.sleep(0.05)
