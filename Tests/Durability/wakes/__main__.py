"""`python -m wakes`: the proof in full; scripts/prove-wakes runs it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ProcessTests"))

from proof.command import run  # noqa: E402

from .proof import prove  # noqa: E402

if __name__ == "__main__":
    sys.exit(run("prove-wakes", prove, phones=50, kills=200))
