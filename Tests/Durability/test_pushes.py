"""Pushes under kills, in the quick form; `scripts/prove-pushes` runs the long one."""

from __future__ import annotations

import pytest

from pushes.proof import prove


@pytest.mark.quick
def test_each_client_gets_each_push_once() -> None:
    verdict = prove(300, pushes=6, kills=10, seed=20_271, say=print)
    print(verdict)
    assert verdict.kills_amid > 0 and verdict.kills_before > 0, verdict
