"""Attacks on the operator's side: files, the HTTP port, the log and hermesctl's tables.

docs/security.md lists them with their effect and their test.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from harness.admin import AdminAPI, curl, hermesctl
from harness.broker import ADMIN_TOKEN, Hermesd, Settings, inherited_environment
from harness.certificates import self_signed
from harness.waiting import PATIENCE

pytestmark = pytest.mark.hermesd("the operator's side of hermesd")

STRANGER = 65534
AUTHORIZATION = f"Authorization: Bearer {ADMIN_TOKEN}\r\n"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


# --- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_everything_that_is_made_is_private_whatever_the_umask(mask, tmp_path):
    """Store, journal, tokens, users, backup and socket, with the locks beside them."""

    class Masked(Hermesd):
        def command(self) -> list[str]:
            return ["sh", "-c", f'umask {mask:03o}; exec "$@"', "sh", *super().command()]

    def masked(*arguments: str) -> None:
        done = subprocess.run(
            [str(Hermesd.control_executable()), *arguments], input=b"secret", check=False,
            capture_output=True, timeout=PATIENCE, preexec_fn=lambda: os.umask(mask))
        assert done.returncode == 0, done.stderr.decode()

    broker = Masked(Settings(makes_its_own_token=True), data=tmp_path / "data")
    masked("users", "add", "ann", "--password-stdin", "--password-file", str(tmp_path / "users"))
    broker.start()
    try:
        masked("tokens", "create", "a", "--scope", "read", "--data-directory", str(broker.data))
        masked("backup", str(tmp_path / "copy"), "--url", broker.admin_url,
               "--data-directory", str(broker.data))
        found = [broker.unix_socket, *tmp_path.rglob("*")]
        names = {file.name for file in found}
        assert {"users", "tokens", "admin.token", "hermes.sqlite", "copy", "data"} <= names
        for file in found:
            wanted = 0o700 if file.is_dir() else 0o600
            assert stat.S_IMODE(file.lstat().st_mode) == wanted, file
    finally:
        assert broker.stop() == 0
        broker.remove_files()


class Pod(Hermesd):
    """A broker as Kubernetes starts the image: user and group 10001, and the group of the volumes."""

    USER, VOLUMES = 10001, 10002

    @property
    def unix_socket(self) -> Path:
        return self.data / "admin.sock"

    #: Runs a command as the pod does.
    AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={VOLUMES}", "--"]

    def command(self) -> list[str]:
        self.directory.chmod(0o755)
        return [*self.AS_USER, *super().command()]

    def mount(self, mode: int, group: int = VOLUMES) -> None:
        """The root of a volume, which is root's."""
        self.data.mkdir()
        os.chown(self.data, 0, group)
        self.data.chmod(mode)

    def mount_again(self) -> None:
        """What `fsGroup` does at every mount to what is on the volume."""
        for file in [self.data, *self.data.rglob("*")]:
            os.chown(file, -1, self.VOLUMES)
            rights = 0o2770 if file.is_dir() else 0o660
            file.chmod(stat.S_IMODE(file.stat().st_mode) | rights)


@pytest.fixture
def pod(request) -> Pod:
    pod = Pod(Settings(makes_its_own_token=True))
    request.addfinalizer(pod.remove_files)
    return pod


@needs_root
def test_a_pod_serves_from_the_root_of_a_volume_and_again_after_the_next_mount(pod):
    """Also with keys that only the group of its volumes may read."""
    # Beside the data directory, since another user cannot enter pytest's own folders.
    keys = pod.directory / "keys"
    keys.mkdir()
    keys.chmod(0o755)
    pod.directory.chmod(0o755)
    pair = self_signed(keys)
    for file in (pair.key, pair.certificate):
        os.chown(file, 0, Pod.VOLUMES)
        file.chmod(0o440)
    pod.settings.environment.update({
        "HERMES_LISTENERS_0_TLS_CERTIFICATE": str(pair.certificate),
        "HERMES_LISTENERS_0_TLS_KEY": str(pair.key)})
    pod.mount(0o2775)
    for start in (1, 2):
        pod.start()
        try:
            made = hermesctl("tokens", "create", f"t{start}", "--scope", "read",
                             "--data-directory", str(pod.data), prefix=Pod.AS_USER)
            assert made.code == 0, made
            token = (pod.data / "admin.token").read_text().strip()
            assert AdminAPI(pod, token=token).status()["durability"] == "sync"
            for file in pod.data.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) & 0o007 == 0, file
        finally:
            assert pod.stop() == 0
        pod.mount_again()


