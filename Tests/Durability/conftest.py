"""Fixtures: brokers below the shim, each on a data directory of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.broker import Hermesd
from harness.raw_client import RawClient
from proof.bench import Bench


@pytest.fixture(scope="session", autouse=True)
def _hermesd() -> None:
    if not Hermesd.executable().exists():
        pytest.exit(f"{Hermesd.executable()} is missing; scripts/build makes it", returncode=2)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A data directory with a shim, on which brokers are started one after the other."""
    with tempfile.TemporaryDirectory(prefix="hermes-faults-") as folder:
        one = Bench(Path(folder).resolve())
        yield one
        one.close()


@pytest.fixture
def connect(bench: Bench) -> Iterator[Callable[..., RawClient]]:
    """Connects clients to the broker of `bench`, with persistent sessions."""
    opened: list[RawClient] = []

    def connect_one(name: str, **options: object) -> RawClient:
        client = RawClient(bench.broker.address)
        opened.append(client)
        arguments = {"clean_session": False, **options}
        connack = client.connect(name, **arguments)  # type: ignore[arg-type]
        assert connack.return_code == 0, f"{name} was refused: {connack}"
        return client

    yield connect_one
    for client in opened:
        client.close()
