"""mosquitto_pub and mosquitto_sub, as a person would use them."""

from __future__ import annotations

import queue
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from .broker import Broker
from .waiting import PATIENCE, Deadline, eventually

# Quality of service, retained flag, payload in hexadecimal, topic.
_FORMAT = "MESSAGE %q %r %x %t"


@dataclass(frozen=True)
class Received:
    """One message as a real client showed it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool = False


def mosquitto_pub(broker: Broker, *arguments: str, stdin: bytes | None = None) -> None:
    """Runs mosquitto_pub to its end; fails with its output when it fails."""
    _run_to_end("mosquitto_pub", broker, arguments, stdin)


def mosquitto_sub_once(broker: Broker, *arguments: str) -> str:
    """Runs mosquitto_sub to its end (give it -E, or -C and -W); returns its output."""
    return _run_to_end("mosquitto_sub", broker, arguments, None)


def _run_to_end(
    program: str, broker: Broker, arguments: tuple[str, ...], stdin: bytes | None
) -> str:
    command = [program, "-h", broker.address[0], "-p", str(broker.port), *arguments]
    done = subprocess.run(
        command, input=stdin if stdin is not None else b"", capture_output=True,
        timeout=PATIENCE, check=False,
    )
    assert done.returncode == 0, (
        f"{' '.join(command)} ended with {done.returncode}: "
        f"{done.stdout.decode(errors='replace')}{done.stderr.decode(errors='replace')}"
    )
    return done.stdout.decode()


class MosquittoSub:
    """A mosquitto_sub that runs until it is stopped; ready once its subscription is granted."""

    def __init__(self, broker: Broker, *arguments: str) -> None:
        self._messages: queue.Queue[Received] = queue.Queue()
        self._subscribed = threading.Event()
        self._output: list[str] = []
        # stdbuf: the C library would hold the lines back in a pipe.
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", "mosquitto_sub", "-h", broker.address[0], "-p", str(broker.port),
             "-d", "-F", _FORMAT, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()
        if not self._subscribed.wait(PATIENCE):
            self.stop()
            raise AssertionError(f"mosquitto_sub did not subscribe: {self._output}")

    def _collect(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            line = raw.decode().rstrip("\n")
            if line.startswith("MESSAGE "):
                _, qos, retain, payload, topic = line.split(" ", 4)
                self._messages.put(
                    Received(topic, bytes.fromhex(payload), int(qos), retain == "1")
                )
            else:
                self._output.append(line)
                if line.startswith("Subscribed "):
                    self._subscribed.set()

    def take(self, timeout: float = PATIENCE) -> Received:
        deadline = Deadline(timeout, "a message at mosquitto_sub")
        try:
            return self._messages.get(timeout=timeout)
        except queue.Empty:
            raise deadline.failure(f"its output: {self._output}") from None

    def kill(self) -> None:
        """SIGKILL: the connection ends without a DISCONNECT."""
        self.process.kill()
        self._finish()

    def stop(self) -> list[Received]:
        """Sends SIGTERM, at which it sends DISCONNECT; returns the remaining messages.

        Its signal handler prints. In the middle of another print that line would come twice, so
        the signal waits until the process sleeps in its loop.
        """
        eventually(self._is_asleep, "mosquitto_sub to wait for the network")
        self.process.terminate()
        self._finish()
        return list(self._messages.queue)

    def _is_asleep(self) -> bool:
        # The state follows the name, which is in parentheses (proc(5)).
        status = Path(f"/proc/{self.process.pid}/stat").read_text()
        return status.rpartition(") ")[2][0] in "SZ"

    def _finish(self) -> None:
        self.process.wait(PATIENCE)
        self._thread.join(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()