@needs_root
@pytest.mark.parametrize(("mode", "group", "advice"), [
    (0o755, 0, "chown"),
    (0o775, Pod.VOLUMES, "Name a folder in it"),
    (0o2777, Pod.VOLUMES, "Name a folder in it"),
    (0o777, 0, "Name a folder in it"),
], ids=["PVC", "no setgid", "emptyDir of the group", "emptyDir"])
def test_a_pod_is_told_how_to_use_a_volume_that_others_can_write_to(pod, mode, group, advice):
    pod.mount(mode, group)
    with pytest.raises(AssertionError):
        pod.start()
    assert pod.log is not None and pod.process is not None
    assert pod.process.returncode == 78 or pod.process.wait(PATIENCE) == 78
    assert "belongs to " in pod.log.text and advice in pod.log.text, pod.log.text


@needs_root
def test_a_folder_in_a_volume_serves_whatever_the_volume_is(pod):
    pod.mount(0o777, 0)
    pod.data /= "data"
    pod.start()
    assert pod.stop() == 0
    assert stat.S_IMODE(pod.data.stat().st_mode) == 0o700


def refused_start(*arguments: str) -> str:
    done = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", "0", *arguments],
        env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode not in (0, None)
    return done.stderr.decode()


@needs_root
@pytest.mark.parametrize("kind", ["planted", "astray"])
@pytest.mark.parametrize("flag", ["--config", "--password-file", "--acl-file"])
def test_a_link_of_somebody_else_is_not_followed(flag, kind, tmp_path):
    """Neither a link that they made, nor one to their file."""
    link = links(tmp_path)[kind]
    errors = refused_start(flag, str(link), "--data-directory", str(tmp_path / "data"))
    assert "symbolic link" in errors and f"user {STRANGER}" in errors, errors
    assert str(link) in errors


@needs_root
@pytest.mark.parametrize("kind", ["planted", "astray"])
@pytest.mark.parametrize("section", ["listeners[0]", "admin"])
def test_a_certificate_behind_a_link_of_somebody_else_is_not_shown(section, kind, tmp_path):
    pair = self_signed(tmp_path)
    folder = tmp_path / "links"
    folder.mkdir()
    link = links(folder, pair.certificate.read_bytes())[kind]
    config = tmp_path / "hermes.yaml"
    tls = f"tls: {{certificate: {link}, key: {pair.key}}}"
    config.write_text(
        f"listeners: [{{port: 0, {tls}}}]\n" if section != "admin" else f"admin: {{{tls}}}\n")
    errors = refused_start("--config", str(config), "--data-directory", str(tmp_path / "data"))
    assert f"{section}.tls.certificate" in errors and f"user {STRANGER}" in errors, errors
    checked = hermesctl("config", "check", str(config))
    assert checked.code == 2 and f"user {STRANGER}" in checked.errors, checked


@needs_root
@pytest.mark.parametrize("kind", ["planted", "astray"])
def test_hermesctl_changes_no_file_behind_a_link_of_somebody_else(kind, tmp_path):
    link = links(tmp_path)[kind]
    for arguments in (
        ("users", "add", "ann", "--password-stdin", "--password-file", str(link)),
        ("tokens", "create", "a", "--scope", "admin", "--tokens-file", str(link)),
        ("config", "check", str(link)),
    ):
        done = hermesctl(*arguments, stdin=b"secret")
        assert done.code == 2 and f"user {STRANGER}" in done.errors, done
        assert done.output == ""
    assert link.read_bytes() == b""


