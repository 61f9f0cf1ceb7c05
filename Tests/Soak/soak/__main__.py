"""`python -m soak`: see scripts/soak."""

from __future__ import annotations

import argparse
import functools
import signal
import sys
import time

from harness.broker import Hermesd

from .figures import table
from .plan import CYCLE
from .run import Soak
from .verdict import QUICK, Bounds, checks


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", default="", choices=["", *(one.name for one in CYCLE)], help="one load alone")
    parser.add_argument("--quick", action="store_true", help="a minute, with wide bounds")
    options = parser.parse_args()
    if options.quick:
        options.minutes = 1
    if not Hermesd.executable().exists():
        print(f"soak: {Hermesd.executable()} is missing; scripts/build makes it", file=sys.stderr)
        return 2
    # Whatever hangs, it ends.
    signal.alarm(int(options.minutes * 60 * 1.5) + 600)
    say = functools.partial(print, flush=True)
    soak = Soak(options.minutes * 60, options.seed, only=options.only, say=say)
    say(
        f"soak of {options.minutes:g} minutes: {soak.cycles} cycles of {len(soak.steps)} phases of "
        f"{soak.phase_seconds:.1f} s, seed {options.seed}, {Hermesd.executable()}")
    begin = time.monotonic()
    soak.run()
    say(f"\n{table(soak.phases.values())}\n")
    for how, seconds in soak.restarts:
        say(f"back after {how}: {seconds:.2f} s")
    results = checks(soak, QUICK if options.quick else Bounds())
    for one in results:
        say(one)
    for failure in soak.failures:
        say(f"- {failure.splitlines()[0][:300]}")
    bad = [one for one in results if not one.holds]
    say(
        f"{time.monotonic() - begin:.0f} s; {len(results) - len(bad)} of {len(results)} checks hold")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
