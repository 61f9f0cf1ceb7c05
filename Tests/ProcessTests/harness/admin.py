"""The admin API, as a back office would call it."""

from __future__ import annotations

import http.client
import json
import subprocess
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .broker import ADMIN_TOKEN, Hermesd, inherited_environment
from .waiting import PATIENCE


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def problem(self, status: int) -> dict[str, Any]:
        """The problem document (RFC 9457) that this answer must be."""
        assert self.status == status, f"status {self.status}, not {status}: {self.body[:500]!r}"
        assert self.content_type.startswith("application/problem+json"), self.content_type
        problem = self.json
        assert problem["status"] == status, problem
        assert problem["title"] and problem["detail"], f"says too little: {problem}"
        assert problem["fix"], f"says no cure: {problem}"
        assert self.body.endswith(b"}\n"), self.body
        return problem


class AdminAPI:
    """HTTP requests with the admin token, one connection each."""

    def __init__(self, broker: Hermesd, *, token: str | None = ADMIN_TOKEN) -> None:
        self.broker = broker
        self.token = token

    def request(
        self, method: str, path: str, body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(*self.broker.admin_address, timeout=PATIENCE)
        try:
            authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            connection.request(method, path, body, {**authorization, **(headers or {})})
            response = connection.getresponse()
            return Answer(
                response.status, response.headers.get("Content-Type", ""), response.read(),
                {name.lower(): value for name, value in response.headers.items()},
            )
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        answer = self.request("GET", path)
        assert answer.status == 200, f"GET {path}: {answer.status} {answer.body[:500]!r}"
        return answer.json

    def post_json(self, path: str, value: Any) -> Answer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json"})

    def client(self, client_id: str) -> dict[str, Any]:
        """One client in full."""
        return self.get(f"/v1/clients/{quote(client_id, safe='')}")

    def status(self) -> dict[str, Any]:
        return self.get("/v1/status")

    def metric(self, series: str) -> float:
        """The sum of all series of /metrics whose line begins with `series`."""
        lines = self.request("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(series))


def curl(*arguments: str, stdin: bytes = b"") -> Answer:
    """Runs curl; the answer has no headers but the content type."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", f"{PATIENCE:g}",
         "--write-out", "\n%{http_code} %{content_type}", *arguments],
        input=stdin, capture_output=True, check=False, timeout=PATIENCE + 5,
    )
    assert done.returncode == 0, f"curl ended with {done.returncode}: {done.stderr.decode()}"
    body, _, trailer = done.stdout.rpartition(b"\n")
    code, _, content_type = trailer.decode().partition(" ")
    return Answer(int(code), content_type, body, {})


@dataclass(frozen=True)
class CommandResult:
    code: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)


def hermesctl(
    *arguments: str, broker: Hermesd | None = None, token: str | None = ADMIN_TOKEN,
    stdin: bytes = b"", prefix: list[str] | None = None,
) -> CommandResult:
    """Runs hermesctl, against `broker` if there is one; the token comes by environment.

    `prefix` is a command that runs it, such as one that makes it another user.
    """
    environment = inherited_environment()
    command = [*(prefix or []), str(Hermesd.control_executable()), *arguments]
    if broker is not None:
        command += ["--url", broker.admin_url]
    if token is not None:
        environment["HERMES_ADMIN_TOKEN"] = token
    done = subprocess.run(
        command, input=stdin, capture_output=True, check=False, timeout=PATIENCE,
        env=environment,
    )
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())
