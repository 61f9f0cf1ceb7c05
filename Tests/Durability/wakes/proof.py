"""Phones that are away, an office that publishes, stand-ins for Apple and Google, and a broker that is
killed.

A message counts from the moment its publisher was answered. The proof holds when each phone had a
notification that was taken at or after that moment, for every message, and when no two notifications of a
phone were nearer to each other than the merging interval, also across kills.
"""

from __future__ import annotations

import http.client
import random
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.apple import Apple
from harness.broker import ADMIN_TOKEN, FromFile
from harness.google import Google
from harness.waiting import eventually
from proof.ledger import require

MERGE = 1.0
"""Seconds; the least that a broker takes."""
PATIENCE = 60.0
TOLERANCE = 0.05
"""Seconds by which clocks of two processes and a busy machine may let them seem nearer."""
ANDROID_EVERY = 5
"""One phone of so many is Google's."""
CHECKED_EVERY = 10
"""Kills between two checks of all phones."""


@dataclass
class Verdict:
    phones: int
    kills: int
    kills_amid: int = 0
    """Those while notifications were on their way."""
    acknowledged: int = 0
    unanswered: int = 0
    accepted: int = 0
    repeats: int = 0
    """Apple's under a name that it had taken before."""
    nearest: float = float("inf")
    """The least time between two notifications of a phone, in seconds."""

    def __str__(self) -> str:
        return (
            f"{self.kills} kills ({self.kills_amid} amid notifications): {self.acknowledged} messages "
            f"acknowledged, {self.unanswered} posts unanswered; {self.accepted} notifications to "
            f"{self.phones} phones, {self.repeats} of them repeats of one that Apple had taken, the "
            f"nearest two {self.nearest:.2f} s apart")


def prove(phones: int, kills: int, seed: int, say: Callable[[str], None]) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="hermes-wakes-") as folder:
        run = _Run(Path(folder), phones, kills, seed, say)
        try:
            return run.prove()
        finally:
            run.close()


class _Run:
    def __init__(
        self, folder: Path, phones: int, kills: int, seed: int, say: Callable[[str], None]
    ) -> None:
        self._random = random.Random(seed)
        self._say = say
        self._tokens = [f"{number:08x}" for number in range(phones)]
        self._android = [
            token for number, token in enumerate(self._tokens)
            if number % ANDROID_EVERY == ANDROID_EVERY - 1
        ]
        self._apple = Apple(folder / "apple")
        self._google = Google(folder / "google")
        text = self._apple.configuration("alert orders/#") + self._google.section()
        self._broker = FromFile(
            text.replace("wakes:\n", "wakes:\n  merge: 1s\n  reconnect_window: 0s\n", 1))
        self._verdict = Verdict(phones, kills)
        self._last_acknowledged = 0.0

    def close(self) -> None:
        if self._broker.is_running:
            self._broker.stop()
        self._broker.remove_files()
        self._apple.close()
        self._google.close()

    def _times(self, token: str) -> list[float]:
        """When the notifications of a phone came that were taken."""
        taken = self._google if token in self._android else self._apple
        return sorted(one.at for one in taken.accepted(token))

    def prove(self) -> Verdict:
        self._broker.start()
        for number, token in enumerate(self._tokens):
            isAndroid = token in self._android  # noqa: N806
            _register(
                self._broker.port, f"phone-{number}",
                token.encode() if isAndroid else bytes.fromhex(token), isAndroid)
        for kill in range(1, self._verdict.kills + 1):
            self._publish_until_killed()
            self._broker.start()
            if kill % CHECKED_EVERY == 0 or kill == self._verdict.kills:
                self._check()
                self._say(f"{kill} kills: {self._verdict.acknowledged} messages, each phone woken")
        self._count()
        return self._verdict

    def _publish_until_killed(self) -> None:
        """Posts messages; the kill comes after some of them, or amid their notifications."""
        posts = self._random.randint(1, 4)
        more = self._random.randint(0, 2 * len(self._tokens))
        before = len(self._apple.notifications)
        self._hold(self._random.random() < 0.3)
        office = threading.Thread(target=self._post, args=(posts,))
        office.start()
        if self._random.random() < 0.5:
            office.join()
        if not self._apple.behaviour.hold:
            self._apple.wait_for(before + more, within=2 * MERGE)
        amid = len(self._apple.notifications) - before
        self._verdict.kills_amid += 0 < amid < len(self._tokens) or self._apple.behaviour.hold
        self._broker.kill()
        self._hold(False)
        office.join()

    def _hold(self, isHeld: bool) -> None:  # noqa: N803
        self._apple.behaviour.hold = isHeld
        self._google.behaviour.hold = isHeld

    def _post(self, count: int) -> None:
        for _ in range(count):
            try:
                connection = http.client.HTTPConnection(*self._broker.admin_address, timeout=10)
                connection.request(
                    "POST", f"/v1/publish?topic=orders/{self._random.randint(1, 9)}&qos=1", b"{}",
                    {"Authorization": f"Bearer {ADMIN_TOKEN}"})
                status = connection.getresponse().status
                connection.close()
            except (OSError, http.client.HTTPException):
                self._verdict.unanswered += 1
                return
            require(status == 200, f"a post got {status}")
            self._verdict.acknowledged += 1
            self._last_acknowledged = time.time()

    def _check(self) -> None:
        """Each phone has been woken since the last message was acknowledged."""
        since = self._last_acknowledged
        for token in self._tokens:
            eventually(
                lambda token=token: any(at >= since for at in self._times(token)[-8:]),
                f"a wake of {token}", within=PATIENCE)

    def _count(self) -> None:
        nearer: list[str] = []
        for token in self._tokens:
            times = self._times(token)
            gaps = [later - earlier for earlier, later in zip(times, times[1:])]
            self._verdict.nearest = min([self._verdict.nearest, *gaps])
            nearer += [f"{token}: {gap:.3f} s" for gap in gaps if gap < MERGE - TOLERANCE]
            self._verdict.accepted += len(times)
            # Google's have no name of their own.
            apple = self._apple.accepted(token)
            self._verdict.repeats += len(apple) - len({one.apns_id for one in apple})
        require(not nearer, f"{len(nearer)} notifications came too soon, such as {nearer[:5]}")


def _register(port: int, name: str, token: bytes, isAndroid: bool) -> None:  # noqa: N803
    """A phone with a persistent session, a device and a subscription, that goes away."""

    def text(value: bytes) -> bytes:
        return struct.pack(">H", len(value)) + value

    def packet(first: int, body: bytes) -> bytes:
        return bytes([first, len(body)]) + body

    device = b"\x0a" + bytes([len(token)]) + token + b"\x12\x0fcom.example.app"
    if isAndroid:
        device += b"\x20\x03"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as phone:
        phone.sendall(
            packet(0x10, text(b"MQTT") + bytes([4, 0, 0, 60]) + text(name.encode()))
            + packet(0x32, text(b"$hermes/device") + struct.pack(">H", 1) + device)
            + packet(0x82, struct.pack(">H", 2) + text(b"orders/#") + b"\x01"))
        answer = b""
        while len(answer) < 4 + 4 + 5:
            more = phone.recv(64)
            require(bool(more), "the broker closed a phone's connection")
            answer += more
        phone.sendall(b"\xe0\x00")
