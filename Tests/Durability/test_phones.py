"""hermes-phone under cuts and kills, in the quick form; `scripts/prove-client` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.broker import Hermesd, Settings
from harness.relay import Relay
from harness.waiting import eventually
from phones.holder import FORBIDDEN, Holder
from phones.proof import prove


@pytest.mark.quick
def test_everything_arrives_once_over_a_network_that_is_cut() -> None:
    verdict = prove(2_000, kills=8, phones=2, seed=20_262, say=print)
    print(verdict)
    assert verdict.cuts > 2 and verdict.phone_kills > 0 and verdict.broker_kills > 0, verdict
    assert verdict.upwards > 4, verdict


@pytest.mark.quick
def test_what_is_on_its_way_is_told_from_what_is_missing(tmp_path: Path) -> None:
    """A bit that flips may cost a message, and the proof may not take one for it that a bad link
    only holds back."""
    rules = tmp_path / "acl"
    rules.write_text("allow user s-0 both up/#\nallow user s-0 subscribe orders/#\n")
    broker = Hermesd(Settings(users={"s-0": "secret of s-0"}, arguments=("--acl-file", str(rules))))
    broker.start()
    relay = Relay(broker.address)
    holder = Holder("s-0", relay, tmp_path, follows="up/#", qos=2)
    try:
        holder.begin()
        holder.phone.await_note("subscribed")
        relay.hold()
        for number in range(3):
            holder.say()
            holder.phone.await_note(f"published: up/s-0/{number + 1}")
        assert holder.unsent() == ["up/s-0/1", "up/s-0/2", "up/s-0/3"]
        holder.kill()
        relay.go_on()
        holder.begin()
        eventually(lambda: not holder.unsent(), "an empty outbox")
        eventually(lambda: holder.accepted == {
            key for life in holder.keys("topic") for key in life}, "all that was accepted")
        # What the broker forbids is held back until it is discarded, which the first look does. Its
        # identifier, with QoS 2, is free when the broker has answered PUBREL.
        holder.misbehave()
        holder.phone.await_note(f"refused a message to {FORBIDDEN}", within=60)
        assert holder.unsent() == [f"{FORBIDDEN}s-0/3"]
        eventually(lambda: not holder.unsent(), "an empty outbox")
    finally:
        holder.end()
        relay.close()
        broker.stop()
