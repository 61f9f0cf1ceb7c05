"""A client made of one socket: sends any bytes, reads strictly, waits with deadlines."""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from . import wire
from .waiting import PATIENCE, Deadline
from .wire import (
    Connack, PacketReader, Pingresp, Puback, Pubcomp, Publish, Pubrec, Pubrel, ServerPacket,
    Suback, Unsuback, Will,
)

Kind = TypeVar("Kind")


class ConnectionClosed(AssertionError):
    """The broker closed the connection while a packet was awaited."""


class RawClient:
    """One connection to a broker.

    Packets that a call does not ask for stay in arrival order for later calls. Only the
    `take_*` calls acknowledge, so that a test decides when an acknowledgement leaves.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *,
        receive_buffer: int | None = None,
        source: str | None = None,
    ) -> None:
        """Opens the connection; `receive_buffer` (bytes) makes a peer that soon stops taking.

        `source` is the address to come from, such as 127.0.0.2.
        """
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = PacketReader()
        self._arrived: deque[ServerPacket] = deque()
        self._unreleased: set[int] = set()
        self._next_identifier = 0

    # --- bytes and packets ---------------------------------------------------------------

    def send(self, *packets: bytes) -> None:
        """Writes all packets in one call."""
        self.socket.settimeout(PATIENCE)
        self.socket.sendall(b"".join(packets))

    def receive(self, timeout: float = PATIENCE) -> ServerPacket:
        """The next packet, whatever it is."""
        return self._receive(lambda _: True, Deadline(timeout, "any packet"))

    def expect(self, kind: type[Kind], timeout: float = PATIENCE) -> Kind:
        """The next packet, which must be of this kind."""
        received = self._receive(lambda _: True, Deadline(timeout, f"a {kind.__name__}"))
        assert isinstance(received, kind), f"expected a {kind.__name__}, got {received}"
        return received

    def await_packet(self, kind: type[Kind], timeout: float = PATIENCE) -> Kind:
        """The first packet of this kind; earlier ones stay for later calls."""
        deadline = Deadline(timeout, f"a {kind.__name__}")
        received = self._receive(lambda one: isinstance(one, kind), deadline)
        assert isinstance(received, kind)
        return received

    def await_closed(self, timeout: float = PATIENCE) -> list[ServerPacket]:
        """Waits until the broker has closed; returns the bytes before that."""
        deadline = Deadline(timeout, "the broker to close the connection")
        try:
            while True:
                self._arrived.append(self._read_packet(deadline))
        except ConnectionClosed:
            received = list(self._arrived)
            self._arrived.clear()
            return received

    def _receive(
        self, wanted: Callable[[ServerPacket], bool], deadline: Deadline
    ) -> ServerPacket:
        for index, packet in enumerate(self._arrived):
            if wanted(packet):
                del self._arrived[index]
                return packet
        while True:
            packet = self._read_packet(deadline)
            if wanted(packet):
                return packet
            self._arrived.append(packet)

    def _read_packet(self, deadline: Deadline) -> ServerPacket:
        while (packet := self._reader.next()) is None:
            if deadline.is_over:
                raise deadline.failure(f"unread so far: {list(self._arrived)}")
            self.socket.settimeout(deadline.remaining)
            try:
                data = self.socket.recv(1 << 18)
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                data = b""
            if not data:
                raise ConnectionClosed(
                    f"closed while waiting for {deadline.awaited}; unread: {list(self._arrived)}"
                )
            self._reader.feed(data)
        return packet

    # --- exchanges -----------------------------------------------------------------------

    def connect(
        self,
        client_id: str | bytes,
        *,
        clean_session: bool = True,
        keep_alive: int = 0,
        will: Will | None = None,
        user_name: str | None = None,
        password: bytes | None = None,
        protocol_name: str = "MQTT",
        protocol_level: int = 4,
    ) -> Connack:
        """Sends a CONNECT and returns its CONNACK, which must be the first packet."""
        self.send(
            wire.connect(
                client_id, clean_session=clean_session, keep_alive=keep_alive, will=will,
                user_name=user_name, password=password, protocol_name=protocol_name,
                protocol_level=protocol_level,
            )
        )
        return self.expect(Connack)

    def subscribe(self, *filters: tuple[str | bytes, int]) -> tuple[int, ...]:
        """Subscribes and returns the return codes."""
        identifier = self.next_identifier()
        self.send(wire.subscribe(identifier, *filters))
        suback = self.await_packet(Suback)
        assert suback.packet_id == identifier, f"{suback} for {identifier} [MQTT-2.3.1-7]"
        assert len(suback.return_codes) == len(filters), f"{suback} [MQTT-3.8.4-5]"
        return suback.return_codes

    def unsubscribe(self, *filters: str | bytes) -> None:
        identifier = self.next_identifier()
        self.send(wire.unsubscribe(identifier, *filters))
        unsuback = self.await_packet(Unsuback)
        assert unsuback.packet_id == identifier, f"{unsuback} for {identifier} [MQTT-2.3.1-7]"

    def publish(
        self, topic: str | bytes, payload: bytes = b"", *, qos: int = 0, retain: bool = False
    ) -> None:
        """Publishes and completes the exchange of the QoS; QoS 0 is followed by a ping."""
        if qos == 0:
            self.send(wire.publish(topic, payload, retain=retain))
            self.ping()
            return
        identifier = self.next_identifier()
        self.send(wire.publish(topic, payload, qos=qos, retain=retain, packet_id=identifier))
        if qos == 1:
            assert self.await_packet(Puback) == Puback(identifier)
            return
        assert self.await_packet(Pubrec) == Pubrec(identifier)
        self.send(wire.pubrel(identifier))
        assert self.await_packet(Pubcomp) == Pubcomp(identifier)

    def ping(self) -> None:
        """One round trip: earlier packets of the broker have arrived."""
        self.send(wire.PINGREQ)
        self.await_packet(Pingresp)

    def next_identifier(self) -> int:
        self._next_identifier = self._next_identifier % 65_535 + 1
        return self._next_identifier

    # --- messages ------------------------------------------------------------------------

    def receive_publish(self, timeout: float = PATIENCE) -> Publish:
        """The next PUBLISH, not acknowledged."""
        return self.await_packet(Publish, timeout)

    def take_message(self, timeout: float = PATIENCE) -> Publish:
        """The next PUBLISH, acknowledged as its QoS asks (QoS 2: PUBREC; see `settle`)."""
        while True:
            deadline = Deadline(timeout, "a PUBLISH")
            packet = self._receive(lambda one: isinstance(one, (Publish, Pubrel)), deadline)
            if isinstance(packet, Pubrel):
                self._complete(packet)
                continue
            assert isinstance(packet, Publish)
            if packet.qos == 1:
                self.send(wire.puback(packet.packet_id or 0))
            elif packet.qos == 2:
                self._unreleased.add(packet.packet_id or 0)
                self.send(wire.pubrec(packet.packet_id or 0))
            return packet

    def take_messages(self, count: int, timeout: float = PATIENCE) -> list[Publish]:
        """As many messages, acknowledged; QoS 2 exchanges are completed."""
        messages = [self.take_message(timeout) for _ in range(count)]
        self.settle()
        return messages

    def settle(self) -> None:
        """Completes the QoS 2 exchanges that `take_message` began."""
        while self._unreleased:
            self._complete(self.await_packet(Pubrel))

    def messages_so_far(self) -> list[Publish]:
        """Messages delivered before a ping's answer, not acknowledged: proves that no more came.

        The caller has first waited for the broker to take the publication in question.
        """
        self.ping()
        messages = [one for one in self._arrived if isinstance(one, Publish)]
        self._arrived = deque(one for one in self._arrived if not isinstance(one, Publish))
        return messages

    def packets_so_far(self) -> list[ServerPacket]:
        """Every packet up to a ping."""
        self.ping()
        packets = list(self._arrived)
        self._arrived.clear()
        return packets

    def _complete(self, pubrel: Pubrel) -> None:
        assert pubrel.packet_id in self._unreleased, f"{pubrel}, but open are {self._unreleased}"
        self._unreleased.discard(pubrel.packet_id)
        self.send(wire.pubcomp(pubrel.packet_id))

    # --- ends ----------------------------------------------------------------------------

    def disconnect(self) -> None:
        """DISCONNECT, then waits until the broker has closed too."""
        self.send(wire.DISCONNECT)
        self.await_closed()
        self.socket.close()

    def close(self) -> None:
        """Closes the socket without a DISCONNECT (FIN)."""
        self.socket.close()

    def reset(self) -> None:
        """Closes the socket with a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
