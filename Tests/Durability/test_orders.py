"""Order statuses under kills, in the quick form; `scripts/prove-orders` runs the long one."""

from __future__ import annotations

import pytest

from orders.proof import prove


@pytest.mark.quick
def test_every_phone_ends_with_the_newest_status_of_every_order() -> None:
    verdict = prove(600, kills=8, seed=20_261, say=print)
    print(verdict)
    assert verdict.kills_amid_posts > 0 and verdict.unanswered > 0, verdict
    assert verdict.duplicates > 10 and verdict.received > 100, verdict
    assert verdict.superseded > 0, verdict
