"""A company's login service: keys of each algorithm, tokens, and a place where its keys are published."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import ecdsa

from .waiting import PATIENCE


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def compact(value: dict[str, Any]) -> str:
    return base64url(json.dumps(value, separators=(",", ":")).encode())


class SigningKey:
    """A key of one algorithm: HS256, RS256, ES256 or EdDSA."""

    def __init__(self, algorithm: str, directory: Path, name: str) -> None:
        self.algorithm = algorithm
        self.name = name
        self._file = directory / f"{name}.private.pem"
        match algorithm:
            case "HS256":
                self._key: Any = hashlib.sha256(name.encode()).hexdigest().encode()
            case "ES256":
                self._key = ecdsa.SigningKey.generate(ecdsa.NIST256p, hashfunc=hashlib.sha256)
            case "EdDSA":
                self._key = ecdsa.SigningKey.generate(ecdsa.Ed25519)
            case "RS256":
                subprocess.run(
                    ["openssl", "genrsa", "-out", str(self._file), "2048"], check=True,
                    capture_output=True, timeout=6 * PATIENCE)

    def sign(self, message: bytes) -> bytes:
        match self.algorithm:
            case "HS256":
                return hmac.digest(self._key, message, "sha256")
            case "RS256":
                return subprocess.run(
                    ["openssl", "dgst", "-sha256", "-sign", str(self._file)], check=True,
                    input=message, capture_output=True, timeout=PATIENCE).stdout
            case _:
                return self._key.sign(message)

    @property
    def public(self) -> bytes:
        """The key in PEM; the secret of HS256."""
        match self.algorithm:
            case "HS256":
                return self._key
            case "RS256":
                return subprocess.run(
                    ["openssl", "pkey", "-in", str(self._file), "-pubout"], check=True,
                    capture_output=True, timeout=PATIENCE).stdout
            case _:
                return self._key.get_verifying_key().to_pem()

    @property
    def jwk(self) -> dict[str, str]:
        match self.algorithm:
            case "ES256":
                point = self._key.get_verifying_key().to_string()
                return {
                    "kty": "EC", "crv": "P-256", "kid": self.name, "use": "sig",
                    "x": base64url(point[:32]), "y": base64url(point[32:]),
                }
            case "EdDSA":
                return {
                    "kty": "OKP", "crv": "Ed25519", "kid": self.name,
                    "x": base64url(self._key.get_verifying_key().to_string()),
                }
            case _:
                raise NotImplementedError(self.algorithm)

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> bytes:
        """A token that ends in an hour; `exp=None` leaves the claim out."""
        full = {"sub": "anna", "exp": int(time.time()) + 3_600, **claims}
        full = {name: value for name, value in full.items() if value is not None}
        head = {"alg": self.algorithm, "typ": "JWT", **(header or {})}
        signed = f"{compact(head)}.{compact(full)}"
        return f"{signed}.{base64url(self.sign(signed.encode()))}".encode()

    def named(self, **claims: Any) -> bytes:
        """A token that names its key."""
        return self.token({"kid": self.name}, **claims)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.public)
        path.chmod(0o600)
        return path


def key_set(*keys: SigningKey) -> bytes:
    return json.dumps({"keys": [key.jwk for key in keys]}).encode()


@dataclass
class KeyServer:
    """Publishes a document of keys on a free loopback port, and counts who asks."""

    document: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    requests: int = 0

    def __post_init__(self) -> None:
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/.well-known/jwks.json"

    def open(self) -> None:
        """Listens, on the former port after a pause."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests += 1
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(outer.document)))
                self.end_headers()
                self.wfile.write(outer.document)

            def log_message(self, *_: Any) -> None:
                pass

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
