"""The phases of a cycle."""

from __future__ import annotations

from dataclasses import dataclass

from . import comings, floods, peers, shares
from .load import Run


@dataclass(frozen=True)
class Step:
    name: str
    loads: tuple[Run, ...] = ()
    reloads: bool = False
    rules: int = 0
    """General access rules that deny what nobody asks for, before one that allows everything."""
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
    Step("64 receivers", (shares.few_receivers,)),
    Step("ten topics", (shares.several_topics,)),
    Step("retained walks", (shares.retained_walks,)),
    Step("new topics", (shares.new_topics,), rules=100),
    Step("new topics, 500 rules", (shares.new_topics,), rules=500),
    Step("SUBSCRIBEs, 500 rules", (shares.many_filters,), rules=500),
    Step("50,000 groups", (shares.many_groups,)),
    Step("receivers route", (shares.receivers_route,)),
    Step("client details", (shares.client_details,)),
    Step("retained lists", (shares.retained_lists,)),
    Step("stalled requests", (shares.stalled_requests,)),
    Step("small reports", (shares.small_reports,)),
    Step("TLS of one byte", (shares.bytes_over_tls,)),
    Step("traced storm", (shares.traced_storm,)),
)
