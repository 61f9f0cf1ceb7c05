"""Apple's push service as tests need it: HTTP/2 over TLS, answers that a test chooses, a ledger.

    python -m harness.apple --port 2197 --directory D     a service to try Hermes against
    python -m harness.apple --help                        also the tokens that it refuses

A device token whose first digits stand in `ANSWERS` gets that answer, any other 200. Key and
authority stay in the directory, so a configuration holds across restarts.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from .certificates import Authority, Certificate
from .http2 import HTTP2Connection
from .waiting import eventually

ANSWERS: dict[str, tuple[int, str]] = {
    "ba00": (400, "BadDeviceToken"),
    "ba01": (400, "DeviceTokenNotForTopic"),
    "ba02": (400, "BadCollapseId"),
    "ba03": (400, "BadExpirationDate"),
    "ba04": (400, "BadMessageId"),
    "ba05": (400, "BadPriority"),
    "ba06": (400, "BadTopic"),
    "ba07": (400, "DuplicateHeaders"),
    "ba08": (400, "IdleTimeout"),
    "ba09": (400, "InvalidPushType"),
    "ba0a": (400, "MissingDeviceToken"),
    "ba0b": (400, "MissingTopic"),
    "ba0c": (400, "PayloadEmpty"),
    "ba0d": (400, "TopicDisallowed"),
    "f000": (403, "BadCertificate"),
    "f001": (403, "BadCertificateEnvironment"),
    "f002": (403, "ExpiredProviderToken"),
    "f003": (403, "Forbidden"),
    "f004": (403, "InvalidProviderToken"),
    "f005": (403, "MissingProviderToken"),
    "f006": (403, "UnrelatedKeyIdInToken"),
    "f007": (403, "BadEnvironmentKeyIdInToken"),
    "f008": (403, "BadEnvironmentKeyInToken"),
    "de00": (404, "BadPath"),
    "de01": (405, "MethodNotAllowed"),
    "de02": (413, "PayloadTooLarge"),
    "d000": (410, "Unregistered"),
    "d001": (410, "ExpiredToken"),
    "e000": (429, "TooManyRequests"),
    "e001": (429, "TooManyProviderTokenUpdates"),
    "e002": (500, "InternalServerError"),
    "e003": (503, "ServiceUnavailable"),
    "e004": (503, "Shutdown"),
}
"""By the first digits of a device token."""

TOKEN_LIFE = 3_600
"""Seconds for which a provider token is taken."""

TOKEN_INTERVAL = 1_200
"""Seconds between two new provider tokens of a team, at least."""


@dataclass(frozen=True)
class Notification:
    """A request as it came, and its answer; status `None` without one."""

    device: str
    at: float
    connection: int
    headers: dict[str, str]
    payload: dict[str, Any]
    status: int | None
    reason: str

    @property
    def apns_id(self) -> str:
        return self.headers["apns-id"]


@dataclass
class Behaviour:
    """What the service does besides answering; a test changes it while the service runs."""

    streams: int = 1_000
    """Streams at a time once a provider token was good; one before."""
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By a whole device token, before ANSWERS."""
    unregistered_at_ms: int | None = None
    """The timestamp of a 410; `None` is now."""
    silent: int = 0
    """So many requests get no answer."""
    goaway_after: int | None = None
    """After so many requests of a connection, GOAWAY with the last stream that was answered."""
    goaway_at_once: bool = False
    """Every connection is told GOAWAY with its first request, and no answer."""
    shutdown_next: bool = False
    """The next answer is 503 Shutdown; the others of the connection follow."""
    goaway_twice: bool = False
    """First a GOAWAY that names the highest stream, then the true one."""
    refuse_streams: int = 0
    """So many requests end with REFUSED_STREAM."""
    reset_streams: int = 0
    """So many requests end with INTERNAL_ERROR."""
    reset_after: int | None = None
    """After so many requests of a connection, it is reset without answers."""
    shrink_to: int | None = None
    """With the next request, SETTINGS allows so many streams."""
    most_connections: int | None = None
    """Further connections are closed at once."""
    window: int | None = None
    """The initial window for payloads, which grows slowly."""
    hold: bool = False
    """Requests wait for their answer until it is false."""