@needs_root
@pytest.mark.parametrize("kind", ["planted", "astray"])
@pytest.mark.parametrize("name", ["admin.token", "tokens"])
def test_a_planted_token_lets_nobody_in(name, kind, tmp_path):
    """A token that a stranger knows, in the place of ours."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    link = links(tmp_path, b"a-token-that-somebody-else-knows-0123456789\n")[kind]
    (data / name).symlink_to(link)
    if kind == "planted":
        os.chown(data / name, STRANGER, STRANGER, follow_symlinks=False)
    errors = refused_start("--data-directory", str(data))
    assert name in errors and "link" in errors, errors


def links(folder: Path, contents: bytes = b"") -> dict[str, Path]:
    """A link that a stranger made to a file of ours, and one of ours to a stranger's file."""
    for name in ("ours", "theirs"):
        (folder / name).write_bytes(contents)
        (folder / name).chmod(0o600)
    os.chown(folder / "theirs", STRANGER, STRANGER)
    found = {"planted": folder / "planted", "astray": folder / "astray"}
    found["planted"].symlink_to(folder / "ours")
    os.chown(found["planted"], STRANGER, STRANGER, follow_symlinks=False)
    found["astray"].symlink_to(folder / "theirs")
    return found


# --- no way in without a secret ------------------------------------------------------------


@pytest.mark.parametrize(
    "credentials",
    ["admin:public", "admin:admin", "admin:hermes", "admin:", "guest:guest", "hermes:hermes",
     "root:root", ":"],
)
def test_there_is_no_default_password(credentials, start_broker, raw):
    broker = start_broker(makes_its_own_token=True, users={"ann": "secret"})
    answer = curl("-u", credentials, f"{broker.admin_url}/v1/status")
    answer.problem(401)
    user_name, _, password = credentials.partition(":")
    for token in filter(None, (user_name, password)):
        AdminAPI(broker, token=token).request("GET", "/v1/status").problem(401)
    refused = raw(broker).connect("x", user_name=user_name, password=password.encode())
    assert refused.return_code in (4, 5)


def test_an_address_cannot_be_made_up_to_guess_on(start_broker):
    """Proxy headers of HTTP are under the caller's control and have no effect."""
    broker = start_broker(environment={"HERMES_ADMIN_MAX_FAILURES": "3"})
    guesser = AdminAPI(broker, token="guess-0123456789abcdef")
    statuses = [
        guesser.request("GET", "/v1/status", headers={
            "X-Forwarded-For": f"192.0.2.{number}", "Forwarded": f"for=192.0.2.{number}",
            "X-Real-IP": f"192.0.2.{number}", "True-Client-IP": f"192.0.2.{number}",
        }).status
        for number in range(6)
    ]
    assert statuses == [401] * 3 + [429] * 3
    assert "192.0.2." not in broker.log.text


# --- requests that two parsers could read differently --------------------------------------

HEAD = f"POST /v1/publish?topic=outer HTTP/1.1\r\nHost: localhost\r\n{AUTHORIZATION}"
# A proxy in front may have taken these bytes for the former request's body.
HIDDEN = (
    f"POST /v1/publish?topic=smuggled HTTP/1.1\r\nHost: localhost\r\n{AUTHORIZATION}"
    "Content-Length: 1\r\n\r\nx"
)

