"""The command line of a proof that is run in full."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable

from harness.broker import Hermesd

from .ledger import Violation


def run(program: str, prove: Callable[..., object], **numbers: int) -> int:
    """Calls `prove` with each of the numbers, which options may change, and with `seed` and `say`."""
    parser = argparse.ArgumentParser(prog=program)
    for name, number in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--seed", type=int, default=None, help="makes the same choices again")
    options = vars(parser.parse_args())
    if options["seed"] is None:
        options["seed"] = random.randrange(1_000_000)
    said = ", ".join(f"{number} {name}" for name, number in options.items() if name != "seed")
    print(f"{Hermesd.executable()}: {said}, seed {options['seed']}", flush=True)
    try:
        verdict = prove(**options, say=lambda line: print(line, flush=True))
    except Violation as violation:
        print(f"BROKEN PROMISE: {violation}", file=sys.stderr)
        return 1
    print(verdict)
    return 0
