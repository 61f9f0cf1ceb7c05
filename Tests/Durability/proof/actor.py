"""The base of all clients in the proof: a session that outlives connections and crashes."""

from __future__ import annotations

from harness import wire
from harness.wire import Connack, ServerPacket, Will

from .ledger import Ledger, require
from .network import Link, Network


class Actor:
    """A client with a session of its own, as far as an acknowledgement has told."""

    def __init__(self, network: Network, ledger: Ledger, name: str) -> None:
        self.network = network
        self.ledger = ledger
        self.name = name
        self.link: Link | None = None
        self.is_connected = False
        """CONNACK has come on this connection."""
        self.session_exists = {False}
        """The possible states: CONNECT may have worked although CONNACK is missing."""
        self._next_identifier = 0

    def connect(
        self, address: tuple[str, int], *, clean_session: bool = False, will: Will | None = None
    ) -> None:
        assert self.link is None
        self.is_connected = False
        self._asked_clean = clean_session
        self._was_possible = self.session_exists
        self.session_exists = (
            self.session_exists | {False} if clean_session else self.session_exists | {True})
        self.link = self.network.open(address, self._receive, self._closed)
        self.link.send(wire.connect(self.name, clean_session=clean_session, will=will))

    def disconnect(self, *, abruptly: bool = False) -> None:
        if self.link is not None:
            if not abruptly:
                self.link.send(wire.DISCONNECT)
            self.link.close(abruptly=abruptly)

    @property
    def outstanding(self) -> dict[int, int]:
        """Exchanges that wait for the broker, by QoS; 0 is anything but a message."""
        return {0: 1} if self.link is not None and not self.is_connected else {}

    def send(self, *packets: bytes) -> None:
        if self.link is not None:
            self.link.send(*packets)

    def next_identifier(self) -> int:
        self._next_identifier = self._next_identifier % 65_535 + 1
        return self._next_identifier

    def connected(self, session_present: bool) -> None:
        """CONNACK has come; the session is as promised."""

    def receive(self, packet: ServerPacket) -> None:
        raise NotImplementedError

    def closed(self) -> None:
        """The connection has ended, by whichever side."""

    def _receive(self, packet: ServerPacket) -> None:
        if self.is_connected:
            self.receive(packet)
            return
        require(isinstance(packet, Connack), f"{self.name} got {packet} before CONNACK")
        assert isinstance(packet, Connack)
        require(packet.return_code == 0, f"{self.name} was refused: {packet}")
        if self._asked_clean:
            require(not packet.session_present, f"{self.name}: a clean session that is present")
        else:
            require(
                packet.session_present in self._was_possible,
                f"{self.name}: session present {packet.session_present}, but its last CONNACK "
                f"said {self._was_possible}")
        # A clean session ends with its connection, so later none is there.
        self.session_exists = {not self._asked_clean}
        self.is_connected = True
        self.ledger.count("CONNACK")
        self.connected(packet.session_present)

    def _closed(self) -> None:
        assert self.link is not None
        if self.link.was_ended_by_peer:
            self.ledger.note_cut_off(self.outstanding)
        self.link = None
        self.is_connected = False
        self.closed()