AMBIGUOUS = {
    "length and chunks": "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": f"Content-Length: 0\r\nContent-Length: {len(HIDDEN)}\r\n\r\n",
    "two equal lengths": "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "list of lengths": "Content-Length: 0, 5\r\n\r\n",
    "length with a sign": "Content-Length: +1\r\n\r\nx",
    "negative length": "Content-Length: -1\r\n\r\nx",
    "hexadecimal length": "Content-Length: 0x1\r\n\r\nx",
    "empty length": "Content-Length:\r\n\r\n",
    "length beyond 64 bits": "Content-Length: 18446744073709551617\r\n\r\nx",
    "length with a space": "Content-Length: 1 0\r\n\r\nx",
    "folded header": "X-Any: a\r\n b\r\nContent-Length: 1\r\n\r\nx",
    "folded length": "Content-Length:\r\n 1\r\n\r\nx",
    "folded coding": "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "space before the colon": "Content-Length : 1\r\n\r\nx",
    "tab before the colon": "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "header without a colon": "Content-Length 1\r\n\r\nx",
    "bare line feed ends the head": "Content-Length: 1\r\n\nx",
    "bare line feed ends a header": "X-Any: a\nContent-Length: 1\r\n\r\nx",
    "bare carriage return": "X-Any: a\rContent-Length: 1\r\n\r\n",
    "NUL in a value": "X-Any: a\0b\r\nContent-Length: 1\r\n\r\nx",
    "NUL in a name": "X\0: a\r\nContent-Length: 1\r\n\r\nx",
    "line feed in a chunk's extension": "Transfer-Encoding: chunked\r\n\r\n1;a\nx\r\n0\r\n\r\n",
    "line feed ends a chunk": "Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n",
    "hexadecimal prefix of a chunk": "Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
    "negative chunk": "Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
    "chunk beyond 64 bits":
        "Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\nx\r\n0\r\n\r\n",
    "chunk longer than it says": "Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n",
    "space behind a chunk's size": "Transfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n",
    "length in the trailer":
        "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nContent-Length: 5\r\n\r\n",
    "another coding": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked is not last": "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a coding before chunked": "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two codings": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "vertical tab in a coding": "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "quoted coding": 'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "two hosts": "Host: localhost\r\nContent-Length: 1\r\n\r\nx",
}


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_nothing_is_smuggled_behind_an_ambiguous_request(rest, broker, client):
    """One error as answer; the connection closes, and later bytes have no effect."""
    watcher = client("watcher")
    watcher.subscribe(("smuggled", 1), ("outer", 1))
    answers = exchange(broker, HEAD + rest + HIDDEN)
    assert statuses(answers) in ([400], [415]), answers
    assert b"connection: close" in answers.lower(), answers
    # Behind this nothing can still come.
    AdminAPI(broker).request("POST", "/v1/publish?topic=outer&qos=1", b"last")
    assert watcher.take_message().payload == b"last"


@pytest.mark.parametrize(
    "head",
    [
        "GET /v1/status HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
        "GET /v1/status HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        "HTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "GET /v1/status HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
        "CONNECT localhost:80 HTTP/1.1\r\n",
    ],
)
def test_a_request_for_another_protocol_is_the_last_one(head, broker, client):
    watcher = client("watcher")
    watcher.subscribe(("smuggled", 1))
    tail = "\r\n0\r\n\r\n" if "chunked" in head else "\r\n"
    answers = exchange(broker, f"{head}Host: localhost\r\n{AUTHORIZATION}{tail}{HIDDEN}")
    assert len(statuses(answers)) == 1 and statuses(answers)[0] != 101, answers
    assert b"connection: close" in answers.lower(), answers
    AdminAPI(broker).request("POST", "/v1/publish?topic=smuggled&qos=1", b"last")
    assert watcher.take_message().payload == b"last"


def test_a_chunks_extension_is_passed_over(broker, client):
    """RFC 9112, section 7.1.1; it is no part of the body."""
    watcher = client("watcher")
    watcher.subscribe(("outer", 1))
    body = '3;a="b\\"c";d\r\nabc\r\n0;e\r\nX-Trailer: f\r\n\r\n'
    answers = exchange(broker, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{body}")
    assert statuses(answers) == [200], answers
    assert watcher.take_message().payload == b"abc"


def exchange(broker: Hermesd, text: str) -> bytes:
    """Sends everything on one connection; returns all bytes until its end."""
    with socket.create_connection(broker.admin_address, timeout=PATIENCE) as connection:
        connection.sendall(text.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        answers = b""
        while part := connection.recv(65_536):
            answers += part
        return answers


def statuses(answers: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"^HTTP/1\.1 (\d{3}) ", answers, re.MULTILINE)]


# --- web pages -----------------------------------------------------------------------------

ROUTES = ["/v1/status", "/v1/clients", "/metrics", "/healthz", "/readyz", "/v1/openapi.json"]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "https://evil.example:443", "null", "http://localhost.evil.example",
     "http://127.0.0.1.evil.example", "http://localhost:1", "file://", "http://[::1]"],
)
def test_no_page_of_another_site_gets_an_answer(origin, path, api):
    """With the right token too: a browser that holds it is no way in."""
    answer = api.request("GET", path, headers={"Origin": origin})
    assert answer.problem(403)["type"] == "urn:hermes:problem:cross-origin"
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("content_type", [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""])
def test_no_form_makes_a_json_request(content_type, api):
    """Requests that a web page can send without a preflight."""
    headers = {"Content-Type": content_type} if content_type else {}
    answer = api.request("POST", "/v1/messages", b'{"topic":"a","payload":"x"}', headers)
    answer.problem(415)


