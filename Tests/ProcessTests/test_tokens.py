"""Tokens of the HTTP API: made and revoked at run time, and their rights."""

from __future__ import annotations

import http.client
import os
import re
import resource
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from harness.admin import AdminAPI, CommandResult, curl, hermesctl
from harness.broker import ADMIN_TOKEN, Hermesd, Settings
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("another broker has no such tokens")

UNAUTHORIZED = 4


def tokens(broker: Hermesd, *arguments: str) -> CommandResult:
    """`hermesctl tokens` on the broker's own file."""
    return hermesctl("tokens", *arguments, "--data-directory", str(broker.data), token=None)


def create(broker: Hermesd, name: str, *scopes: str) -> str:
    options = [option for scope in scopes for option in ("--scope", scope)]
    made = tokens(broker, "create", name, *options)
    assert made.code == 0, made.errors
    return made.output.strip()


def test_each_scope_opens_its_routes_and_no_other(start_broker, client, names):
    broker = start_broker()
    connection = client("phone", to=broker)
    publish, read = create(broker, "billing", "publish"), create(broker, "grafana", "read")
    admin = create(broker, "ops", "admin")
    kick = f"/v1/clients/{names.client('phone')}"

    assert AdminAPI(broker, token=publish).request("POST", "/v1/publish?topic=a", b"x").status == 200
    for path in ("/v1/status", "/metrics", "/v1/clients"):
        problem = AdminAPI(broker, token=publish).request("GET", path).problem(403)
        assert problem["type"] == "urn:hermes:problem:missing-scope"
        assert '"billing" has the scopes publish; this request needs read' in problem["detail"]
        assert AdminAPI(broker, token=read).request("GET", path).status == 200
    AdminAPI(broker, token=read).request("POST", "/v1/publish?topic=a", b"x").problem(403)
    AdminAPI(broker, token=read).request("DELETE", kick).problem(403)
    connection.ping()

    assert AdminAPI(broker, token=admin).request("DELETE", kick).json["disconnected"] is True
    connection.await_closed()
    assert AdminAPI(broker, token=admin).request("POST", "/v1/publish?topic=a", b"x").status == 200

    for name, message in (("billing", "Published over HTTP"), ("ops", "Published over HTTP"),
                          ("ops", "Administrative request carried out")):
        broker.log.await_match(rf"INFO .*{message}.*admin.token_name={name}\b")
    for secret in (publish, read, admin):
        assert secret not in broker.log.text
        assert secret.removeprefix("hermes_") not in (broker.data / "tokens").read_text()


def test_a_bound_token_publishes_within_its_topics_and_rate(start_broker):
    broker = start_broker()
    made = tokens(
        broker, "create", "shop", "--scope", "publish", "--topics", "orders/#", "--rate", "3/h",
    )
    assert made.code == 0, made.errors
    shop = AdminAPI(broker, token=made.output.strip())
    problem = shop.request("POST", "/v1/publish?topic=notes/1", b"x").problem(403)
    assert problem["type"].endswith(":topic-not-allowed") and "orders/#" in problem["detail"]
    assert shop.post_json("/v1/messages", {"topic": "x", "payload": ""}).status == 403
    assert shop.request("POST", "/v1/publish?topic=orders/1", b"x").status == 200
    assert shop.post_json("/v1/messages", {"topic": "orders", "payload": ""}).status == 200
    status = {"sales_id": "7", "status": "APPROVED"}
    assert shop.post_json("/v1/orders/1/status", status).status == 200
    answer = shop.request("POST", "/v1/publish?topic=orders/1", b"x")
    assert answer.problem(429)["type"].endswith(":rate-exceeded")
    assert 1190 <= int(answer.headers["retry-after"]) <= 1200
    listed = tokens(broker, "list").output
    assert "orders/#" in listed and "3/h" in listed
    api = AdminAPI(broker)
    assert api.metric('hermes_admin_refused_total{reason="rate_exceeded"}') == 1
    assert api.metric('hermes_admin_refused_total{reason="topic_not_allowed"}') == 2


