"""Access rules over HTTP: /v1/access-rules, and `hermesctl acl show` and `set`."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest

from harness.admin import AdminAPI, Answer, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("access rules over HTTP are its own")

FIRST = "# ours\nallow everyone both #\n"
REFUSED = 1


@pytest.fixture
def ruled(start_broker, tmp_path):
    file = tmp_path / "acl"
    file.write_text(FIRST)
    broker = start_broker(arguments=("--acl-file", str(file)))
    broker.rules = file
    return broker


def put(broker, text: str, **headers: str) -> Answer:
    return AdminAPI(broker).request(
        "PUT", "/v1/access-rules", text.encode(),
        {"Content-Type": "text/plain", **{k.replace("_", "-"): v for k, v in headers.items()}})


def test_new_rules_hold_at_once_for_live_subscriptions(ruled):
    shown = AdminAPI(ruled).request("GET", "/v1/access-rules")
    assert shown.body.decode() == FIRST and shown.content_type == "text/plain; charset=utf-8"
    with closing(RawClient(ruled.address)) as reader, closing(RawClient(ruled.address)) as writer:
        reader.connect("reader")
        reader.subscribe(("#", 1))
        writer.connect("writer")
        writer.publish("a/1", b"x", qos=1)
        assert reader.take_message().topic == "a/1"
        text = "allow everyone publish #\nallow everyone subscribe b/#\n"
        answer = put(ruled, text, If_Match=shown.headers["etag"])
        assert answer.status == 200 and answer.json["rules"] == 2
        assert answer.json["etag"] == answer.headers["etag"] != shown.headers["etag"]
        assert ruled.rules.read_text() == text
        writer.publish("a/2", b"x", qos=1)
        writer.publish("b/1", b"x", qos=1)
        assert reader.take_message().topic == "b/1"
    again = AdminAPI(ruled).request("GET", "/v1/access-rules")
    assert again.body.decode() == text and again.headers["etag"] == answer.headers["etag"]
    ruled.log.await_match(
        r"Administrative request carried out .*http\.method=PUT http\.path=/v1/access-rules")
    assert ruled.log.await_match(r"ACL file read again .*acl\.rules=2")


def test_a_malformed_file_is_refused_whole_and_named_by_line(ruled):
    problem = put(ruled, "allow everyone publish #\nalow everyone publish #\nallow everyone read #\n").problem(400)
    assert problem["type"].endswith(":invalid-rules") and problem["field"] == "line 2"
    first, second = problem["detail"].splitlines()
    assert first.startswith("line 2: ") and second.startswith("line 3: ")
    assert ruled.rules.read_text() == FIRST
    with closing(RawClient(ruled.address)) as client:
        client.connect("client")
        assert client.subscribe(("a/#", 1)) == (1,)


def test_who_is_late_changes_nothing(ruled):
    tag = AdminAPI(ruled).request("GET", "/v1/access-rules").headers["etag"]
    assert put(ruled, "allow everyone publish a/#\n", If_Match=f'"other", {tag}').status == 200
    problem = put(ruled, "allow everyone publish b/#\n", If_Match=tag).problem(412)
    assert problem["field"] == "If-Match"
    # A change by hand counts as well.
    tag = AdminAPI(ruled).request("GET", "/v1/access-rules").headers["etag"]
    ruled.rules.write_text("allow everyone publish c/#\n")
    put(ruled, "allow everyone publish b/#\n", If_Match=tag).problem(412)
    assert ruled.rules.read_text() == "allow everyone publish c/#\n"
    assert put(ruled, "allow everyone publish b/#\n", If_Match="*").status == 200
    assert put(ruled, "").json["rules"] == 0
    ruled.log.await_match("ACL file holds no rule, everything is denied")


def test_elsewhere_a_condition_is_refused(ruled):
    answer = AdminAPI(ruled).request("DELETE", "/v1/bans/00000001", headers={"If-Match": "*"})
    assert answer.problem(400)["field"] == "If-Match"


def test_without_an_acl_file_the_answer_says_what_to_do(api):
    assert "acl_file" in api.request("GET", "/v1/access-rules").problem(409)["fix"]
    api.request("PUT", "/v1/access-rules", b"").problem(409)


def test_a_reload_takes_what_the_api_wrote(ruled):
    put(ruled, "allow everyone publish a/#\n")
    start = len(ruled.log.lines)
    ruled.process.send_signal(signal.SIGHUP)
    line = ruled.log.await_match(r"Configuration read again changed=(\S+)", start=start)
    assert line[1] == "nothing"


def test_the_commands(ruled, tmp_path):
    def run(*arguments: str, code: int = 0) -> str:
        done = hermesctl("acl", *arguments, broker=ruled)
        assert done.code == code, done
        return done.output + done.errors

    assert run("show") == FIRST
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(run("show"))
    new.write_text("allow everyone publish a/#\n")
    assert run("set", str(new), "--was", str(old)) == "The broker has 1 access rules now.\n"
    assert "are others by now" in run("set", str(new), "--was", str(old), code=REFUSED)
    new.write_text("nonsense\n")
    text = run("set", str(new), code=REFUSED)
    assert "line 1: " in text
    eventually(lambda: run("show") == "allow everyone publish a/#\n", "the rules to have stayed")
