#!/usr/bin/env python3
"""What WebSocket costs beside plain TCP: processor time of a message, memory of an idle connection.

    Benchmarks/harness/websocket.py cpu [--messages 400000] [--rounds 5]
    Benchmarks/harness/websocket.py instructions
    Benchmarks/harness/websocket.py memory [--connections 15000]

Each figure is the broker's own (/proc/PID/stat, /proc/PID/smaps_rollup). A round measures plain and
WebSocket in turn, so that a busy machine disturbs both alike; the median of the rounds counts. Instructions are those of
the broker under valgrind's callgrind, which counts nothing of the kernel's.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import socket
import statistics
import struct
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("HERMESD", REPOSITORY / ".build/release/hermesd"))
REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)
MASK = b"\x37\xfa\x21\x3d"


def frame(payload: bytes) -> bytes:
    size = len(payload)
    head = bytes([0x82, 0x80 | size]) if size < 126 else struct.pack("!BBH", 0x82, 0xFE, size)
    pad = (MASK * (size // 4 + 1))[:size]
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")
    return head + MASK + mixed.to_bytes(size, "big")


class Broker:
    """One hermesd with a plain listener and one of WebSocket."""

    def __init__(self, *wrapper: str, program: Path = PROGRAM) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="hermes-bench-")
        self.log = Path(self.folder.name, "log").open("w+")
        self.process = subprocess.Popen(
            [*wrapper, str(program), "--port", "0", "--port", "0", "--admin-port", "0",
             "--durability", "none", "--data-directory", f"{self.folder.name}/data"],
            env={**os.environ, "HERMES_LISTENERS_1_PROTOCOL": "websocket",
                 "HERMES_LOGGING_CONNECTIONS": "debug",
                 "HERMES_ADMIN_TOKEN": "benchmark-token-0123456789abcdef"},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        ports: list[str] = []
        while len(ports) < 2:
            text = Path(self.log.name).read_text()
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"hermesd did not start: {text[-2000:]}")
            ports = re.findall(r"listener ready listener.address=127.0.0.1:(\d+)", text)
            time.sleep(0.01)
        self.ports = {"plain": int(ports[0]), "websocket": int(ports[1])}

    def seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def private_bytes(self) -> int:
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return 1024 * sum(int(one) for one in re.findall(r"^Private_\w+:\s+(\d+)", text, re.M))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def connect(broker: Broker, kind: str, name: str) -> socket.socket:
    """A connected client; CONNACK has come."""
    one = socket.create_connection(("127.0.0.1", broker.ports[kind]), 30)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    identifier = name.encode()
    body = b"\x00\x04MQTT\x04\x02\x00\x00" + struct.pack("!H", len(identifier)) + identifier
    packet = bytes([0x10, len(body)]) + body
    if kind == "websocket":
        one.sendall(REQUEST)
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += one.recv(4096)
        assert answer.startswith(b"HTTP/1.1 101"), answer
        packet = frame(packet)
    one.sendall(packet)
    answer = b""
    while len(answer) < (6 if kind == "websocket" else 4):
        answer += one.recv(4096)
    return one


def drain(one: socket.socket, end: bytes) -> None:
    """Reads until what is read ends with `end`."""
    tail = b""
    while not tail.endswith(end):
        data = one.recv(1 << 20)
        assert data, "the broker closed"
        tail = (tail + data)[-len(end):]


def microseconds_per_message(
    broker: Broker, kind: str, messages: int, batch: int, size: int
) -> float:
    """One publisher and one subscriber at QoS 0, `batch` messages in each write of the publisher."""
    publisher, subscriber = connect(broker, kind, "publisher"), connect(broker, kind, "subscriber")
    wrap = frame if kind == "websocket" else lambda packet: packet
    subscriber.sendall(wrap(b"\x82\x06\x00\x01\x00\x01a\x00"))
    drain(subscriber, b"\x90\x03\x00\x01\x00")
    # Its end is that of no other payload.
    packet = lambda end: bytes([0x30, 3 + size]) + b"\x00\x01a" + bytes(size - 4) + end
    write = wrap(packet(bytes(4))) * (batch - 1) + wrap(packet(b"done"))
    before = broker.seconds()
    for _ in range(messages // batch):
        publisher.sendall(write)
        drain(subscriber, b"done")
    spent = broker.seconds() - before
    publisher.close()
    subscriber.close()
    return 1e6 * spent / (messages // batch * batch)


def measure_cpu(messages: int, rounds: int) -> None:
    print("us of the broker's processor time for a message at QoS 0, one subscriber, 64 bytes")
    for batch in (1, 16, 256):
        found: dict[str, list[float]] = {"plain": [], "websocket": []}
        broker = Broker()
        count = messages if batch > 1 else messages // 8
        for kind in found:
            microseconds_per_message(broker, kind, count // 4, batch, 64)
        for _ in range(rounds):
            for kind, values in found.items():
                values.append(microseconds_per_message(broker, kind, count, batch, 64))
        broker.stop()
        plain, web = (statistics.median(values) for values in found.values())
        spread = {kind: f"{min(values):.3f}-{max(values):.3f}" for kind, values in found.items()}
        print(f"{batch:4} in a write: plain {plain:.3f}  websocket {web:.3f}  "
              f"more {web - plain:+.3f}   {spread}", flush=True)


def instructions(kind: str, messages: int, batch: int) -> int:
    """Instructions of a broker, from its start to its end, that takes so many messages."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        counts, program = Path(folder, "counts"), Path(folder, "hermesd")
        # valgrind cannot read the compiler's debug information.
        subprocess.run(["objcopy", "--strip-debug", str(PROGRAM), str(program)], check=True)
        broker = Broker(
            "valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={counts}",
            program=program)
        microseconds_per_message(broker, kind, messages, batch, 64)
        broker.stop()
        return int(re.findall(r"^(?:totals|summary): (\d+)", counts.read_text(), re.M)[-1])


def measure_instructions() -> None:
    print("instructions of the broker for a message at QoS 0, one subscriber, 64 bytes")
    for batch, few in ((1, 10_000), (16, 80_000)):
        found = {}
        for kind in ("plain", "websocket"):
            more = instructions(kind, 3 * few, batch) - instructions(kind, few, batch)
            found[kind] = more / (2 * few)
        print(f"{batch:4} in a write: plain {found['plain']:,.0f}  websocket {found['websocket']:,.0f}  "
              f"more {found['websocket'] - found['plain']:+,.0f}", flush=True)


def measure_memory(connections: int) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("bytes of private memory for an idle connection with a clean session")
    for kind in ("plain", "websocket"):
        broker = Broker()
        # The first connections bring buffers that all share.
        held = [connect(broker, kind, f"warm{number}") for number in range(1_000)]
        time.sleep(1)
        before = broker.private_bytes()
        held += [connect(broker, kind, f"idle{number:06}") for number in range(connections)]
        time.sleep(1)
        print(f"{kind:10} {(broker.private_bytes() - before) / connections:7.1f}", flush=True)
        for one in held:
            one.close()
        broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("cpu", "instructions", "memory"))
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=15_000)
    options = parser.parse_args()
    if options.what == "cpu":
        measure_cpu(options.messages, options.rounds)
    elif options.what == "instructions":
        measure_instructions()
    else:
        measure_memory(options.connections)


if __name__ == "__main__":
    main()
