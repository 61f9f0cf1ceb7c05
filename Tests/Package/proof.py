"""Installs, upgrades, downgrades, removes and purges the package in a Debian system of its own.

scripts/prove-package makes what this needs and runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from machine import Booted, Machine, WithoutServiceManager, await_true

SOCKET = "/run/hermes/admin.sock"
DATA = "/var/lib/hermes"
BACKUPS = "/var/lib/hermes-backups"
CONFIGURATION = "/etc/hermes/hermes.yaml"
CLIENT = "proof-phone"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="a Debian system, never changed")
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--older", type=Path, required=True, help="a package of a lower version")
    parser.add_argument("--without-systemd", action="store_true")
    arguments = parser.parse_args()
    kind = WithoutServiceManager if arguments.without_systemd else Booted
    with tempfile.TemporaryDirectory(prefix="hermes-machine.") as folder:
        machine = kind(arguments.base, Path(folder) / "root")
        with machine.running():
            try:
                Proof(machine, arguments.older, arguments.package).run()
            except AssertionError as failure:
                print(f"FAILED  {failure}", file=sys.stderr)
                if machine.broker() is not None:
                    print(machine.log()[-4_000:], file=sys.stderr)
                sys.exit(1)


class Proof:
    """The life of one installation; each step stands on those before."""

    def __init__(self, machine: Machine, older: Path, newer: Path) -> None:
        self.machine = machine
        self.older, self.newer = older, newer
        self.versions = {path: version_of(path) for path in (older, newer)}

    def run(self) -> None:
        before = self.files()
        self.install()
        self.look_around()
        self.serve()
        self.upgrade()
        self.go_back_on_the_same_data()
        self.go_back_by_the_backup()
        self.remove_and_come_back()
        self.purge(before)

    def done(self, what: str) -> None:
        print(f"ok      {what}", flush=True)

    # Steps.

    def install(self) -> None:
        self.machine.install(self.older)
        self.follow()
        self.done(f"installed {self.versions[self.older]}; it serves")

    def look_around(self) -> None:
        """Users, modes, owners; what dpkg and systemd say of it."""
        run = self.machine.run
        assert run("dpkg", "--verify", "hermes") == "", "dpkg finds changed files"
        user = run("getent", "passwd", "hermes").strip().split(":")
        assert user[5:] == [DATA, "/usr/sbin/nologin"], user
        expect = {
            DATA: ("hermes", 0o700), BACKUPS: ("hermes", 0o700), SOCKET: ("hermes", 0o600),
            f"{DATA}/admin.token": ("hermes", 0o600), f"{DATA}/hermes.sqlite": ("hermes", 0o600),
            "/etc/hermes": ("root", 0o755), CONFIGURATION: ("root", 0o644),
            "/usr/sbin/hermesd": ("root", 0o755), "/usr/bin/hermesctl": ("root", 0o755),
        }
        for path, (owner, mode) in expect.items():
            found = run("stat", "--format=%U %a", path).strip()
            assert found == f"{owner} {mode:o}", f"{path} is {found}, not {owner} {mode:o}"
        uids = re.search(r"^Uid:\s+(.*)$", run("cat", f"/proc/{self.broker()}/status"), re.M)
        assert uids is not None and set(uids.group(1).split()) == {user[2]}, uids
        completion = "/usr/share/bash-completion/completions/hermesctl"
        run("bash", "-c", f"source {completion} && complete -p hermesctl")
        run("hermesctl", "config", "check", CONFIGURATION)
        if self.machine.boots_systemd:
            assert run("systemctl", "is-enabled", "hermes").strip() == "enabled"
            run("systemd-analyze", "verify", "--man=no", "hermes.service")
            rated = run("systemd-analyze", "security", "--no-pager", "hermes.service")
            exposure = re.search(r"Overall exposure level for hermes.service: ([0-9.]+)", rated)
            assert exposure is not None and float(exposure.group(1)) <= 1.2, rated
            run("systemctl", "reload", "hermes")
            await_true("the reload", lambda: "Configuration read again" in self.machine.log())
            self.done(f"systemd verifies and reloads the unit, and rates its exposure "
                      f"{exposure.group(1)} of 10")
        self.done("user, modes and owners are right; the configuration is valid")

    def serve(self) -> None:
        """A message through it, and one that waits for its receiver."""
        assert self.subscribe_and_leave() == ""
        self.publish("first")
        self.done("publishes through it; a message waits for a client that is away")

    def upgrade(self) -> None:
        run = self.machine.run
        backup = f"{BACKUPS}/before-upgrade"
        run("hermesctl", "backup", backup, "--socket", SOCKET)
        assert run("stat", "--format=%U %a", backup).strip() == "hermes 700"
        changed = self.path(CONFIGURATION).read_text() + "# Changed by the operator.\n"
        self.path(CONFIGURATION).write_text(changed)
        before = self.broker()
        self.machine.install(self.newer)
        self.follow()
        assert self.broker() != before, "the upgrade did not restart the broker"
        assert self.path(CONFIGURATION).read_text() == changed, "a changed conffile was replaced"
        assert self.queue() == ["first"]
        self.publish("second")
        self.done(f"upgraded to {self.versions[self.newer]}: restarted, the changed configuration "
                  "and the queue are kept")

    def go_back_on_the_same_data(self) -> None:
        """The version before reads what the newer one wrote, as long as the format is the same."""
        self.machine.install(self.older, "--allow-downgrades")
        self.follow()
        assert self.queue() == ["first", "second"]
        self.done(f"went back to {self.versions[self.older]} on the same data: nothing is lost")

    def go_back_by_the_backup(self) -> None:
        """A newer version has raised the format of the data: only the backup leads back."""
        run = self.machine.run
        self.machine.install(self.newer)
        self.follow()
        self.publish("third")
        self.machine.service("stop")
        raise_format(self.path(DATA) / "hermes.sqlite")
        contents = (self.path(DATA) / "hermes.sqlite").read_bytes()
        self.machine.install(self.older, "--allow-downgrades")
        self.refuses_to_start()
        assert (self.path(DATA) / "hermes.sqlite").read_bytes() == contents, "data was changed"
        # What docs/deployment.md says.
        run("mv", DATA, f"{DATA}.newer")
        run("cp", "--archive", f"{BACKUPS}/before-upgrade", DATA)
        run("cp", "--archive", f"{DATA}.newer/admin.token", DATA)
        self.machine.service("start")
        assert self.queue() == ["first"]
        run("rm", "-r", f"{DATA}.newer")
        self.done("went back from a newer data format: refused with a clear error, nothing "
                  "changed; the backup serves")

    def remove_and_come_back(self) -> None:
        run = self.machine.run
        if not self.machine.boots_systemd:
            self.machine.service("stop")
        run("apt-get", "remove", "--yes", "hermes")
        assert self.broker_is_gone(), "removing did not stop the broker"
        assert not self.path("/usr/sbin/hermesd").exists()
        for kept in (f"{DATA}/hermes.sqlite", f"{DATA}/admin.token", CONFIGURATION, BACKUPS):
            assert self.path(kept).exists(), f"{kept} went with the package"
        self.machine.install(self.newer)
        self.follow()
        assert self.received() == ["first"]
        self.done("removed: stopped, data and configuration are kept; installed again, it "
                  "delivers what waited")

    def purge(self, before: set[str]) -> None:
        if not self.machine.boots_systemd:
            self.machine.service("stop")
        self.machine.run("apt-get", "purge", "--yes", "hermes")
        assert self.broker_is_gone()
        left = {path for path in self.files() - before if "hermes" in path}
        backup = {f"{BACKUPS}/before-upgrade/hermes.sqlite", f"{BACKUPS}/before-upgrade", BACKUPS}
        assert left == backup, (
            f"left behind: {sorted(left - backup)}; gone: {sorted(backup - left)}")
        lost = {path for path in before - self.files() if not is_volatile(path)}
        assert not lost, f"files of others are gone: {sorted(lost)}"
        self.done("purged: nothing is left but the operator's backup")

    # What steps are made of.

    def follow(self) -> None:
        """After a change of packages; systemd's machine has followed by itself."""
        if self.machine.boots_systemd:
            assert self.machine.run("systemctl", "is-active", "hermes").strip() == "active"
        else:
            self.machine.service("stop")
            self.machine.service("start")
        shown = self.machine.run("hermesctl", "status", "--socket", SOCKET, "--json")
        assert json.loads(shown)["durability"] == "sync", shown

    def refuses_to_start(self) -> None:
        try:
            if not self.machine.boots_systemd:
                self.machine.service("start")
        except AssertionError as failure:
            assert "the broker ended" in str(failure), failure
        await_true("the refusal of a newer format", lambda: re.search(
            "Start the newer version of Hermes that wrote it, or start on a backup",
            self.machine.log()))
        self.machine.service("stop")

    def subscribe_and_leave(self) -> str:
        return self.machine.client(
            "mosquitto_sub", "-c", "-i", CLIENT, "-q", "1", "-t", "proof/#", "-E")

    def publish(self, words: str) -> None:
        answer = json.loads(self.machine.run(
            "hermesctl", "publish", "-t", "proof/a", "-m", words, "-q", "1", "--socket", SOCKET,
            "--json"))
        assert answer["durability"] == "sync" and answer["queued"] == 1, answer

    def queue(self) -> list[str]:
        """What waits for the client, in order; nobody takes it."""
        rows = json.loads(self.machine.run(
            "hermesctl", "queue", "show", CLIENT, "--socket", SOCKET, "--json"))
        return [self.words_of(row) for row in rows["messages"]]

    def words_of(self, row: dict) -> str:
        return {5: "first", 6: "second"}.get(row["payload_bytes"], f"{row} is not expected")

    def received(self) -> list[str]:
        count = len(self.queue())
        return self.machine.client(
            "mosquitto_sub", "-c", "-i", CLIENT, "-q", "1", "-t", "proof/#", "-C", str(count),
            "-W", "30").splitlines()

    def broker(self) -> int:
        process = self.machine.broker()
        assert process is not None, "the broker does not run"
        return process

    def broker_is_gone(self) -> bool:
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "root") == str(self.machine.root):
                    if (entry / "comm").read_text().strip() == "hermesd":
                        return False
            except OSError:
                continue
        return True

    def path(self, inside: str) -> Path:
        return self.machine.root / inside.lstrip("/")

    def files(self) -> set[str]:
        return set(paths_below(self.machine.root))


def version_of(package: Path) -> str:
    found = re.fullmatch(r"hermes_(.+)_\w+\.deb", package.name)
    if found is None:
        sys.exit(f"proof: {package} is not called hermes_VERSION_ARCHITECTURE.deb")
    return found.group(1)


def raise_format(database: Path) -> None:
    """What a newer version does to a data directory, as far as an older one can see."""
    connection = sqlite3.connect(database)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.commit()
    connection.close()
    # Without its checksum, the first page says that another program wrote the file.
    with database.open("r+b") as file:
        file.seek(16_384 - 8)
        file.write(bytes(8))


def paths_below(root: Path) -> Iterator[str]:
    """All files and folders, but for what the kernel shows as files."""
    for folder, folders, files in os.walk(root):
        inside = folder.removeprefix(str(root)) or "/"
        if inside in ("/proc", "/sys", "/dev", "/run", "/tmp"):
            folders.clear()
            continue
        for name in [*folders, *files]:
            yield str(Path(inside) / name)


def is_volatile(path: str) -> bool:
    """What any machine changes while it runs."""
    return path.startswith(("/var/log/", "/var/cache/", "/var/lib/apt/", "/var/tmp/", "/root/"))


if __name__ == "__main__":
    main()
