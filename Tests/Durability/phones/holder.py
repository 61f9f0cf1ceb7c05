"""A person's phone: one client identifier and one file through all lives of the program."""

from __future__ import annotations

from pathlib import Path

from harness.phone import Phone
from harness.relay import Relay
from proof.ledger import require

WINDOW = 64
"""Messages that may be on their way between the phone's output and the record of their
acknowledgement when it is killed."""


class Holder:
    """Follows the channel `orders/<name>`, and says on `up/<name>/<number>` what it has seen."""

    def __init__(self, name: str, relay: Relay, folder: Path, *, follows: str, qos: int) -> None:
        self.name = name
        self._relay = relay
        self._storage = folder / f"{name}.log"
        self._arguments = ("-s", follows, "--qos", str(qos), "--no-reports")
        self._lives: list[Phone] = []
        self._said = 0
        self.kills = 0

    @property
    def phone(self) -> Phone:
        return self._lives[-1]

    def begin(self) -> None:
        self._lives.append(Phone(
            self._relay.address, self.name, *self._arguments, storage=self._storage,
            tries_at_once=True))

    def kill(self) -> None:
        self.phone.kill()
        self.kills += 1

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
        }

    def keys(self, key: str) -> list[list[object]]:
        return [[message[key] for message in life.messages] for life in self._lives]

    @property
    def received(self) -> int:
        """Messages of all lives, repeats included."""
        return sum(life.count for life in self._lives)

    @property
    def distinct(self) -> int:
        return len({key for life in self.keys("sequence") for key in life})

    def count_notes(self, text: str) -> int:
        return sum(life.log.text.count(text) for life in self._lives)

    def check(self, key: str) -> int:
        """Nothing came twice but what a kill had caught; returns how many came again so."""
        repeats = 0
        seen: list[object] = []
        for life in self.keys(key):
            require(len(life) == len(set(life)), f"{self.name} got something twice in one life")
            known = set(seen)
            again = [each for each in life if each in known]
            require(
                set(again) <= set(seen[-WINDOW:]),
                f"{self.name} got {again} again, long after it had acknowledged them")
            repeats += len(again)
            seen += [each for each in life if each not in known]
        return repeats
