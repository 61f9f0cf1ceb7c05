"""The phases of a cycle."""

from __future__ import annotations

from dataclasses import dataclass

from . import comings, floods, peers
from .load import Run


@dataclass(frozen=True)
class Step:
    name: str
    loads: tuple[Run, ...] = ()
    reloads: bool = False
    household: bool = True
    """Everyday traffic goes on meanwhile."""
    share: float = 1.0
    """Of the length of a phase."""


IDLE = "idle"
EVERYDAY = "everyday"

CYCLE = (
    Step(IDLE, household=False),
    Step(EVERYDAY),
    Step("unseen topics", (floods.unseen_topics, floods.changing_subscriptions)),
    Step("tiny fan-out", (floods.tiny_fan_out,)),
    Step("retained pin", (floods.retained_pin,)),
    Step("long identifiers", (floods.long_identifiers,)),
    Step("1 MB SUBSCRIBEs", (floods.large_subscribes, floods.shared_members)),
    Step("slow readers", (peers.slow_readers,)),
    Step("malformed peers", (peers.malformed, comings.half_open)),
    Step("wrong acknowledgements", (peers.wrong_acknowledgements,)),
    Step("broken TLS", (peers.broken_tls,)),
    Step("idle admin sockets", (peers.idle_admin,)),
    Step("storm", (comings.storm,)),
    Step("take-overs", (comings.take_overs,)),
    Step("absent receivers", (comings.absent_receivers,)),
    Step("reloads", (comings.storm,), reloads=True),
)
