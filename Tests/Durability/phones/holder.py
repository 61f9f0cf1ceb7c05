"""A person's phone: one client identifier and one file through all lives of the program."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from harness.phone import Phone
from harness.relay import Relay
from harness.waiting import eventually
from proof.ledger import require

WINDOW = 64
"""Messages that may be on their way between the phone's output and the record of their
acknowledgement when it is killed."""


HEADER = 16
"""Bytes at the beginning of the file that no bit flips in: without them it is no file of a phone."""

FORBIDDEN = "forbidden/"
"""No phone may publish to topics that begin so: the broker closes the connection."""


def password(name: str) -> str:
    return f"secret of {name}"


class Holder:
    """Follows the channel `orders/<name>`, and says on `up/<name>/<number>` what it has seen.

    `also` are more addresses of the broker, which nobody listens at.
    """

    def __init__(
        self, name: str, relay: Relay, folder: Path, *, follows: str, qos: int,
        also: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self._relay = relay
        self._storage = folder / f"{name}.log"
        self._arguments = (
            "-s", follows, "--qos", str(qos), "--no-reports", "--user", name,
            *(word for address in also for word in ("--also", address)))
        self._lives: list[Phone] = []
        self._odd_lives: list[Phone] = []
        """Those that acknowledge nothing, or have a wrong password."""
        self._said = 0
        self.kills = 0
        self.flips = 0
        self.forbidden: set[str] = set()

    @property
    def phone(self) -> Phone:
        return self._lives[-1]

    def _start(self, *arguments: str, word: str | None = None) -> Phone:
        return Phone(
            self._relay.address, self.name, *self._arguments, *arguments, storage=self._storage,
            environment={"HERMES_PASSWORD": word or password(self.name)}, tries_at_once=True)

    def begin(self) -> None:
        self._lives.append(self._start())

    def kill(self) -> None:
        self.phone.kill()
        self.kills += 1

    def end(self) -> None:
        for life in self._lives[-1:] + self._odd_lives[-1:]:
            if life.process.poll() is None:
                life.kill()

    # What happens to a phone that is off; another life begins after each.

    def forget(self, is_over: Callable[[], bool]) -> None:
        """A life that acknowledges nothing: what came must come again."""
        life = self._start("--never-acknowledge")
        self._odd_lives.append(life)
        eventually(lambda: life.count > 0 or is_over(), f"a message at {self.name}", within=60)
        life.kill()

    def mistake(self) -> None:
        """A life with a wrong password: it stops and says so, and calls that wait throw."""
        life = self._start(word="wrong")
        self._odd_lives.append(life)
        life.tell(f"publish up/{self.name}/mistake-{len(self._odd_lives)} here")
        life.await_note("state: stopped, the broker refuses the credentials", within=60)
        life.await_note("not published: .* the broker refuses the credentials", within=60)
        require(life.stop() == 0, f"{self.name} does not end after a wrong password")

    def flip(self, rng: random.Random) -> None:
        """A bit of the file flips. In its first half: at its end that is no other thing than a
        write that a kill has cut."""
        content = bytearray(self._storage.read_bytes())
        if len(content) < 8 * HEADER:
            return
        content[rng.randrange(HEADER, len(content) // 2)] ^= 1 << rng.randrange(8)
        self._storage.write_bytes(content)
        self.flips += 1

    def misbehave(self) -> None:
        """Publishes what the broker forbids."""
        topic = f"{FORBIDDEN}{self.name}/{self._said}"
        try:
            self.phone.tell(f"publish {topic} here")
        except OSError:
            return
        self.forbidden.add(topic)

    def unsent(self) -> list[str]:
        """The topics in the outbox. Discards what is held back there by the broker's rules, as an
        app does that was told of a refusal."""
        start = self.phone.mark
        self.phone.tell("outbox")
        self.phone.await_note("that is the outbox", start=start, within=60)
        topics = []
        for line in self.phone.log.lines[start:]:
            if match := re.match(r"outbox: (\d+), (\S+?),", line):
                topics.append(match[2])
                if match[2].startswith(FORBIDDEN):
                    self.phone.tell(f"discard {match[1]}")
                    self.phone.await_note(f"discarded: {match[1]}", start=start, within=60)
        return topics

    def say(self) -> None:
        """Publishes the next number, with QoS 2."""
        self._said += 1
        try:
            self.phone.tell(f"publish up/{self.name}/{self._said} here")
        except OSError:
            pass

    @property
    def accepted(self) -> set[str]:
        """The topics of all that the program took over: it must arrive."""
        return {
            line.removeprefix("published: ")
            for life in self._lives for line in life.log.lines if line.startswith("published: ")
        } - self.forbidden

    @property
    def forbidden_and_taken(self) -> set[str]:
        """What the program took over and the broker forbids: it must be told."""
        return {
            topic for topic in self.forbidden
            if any(f"published: {topic}" in life.log.lines for life in self._lives)
        }

    def keys(self, key: str) -> list[list[object]]:
        return [[message[key] for message in life.messages] for life in self._lives]

    @property
    def received(self) -> int:
        """Messages of all lives but the odd ones, repeats included."""
        return sum(life.count for life in self._lives)

    @property
    def distinct(self) -> int:
        return len({key for life in self.keys("sequence") for key in life})

    def count_notes(self, text: str) -> int:
        return sum(life.log.text.count(text) for life in self._lives + self._odd_lives)

    def check(self, key: str, flipped: frozenset[str] = frozenset()) -> int:
        """Nothing came twice but what a kill had caught; returns how many came again so.

        A phone whose name is in `flipped` may have published a message a second time, because its
        file no longer told that the broker had it.
        """
        repeats = 0
        seen: list[object] = []
        for life in self.keys(key):
            life = [
                each for each in life
                if not flipped or str(each).split("/")[1] not in flipped]
            twice = [each for each, count in Counter(life).items() if count > 1]
            require(not twice, f"{self.name} got {twice} twice in one life")
            known = set(seen)
            again = [each for each in life if each in known]
            require(
                set(again) <= set(seen[-WINDOW:]),
                f"{self.name} got {again} again, long after it had acknowledged them")
            repeats += len(again)
            seen += [each for each in life if each not in known]
        return repeats
