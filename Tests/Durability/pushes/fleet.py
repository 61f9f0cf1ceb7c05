"""Clients with persistent sessions and no subscription, which fetch what was pushed to them."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from harness import wire
from harness.broker import ADMIN_TOKEN, Hermesd
from harness.wire import Connack, Pingresp, Publish, Pubrel, ServerPacket
from proof.ledger import require
from proof.network import Link, Network

TOPIC = "news/all"
AT_A_TIME = 50
"""Clients that are connected at a time."""
PATIENCE = 60.0


class Fleet:
    """All clients: every third has the tag `third`, and all have `all`."""

    def __init__(self, network: Network, count: int) -> None:
        self._network = network
        self.names = [f"phone-{number}" for number in range(count)]
        self.thirds = self.names[::3]

    def create(self, broker: Hermesd) -> None:
        """Leaves an offline session for each, and tags them."""
        self._visit(broker, [_Visit(name, is_new=True) for name in self.names])
        tags = {name: ["all"] for name in self.names}
        for name in self.thirds:
            tags[name].append("third")
        shares = [self.names[first::8] for first in range(8)]
        with ThreadPoolExecutor(len(shares)) as pool:
            list(pool.map(lambda share: _tag(broker, share, tags), shares))

    def fetch(self, broker: Hermesd, expected: dict[str, Counter[bytes]]) -> None:
        """Connects each once more; it must get exactly these payloads, and nothing behind them."""
        visits = [_Visit(name, expected=expected[name]) for name in self.names]
        self._visit(broker, visits)
        for visit in visits:
            require(
                visit.received == visit.expected,
                f"{visit.name} got {dict(visit.received)} instead of {dict(visit.expected)}")

    def _visit(self, broker: Hermesd, visits: list[_Visit]) -> None:
        coming = list(reversed(visits))
        under_way: set[_Visit] = set()

        def go_on() -> bool:
            for visit in [one for one in under_way if one.is_done]:
                under_way.discard(visit)
            while coming and len(under_way) < AT_A_TIME:
                visit = coming.pop()
                under_way.add(visit)
                visit.begin(self._network, broker.address)
            return not under_way

        while not go_on():
            before = self._network.received
            self._network.run_until(
                lambda before=before: self._network.received > before,  # type: ignore[misc]
                PATIENCE, "packets of the broker")


class _Visit:
    """One connection of a client, until it has all that it expects and a ping's answer."""

    def __init__(
        self, name: str, *, is_new: bool = False, expected: Counter[bytes] | None = None
    ) -> None:
        self.name = name
        self.expected = expected or Counter()
        self.received: Counter[bytes] = Counter()
        self.is_done = False
        self._is_new = is_new
        self._unreleased: set[int] = set()
        self._has_pinged = False

    def begin(self, network: Network, address: tuple[str, int]) -> None:
        self._link: Link = network.open(address, self._receive, self._closed)
        self._link.send(wire.connect(self.name, clean_session=False))

    def _closed(self) -> None:
        require(self.is_done, f"{self.name} lost its connection")

    def _receive(self, packet: ServerPacket) -> None:
        match packet:
            case Connack():
                require(packet.return_code == 0, f"{self.name} was refused: {packet}")
                require(packet.session_present != self._is_new, f"{self.name} got {packet}")
            case Publish(qos=1):
                self._take(packet)
                self._link.send(wire.puback(packet.packet_id or 0))
            case Publish(qos=2):
                self._take(packet)
                self._unreleased.add(packet.packet_id or 0)
                self._link.send(wire.pubrec(packet.packet_id or 0))
            case Pubrel():
                self._unreleased.discard(packet.packet_id)
                self._link.send(wire.pubcomp(packet.packet_id))
            case Pingresp():
                self.is_done = True
                self._link.send(wire.DISCONNECT)
                self._link.close()
                return
            case _:
                require(False, f"{self.name} got {packet}")
        # What is behind the last expected message comes before the answer to a ping.
        is_whole = self.received.total() >= self.expected.total() and not self._unreleased
        if is_whole and not self._has_pinged:
            self._has_pinged = True
            self._link.send(wire.PINGREQ)

    def _take(self, packet: Publish) -> None:
        require(
            packet.topic == TOPIC and not packet.retain and not packet.dup,
            f"{self.name} got {packet}")
        self.received[packet.payload] += 1


def _tag(broker: Hermesd, clients: list[str], tags: dict[str, list[str]]) -> None:
    connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
    for client in clients:
        body = json.dumps({"add": tags[client]})
        connection.request("PUT", f"/v1/clients/{client}/tags", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        require(answer.status == 200, f"tags of {client}: {answer.status} {text!r}")
    connection.close()
