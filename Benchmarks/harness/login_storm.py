"""A storm of clients that come with tokens at once, beside a client that is connected.

    .venv/bin/python Benchmarks/harness/login_storm.py --hermesd .build/release/hermesd

Starts a broker that verifies ES256 tokens. A connected client sends itself messages of QoS 0; then all
others connect at once, each with a token of its own, twice: first with tokens that the broker has never
seen, then with the same ones. Prints, for each storm, the time until all are connected, the broker's
processor time per client, and the round trips of the connected client before and during it, and those
of a client of a second broker without load, which has the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
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

from harness.beside import Beside, idle_broker  # noqa: E402
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


async def storm(port: int, process: subprocess.Popen, hellos: list[bytes]) -> str:
    """Connects all at once; what it took."""
    loop = asyncio.get_running_loop()
    used, begun = processor_seconds(process), time.perf_counter()
    pairs = await asyncio.gather(*(
        loop.create_connection(lambda hello=hello: Newcomer(hello), "127.0.0.1", port)
        for hello in hellos))
    codes = await asyncio.gather(*(newcomer.code for _, newcomer in pairs))
    seconds, used = time.perf_counter() - begun, processor_seconds(process) - used
    for transport, _ in pairs:
        transport.close()
    return (
        f"{codes.count(0)} of {len(codes)} let in within {seconds:.2f} s,"
        f" {used / len(codes) * 1e6:.0f} us of the broker each")


def run(
    options: argparse.Namespace, port: int, idle: int, process: subprocess.Popen, key: SigningKey
) -> None:
    hellos = [
        connect(f"new-{number}", key.token(sub=f"new-{number}")) for number in range(options.clients)
    ]
    login = connect("beside", key.token(sub="beside"))
    print(f"{options.algorithm}: {options.clients} newcomers")
    print(f"  connected client before: {Beside.times(port, 2_000, connect=login)}")
    for name in ("tokens never seen", "the same tokens"):
        beside, elsewhere = Beside(port, connect=login), Beside(idle)
        print(f"{name}: {asyncio.run(storm(port, process, hellos))}")
        print(f"  connected client beside: {beside.stop()}")
        print(f"  idle broker meanwhile: {elsewhere.stop()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hermesd", default=str(REPOSITORY / ".build/release/hermesd"))
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--algorithm", default="ES256")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        key = SigningKey(options.algorithm, directory, "key")
        name = "SECRET_FILE" if options.algorithm == "HS256" else "KEY_FILE"
        process = subprocess.Popen(
            [options.hermesd, "--port", "0", "--admin-port", "0", "--data-directory", f"{folder}/data"],
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
            with idle_broker(options.hermesd) as idle:
                run(options, port, idle, process, key)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