def test_tokens_are_made_listed_and_revoked_over_http(start_broker):
    broker = start_broker()
    api = AdminAPI(broker)
    made = api.post_json("/v1/tokens", {"name": "shop", "scopes": ["publish", "read"]})
    assert made.status == 201, made
    shop = AdminAPI(broker, token=made.json["token"])
    assert shop.request("GET", "/v1/status").status == 200
    shop.request("GET", "/v1/tokens").problem(403)
    assert api.post_json("/v1/tokens", {"name": "shop", "scopes": ["read"]}).status == 409
    assert tokens(broker, "list", "--json").json == api.get("/v1/tokens")
    assert stat.S_IMODE((broker.data / "tokens").stat().st_mode) == 0o600
    assert api.request("DELETE", "/v1/tokens/shop").json == {"revoked": "shop"}
    shop.request("GET", "/v1/status").problem(401)
    api.request("DELETE", "/v1/tokens/shop").problem(404)


def test_a_revoked_token_stops_on_an_open_connection(start_broker):
    broker = start_broker()
    read = create(broker, "grafana", "read")
    connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)
    try:
        def status() -> int:
            connection.request("GET", "/v1/status", headers={"Authorization": f"Bearer {read}"})
            response = connection.getresponse()
            response.read()
            return response.status

        assert status() == 200
        local = connection.sock.getsockname()
        assert tokens(broker, "revoke", "grafana").code == 0
        assert status() == 401
        assert connection.sock is not None and connection.sock.getsockname() == local
    finally:
        connection.close()


def test_curl_and_hermesctl_hear_why(start_broker, tmp_path):
    broker = start_broker()
    file = tmp_path / "token"
    file.write_text(create(broker, "billing", "publish") + "\n")

    answer = curl("-H", f"Authorization: Bearer {file.read_text().strip()}",
                  f"{broker.admin_url}/v1/status")
    assert answer.status == 403 and answer.content_type.startswith("application/problem+json")

    refused = hermesctl("status", "--token-file", str(file), broker=broker, token=None)
    assert refused.code == UNAUTHORIZED
    assert 'The token "billing" has the scopes publish' in refused.errors
    assert "hermesctl tokens create NAME --scope read" in refused.errors
    sent = hermesctl("publish", "-t", "a", "-m", "b", "--token-file", str(file), broker=broker,
                     token=None)
    assert sent.code == 0, sent.errors

    tokens(broker, "revoke", "billing")
    unknown = hermesctl("publish", "-t", "a", "-m", "b", "--token-file", str(file), broker=broker,
                        token=None)
    assert unknown.code == UNAUTHORIZED and "no token that is known here" in unknown.errors


def test_guessing_is_counted_slowed_and_logged_once(start_broker):
    broker = start_broker(environment={"HERMES_ADMIN_MAX_FAILURES": "5"})
    guesser = AdminAPI(broker, token="guess-0123456789abcdef")
    statuses = [guesser.request("GET", "/v1/status").status for _ in range(8)]
    assert statuses == [401] * 5 + [429] * 3
    assert 1 <= int(guesser.request("GET", "/v1/status").headers["retry-after"]) <= 12
    api = AdminAPI(broker)
    assert api.request("GET", "/v1/status").status == 200, "a good token from the same address"
    metrics = api.request("GET", "/metrics").body.decode()
    assert 'hermes_admin_refused_total{reason="unknown_token"} 5\n' in metrics
    assert 'hermes_admin_refused_total{reason="too_many_failures"} 4\n' in metrics
    text = broker.log.text
    assert text.count("Admin request without a good token") == 1
    assert len(re.findall(
        r"WARNING Admin requests answered 429.* admin\.peer=127\.0\.0\.1 .*"
        r"admin\.retry_after_s=\d+ setting=admin\.max_failures", text)) == 1
    assert re.search(r"without a good token admin\.peer=127\.0\.0\.1:\d+ ", text)
    assert "log.suppressed" not in text, "nothing was suppressed before these"


