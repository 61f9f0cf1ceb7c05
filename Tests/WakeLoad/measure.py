"""Wakes of many phones at once: rate, CPU of the broker's threads, memory. See docs/wakes.md.

    python measure.py --hermesd PATH --phones 100000 --bad-percent 10 [--rate 16700]

Every phone has a persistent session, a device and a subscription, and is away; one message to all of
them makes each owed a wake. With a rate, messages to a hundredth of that many phones follow each
other every 10 ms. `apple_load` stands in for Apple's service, over TLS on loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "Tests" / "ProcessTests"))

from harness.apple import make_key  # noqa: E402
from harness.beside import Beside, idle_broker  # noqa: E402
from harness.certificates import Authority  # noqa: E402
from harness.waiting import eventually  # noqa: E402


def text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


def packet(first: int, body: bytes) -> bytes:
    count, length = len(body), b""
    while True:
        count, digit = count // 128, count % 128
        length += bytes([digit | (128 if count else 0)])
        if not count:
            return bytes([first]) + length + body


def topic(number: int, group: int) -> bytes:
    """What a phone subscribes to, with as many others as a group has."""
    return b"orders/%d" % (number // group)


def phone(number: int, bad: str, group: int) -> bytes:
    """Everything that a phone says: it registers, subscribes and goes."""
    token = bytes.fromhex(bad) + bytes(26) + struct.pack(">I", number)
    device = b"\x0a" + bytes([len(token)]) + token + b"\x12\x0fcom.example.app"
    return (
        packet(0x10, text(b"MQTT") + bytes([4, 0, 0, 60]) + text(b"phone-%d" % number))
        + packet(0x32, text(b"$hermes/device") + struct.pack(">H", 1) + device)
        + packet(0x82, struct.pack(">H", 2) + text(topic(number, group)) + b"\x01")
    )


def register(port: int, phones: int, bad_percent: int, group: int) -> None:
    """By batches of connections; each has its answers before it goes."""
    for first in range(0, phones, 200):
        batch = []
        for number in range(first, min(first + 200, phones)):
            one = socket.create_connection(("127.0.0.1", port))
            # One in five of the bad ones is a token that Apple does not know.
            place = number % 100
            bad = "0000" if place >= bad_percent else "ba00" if place % 5 == 0 else "d000"
            one.sendall(phone(number, bad, group))
            batch.append(one)
        for one in batch:
            answer = b""
            while len(answer) < 4 + 4 + 5:
                more = one.recv(64)
                assert more, "the broker closed"
                answer += more
            one.sendall(b"\xe0\x00")
            one.close()


def publish(port: int, phones: int, group: int) -> None:
    """To one group after the other, every 10 ms, at QoS 1; returns when the last is acknowledged."""
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(packet(0x10, text(b"MQTT") + bytes([4, 2, 0, 60]) + text(b"shop")))
        began, left = time.monotonic(), 4
        for place, first in enumerate(range(0, phones, group)):
            # Takes acknowledgements until the next message is due.
            while (wait := began + place * 0.01 - time.monotonic()) > 0:
                if select.select([one], [], [], wait)[0]:
                    left -= received(one, left)
            identifier = struct.pack(">H", 1 + place % 65_535)
            one.sendall(packet(0x32, text(topic(first, group)) + identifier + b"paid"))
            left += 4
        while left > 0:
            left -= received(one, left)


def received(one: socket.socket, most: int) -> int:
    count = len(one.recv(most))
    assert count, "the broker closed"
    return count


def cpu(pid: int) -> dict[str, float]:
    """Seconds of CPU by thread."""
    result: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        result[name] = result.get(name, 0) + seconds
    return result


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hermesd", required=True)
    parser.add_argument("--phones", type=int, default=100_000)
    parser.add_argument("--bad-percent", type=int, default=0)
    parser.add_argument("--rate", type=int, help="wakes a second that come to be owed")
    parser.add_argument("--away", action="store_true", help="the service does not run")
    parser.add_argument(
        "--silent", action="store_true", help="no rule asks for wakes: the messages alone")
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hermes-wakes-") as folder:
        run(options, Path(folder))


def run(options: argparse.Namespace, folder: Path) -> None:
    authority = Authority(folder / "authority")
    server = authority.issue("localhost")
    make_key(folder / "key.p8")
    load = folder / "apple_load"
    subprocess.run(
        ["gcc", "-O2", "-o", str(load), str(Path(__file__).with_name("apple_load.c")),
         "-lnghttp2", "-lssl", "-lcrypto", "-lpthread"], check=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    apple = None
    if not options.away:
        # Apple's machines are others: its work shall not take the broker's cores.
        apple = subprocess.Popen(
            ["nice", "-n", "19", str(load), str(port), str(server.certificate), str(server.key)],
            stdout=subprocess.PIPE)
    rule = "none orders/#" if options.silent else "alert orders/# title=T body=B"
    (folder / "hermes.yaml").write_text(
        f"limits:\n  device_bytes: 1GiB\nwakes:\n  rules: {rule}\n"
        f"  apns:\n    key_file: {folder}/key.p8\n    key_id: ABC123DEFG\n"
        f"    team_id: DEF123GHIJ\n    production: localhost:{port}\n"
        f"    sandbox: localhost:{port}\n    ca_file: {authority.certificate}\n"
        f"    connections: {options.connections}\n")
    log = (folder / "log").open("w")
    broker = subprocess.Popen(
        [options.hermesd, "--config", str(folder / "hermes.yaml"), "--data-directory",
         str(folder / "data"), "--port", "0", "--admin-port", "0"], stdout=log, stderr=log)
    try:
        measure(options, folder, broker)
    finally:
        broker.terminate()
        broker.wait(60)
        if apple is not None:
            apple.send_signal(signal.SIGTERM)
            print("service:", apple.communicate(timeout=30)[0].decode().strip())
        warnings = [
            line for line in (folder / "log").read_text().splitlines()
            if " WARN" in line or " ERROR" in line]
        print(f"{len(warnings)} warnings", *warnings[:3], sep="\n  ")


def listening_port(folder: Path) -> int:
    line = announced(folder, "MQTT listener ready")
    return int(line.split("listener.address=127.0.0.1:")[1].split()[0])


def announced(folder: Path, words: str) -> str:
    def found() -> str | None:
        lines = (folder / "log").read_text().splitlines()
        return next((line for line in lines if words in line), None)

    return eventually(found, words)


def measure(options: argparse.Namespace, folder: Path, broker: subprocess.Popen) -> None:
    port = listening_port(folder)
    url = announced(folder, "Admin API ready").split("admin.url=")[1].split()[0]
    token = (folder / "data" / "admin.token").read_text().strip()

    def call(path: str) -> str:
        request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
        return urllib.request.urlopen(request, timeout=120).read().decode()

    began = time.monotonic()
    group = options.phones if options.rate is None else max(1, options.rate // 100)
    register(port, options.phones, options.bad_percent, group)
    print(f"{options.phones} phones registered in {time.monotonic() - began:.1f} s")
    with idle_broker(options.hermesd) as idle:
        print(f"a connected client before: {Beside.times(port, 4_000)}")
        measure_wakes(options, broker, (port, idle), group, call)


def measure_wakes(
    options: argparse.Namespace, broker: subprocess.Popen, ports: tuple[int, int], group: int,
    call: Callable[[str], str],
) -> None:
    port, idle = ports

    def wakes() -> dict[str, int]:
        found = {}
        for one in call("/metrics").splitlines():
            if one.startswith("hermes_wakes_total{"):
                found[one.split('"')[1]] = int(one.rsplit(" ", 1)[1])
        return found

    beside, elsewhere = Beside(port), Beside(idle)
    before, memory = cpu(broker.pid), resident(broker.pid)
    began = time.monotonic()
    publish(port, options.phones, group)
    published = time.monotonic() - began
    def answered() -> bool:
        return sum(wakes()[end] for end in ("accepted", "gone", "bad_device")) == options.phones

    def owed() -> bool:
        return f"hermes_wakes_owed {options.phones}\n" in call("/metrics")

    if not options.silent:
        eventually(owed if options.away else answered, "every wake", within=300)
    seconds = time.monotonic() - began
    print(f"a connected client beside: {beside.stop()}")
    print(f"one of another, idle broker meanwhile: {elsewhere.stop()}")
    after = cpu(broker.pid)
    used = {name: after[name] - before.get(name, 0) for name in after}
    print(f"published in {published:.2f} s")
    if not options.silent:
        end = "owed" if options.away else "answered"
        print(f"all {end} after {seconds:.2f} s: {options.phones / seconds:,.0f}/s; {wakes()}")
    for name in ("hermes-apns", "hermes-shard-0", "hermes-commit"):
        print(f"  {name}: {used.get(name, 0) / options.phones * 1e6:.1f} us of CPU a wake")
    print(f"  resident: {memory >> 20} MiB before, {resident(broker.pid) >> 20} MiB after")


if __name__ == "__main__":
    main()