def test_no_other_site_is_ever_let_in(api):
    """A browser asks first, and hears no."""
    answer = api.request("OPTIONS", "/v1/messages", headers={
        "Origin": "http://evil.example", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type"})
    answer.problem(403)
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert "set-cookie" not in api.request("GET", "/v1/status").headers


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
             "192.0.2.1", "0.0.0.0", "[::2]"])
def test_a_name_that_was_pointed_here_leads_nowhere(host, path, api):
    """DNS rebinding: the browser believes that we are its own site."""
    answer = api.request("GET", path, headers={"Host": host, "Origin": f"http://{host}"})
    assert answer.problem(421)["type"] == "urn:hermes:problem:wrong-host"


# --- the log and the tables ----------------------------------------------------------------

HOSTILE = "x\x1b[2J\x1b]0;owned\x07\r\n2026-01-01T00:00:00.000Z ERROR forged\u202e\u2028\u200b\x9b31m\x7f"
ESCAPED = r"x\u{1B}[2J\u{1B}]0;owned\u{7}\r\n2026"


def assert_harmless(text: str) -> None:
    """Nothing that moves the cursor, hides, or begins a line of its own."""
    for line in text.split("\n"):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", line), (
            f"{line!r}")
        assert not re.match(r"2026\S+ ERROR forged", line), line


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_writes_into_the_log(form, start_broker, raw):
    """Client identifiers, user names, topics and everything of an HTTP request."""
    broker = start_broker(
        environment={"HERMES_LOGGING_FORMAT": form, "HERMES_LOGGING_LEVEL": "trace"})
    hostile = raw(broker)
    hostile.connect(HOSTILE, user_name=HOSTILE)
    hostile.subscribe((f"{HOSTILE}/#", 1))
    hostile.publish(f"{HOSTILE}/a", b"x", qos=1)
    hostile.publish(f"$SYS/{HOSTILE}", b"x", qos=1)
    # A topic that no client may use closes the connection, with its name in the log.
    hostile.send(b"\x30\x05\x00\x03a/+")
    hostile.await_closed()
    encoded = "".join(f"%{byte:02X}" for byte in HOSTILE.encode())
    AdminAPI(broker).request("DELETE", f"/v1/clients/{encoded}")
    AdminAPI(broker).request("POST", f"/v1/publish?topic={encoded}", b"x")
    AdminAPI(broker, token="x").request("GET", f"/{encoded}")
    # Raw bytes above ASCII may stand in a target and in headers.
    high = "\u202e\x9b".encode("utf-8") + b"\xff\x9b"
    for head in (
        b"DELETE /v1/clients/" + high + b" HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: " + high + b"\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nOrigin: " + high + b"\r\n",
    ):
        with socket.create_connection(broker.admin_address, timeout=PATIENCE) as connection:
            connection.sendall(head + AUTHORIZATION.encode() + b"Connection: close\r\n\r\n")
            while connection.recv(65_536):
                pass
    assert broker.stop() == 0
    lines = [line.decode() for line in broker.log.raw_lines]
    assert_harmless("\n".join(lines))
    if form == "json":
        events = [json.loads(line) for line in lines]
        assert HOSTILE in {event.get("client.id") for event in events}
    else:
        assert any(ESCAPED in line for line in lines)
        assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ ", line) for line in lines)