def test_a_bad_file_stops_a_start_and_not_a_running_broker(start_broker):
    broker = start_broker()
    read = create(broker, "grafana", "read")
    file = broker.data / "tokens"
    good = file.read_text()
    api = AdminAPI(broker, token=read)
    assert api.request("GET", "/v1/status").status == 200
    file.write_text(good + "nonsense\n")
    assert api.request("GET", "/v1/status").status == 200
    broker.log.await_match(r"ERROR .*Token file unusable, tokens stay as they were.*tokens:2: 1 words")

    # SIGHUP checks everything first, and says the same.
    start = len(broker.log.lines)
    broker.process.send_signal(signal.SIGHUP)
    broker.log.await_match("Reload refused, everything stays as it was", start=start)
    assert api.request("GET", "/v1/status").status == 200

    broker.stop()
    again = subprocess.run(
        broker.command(), env={**os.environ, **broker.environment()}, cwd=broker.directory,
        capture_output=True, timeout=PATIENCE, check=False,
    )
    assert again.returncode == 78
    assert b"tokens:2: 1 words stand where a token has 5" in again.stderr


def test_the_cure_that_the_log_names_revokes(start_broker):
    """Without SIGHUP."""
    broker = start_broker()
    api = AdminAPI(broker, token=create(broker, "grafana", "read"))
    assert api.request("GET", "/v1/status").status == 200
    file = broker.data / "tokens"
    file.write_text("# revoked\n")
    file.chmod(0o666)
    assert api.request("GET", "/v1/status").status == 200
    line = broker.log.await_match("Token file unusable, tokens stay as they were").string
    assert "Run: chmod 600" in line
    file.chmod(0o600)
    eventually(lambda: api.request("GET", "/v1/status").status == 401, "the token counts no more")


def test_the_token_of_the_first_start_is_left_alone(start_broker):
    broker = start_broker(makes_its_own_token=True)
    own = (broker.data / "admin.token").read_text().strip()
    create(broker, "ops", "admin")
    assert AdminAPI(broker, token=own).status()
    assert stat.S_IMODE((broker.data / "tokens").stat().st_mode) == 0o600
    refused = tokens(broker, "create", "admin", "--scope", "admin")
    assert refused.code == 64 and "admin.token" in refused.errors


def test_a_link_to_somebody_elses_file_is_refused(start_broker, tmp_path: Path):
    """Its owner could otherwise decide about access."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for name in ("tokens", "passwords"):
        theirs = tmp_path / name
        theirs.write_text("")
        theirs.chmod(0o600)
        os.chown(theirs, 65534, 65534)
        broker = Hermesd(Settings(environment={"HERMES_ADMIN_TOKEN": ADMIN_TOKEN}))
        try:
            link = broker.directory / name
            link.symlink_to(theirs)
            command = broker.command()
            environment = broker.environment()
            if name == "tokens":
                environment["HERMES_ADMIN_TOKENS_FILE"] = str(link)
            else:
                command += ["--password-file", str(link)]
            ended = subprocess.run(
                command, env={**os.environ, **environment}, cwd=broker.directory,
                capture_output=True, timeout=PATIENCE, check=False,
            )
            assert ended.returncode == 78
            assert b"symbolic link, and it or what it leads to belongs to user 65534" in ended.stderr
        finally:
            broker.remove_files()


def test_a_token_file_that_no_descriptor_was_free_for_is_read_later(start_broker):
    """It has not changed since, so that its stamp alone would never bring it back."""
    broker = start_broker()
    pid = broker.process.pid
    first = create(broker, "first", "read")
    connection = http.client.HTTPConnection(*broker.admin_address, timeout=PATIENCE)

    def status(token: str) -> int:
        connection.request("GET", "/v1/status", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    assert status(first) == 200
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        second = create(broker, "second", "read")
        assert status(second) == 401
        assert status(first) == 200, "the tokens stay as they were"
        broker.log.await_match("Token file unusable.*too many open files")
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    eventually(lambda: status(second) == 200, "the new token is known")
    connection.close()
