"""openssl s_client and gnutls-cli, which can use and misuse TLS as no client library can."""

from __future__ import annotations

import abc
import re
import subprocess
from pathlib import Path

from .broker import BrokerLog, Hermesd
from .tls_suites import Suite
from .waiting import PATIENCE


class TLSProgram(abc.ABC):
    """A program that runs until it is closed; `output` holds its output, line by line."""

    def __init__(self, command: list[str]) -> None:
        # stdbuf: the C library would otherwise buffer output to a pipe.
        self.process = subprocess.Popen(
            ["stdbuf", "-o0", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = BrokerLog(self.process.stdout)

    def __enter__(self) -> TLSProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    @abc.abstractmethod
    def start(
        cls, broker: Hermesd, authority: Path, suite: Suite, *, fragment: int | None = None
    ) -> TLSProgram:
        """Makes a handshake with this suite; `fragment` limits the bytes of a record."""

    @abc.abstractmethod
    def change_key(self, *, asks: bool = False) -> None:
        """Sends a KeyUpdate, which may ask for one in return."""

    @abc.abstractmethod
    def renegotiate(self) -> None: ...

    @property
    @abc.abstractmethod
    def alerts(self) -> set[int]:
        """The broker's alerts, close_notify left out."""

    @property
    @abc.abstractmethod
    def was_told_of_the_end(self) -> bool:
        """Whether close_notify came before the end of the stream."""

    def send(self, data: bytes) -> None:
        """Sends application data that does not begin with a letter of a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def command(self, text: str, echo: str) -> None:
        """Sends one interactive command, and waits for its output."""
        start = len(self.output.lines)
        self.send(f"{text}\n".encode())
        self.output.await_match(f"^{re.escape(echo)}", start=start)

    def hang_up(self) -> str:
        """Ends its input, upon which it sends close_notify; returns its output."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.await_end()

    def await_end(self) -> str:
        """Waits until it has ended by itself; returns its output."""
        self.process.wait(PATIENCE)
        self.output.join()
        return self.output.text

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.kill()
        self.process.wait(PATIENCE)
        self.output.join()


class OpenSSLClient(TLSProgram):
    """openssl s_client."""

    def __init__(self, broker: Hermesd, authority: Path, *arguments: str) -> None:
        super().__init__([
            "openssl", "s_client", "-connect", f"{broker.address[0]}:{broker.port}", "-CAfile",
            str(authority), *arguments])

    @classmethod
    def start(
        cls, broker: Hermesd, authority: Path, suite: Suite, *, fragment: int | None = None
    ) -> OpenSSLClient:
        fragments = ["-maxfraglen", str(fragment)] if fragment is not None else []
        client = cls(broker, authority, *suite.openssl_arguments, *fragments)
        client.output.await_match(f"^New, TLS.*Cipher is {suite.name}$")
        return client

    def await_handshake(self) -> str:
        """Waits for the handshake; returns "New" or "Reused"."""
        return self.output.await_match(r"^(New|Reused), TLS").group(1)

    def change_key(self, *, asks: bool = False) -> None:
        self.command("K" if asks else "k", "KEYUPDATE")

    def renegotiate(self) -> None:
        self.command("R", "RENEGOTIATING")

    @property
    def alerts(self) -> set[int]:
        numbers = {int(one) for one in re.findall(r"SSL alert number (\d+)", self.output.text)}
        # A warning, of which it gives no number.
        return numbers | ({100} if ":no renegotiation:" in self.output.text else set())

    @property
    def was_told_of_the_end(self) -> bool:
        return "unexpected eof" not in self.output.text


class GnuTLSClient(TLSProgram):
    """gnutls-cli. Its commands are lines, so data sent before one must end with a line feed."""

    def __init__(self, broker: Hermesd, authority: Path, *arguments: str) -> None:
        super().__init__([
            "gnutls-cli", "--x509cafile", str(authority), "--inline-commands", *arguments, "-p",
            str(broker.port), "localhost"])

    @classmethod
    def start(
        cls, broker: Hermesd, authority: Path, suite: Suite, *, fragment: int | None = None
    ) -> GnuTLSClient:
        fragments = [f"--recordsize={fragment}"] if fragment is not None else []
        client = cls(broker, authority, "--priority", suite.priority, *fragments)
        client.output.await_match(
            rf"^- Description: \(TLS{suite.version}.*\({suite.cipher}\)")
        client.output.await_match("^- Simple Client Mode:")
        return client

    def change_key(self, *, asks: bool = False) -> None:
        self.command("^rekey^" if asks else "^rekey1^", "- Rekey was completed")

    def renegotiate(self) -> None:
        self.send(b"^renegotiate^\n")

    @property
    def alerts(self) -> set[int]:
        return {int(one) for one in re.findall(r"Received alert \[(\d+)\]", self.output.text)}

    @property
    def was_told_of_the_end(self) -> bool:
        return "non-properly terminated" not in self.output.text
