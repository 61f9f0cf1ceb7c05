"""A connected client that measures how long its own messages take, in a process of its own.

What else loads the broker must not share an interpreter with the clock: one that holds its lock
would be measured instead of the broker.

    python beside.py PORT COUNT CONNECT

publishes to itself at QoS 0, one message after the other with a millisecond between, COUNT times or
until its input ends; then it prints the round trips in nanoseconds, a line each. CONNECT is the packet
that it begins with, in hexadecimal digits.
"""

from __future__ import annotations

import gc
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _packet(first: int, body: bytes) -> bytes:
    assert len(body) < 128
    return bytes([first, len(body)]) + body


def _text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


class Times:
    """Round trips of one client, in seconds, sorted."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = sorted(seconds)

    def percentile(self, percent: float) -> float:
        return self._seconds[min(len(self._seconds) - 1, int(len(self._seconds) * percent / 100))]

    def __str__(self) -> str:
        p50, p99 = (self.percentile(percent) * 1e6 for percent in (50, 99))
        return f"{len(self._seconds)} deliveries, p50 {p50:.0f} us, p99 {p99:.0f} us"


class Beside:
    """Starts the client at once; `stop` ends it and gives its times."""

    def __init__(
        self, port: int, *, count: int = sys.maxsize, connect: bytes | None = None
    ) -> None:
        connect = connect or _packet(0x10, _text(b"MQTT") + bytes([4, 2, 0, 60]) + _text(b""))
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), str(port), str(count), connect.hex()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @classmethod
    def times(cls, port: int, count: int, **options: bytes) -> Times:
        """The times of `count` messages."""
        one = cls(port, count=count, **options)
        return one._ended(one._process.stdout.read())

    def stop(self) -> Times:
        output, _ = self._process.communicate("", timeout=30)
        return self._ended(output)

    def _ended(self, output: str) -> Times:
        assert self._process.wait(30) == 0, "the client beside failed"
        return Times([int(line) / 1e9 for line in output.split()])


@contextmanager
def idle_broker(hermesd: str) -> Iterator[int]:
    """The port of a broker without load: its client tells what the machine's other work costs."""
    with tempfile.TemporaryDirectory(prefix="hermes-idle-") as folder:
        broker = subprocess.Popen(
            [hermesd, "--data-directory", f"{folder}/data", "--port", "0", "--admin-port", "0"],
            stderr=subprocess.PIPE, text=True)
        try:
            for line in broker.stderr:
                _, found, rest = line.partition("listener.address=127.0.0.1:")
                if found:
                    yield int(rest.split()[0])
                    break
            else:
                raise AssertionError("the idle broker did not start")
        finally:
            broker.terminate()
            broker.communicate(timeout=30)


def _run(port: int, count: int, connect: bytes) -> None:
    ends = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.sendall(connect)
        _read(one, 4)
        topic = _text(b"beside/%d" % one.getsockname()[1])
        one.sendall(_packet(0x82, struct.pack(">H", 1) + topic + b"\x00"))
        _read(one, 5)
        message = _packet(0x30, topic + b"x")
        times: list[int] = []
        gc.disable()
        while not ends.is_set() and len(times) < count:
            began = time.monotonic_ns()
            one.sendall(message)
            _read(one, len(message))
            times.append(time.monotonic_ns() - began)
            ends.wait(0.001)
    print("\n".join(map(str, times)))


def _read(one: socket.socket, count: int) -> None:
    while count > 0:
        got = len(one.recv(count))
        assert got, "the broker closed"
        count -= got


if __name__ == "__main__":
    _run(int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3]))
