"""What the soak takes for the machine's part of a wait, and what for the broker's."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "Soak"))
sys.path.append(str(Path(__file__).parent.parent / "Durability"))
from soak.figures import Noise, Phase  # noqa: E402

pytestmark = pytest.mark.hermesd("no broker is asked")


def stall(begin: float, seconds: float) -> list[tuple[float, float]]:
    """Answers that are awaited every 20 ms and all come at the end of a stall."""
    return [(begin + 0.02 * n, seconds - 0.02 * n) for n in range(int(seconds / 0.02))]


def quick(begin: float, end: float) -> list[tuple[float, float]]:
    return [(begin + 0.02 * n, 0.0003) for n in range(int((end - begin) / 0.02))]


def test_a_stall_of_the_machine_is_not_the_brokers():
    phase = Phase("load")
    control = quick(0, 10) + stall(10, 0.3) + quick(10.3, 20)
    phase.add({"control": control, "ping": quick(0, 10) + stall(10, 0.301) + quick(10.3, 20)})
    assert phase.quantiles(("ping",))[1] > 100
    assert phase.p99_beside_control() < 2
    assert not phase.stalls and phase.excused


def test_a_stall_of_the_broker_stays():
    phase = Phase("load")
    pings = quick(0, 10) + stall(10, 0.3) + quick(10.3, 20)
    # The machine stalls at another time, and is a little late all along.
    phase.add({"control": quick(0, 15) + stall(15, 0.3) + quick(15.3, 20), "ping": pings})
    assert phase.p99_beside_control() == pytest.approx(phase.quantiles(("ping",))[1])
    assert len(phase.stalls) > 10 and not phase.excused


def test_the_longest_of_the_controls_waits_counts():
    noise = Noise([(1.0, 0.05), (1.02, 0.03), (2.0, 0.0005)])
    assert noise.during(1.04, 0.001) == 0.05
    assert noise.during(0.5, 0.6) == 0.05
    assert noise.during(1.06, 0.1) == 0
    assert noise.during(2.0, 0.01) == 0
