"""openssl s_client, which can misuse TLS as no client library can."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .broker import BrokerLog, Hermesd
from .waiting import PATIENCE


class OpenSSLClient:
    """An s_client that runs until it is closed; `output` holds its output."""

    def __init__(self, broker: Hermesd, authority: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"{broker.address[0]}:{broker.port}",
             "-CAfile", str(authority), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = BrokerLog(self.process.stdout)

    def __enter__(self) -> OpenSSLClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def await_handshake(self) -> str:
        """Waits for the handshake; returns "New" or "Reused"."""
        return self.output.await_match(r"^(New|Reused), TLS").group(1)

    def send(self, data: bytes) -> None:
        """Sends application data that does not begin with a letter of a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def command(self, letter: str, echo: str) -> None:
        """Sends one interactive command, and waits for its output."""
        start = len(self.output.lines)
        assert self.process.stdin is not None
        self.process.stdin.write(f"{letter}\n".encode())
        self.process.stdin.flush()
        self.output.await_match(f"^{re.escape(echo)}", start=start)

    def await_end(self) -> str:
        """Waits until it has ended by itself; returns all that it printed."""
        self.process.wait(PATIENCE)
        self.output.join()
        return self.output.text

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.kill()
        self.process.wait(PATIENCE)
        self.output.join()
