"""A storm of clients that come with tokens at once, beside clients that are connected.

    .venv/bin/python Benchmarks/harness/login_storm.py --hermesd .build/release/hermesd

Starts a broker that verifies ES256 tokens. Connected clients send themselves a message of QoS 0 each
100 ms; then all others connect at once, each with a token of its own, twice: first with tokens that
the broker has never seen, then with the same ones. Prints, for each storm, the time until all are
connected, the broker's processor time per client, and the round trips of the connected clients before
and during it. The connected clients are a process of their own, so that their times are not those of the
Python program that makes the storm; both share the machine with the broker.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "Tests/ProcessTests"))

from harness.login_service import SigningKey  # noqa: E402


def text(value: bytes) -> bytes:
    return struct.pack("!H", len(value)) + value


def packet(first: int, body: bytes) -> bytes:
    length, out = len(body), b""
    while True:
        length, digit = divmod(length, 128)
        out += bytes([digit | (0x80 if length else 0)])
        if not length:
            return bytes([first]) + out + body


def connect(identifier: str, token: bytes) -> bytes:
    return packet(
        0x10, text(b"MQTT") + bytes([4, 0xC2, 0, 0]) + text(identifier.encode()) + text(b"")
        + text(token))


class Established(asyncio.Protocol):
    """A connected client that measures the round trips of messages to itself, each with its beginning."""

    def __init__(self, name: str, token: bytes, times: list[tuple[float, float]]) -> None:
        self.name, self.token, self.times = name, token, times
        self.ready = asyncio.get_running_loop().create_future()
        self.sent = 0.0
        self.received = 0

    def connection_made(self, transport) -> None:
        self.transport = transport
        topic = text(f"own/{self.name}".encode())
        transport.write(
            connect(self.name, self.token) + packet(0x82, b"\0\1" + topic + b"\0"))
        self.message = packet(0x30, topic + b"x")

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if not self.ready.done():
            if self.received >= 9:
                self.ready.set_result(None)
        elif self.sent:
            self.times.append((self.sent, time.perf_counter() - self.sent))
            self.sent = 0.0

    def send(self) -> None:
        if not self.sent:
            self.sent = time.perf_counter()
            self.transport.write(self.message)


class Newcomer(asyncio.Protocol):
    def __init__(self, hello: bytes) -> None:
        self.hello = hello
        self.code = asyncio.get_running_loop().create_future()

    def connection_made(self, transport) -> None:
        self.transport = transport
        transport.write(self.hello)

    def data_received(self, data: bytes) -> None:
        if not self.code.done():
            self.code.set_result(data[3])

    def connection_lost(self, _: Exception | None) -> None:
        if not self.code.done():
            self.code.set_result(-1)


def processor_seconds(process: subprocess.Popen) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shown(times: list[float]) -> str:
    if not times:
        return "no round trips"
    times = sorted(times)
    return (
        f"{len(times)} round trips: median {times[len(times) // 2] * 1e3:.2f} ms,"
        f" p99 {times[int(len(times) * 0.99)] * 1e3:.2f} ms, longest {times[-1] * 1e3:.1f} ms")


async def chat(port: int, tokens: list[bytes], control) -> None:
    """Has clients talk to themselves until the other process says that it is enough."""
    loop = asyncio.get_running_loop()
    times: list[tuple[float, float]] = []
    clients = [
        (await loop.create_connection(
            lambda name=f"phone-{number}", token=token: Established(name, token, times),
            "127.0.0.1", port))[1]
        for number, token in enumerate(tokens)
    ]
    await asyncio.gather(*(client.ready for client in clients))
    control.send("ready")
    while not control.poll():
        for client in clients:
            client.send()
        await asyncio.sleep(0.1)
    control.send(times)


def chat_process(port: int, tokens: list[bytes], control) -> None:
    asyncio.run(chat(port, tokens, control))


async def storm(
    port: int, process: subprocess.Popen, hellos: list[bytes]
) -> tuple[float, float]:
    """Connects all at once; returns when it began and ended."""
    loop = asyncio.get_running_loop()
    used, begun = processor_seconds(process), time.perf_counter()
    pairs = await asyncio.gather(*(
        loop.create_connection(lambda hello=hello: Newcomer(hello), "127.0.0.1", port)
        for hello in hellos))
    codes = await asyncio.gather(*(newcomer.code for _, newcomer in pairs))
    ended = time.perf_counter()
    used = processor_seconds(process) - used
    print(
        f"  {codes.count(0)} of {len(codes)} let in within {ended - begun:.2f} s,"
        f" {used / len(codes) * 1e6:.0f} us of the broker each", flush=True)
    for transport, _ in pairs:
        transport.close()
    await asyncio.sleep(2)
    return begun, ended


def run(options: argparse.Namespace, port: int, process, key: SigningKey) -> None:
    print(f"{options.algorithm}: {options.clients} newcomers, {options.established} connected")
    hellos = [
        connect(f"new-{number}", key.token(sub=f"new-{number}")) for number in range(options.clients)
    ]
    tokens = [key.token(sub=f"phone-{number}") for number in range(options.established)]
    control, other = multiprocessing.Pipe()
    child = multiprocessing.Process(target=chat_process, args=(port, tokens, other))
    child.start()
    control.recv()
    begun = time.perf_counter()
    time.sleep(3)
    windows = {"before": (begun, time.perf_counter())}
    for name in ("tokens never seen", "the same tokens"):
        print(f" {name}:")
        windows[name] = asyncio.run(storm(port, process, hellos))
    control.send("enough")
    times = control.recv()
    child.join()
    print(" connected clients:")
    for name, (start, end) in windows.items():
        print(f"  {name}: {shown([took for sent, took in times if start <= sent <= end])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hermesd", default=str(REPOSITORY / ".build/release/hermesd"))
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--established", type=int, default=100)
    parser.add_argument("--algorithm", default="ES256")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        key = SigningKey(options.algorithm, directory, "key")
        name = "SECRET_FILE" if options.algorithm == "HS256" else "KEY_FILE"
        process = subprocess.Popen(
            [options.hermesd, "--port", "0", "--admin-port", "0", "--data-dir", f"{folder}/data"],
            env={
                f"HERMES_AUTH_JWT_{name}": str(key.write(directory / "login.key")),
                "HERMES_LOGGING_CONNECTIONS": "debug",
            },
            stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        port = 0
        for line in process.stderr:
            if found := re.search(r"listener.address=127\.0\.0\.1:(\d+)", line):
                port = int(found[1])
            if "Admin API ready" in line:
                break
        try:
            run(options, port, process, key)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
