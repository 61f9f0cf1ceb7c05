"""Wakes under kills, in the quick form; `scripts/prove-wakes` runs the long one."""

from __future__ import annotations

import pytest

from wakes.proof import prove


@pytest.mark.quick
def test_each_message_for_a_phone_that_is_away_wakes_it() -> None:
    verdict = prove(phones=10, kills=6, seed=20_281, say=print)
    print(verdict)
    assert verdict.kills_amid > 0 and verdict.acknowledged > 0, verdict
