"""A TCP relay between a client and a broker that can be cut, held and made unreliable."""

from __future__ import annotations

import random
import socket
import struct
import threading


class Relay:
    """Relays each connection to `target`; `port` is its own.

    With `cut_between=(a, b)` each connection ends after a random number of bytes in that range, in
    either direction, by FIN or RST, often in the middle of a packet; some bytes that were read are
    then never sent on.
    """

    def __init__(
        self, target: tuple[str, int], *, cut_between: tuple[int, int] | None = None, seed: int = 0
    ) -> None:
        self._target = target
        self._cut_between = cut_between
        self._random = random.Random(seed)
        self._passes = threading.Event()
        self._passes.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Nothing passes any more on the connections of now, and nobody is told."""
        self._passes.clear()

    def go_on(self) -> None:
        """New connections pass; those that were held are silent for good."""
        self._passes = threading.Event()
        self._passes.set()

    def retarget(self, target: tuple[str, int]) -> None:
        """New connections lead there."""
        self._target = target

    def cut_all(self) -> None:
        for pair in self._pairs:
            self._end(pair, reset=True)

    def stop_cutting(self) -> None:
        self._cut_between = None

    def close(self) -> None:
        self._listener.close()
        self.cut_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            pair = (client, broker)
            self._pairs.append(pair)
            passes = self._passes
            for source, sink in (pair, pair[::-1]):
                limit = self._random.randint(*self._cut_between) if self._cut_between else None
                arguments = (source, sink, pair, limit, passes)
                threading.Thread(target=self._pass_on, args=arguments, daemon=True).start()

    def _pass_on(
        self, source: socket.socket, sink: socket.socket,
        pair: tuple[socket.socket, socket.socket], limit: int | None, passes: threading.Event,
    ) -> None:
        try:
            while data := source.recv(65_536):
                passes.wait()
                if limit is not None and self._cut_between is not None:
                    if len(data) >= limit:
                        # What was read and not sent on is lost, as with a phone's radio.
                        sink.sendall(data[: self._random.randint(0, limit)])
                        self.cuts += 1
                        self._end(pair, reset=self._random.random() < 0.5)
                        return
                    limit -= len(data)
                sink.sendall(data)
        except OSError:
            pass
        self._end(pair, reset=False)

    @staticmethod
    def _end(pair: tuple[socket.socket, socket.socket], *, reset: bool) -> None:
        for end in pair:
            try:
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
                end.close()
            except OSError:
                pass
