"""hermes-phone under cuts and kills, in the quick form; `scripts/prove-client` runs the long one."""

from __future__ import annotations

import pytest

from phones.proof import prove


@pytest.mark.quick
def test_everything_arrives_once_over_a_network_that_is_cut() -> None:
    verdict = prove(2_000, kills=8, phones=2, seed=20_262, say=print)
    print(verdict)
    assert verdict.cuts > 2 and verdict.phone_kills > 0 and verdict.broker_kills > 0, verdict
    assert verdict.upwards > 4, verdict
