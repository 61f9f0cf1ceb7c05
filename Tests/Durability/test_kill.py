"""The kill test in its quick form: `scripts/prove-durability` runs hundreds of kills."""

from __future__ import annotations

import pytest

from proof.report import verdict
from proof.runner import prove


@pytest.mark.quick
def test_what_was_acknowledged_survives_kills_and_power_cuts() -> None:
    """One kill per failpoint, hanging disk and QoS, with loss of unsynced data."""
    proof = prove(34, seed=20_261, per_cell=1, say=print)
    text, is_proven = verdict(proof)
    print(text)
    assert is_proven, text
    assert proof.messages > 500 and proof.acknowledgements["PUBCOMP"] > 100
