"""`python -m proof`: the kill test in full, with its table; scripts/prove-durability runs it."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ProcessTests"))

from harness.broker import Hermesd  # noqa: E402

from .ledger import Violation  # noqa: E402
from .report import verdict  # noqa: E402
from .runner import prove  # noqa: E402

PER_CELL = 10
"""Kills for each failpoint and QoS."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="prove-durability")
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=None, help="replays the same plan")
    arguments = parser.parse_args()
    seed = random.randrange(1_000_000) if arguments.seed is None else arguments.seed
    per_cell = min(PER_CELL, max(1, arguments.kills // 25))  # a shorter run has fewer
    print(f"{Hermesd.executable()}: {arguments.kills} kills, seed {seed}", flush=True)
    try:
        proof = prove(
            arguments.kills, seed, per_cell=per_cell, say=lambda line: print(line, flush=True))
    except Violation as violation:
        print(f"BROKEN PROMISE: {violation}", file=sys.stderr)
        return 1
    text, is_proven = verdict(proof)
    print(text)
    return 0 if is_proven else 1


if __name__ == "__main__":
    sys.exit(main())
