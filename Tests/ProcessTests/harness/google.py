"""Google's token service and Firebase Cloud Messaging as tests need them: HTTP/2 over TLS, a ledger.

    python -m harness.google --port 2198 --directory D    a service to try Hermes against
    python -m harness.google --help                       also the tokens that it refuses

A device token that begins with a word of `ANSWERS` gets that answer, any other 200. Account and authority
stay in the directory, so a configuration holds across restarts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import signal
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from .apple import _decode, _kept_certificate, _openssl
from .http2 import HTTP2Connection
from .waiting import eventually

MESSAGING = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
REQUEST = "type.googleapis.com/google.rpc.BadRequest"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"


@dataclass(frozen=True)
class Answer:
    """An error as Google gives it; `code` is of Firebase Cloud Messaging, `general` of all services."""

    status: int
    general: str
    code: str = ""
    retry_after: int | None = None
    field_name: str = ""

    @property
    def word(self) -> str:
        return self.code or self.general

    def body(self) -> dict[str, Any]:
        details: list[dict[str, Any]] = []
        if self.code:
            details.append({"@type": MESSAGING, "errorCode": self.code})
        if self.field_name:
            details.append(
                {"@type": REQUEST, "fieldViolations": [{"field": self.field_name, "description": "no"}]})
        return {
            "error": {
                "code": self.status, "message": "as the test asks", "status": self.general,
                "details": details,
            }
        }


ANSWERS: dict[str, Answer] = {
    "unregistered": Answer(404, "NOT_FOUND", "UNREGISTERED"),
    "invalid": Answer(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
    "badtoken": Answer(
        400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", field_name="message.token"),
    "badfield": Answer(
        400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", field_name="message.android.ttl"),
    "mismatch": Answer(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
    "quota": Answer(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", retry_after=2),
    "busy": Answer(503, "UNAVAILABLE", "UNAVAILABLE", retry_after=2),
    "unavailable": Answer(503, "UNAVAILABLE", "UNAVAILABLE"),
    "internal": Answer(500, "INTERNAL", "INTERNAL"),
    "thirdparty": Answer(401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
    "denied": Answer(403, "PERMISSION_DENIED"),
    "lost": Answer(404, "NOT_FOUND"),
}
"""By the first word of a device token, which a dash ends."""


@dataclass(frozen=True)
class Message:
    """A message as it came, and its answer; status `None` without one."""

    device: str
    at: float
    connection: int
    path: str
    headers: dict[str, str]
    message: dict[str, Any]
    status: int | None
    reason: str

    @property
    def name(self) -> str:
        """What tells it from others: the tag that replaces an earlier one."""
        return str(self.message["android"].get("notification", {}).get("tag", ""))


@dataclass
class Behaviour:
    """What the services do besides answering; a test changes it while they run."""

    answers: dict[str, Answer | None] = field(default_factory=dict)
    """By a whole device token, before ANSWERS; `None` takes its messages."""
    token_life: int = 3_600
    """Seconds for which an access token is said to be good."""
    token_error: tuple[int, dict[str, str]] | None = None
    """The answer of the token service instead of a token."""
    silent_tokens: bool = False
    """The token service says nothing."""
    hold: bool = False
    """Messages wait for their answer until it is false."""


class Google:
    """Listens on a loopback port with a certificate for localhost."""

    def __init__(self, directory: Path, *, port: int = 0, project: str = "test-project") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.project = project
        self.behaviour = Behaviour()
        self.ca_file, server = _kept_certificate(directory / "authority")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(server.certificate, server.key)
        self._context.set_alpn_protocols(["h2"])
        self._lock = threading.Condition()
        self._messages: list[Message] = []
        self.tokens: list[str] = []
        """Access tokens that were given, in their order; only the good ones are taken."""
        self.good: set[str] = set()
        self.token_requests = 0
        self.connections = 0
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.account_file = directory / "account.json"
        self._projects: dict[str, Path] = {}
        self.add_account(project, self.account_file)
        threading.Thread(target=self._accept, daemon=True).start()

    # What a test asks.

    @property
    def messages(self) -> list[Message]:
        with self._lock:
            return list(self._messages)

    def accepted(self, device: str | None = None) -> list[Message]:
        return [
            m for m in self.messages
            if m.status == 200 and (device is None or m.device == device)
        ]

    def await_accepted(
        self, count: int, device: str | None = None, *, within: float = 10
    ) -> list[Message]:
        eventually(
            lambda: len(self.accepted(device)) >= count, f"{count} accepted messages",
            within=within)
        return self.accepted(device)

    def configuration(self, *rules: str) -> str:
        """The section of a broker's configuration that sends to this service."""
        listed = "".join(f"\n    - {rule}" for rule in rules)
        return f"wakes:\n  rules:{listed}\n{self.section()}"

    def section(self) -> str:
        return (
            f"  fcm:\n    service_account: {self.account_file}\n"
            f"    endpoint: localhost:{self.port}\n    ca_file: {self.ca_file}\n"
        )

    def add_account(self, project: str, path: Path) -> Path:
        """A service account as Google's console offers it."""
        if not path.exists():
            key = path.with_suffix(".key")
            _openssl(
                "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(key))
            path.write_text(json.dumps({
                "type": "service_account", "project_id": project, "private_key_id": f"key-of-{project}",
                "private_key": key.read_text(), "client_email": f"hermes@{project}.example",
                "client_id": "1", "token_uri": "",
            }))
            path.chmod(0o600)
        account = json.loads(path.read_text())
        account["token_uri"] = f"https://localhost:{self.port}/token"
        path.write_text(json.dumps(account, indent=2))
        public = path.with_suffix(".pem")
        _openssl("pkey", "-in", str(path.with_suffix(".key")), "-pubout", "-out", str(public))
        self._projects[project] = public
        return path

    def revoke_tokens(self) -> None:
        """No access token that was given is taken any more."""
        self.good.clear()

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

    def __enter__(self) -> Google:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The services.

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                number = self.connections
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

    def note(self, message: Message) -> None:
        with self._lock:
            self._messages.append(message)
            self._lock.notify_all()

    def give_token(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """The answer to a request for an access token."""
        with self._lock:
            self.token_requests += 1
        if self.behaviour.token_error is not None:
            return self.behaviour.token_error
        fields = urllib.parse.parse_qs(body.decode())
        if fields.get("grant_type") != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
            return 400, {"error": "unsupported_grant_type"}
        problem, project = self._judge(fields.get("assertion", [""])[0])
        if problem:
            return 400, {"error": "invalid_grant", "error_description": problem}
        with self._lock:
            token = f"ya29.{project}.{len(self.tokens)}." + "x" * 200
            self.tokens.append(token)
            self.good.add(token)
        return 200, {
            "access_token": token, "expires_in": self.behaviour.token_life, "token_type": "Bearer",
        }

    def _judge(self, assertion: str) -> tuple[str, str]:
        """What is wrong with an assertion, by openssl(1), which knows nothing of the broker's code."""
        parts = assertion.split(".")
        if len(parts) != 3:
            return "Invalid JWT.", ""
        header, claims = json.loads(_decode(parts[0])), json.loads(_decode(parts[1]))
        project = str(claims.get("iss", "")).removeprefix("hermes@").removesuffix(".example")
        if project not in self._projects or header != {
            "alg": "RS256", "typ": "JWT", "kid": f"key-of-{project}"
        }:
            return "Invalid key.", ""
        if claims.get("aud") != f"https://localhost:{self.port}/token" or claims.get("scope") != SCOPE:
            return "Invalid audience or scope.", ""
        if not (0 < claims["exp"] - claims["iat"] <= 3_600 and abs(claims["iat"] - time.time()) < 300):
            return "Token must be a short-lived token and in a reasonable timeframe.", ""
        message, written = self.directory / "message", self.directory / "signature"
        with self._lock:
            message.write_text(f"{parts[0]}.{parts[1]}")
            written.write_bytes(_decode(parts[2]))
            isGenuine = _openssl(  # noqa: N806
                "dgst", "-sha256", "-verify", str(self._projects[project]), "-signature", str(written),
                str(message), isChecked=False) == 0
        return ("", project) if isGenuine else ("Invalid JWT Signature.", "")

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Answer | None:
        """The error of a message; `None` for one that is taken."""
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.good:
            return Answer(401, "UNAUTHENTICATED")
        project = token.split(".")[1]
        if path != f"/v1/projects/{project}/messages:send":
            return Answer(403, "PERMISSION_DENIED")
        problem = check(headers, body)
        if problem:
            return Answer(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", field_name=problem)
        device = json.loads(body)["message"]["token"]
        if device in self.behaviour.answers:
            return self.behaviour.answers[device]
        return ANSWERS.get(device.split("-")[0])


class _Connection(HTTP2Connection):
    """One connection, on a thread of its own."""

    def __init__(self, service: Google, connection: ssl.SSLSocket, number: int) -> None:
        super().__init__(connection)
        self._service = service
        self._number = number

    def settings(self) -> dict[h2.settings.SettingCodes, int]:
        return {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 100}

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._requests[event.stream_id] = (dict(event.headers), bytearray())
        elif isinstance(event, h2.events.DataReceived):
            if event.stream_id in self._requests:
                self._requests[event.stream_id][1].extend(event.data)
            if event.flow_controlled_length:
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self._held.append(event.stream_id)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._ends = True

    def _release_held(self) -> None:
        held, self._held = self._held, []
        for stream in held:
            path = self._requests[stream][0].get(":path", "")
            isToken = path == "/token"  # noqa: N806
            behaviour = self._service.behaviour
            if behaviour.silent_tokens if isToken else behaviour.hold:
                self._held.append(stream)
            elif isToken:
                status, content = self._service.give_token(bytes(self._requests[stream][1]))
                self._respond(stream, status, content)
            else:
                self._answer(stream, path)
        self._send()

    def _answer(self, stream: int, path: str) -> None:
        headers, body = self._requests[stream]
        error = self._service.answer(path, headers, bytes(body))
        try:
            message = json.loads(bytes(body))["message"]
        except (ValueError, KeyError):
            message = {"android": {}}
        status = error.status if error else 200
        self._service.note(
            Message(
                str(message.get("token")), time.time(), self._number, path, headers, message, status,
                error.word if error else ""))
        project = self._service.project
        self._respond(
            stream, status, error.body() if error else {"name": f"projects/{project}/messages/{stream}"},
            error.retry_after if error else None)

    def _respond(
        self, stream: int, status: int, content: dict[str, Any], retry_after: int | None = None
    ) -> None:
        fields = [(":status", str(status)), ("content-type", "application/json; charset=UTF-8")]
        if retry_after is not None:
            fields.append(("retry-after", str(retry_after)))
        with contextlib.suppress(h2.exceptions.StreamClosedError):
            self._h2.send_headers(stream, fields)
            self._h2.send_data(stream, json.dumps(content).encode(), end_stream=True)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(_text(one) for one in value)


NOTIFICATION: dict[str, Callable[[Any], bool]] = {
    "tag": _text, "title_loc_key": _text, "title_loc_args": _texts, "body_loc_key": _text,
    "body_loc_args": _texts, "sound": _text, "notification_count": lambda value: isinstance(value, int),
    "click_action": _text, "channel_id": _text,
    "notification_priority": lambda value: value in (
        "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX"),
}


def check(headers: dict[str, str], body: bytes) -> str:
    """The field of a request that breaks the rules of the REST reference; empty for a good one."""
    if headers.get(":method") != "POST" or headers.get("content-type") != "application/json":
        return "method"
    try:
        message = json.loads(body)["message"]
    except (ValueError, KeyError):
        return "message"
    if set(message) != {"token", "data", "android"} or not message["token"]:
        return "message"
    reserved = ("from", "message_type", "google.", "gcm.")
    for name, value in message["data"].items():
        if not _text(value) or name.startswith(reserved):
            return "message.data"
    android = message["android"]
    if not set(android) <= {"collapse_key", "ttl", "priority", "notification"}:
        return "message.android"
    ttl = re.fullmatch(r"(\d+)s", android["ttl"])
    if ttl is None or int(ttl[1]) > 2_419_200:
        return "message.android.ttl"
    if android["priority"] not in ("HIGH", "NORMAL"):
        return "message.android.priority"
    for name, value in android.get("notification", {}).items():
        if name not in NOTIFICATION or not NOTIFICATION[name](value):
            return f"message.android.notification.{name}"
    if len(json.dumps(android.get("notification", {}))) + len(json.dumps(message["data"])) > 4_096:
        return "message"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m harness.google", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Stands in for Firebase Cloud Messaging and its token service.",
        epilog="device tokens that begin with these words are refused, any other is good:\n"
        + "".join(
            f"  {word}-…  {answer.status} {answer.word}\n" for word, answer in ANSWERS.items()),
    )
    parser.add_argument("--port", type=int, default=2198)
    parser.add_argument(
        "--directory", type=Path, required=True,
        help="for account and certificates, which stay there")
    options = parser.parse_args()
    with Google(options.directory.resolve(), port=options.port) as service:
        path = options.directory / "wakes.yaml"
        path.write_text(
            service.configuration("alert orders/# title=ORDER_TITLE body=ORDER_BODY channel=orders"))
        print(f"listening on localhost:{service.port}; add {path} to hermes.yaml", flush=True)
        seen = 0
        while signal.sigtimedwait({signal.SIGINT, signal.SIGTERM}, 0.2) is None:
            for one in service.messages[seen:]:
                seen += 1
                print(
                    f"{one.status} {one.reason or 'Success'} device={one.device[:8]}… "
                    f"{json.dumps(one.message)}", flush=True)
    sys.exit(0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
