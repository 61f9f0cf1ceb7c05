"""A broker with many clients, of which eight are in trouble: what an operator is called for.

    .venv/bin/python -m harness.troubled_clients --clients 10000      (in Tests/ProcessTests)

starts such a broker, prints how `hermesctl` reaches it, and ends it when its input ends.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from . import wire
from .admin import AdminAPI
from .broker import Hermesd, Settings
from .raw_client import RawClient

PASSWORD = "correct horse"
RULES = """
allow  user phones  subscribe  orders/%c/#
allow  user phones  both       news/#
allow  user office  both       #
"""
SETTINGS = Settings(
    makes_its_own_token=True,
    users={"phones": PASSWORD, "office": PASSWORD},
    environment={
        "HERMES_LIMITS_CONNECT_RATE": "100000",
        "HERMES_LIMITS_QUEUE_MESSAGES": "100",
        "HERMES_LIMITS_OUTPUT_BYTES": "64KiB",
    },
)


@dataclass(frozen=True)
class Names:
    """Client identifiers of those in trouble."""

    slow: str = "phone-1101"
    full: str = "phone-1102"
    fought_over: str = "phone-1103"
    denied: str = "phone-1104"
    gone: str = "phone-1105"
    silent: str = "phone-1106"
    banned: str = "phone-1107"
    stranger: str = "phone-1108"


NAMES = Names()
"""The names that each trouble has."""


class InThePast(Hermesd):
    """Its clock is some days slow."""

    days = 0

    def environment(self) -> dict[str, str]:
        library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        return {
            **super().environment(), "LD_PRELOAD": str(library), "FAKETIME": f"-{self.days}d",
            # Deadlines are measured by another clock.
            "DONT_FAKE_MONOTONIC": "1",
            # The library leaves the program without its arguments.
            "HERMES_LISTENERS_0_PORT": "0", "HERMES_ADMIN_PORT": "0",
            "HERMES_DATA_DIRECTORY": str(self.data),
        }


def broker(directory: Path, *, data: Path | None = None, days_ago: int = 0) -> Hermesd:
    """Not started yet."""
    rules = directory / "access-rules"
    rules.write_text(RULES)
    settings = replace(SETTINGS, arguments=("--acl-file", str(rules)))
    if not days_ago:
        return Hermesd(settings, data=data)
    past = InThePast(settings, data=data)
    past.days = days_ago
    return past


class Phone:
    """A client of the user `phones` that answers nothing by itself."""

    def __init__(self, broker: Hermesd, name: str, **options: object) -> None:
        self.name = name
        self.raw = RawClient(broker.address, **options)

    def connect(self, password: str = PASSWORD, *, user: str = "phones") -> int:
        """The return code of CONNACK."""
        return self.raw.connect(
            self.name, clean_session=False, keep_alive=300, user_name=user,
            password=password.encode()).return_code

    def follow_orders(self, qos: int = 1) -> tuple[int, ...]:
        return self.raw.subscribe((f"orders/{self.name}/#", qos))


class Scene:
    """Brings eight clients into trouble and keeps them there until it is closed."""

    def __init__(self, broker: Hermesd) -> None:
        self.broker = broker
        self._ends = threading.Event()
        self._held: list[RawClient] = []
        office = Phone(broker, "office")
        assert office.connect(user="office") == 0
        self._held.append(office.raw)
        self._office = office.raw

    def add_bystanders(self, count: int) -> None:
        """Clients without trouble: every second one connected, the others away."""
        for first in range(0, count, 200):
            phones = [Phone(self.broker, f"phone-{20_000 + n}")
                      for n in range(first, min(count, first + 200))]
            for phone in phones:
                phone.raw.send(
                    wire.connect(phone.name, clean_session=False, keep_alive=0,
                                 user_name="phones", password=PASSWORD.encode()),
                    wire.subscribe(1, (f"orders/{phone.name}/#", 1)))
            for place, phone in enumerate(phones):
                assert phone.raw.expect(wire.Connack).return_code == 0
                phone.raw.expect(wire.Suback)
                if place % 2:
                    phone.raw.disconnect()
                else:
                    self._held.append(phone.raw)

    def begin(self) -> None:
        self._slow()
        self._full_queue()
        self._take_over_fight()
        self._denied()
        self._never_acknowledges()
        self._banned()
        self._wrong_password()

    def close(self) -> None:
        self._ends.set()
        for raw in self._held:
            raw.close()

    def _connected(self, name: str, **options: object) -> Phone:
        phone = Phone(self.broker, name, **options)
        assert phone.connect() == 0
        self._held.append(phone.raw)
        return phone

    def _slow(self) -> None:
        """Its link takes next to nothing, and much is sent to it."""
        phone = self._connected(NAMES.slow, receive_buffer=4_096)
        phone.raw.subscribe(("news/#", 0))
        for number in range(400):
            self._office.publish(f"news/{number}", bytes(10_000), qos=1)

    def _full_queue(self) -> None:
        """It is away, and gets more than its queue holds."""
        phone = self._connected(NAMES.full)
        phone.follow_orders()
        phone.raw.disconnect()
        for number in range(120):
            self._office.publish(f"orders/{NAMES.full}/{number}", b"paid", qos=1)

    def _take_over_fight(self) -> None:
        """Two phones with one client identifier, each of which comes back at once."""
        def one(source: str) -> None:
            while not self._ends.wait(0.1):
                phone = Phone(self.broker, NAMES.fought_over, source=source)
                self._held.append(phone.raw)
                try:
                    phone.raw.send(
                        wire.connect(NAMES.fought_over, clean_session=False,
                                     user_name="phones", password=PASSWORD.encode()))
                    phone.raw.await_closed(timeout=3_600)
                except OSError:
                    continue

        for source in ("127.0.0.2", "127.0.0.3"):
            threading.Thread(target=one, args=(source,), daemon=True).start()

    def _denied(self) -> None:
        """It asks for another phone's orders."""
        phone = self._connected(NAMES.denied)
        assert phone.raw.subscribe((f"orders/{NAMES.full}/#", 1)) == (0x80,)

    def _never_acknowledges(self) -> None:
        phone = self._connected(NAMES.silent)
        phone.follow_orders()
        for number in range(40):
            self._office.publish(f"orders/{NAMES.silent}/{number}", b"paid", qos=1)

    def _banned(self) -> None:
        phone = self._connected(NAMES.banned)
        phone.follow_orders()
        token = (self.broker.data / "admin.token").read_text().strip()
        answer = AdminAPI(self.broker, token=token).post_json(
            "/v1/bans", {"client_id": NAMES.banned, "reason": "stolen phone, ticket 77"})
        assert answer.status in (200, 201), answer
        assert Phone(self.broker, NAMES.banned).connect() == 5

    def _wrong_password(self) -> None:
        for _ in range(3):
            assert Phone(self.broker, NAMES.stranger).connect("incorrect horse") != 0


def add_gone(broker: Hermesd) -> None:
    """A phone that went and has not come back, with a message that waits."""
    phone, office = Phone(broker, NAMES.gone), Phone(broker, "office")
    assert phone.connect() == 0 and office.connect(user="office") == 0
    phone.follow_orders()
    phone.raw.disconnect()
    office.raw.publish(f"orders/{NAMES.gone}/1", b"paid", qos=1)
    office.raw.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--gone-days", type=int, help="how long one has been away; needs Debian's libfaketime")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory(prefix="hermes-night-") as folder:
        hermesd = broker(Path(folder))
        if days_ago := options.gone_days:
            before = broker(Path(folder), data=hermesd.data, days_ago=days_ago)
            before.start()
            add_gone(before)
            before.stop()
        hermesd.start()
        try:
            scene = Scene(hermesd)
            scene.add_bystanders(options.clients)
            scene.begin()
            print(f"hermesctl --data-directory {hermesd.data}", flush=True)
            sys.stdin.read()
            scene.close()
        finally:
            hermesd.stop()
            hermesd.remove_files()


if __name__ == "__main__":
    main()
