"""What every load has: its clients, its end, its notes; and the process it runs in."""

from __future__ import annotations

import os
import random
import ssl
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from harness.raw_client import RawClient

from .broker import Target

STRANGER = "127.0.0.9"
"""Where attackers come from; the household and the quiet clients have 127.0.0.1."""


class Load:
    """One load of one phase. `notes` say what it did; what must not be is an exception."""

    def __init__(self, target: Target, seconds: float, seed: int) -> None:
        self.target = target
        self.rng = random.Random(seed)
        self.notes: Counter[str] = Counter()
        self._end = time.monotonic() + seconds
        self._opened: list[RawClient] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.load_verify_locations(target.authority)

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self._end

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def name(self, prefix: str) -> str:
        return f"{prefix}-{self.rng.randrange(1 << 40):x}"

    def socket(self, *, is_tls: bool = False, receive_buffer: int | None = None) -> RawClient:
        """A connection without CONNECT, closed with the load."""
        client = RawClient(
            self.target.tls if is_tls else self.target.plain, source=STRANGER,
            receive_buffer=receive_buffer)
        self._opened.append(client)
        if is_tls:
            client.socket = self._context.wrap_socket(client.socket, server_hostname="localhost")
        return client

    def client(
        self, name: str, *, is_tls: bool = False, receive_buffer: int | None = None,
        **options: object,
    ) -> RawClient:
        client = self.socket(is_tls=is_tls, receive_buffer=receive_buffer)
        connack = client.connect(name, **options)  # type: ignore[arg-type]
        assert connack.return_code == 0, f"{name} was refused: {connack}"
        return client

    def drop(self, client: RawClient) -> None:
        client.close()
        self._opened.remove(client)

    @contextmanager
    def may_be_closed(self) -> Iterator[None]:
        """For peers whose connection the broker may end at any time."""
        try:
            yield
        except OSError:
            self.notes["closed"] += 1
        except AssertionError as error:
            # ConnectionClosed is one; a deadline that has passed is another matter.
            if "closed while waiting" not in str(error):
                raise
            self.notes["closed"] += 1

    def close(self) -> None:
        for client in self._opened:
            client.close()


Run = Callable[[Load], None]


def run(report: Connection, load: Run, target: Target, seconds: float, seed: int) -> None:
    """The process of one load; it reports its notes, and what went wrong."""
    os.nice(10)
    one = Load(target, seconds, seed)
    failure = ""
    try:
        load(one)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
    finally:
        one.close()
    report.send((dict(one.notes), failure[:2_000]))
