"""C libraries that are loaded before all others, compiled when a test needs them."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path


def compiler() -> str:
    return os.environ.get("CC", "gcc")


@functools.cache
def compiled(source: Path) -> Path:
    """The shared library of a C file; the compiler runs once per process."""
    path = Path(tempfile.mkdtemp(prefix="hermes-preload-")) / f"{source.stem}.so"
    subprocess.run(
        [compiler(), "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC",
         "-shared", "-o", str(path), str(source), "-ldl", "-lpthread"],
        check=True,
    )
    return path