@dataclass(frozen=True)
class Team:
    """A team with a key, as the developer site knows it."""

    key_file: Path
    key_id: str
    team_id: str

    def line(self, bundle: str) -> str:
        """Of `wakes.apns.apps`."""
        return (
            f"{bundle} key_file={self.key_file} key_id={self.key_id} team_id={self.team_id}"
        )


class Apple:
    """Listens on a loopback port with a certificate for localhost."""

    def __init__(
        self, directory: Path, *, port: int = 0, key_id: str = "ABC123DEFG",
        team_id: str = "DEF123GHIJ", ledger: TextIO | None = None,
        client_authority: Certificate | None = None, bundle: str | None = None,
    ) -> None:
        """With `client_authority`, a certificate that it has issued takes the place of tokens.

        With `bundle`, device tokens are of this app only.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.key_id, self.team_id = key_id, team_id
        self.bundle = bundle
        self.teams: dict[str, Team] = {}
        """Other teams by the bundle of their app; all other apps are of the first."""
        self.behaviour = Behaviour()
        self.key_file = directory / "AuthKey.p8"
        if not self.key_file.exists():
            make_key(self.key_file)
            (directory / "public.pem").unlink(missing_ok=True)
        self._public_key()
        self.ca_file, server = _kept_certificate(directory / "authority")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(server.certificate, server.key)
        self._context.set_alpn_protocols(["h2"])
        if client_authority is not None:
            self._context.load_verify_locations(client_authority.certificate)
            self._context.verify_mode = ssl.CERT_OPTIONAL
        self.clock: Callable[[], float] = time.time
        """Apple's idea of the time, which judges provider tokens."""
        self._ledger = ledger
        self._lock = threading.Condition()
        self._notifications: list[Notification] = []
        self._tokens: list[tuple[float, str]] = []
        self.connections = 0
        self.requests = 0
        """Requests that have come whole."""
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    # What a test asks.

    @property
    def notifications(self) -> list[Notification]:
        with self._lock:
            return list(self._notifications)

    def wait_for(self, count: int, *, within: float) -> bool:
        """Waits for so many requests in all; false when they do not come in that many seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: len(self._notifications) >= count, within)

    def accepted(self, device: str | None = None) -> list[Notification]:
        return [
            n for n in self.notifications
            if n.status == 200 and (device is None or n.device == device)
        ]

    def await_accepted(
        self, count: int, device: str | None = None, *, within: float = 10
    ) -> list[Notification]:
        eventually(
            lambda: len(self.accepted(device)) >= count, f"{count} accepted notifications",
            within=within)
        return self.accepted(device)

    def await_requests(self, count: int) -> None:
        """Waits for so many requests in all, also those that are held back from an answer."""
        eventually(lambda: self.requests >= count, f"{count} requests")

    @property
    def provider_tokens(self) -> list[str]:
        """Those that came, in their order, each once."""
        with self._lock:
            return [token for _, token in self._tokens]

    def configuration(self, *rules: str) -> str:
        """The section of a broker's configuration that sends to this service."""
        listed = "".join(f"\n    - {rule}" for rule in rules)
        return (
            f"wakes:\n  rules:{listed}\n  apns:\n    key_file: {self.key_file}\n"
            f"    key_id: {self.key_id}\n    team_id: {self.team_id}\n"
            f"    production: localhost:{self.port}\n    sandbox: localhost:{self.port}\n"
            f"    ca_file: {self.ca_file}\n"
        )

    def add_team(self, bundle: str, key_id: str, team_id: str) -> Team:
        """A further team, whose app this is."""
        team = Team(self.directory / f"AuthKey_{key_id}.p8", key_id, team_id)
        make_key(team.key_file)
        self.teams[bundle] = team
        self._public_key(team)
        return team

    def drop_connections(self) -> None:
        with self._lock:
            sockets = list(self._open)
        for connection in sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    def __enter__(self) -> Apple:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The service.

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            most = self.behaviour.most_connections
            with self._lock:
                self.connections += 1
                number = self.connections
                if most is not None and len(self._open) >= most:
                    connection.close()
                    continue
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            with self._context.wrap_socket(connection, server_side=True) as secure:
                with self._lock:
                    self._open.discard(connection)
                    self._open.add(secure)
                try:
                    _Connection(self, secure, number).run()
                finally:
                    with self._lock:
                        self._open.discard(secure)
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            with self._lock:
                self._open.discard(connection)

    def note(self, notification: Notification) -> None:
        with self._lock:
            self._notifications.append(notification)
            self._lock.notify_all()
            if self._ledger is not None:
                line = {
                    "device": notification.device, "apns_id": notification.apns_id,
                    "at": notification.at, "connection": notification.connection,
                    "headers": {
                        name: value for name, value in notification.headers.items()
                        if name != "authorization"
                    },
                    "status": notification.status, "reason": notification.reason,
                    "payload": notification.payload,
                }
                self._ledger.write(json.dumps(line) + "\n")
                self._ledger.flush()

    def judge_token(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and the reason for which a provider token is not taken; `None` if it is."""
        token = headers.get("authorization", "")
        if not token.startswith("bearer "):
            return 403, "MissingProviderToken"
        token = token.removeprefix("bearer ")
        with self._lock:
            known = [text for _, text in self._tokens]
            if token not in known:
                if not self._is_genuine(token):
                    return 403, "InvalidProviderToken"
                now = self.clock()
                issuer = team_of(token)
                times = [at for at, text in self._tokens if team_of(text) == issuer]
                if times and now - times[-1] < TOKEN_INTERVAL:
                    return 429, "TooManyProviderTokenUpdates"
                self._tokens.append((now, token))
        issued = json.loads(_decode(token.split(".")[1]))["iat"]
        return (403, "ExpiredProviderToken") if self.clock() - issued > TOKEN_LIFE else None

    def _is_genuine(self, token: str) -> bool:
        """By openssl(1), which knows nothing of the broker's code."""
        parts = token.split(".")
        if len(parts) != 3:
            return False
        header, claims = json.loads(_decode(parts[0])), json.loads(_decode(parts[1]))
        own = Team(self.key_file, self.key_id, self.team_id)
        team = next(
            (team for team in (own, *self.teams.values())
             if header == {"alg": "ES256", "kid": team.key_id} and claims["iss"] == team.team_id),
            None)
        if team is None:
            return False
        signature = _decode(parts[2])
        if len(signature) != 64 or not isinstance(claims["iat"], int):
            return False
        message, written = self.directory / "message", self.directory / "signature"
        message.write_text(f"{parts[0]}.{parts[1]}")
        written.write_bytes(_der(signature))
        return _openssl(
            "dgst", "-sha256", "-verify", str(self._public_key(team)), "-signature", str(written),
            str(message),
            isChecked=False,
        ) == 0

    def _public_key(self, team: Team | None = None) -> Path:
        """What the service knows of the key; it stays when another one is put into the key's file."""
        key = self.key_file if team is None else team.key_file
        public = self.directory / ("public.pem" if key == self.key_file else f"{key.stem}.pem")
        if not public.exists():
            _openssl("pkey", "-in", str(key), "-pubout", "-out", str(public))
        return public

    def team_id_of(self, bundle: str) -> str:
        team = self.teams.get(bundle)
        return self.team_id if team is None else team.team_id

    def answer(self, device: str, topic: str) -> tuple[int, str]:
        if device in self.behaviour.answers:
            return self.behaviour.answers[device]
        if self.bundle is not None and topic != self.bundle:
            return 400, "DeviceTokenNotForTopic"
        return ANSWERS.get(device[:4], (200, ""))


class _Connection(HTTP2Connection):
    """One connection, on a thread of its own."""

    def __init__(self, service: Apple, connection: ssl.SSLSocket, number: int) -> None:
        super().__init__(connection)
        self._service = service
        self._number = number
        # Only one that the authority of clients has issued ends a handshake.
        self._has_certificate = connection.getpeercert() not in (None, {})
        self._count = 0
        self._team: str | None = None
        self._is_proven = False
        self._last_answered = 0

    def settings(self) -> dict[h2.settings.SettingCodes, int]:
        announced = {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1}
        window = self._service.behaviour.window
        if window is not None:
            announced[h2.settings.SettingCodes.INITIAL_WINDOW_SIZE] = window
        return announced

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._requests[event.stream_id] = (dict(event.headers), bytearray())
        elif isinstance(event, h2.events.DataReceived):
            if event.stream_id in self._requests:
                self._requests[event.stream_id][1].extend(event.data)
            size = event.flow_controlled_length
            if size:
                self._h2.increment_flow_control_window(size)
                if event.stream_ended is None:
                    self._h2.increment_flow_control_window(size, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self._request(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self._requests.pop(event.stream_id, None)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._ends = True

    def _request(self, stream: int) -> None:
        if stream not in self._requests:
            return
        behaviour = self._service.behaviour
        self._count += 1
        self._service.requests += 1
        if behaviour.goaway_at_once:
            # The client closes: a socket that is closed first with bytes unread is reset.
            self._h2.close_connection(last_stream_id=0)
            self._send()
            return
        if behaviour.goaway_after is not None and self._count > behaviour.goaway_after:
            self._say_goodbye(behaviour)
            return
        if behaviour.reset_after is not None and self._count > behaviour.reset_after:
            self._note(stream, None, "reset")
            self._reset()
            return
        for name, code in (
            ("refuse_streams", h2.errors.ErrorCodes.REFUSED_STREAM),
            ("reset_streams", h2.errors.ErrorCodes.INTERNAL_ERROR),
        ):
            if getattr(behaviour, name) > 0:
                setattr(behaviour, name, getattr(behaviour, name) - 1)
                self._note(stream, None, name)
                self._h2.reset_stream(stream, code)
                return
        if behaviour.silent > 0:
            behaviour.silent -= 1
            self._note(stream, None, "silence")
            return
        if behaviour.shrink_to is not None:
            self._allow(behaviour.shrink_to)
            behaviour.shrink_to = None
        self._held.append(stream)

    def _release_held(self) -> None:
        if self._service.behaviour.hold:
            return
        held, self._held = self._held, []
        for stream in held:
            self._answer(stream)
        if held:
            self._send()

    def _answer(self, stream: int) -> None:
        headers, payload = self._requests[stream]
        problem = None if self._has_certificate else self._service.judge_token(headers)
        if problem is None and not self._has_certificate:
            team = team_of(headers["authorization"].removeprefix("bearer "))
            # One connection, one team.
            self._team = self._team or team
            if team != self._team:
                problem = (403, "InvalidProviderToken")
            elif team != self._service.team_id_of(headers["apns-topic"]):
                problem = (400, "TopicDisallowed")
        if problem is not None:
            status, reason = problem
        else:
            problem = check(headers, bytes(payload))
            if problem is not None:
                status, reason = problem
            else:
                status, reason = self._service.answer(
                    headers[":path"].rsplit("/", 1)[-1], headers["apns-topic"])
                if self._service.behaviour.shutdown_next:
                    self._service.behaviour.shutdown_next = False
                    status, reason = 503, "Shutdown"
        if status == 200 and not self._is_proven:
            self._is_proven = True
            self._allow(self._service.behaviour.streams)
        self._note(stream, status, reason)
        self._last_answered = max(self._last_answered, stream)
        fields = [(":status", str(status)), ("apns-id", headers.get("apns-id", ""))]
        with contextlib.suppress(h2.exceptions.StreamClosedError):
            self._h2.send_headers(stream, fields, end_stream=status == 200)
            if status != 200:
                body: dict[str, Any] = {"reason": reason}
                if status == 410:
                    at = self._service.behaviour.unregistered_at_ms
                    body["timestamp"] = int(time.time() * 1_000) if at is None else at
                self._h2.send_data(stream, json.dumps(body).encode(), end_stream=True)

    def _allow(self, streams: int) -> None:
        self._h2.update_settings(
            {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: streams}
        )

    def _say_goodbye(self, behaviour: Behaviour) -> None:
        self._release_held()
        if behaviour.goaway_twice:
            self._h2.close_connection(last_stream_id=2**31 - 1)
            self._send()
        behaviour.goaway_after = None
        frame = struct.pack(">I", self._last_answered) + struct.pack(">I", 0)
        header = struct.pack(">I", len(frame))[1:] + bytes([7, 0]) + struct.pack(">I", 0)
        self._send()
        self._socket.settimeout(10)
        self._socket.sendall(header + frame)
        self._ends = True

    def _reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._ends = True

    def _note(self, stream: int, status: int | None, reason: str) -> None:
        headers, payload = self._requests[stream]
        try:
            content = json.loads(bytes(payload))
        except ValueError:
            content = {}
        self._service.note(
            Notification(
                headers[":path"].rsplit("/", 1)[-1], time.time(), self._number, headers, content,
                status, reason,
            )
        )


def team_of(token: str) -> str:
    """The team that a provider token names."""
    return str(json.loads(_decode(token.split(".")[1]))["iss"])


SUFFIXES = {
    "alert": "", "background": "", "voip": ".voip", "pushtotalk": ".voip-ptt",
    "liveactivity": ".push-type.liveactivity",
}
"""Kinds of notifications, with the end of their topics."""

PRIORITIES = {
    "alert": ("10", "5", "1"), "background": ("5", "1"), "voip": ("10",), "pushtotalk": ("10",),
    "liveactivity": ("10", "5"),
}


def check(headers: dict[str, str], payload: bytes) -> tuple[int, str] | None:
    """The answer to a request that breaks Apple's rules; `None` to another."""
    if headers.get(":method") != "POST":
        return 405, "MethodNotAllowed"
    if not re.fullmatch(r"/3/device/([0-9a-f]{2})+", headers.get(":path", "")):
        return 404, "BadPath"
    if not headers.get("apns-topic"):
        return 400, "MissingTopic"
    kind = headers.get("apns-push-type")
    if kind not in SUFFIXES:
        return 400, "InvalidPushType"
    suffix = next((end for end in SUFFIXES.values() if end and headers["apns-topic"].endswith(end)), "")
    if suffix != SUFFIXES[kind]:
        return 400, "DeviceTokenNotForTopic"
    priority = headers.get("apns-priority", "10")
    if priority not in PRIORITIES[kind]:
        return 400, "BadPriority"
    if suffix and "apns-collapse-id" in headers:
        return 400, "BadCollapseId"
    if not re.fullmatch(r"\d{1,12}", headers.get("apns-expiration", "0")):
        return 400, "BadExpirationDate"
    if len(headers.get("apns-collapse-id", "").encode()) > 64:
        return 400, "BadCollapseId"
    try:
        if str(uuid.UUID(headers["apns-id"])) != headers["apns-id"]:
            return 400, "BadMessageId"
    except (KeyError, ValueError):
        return 400, "BadMessageId"
    if len(payload) > (5_120 if kind == "voip" else 4_096):
        return 413, "PayloadTooLarge"
    return _check_payload(payload, kind)


def _check_payload(payload: bytes, kind: str) -> tuple[int, str] | None:
    try:
        content = json.loads(payload)
    except ValueError:
        return 400, "PayloadEmpty"
    aps = content.get("aps") if isinstance(content, dict) else None
    if not isinstance(aps, dict):
        return 400, "PayloadEmpty"
    if kind == "alert" and not {"alert", "badge", "sound"} & aps.keys():
        return 400, "PayloadEmpty"
    if kind == "background" and aps != {"content-available": 1}:
        return 400, "InvalidPushType"
    if kind == "liveactivity" and not (
        isinstance(aps.get("timestamp"), int) and aps.get("event") in ("update", "end")
        and isinstance(aps.get("content-state"), dict)
    ):
        return 400, "PayloadEmpty"
    return None


def make_key(path: Path) -> None:
    """Writes a key as Apple's developer site gives it."""
    _openssl(
        "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(path)
    )
    path.chmod(0o600)


def _kept_certificate(directory: Path) -> tuple[Path, Certificate]:
    """The authority's certificate and the server's, made anew unless good ones are there."""
    authority = directory / "ca.crt"
    server = Certificate(directory / "localhost.crt", directory / "localhost.key")
    lasts = all(
        path.exists() and _openssl(
            "x509", "-in", str(path), "-noout", "-checkend", "86400", isChecked=False) == 0
        for path in (authority, server.certificate)
    )
    if not lasts or not server.key.exists():
        shutil.rmtree(directory, ignore_errors=True)
        Authority(directory).issue("localhost")
    return authority, server


def _openssl(*arguments: str, isChecked: bool = True) -> int:  # noqa: N803
    result = subprocess.run(["openssl", *arguments], capture_output=True, check=False, timeout=60)
    if isChecked and result.returncode != 0:
        raise RuntimeError(result.stderr.decode())
    return result.returncode


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _der(signature: bytes) -> bytes:
    """Both numbers of an ECDSA signature as ASN.1."""

    def number(value: bytes) -> bytes:
        value = value.lstrip(b"\0") or b"\0"
        if value[0] & 0x80:
            value = b"\0" + value
        return b"\x02" + bytes([len(value)]) + value

    content = number(signature[:32]) + number(signature[32:])
    return b"\x30" + bytes([len(content)]) + content


@contextlib.contextmanager
def _printing(service: Apple) -> Iterator[None]:
    seen = 0
    stop = threading.Event()

    def show_new() -> None:
        nonlocal seen
        for one in service.notifications[seen:]:
            seen += 1
            kind = one.headers.get("apns-push-type")
            print(
                f"{one.status} {one.reason or 'Success'} device={one.device[:8]}… {kind} "
                f"collapse={one.headers.get('apns-collapse-id')} {json.dumps(one.payload)}",
                flush=True,
            )

    def show() -> None:
        while not stop.wait(0.2):
            show_new()
        show_new()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m harness.apple", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Stands in for Apple's push service.",
        epilog="device tokens that begin with these digits are refused, any other is good:\n"
        + "".join(
            f"  {digits}…  {status} {reason}\n"
            for digits, (status, reason) in sorted(ANSWERS.items(), key=lambda item: item[1])),
    )
    parser.add_argument("--port", type=int, default=2197)
    parser.add_argument(
        "--directory", type=Path, required=True, help="for key and certificates, which stay there")
    parser.add_argument("--ledger", type=Path, help="appends a line of JSON for each request")
    parser.add_argument(
        "--bundle", help="the only app whose devices are known; others get DeviceTokenNotForTopic")
    options = parser.parse_args()
    ledger = options.ledger.open("a") if options.ledger else None
    with Apple(
        options.directory.resolve(), port=options.port, ledger=ledger, bundle=options.bundle
    ) as service:
        path = options.directory / "wakes.yaml"
        path.write_text(
            service.configuration("alert orders/# title=ORDER_TITLE body=ORDER_BODY badge")
        )
        print(f"listening on localhost:{service.port}; add {path} to hermes.yaml", flush=True)
        with _printing(service):
            signal.sigwait({signal.SIGINT, signal.SIGTERM})
    sys.exit(0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
