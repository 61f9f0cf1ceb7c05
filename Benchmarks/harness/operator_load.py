"""What operators cost clients: listings, traces and viewers of the page beside a delivery.

    .venv/bin/python Benchmarks/harness/operator_load.py --hermesd .build/release/hermesd

Starts a broker with 10,000 sessions that are away, and another one without load. A client of each
publishes to itself and measures; so the second tells what the machine's other work costs, the
readers' own too. Prints both without load, beside 100 sorted listings a second, and beside listings,
ten traces and 32 viewers. Clients and readers are processes of their own.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "Tests/ProcessTests"))

from harness import wire  # noqa: E402
from harness.beside import Beside, idle_broker  # noqa: E402
from harness.waiting import eventually  # noqa: E402

LISTERS = 10
"""Connections that ask for listings, so that one slow answer delays no other."""

READERS_NICE = 19
"""Operators sit elsewhere: their programs shall not take the broker's cores."""


class Broker:
    def __init__(self, hermesd: str, folder: Path) -> None:
        folder.mkdir()
        self._log = folder / "log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [hermesd, "--data-directory", str(folder / "data"), "--port", "0", "--admin-port", "0"],
                stdout=log, stderr=log)
        self.port = int(self._announced("listener.address=127.0.0.1:"))
        self.admin_port = int(self._announced("admin.url=http://127.0.0.1:"))
        self.headers = {
            "Authorization": "Bearer " + (folder / "data/admin.token").read_text().strip()}

    def _announced(self, word: str) -> str:
        def found() -> str | None:
            _, word_found, rest = self._log.read_text().partition(word)
            return rest.split()[0] if word_found and rest.split() else None

        return eventually(found, word)

    def shard_seconds(self) -> float:
        """CPU time of the threads of shards."""
        ticks = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text().startswith("hermes-shard"):
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def add_sessions(port: int, count: int) -> None:
    """Clients that subscribe and go, by batches of connections."""
    for first in range(0, count, 200):
        clients = []
        for number in range(first, min(count, first + 200)):
            one = socket.create_connection(("127.0.0.1", port))
            one.sendall(
                wire.connect(f"phone-{number}", clean_session=False, keep_alive=60)
                + wire.subscribe(1, (f"orders/{number}", 1)))
            clients.append(one)
        for one in clients:
            left = 9
            while left > 0:
                got = len(one.recv(left))
                assert got, "the broker closed"
                left -= got
            one.sendall(wire.DISCONNECT)
            one.close()


def list_clients(port: int, headers: dict, path: str, rate: float, ends, done) -> None:
    """`rate` listings a second in all, evenly spread over the connections."""
    def one_of(place: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        due = time.monotonic() + place / rate
        while not ends.wait(max(0, due - time.monotonic())):
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            with done.get_lock():
                done.value += 1
            due += LISTERS / rate

    os.nice(READERS_NICE)
    threads = [threading.Thread(target=one_of, args=(place,)) for place in range(LISTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def follow(port: int, headers: dict, paths: list[str], ready) -> None:
    """Reads streams until the process is ended."""
    def one_of(path: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        while answer.read1(65_536):
            pass

    os.nice(READERS_NICE)
    threads = [threading.Thread(target=one_of, args=(path,), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()


def measure(label: str, loaded: Broker, idle: int, count: int) -> None:
    elsewhere, began, used = Beside(idle), time.monotonic(), loaded.shard_seconds()
    beside = Beside.times(loaded.port, count)
    used, seconds = loaded.shard_seconds() - used, time.monotonic() - began
    print(f"{label}:\n  beside: {beside}; shard {used / seconds * 100:.0f} % of a core")
    print(f"  idle broker meanwhile: {elsewhere.stop()}", flush=True)


def run(options: argparse.Namespace, loaded: Broker, idle: int) -> None:
    add_sessions(loaded.port, options.clients)
    measure("without load", loaded, idle, options.deliveries)
    ends, done = multiprocessing.Event(), multiprocessing.Value("q", 0)
    lister = multiprocessing.Process(
        target=list_clients,
        args=(loaded.admin_port, loaded.headers, f"/v1/clients?sort={options.sort}&limit=10",
              options.listings, ends, done))
    lister.start()
    began = time.monotonic()
    measure(f"{options.listings:g} listings a second", loaded, idle, options.deliveries)
    print(f"  {done.value / (time.monotonic() - began):.1f} listings a second")
    ready = multiprocessing.Event()
    paths = [f"/v1/trace?topic=traced/{n}/%23&seconds=600" for n in range(options.traces)]
    paths += ["/v1/events"] * options.viewers
    follower = multiprocessing.Process(
        target=follow, args=(loaded.admin_port, loaded.headers, paths, ready))
    follower.start()
    ready.wait()
    measure(
        f"with {options.traces} traces and {options.viewers} viewers", loaded, idle,
        options.deliveries)
    ends.set()
    lister.join()
    follower.terminate()
    follower.join()
    assert lister.exitcode == 0, "a listing failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hermesd", default=str(REPOSITORY / ".build/release/hermesd"))
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--listings", type=float, default=100, help="a second")
    parser.add_argument("--sort", default="queued")
    parser.add_argument("--traces", type=int, default=10)
    parser.add_argument("--viewers", type=int, default=32)
    parser.add_argument("--deliveries", type=int, default=8_000, help="of each measurement")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hermes-operators-") as folder:
        loaded = Broker(options.hermesd, Path(folder) / "loaded")
        try:
            with idle_broker(options.hermesd) as idle:
                run(options, loaded, idle)
        finally:
            loaded.stop()


if __name__ == "__main__":
    main()
