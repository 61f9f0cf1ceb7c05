"""Small questions that the fault tests ask a running broker."""

from __future__ import annotations

import time

from harness import wire
from harness.raw_client import RawClient
from harness.wire import Puback, Publish, Pubrec

NEVER = 1.0
"""Seconds in which an acknowledgement that must not come would have come."""


def send_message(client: RawClient, topic: str, payload: bytes, qos: int = 1) -> int:
    """Publishes and does not wait; returns the packet identifier."""
    identifier = client.next_identifier()
    client.send(wire.publish(topic, payload, qos=qos, packet_id=identifier))
    return identifier


def await_acknowledgement(
    client: RawClient, identifier: int, qos: int = 1, within: float = 10.0
) -> None:
    """PUBACK, or PUBREC and the rest of the exchange."""
    if qos == 1:
        assert client.await_packet(Puback, within) == Puback(identifier)
        return
    assert client.await_packet(Pubrec, within) == Pubrec(identifier)
    client.send(wire.pubrel(identifier))
    assert client.await_packet(wire.Pubcomp, within) == wire.Pubcomp(identifier)


def require_silence(client: RawClient, seconds: float = NEVER) -> None:
    """No acknowledgement comes."""
    try:
        packet = client.await_packet(Puback, seconds)
    except AssertionError as error:
        assert "waited" in str(error), error
        return
    raise AssertionError(f"{packet} while nothing could be stored")


def publish_until_silence(
    publisher: RawClient, pause: float = 0.0
) -> tuple[list[bytes], int]:
    """Messages of 2 KB until one is not acknowledged: all of them, and the last one's identifier.

    With a `pause` between them for a store that looks at its disk now and then.
    """
    sent: list[bytes] = []
    for number in range(400):
        sent.append(f"{number:04}".encode() * 500)
        identifier = send_message(publisher, "t/1", sent[-1])
        try:
            await_acknowledgement(publisher, identifier, within=2)
        except AssertionError as silence:
            assert "waited" in str(silence), silence
            return sent, identifier
        time.sleep(pause)
    raise AssertionError("800 KB were taken")


def payloads(messages: list[Publish]) -> list[bytes]:
    return [message.payload for message in messages]