def test_nobody_draws_into_the_tables(start_broker, raw):
    broker = start_broker()
    hostile = raw(broker)
    hostile.connect(HOSTILE, clean_session=False, user_name=HOSTILE)
    hostile.subscribe((f"{HOSTILE}/#", 1))
    hostile.disconnect()
    publisher = raw(broker)
    publisher.connect("publisher")
    publisher.publish(f"{HOSTILE}/queued", b"x", qos=1)
    for arguments in (
        ("clients", "list"), ("clients", "show", HOSTILE), ("queue", "show", HOSTILE),
        ("clients", "kick", HOSTILE), ("queue", "drop", HOSTILE, "--yes"),
    ):
        shown = hermesctl(*arguments, broker=broker)
        assert shown.code == 0, shown
        assert "owned" in shown.output, shown
        assert_harmless(shown.output + shown.errors)
    for arguments in (
        ("clients", "show", HOSTILE + "nobody"), ("publish", "-t", HOSTILE + "+", "-m", "x"),
        ("acl", "check", HOSTILE, HOSTILE, "publish", HOSTILE, "--file", HOSTILE),
        ("users", "remove", HOSTILE, "--password-file", HOSTILE),
        ("tokens", "revoke", HOSTILE, "--data-directory", HOSTILE), ("config", "check", HOSTILE),
        ("status", "--url", "http://" + HOSTILE), (HOSTILE,), ("status", "--" + HOSTILE),
    ):
        refused = hermesctl(*arguments, broker=broker if arguments[0] in (
            "clients", "publish") else None)
        assert refused.code != 0 and refused.errors, refused
        assert_harmless(refused.output + refused.errors)


def test_a_file_writes_nothing_into_log_or_terminal(start_broker, tmp_path):
    """Lines of files, in errors of a start and of `hermesctl`."""
    acl, users, config = tmp_path / "acl", tmp_path / "users", tmp_path / "hermes.yaml"
    for file in (acl, users, config):
        file.write_text(HOSTILE.replace("\n", "") + ": [\n")
    for arguments in (
        ("--acl-file", str(acl)), ("--password-file", str(users)), ("--config", str(config)),
    ):
        assert_harmless(refused_start(*arguments, "--data-directory", str(tmp_path / "data")))
    for arguments in (
        ("acl", "check", "-", "a", "publish", "b", "--file", str(acl)),
        ("users", "list", "--password-file", str(users)), ("config", "check", str(config)),
        ("tokens", "list", "--tokens-file", str(users)),
    ):
        done = hermesctl(*arguments)
        assert done.code == 2, done
        assert_harmless(done.output + done.errors)


def test_lost_arguments_are_refused(tmp_path):
    """A preloaded library that takes the place of `main`, and hands it no arguments."""
    source, library = tmp_path / "lose.c", tmp_path / "lose.so"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n"
        "static int (*main_)(int, char **, char **);\n"
        "static int fewer(int count, char **arguments, char **environment) {\n"
        "    arguments[1] = 0;\n    return main_(1, arguments, environment);\n}\n"
        "int __libc_start_main(int (*m)(int, char **, char **), int c, char **v,\n"
        "        void (*i)(void), void (*f)(void), void (*l)(void), void *s) {\n"
        "    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void),\n"
        "        void (*)(void), void (*)(void), void *) = dlsym(RTLD_NEXT, \"__libc_start_main\");\n"
        "    main_ = m;\n    return next(fewer, c, v, i, f, l, s);\n}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    done = subprocess.run(
        [str(Hermesd.executable()), "--config", str(tmp_path / "none.yaml")], text=True,
        capture_output=True, cwd=tmp_path, timeout=30, check=False,
        env=inherited_environment() | {"LD_PRELOAD": str(library)})
    assert done.returncode == 78, done.stderr
    # Swift may have read the arguments for itself: then the file that is missing is named.
    assert "2 of its 2 arguments were lost" in done.stderr or "none.yaml" in done.stderr
    assert not (tmp_path / "data").exists()
