"""`python -m pushes`: the proof in full; scripts/prove-pushes runs it."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ProcessTests"))

from harness.broker import Hermesd  # noqa: E402
from proof.ledger import Violation  # noqa: E402

from .proof import prove  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="prove-pushes")
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--pushes", type=int, default=20)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None, help="makes the same choices again")
    arguments = parser.parse_args()
    seed = random.randrange(1_000_000) if arguments.seed is None else arguments.seed
    print(
        f"{Hermesd.executable()}: {arguments.clients} clients, {arguments.pushes} pushes, "
        f"{arguments.kills} kills, seed {seed}", flush=True)
    try:
        verdict = prove(
            arguments.clients, arguments.pushes, arguments.kills, seed,
            lambda line: print(line, flush=True))
    except Violation as violation:
        print(f"BROKEN PROMISE: {violation}", file=sys.stderr)
        return 1
    print(verdict)
    return 0


if __name__ == "__main__":
    sys.exit(main())
