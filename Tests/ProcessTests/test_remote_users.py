"""Users over HTTP: /v1/users, and `hermesctl users` with a broker to ask."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from harness.admin import AdminAPI, Answer, hermesctl
from harness.broker import Hermesd
from harness.raw_client import RawClient

pytestmark = pytest.mark.hermesd("users over HTTP are its own")

BAD_USER_OR_PASSWORD = 4
USAGE, REFUSED = 64, 1


@pytest.fixture
def guarded(start_broker):
    return start_broker(users={"ann": "secret"})


def password_file(broker) -> Path:
    return broker.directory / "passwords"


def put(broker, path: str, value: object) -> Answer:
    return AdminAPI(broker).request(
        "PUT", path, json.dumps(value).encode(), {"Content-Type": "application/json"})


def import_lines(broker, *lines: object) -> list[dict]:
    body = b"\n".join(
        one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines) + b"\n"
    answer = AdminAPI(broker).request(
        "POST", "/v1/users/import", body, {"Content-Type": "application/x-ndjson"})
    assert answer.status == 200, answer
    return [json.loads(one) for one in answer.body.splitlines()]


def code(broker, user: str, password: str) -> int:
    with closing(RawClient(broker.address)) as client:
        return client.connect(
            f"c-{user}"[:23], user_name=user, password=password.encode()).return_code


def change_file(broker, *arguments: str, password: str = "") -> None:
    """What an operator does on the broker's machine."""
    done = subprocess.run(
        [str(Hermesd.control_executable()), "users", *arguments,
         "--password-file", str(password_file(broker))],
        input=password.encode(), capture_output=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr


def test_a_user_logs_in_at_once_and_no_more_after_the_removal(guarded):
    assert code(guarded, "bob", "hunter2") == BAD_USER_OR_PASSWORD
    made = put(guarded, "/v1/users/bob", {"password": "hunter2"})
    assert made.status == 201
    assert made.json == {"name": "bob", "created": True, "disconnected": 0}
    assert code(guarded, "bob", "hunter2") == 0
    changed = put(guarded, "/v1/users/bob", {"password": "hunter3"})
    assert changed.status == 200 and changed.json["created"] is False
    assert code(guarded, "bob", "hunter2") == BAD_USER_OR_PASSWORD
    assert code(guarded, "bob", "hunter3") == 0
    api = AdminAPI(guarded)
    users = api.get("/v1/users")["users"]
    assert [one["name"] for one in users] == ["ann", "bob"]
    assert all(one["hash"] == "argon2id m=19456,t=2,p=1" for one in users)
    page = api.get("/v1/users?limit=1")
    assert [one["name"] for one in page["users"]] == ["ann"]
    rest = api.get(f"/v1/users?cursor={page['next']}")
    assert [one["name"] for one in rest["users"]] == ["bob"] and "next" not in rest
    assert api.request("DELETE", "/v1/users/bob").json == {"removed": "bob", "disconnected": 0}
    assert code(guarded, "bob", "hunter3") == BAD_USER_OR_PASSWORD
    assert code(guarded, "ann", "secret") == 0
    api.request("DELETE", "/v1/users/bob").problem(404)
    # The file is the one source of truth, and survives a restart.
    assert "bob:" not in password_file(guarded).read_text()
    assert password_file(guarded).stat().st_mode & 0o777 == 0o600
    guarded.log.await_match(
        r"Administrative request carried out .*http\.method=PUT http\.path=/v1/users/bob")
    assert "hunter" not in guarded.log.text


def test_connections_stay_unless_they_are_to_be_closed(guarded):
    ann = {"user_name": "ann", "password": b"secret"}
    with closing(RawClient(guarded.address)) as one, closing(RawClient(guarded.address)) as two:
        one.connect("one", clean_session=False, **ann)
        two.connect("two", **ann)
        put(guarded, "/v1/users/ann", {"password": "other"})
        one.ping()
        answer = put(guarded, "/v1/users/ann?disconnect=true", {"password": "third"})
        assert answer.json["disconnected"] == 2
        one.await_closed()
        two.await_closed()
    with closing(RawClient(guarded.address)) as back:
        assert back.connect(
            "one", clean_session=False, user_name="ann", password=b"third").session_present
        removed = AdminAPI(guarded).request("DELETE", "/v1/users/ann?disconnect=true")
        assert removed.json == {"removed": "ann", "disconnected": 1}
        back.await_closed()


def test_changes_of_file_and_api_are_never_lost(guarded):
    """Both sides change the file again and again; each user is there in the end."""
    processes = [
        subprocess.Popen(
            [str(Hermesd.control_executable()), "users", "add", f"file{number}",
             "--password-stdin", "--password-file", str(password_file(guarded))],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for number in range(6)
    ]
    for process in processes:
        process.stdin.write(b"pass")
        process.stdin.close()
    for number in range(6):
        assert put(guarded, f"/v1/users/api{number}", {"password": "pass"}).status == 201
    assert [process.wait(30) for process in processes] == [0] * 6
    names = {one["name"] for one in AdminAPI(guarded).get("/v1/users")["users"]}
    assert names == {"ann", *(f"{side}{number}" for side in ("api", "file") for number in range(6))}
    assert code(guarded, "file5", "pass") == 0 and code(guarded, "api0", "pass") == 0
    # What a person wrote into the file stays.
    password_file(guarded).write_text("# our users\n\n" + password_file(guarded).read_text())
    put(guarded, "/v1/users/last", {"password": "pass"})
    assert password_file(guarded).read_text().startswith("# our users\n\n")


def test_an_import_takes_passwords_and_hashes_and_bad_lines_fail_alone(guarded):
    change_file(guarded, "add", "model", "--password-stdin", password="modelpass")
    hash_text = next(
        line.split(":", 1)[1] for line in password_file(guarded).read_text().splitlines()
        if line.startswith("model:"))
    results = import_lines(
        guarded,
        {"name": "one", "password": "p1"}, {"name": "two", "password_hash": hash_text},
        {"name": "a/b", "password": "p"}, {"name": "x"}, b"{nonsense",
        {"name": "three", "password": "p", "password_hash": hash_text},
        {"name": "four", "password_hash": "$2y$secretlooking"},
        {"name": "one", "password": "p1b"}, {"name": "model", "password_hash": hash_text},
    )
    assert [one["line"] for one in results] == list(range(1, 10))
    assert [one.get("created") for one in results] == [
        True, True, None, None, None, None, None, False, False]
    assert [one["error"]["field"] for one in results if "error" in one and "field" in one["error"]
            ] == ["name", "password", "password_hash", "password_hash"]
    assert "secretlooking" not in json.dumps(results)
    assert code(guarded, "one", "p1b") == 0 and code(guarded, "two", "modelpass") == 0
    assert code(guarded, "one", "p1") == BAD_USER_OR_PASSWORD


def test_thousands_of_hashes_are_imported(guarded):
    hash_text = password_file(guarded).read_text().strip().split(":", 1)[1]
    lines = [{"name": f"user{number}", "password_hash": hash_text} for number in range(3_000)]
    results = import_lines(guarded, *lines)
    assert len(results) == 3_000 and all(one["created"] for one in results)
    assert code(guarded, "user2999", "secret") == 0


def test_without_a_password_file_the_answer_says_what_to_do(api):
    for method, path in (("GET", "/v1/users"), ("DELETE", "/v1/users/ann")):
        problem = api.request(method, path).problem(409)
        assert "password_file" in problem["fix"]
    problem = api.request(
        "PUT", "/v1/users/ann", b'{"password": "x"}', {"Content-Type": "application/json"}
    ).problem(409)
    assert problem["type"].endswith(":no-password-file")
    api.request(
        "POST", "/v1/users/import", b"{}\n", {"Content-Type": "application/x-ndjson"}).problem(409)


@pytest.mark.parametrize(("name", "body", "field"), [
    ("a%2Fb", {"password": "x"}, "name"), ("%20a", {"password": "x"}, "name"),
    ("a", {}, "password"), ("a", {"password": ""}, "password"),
    ("a", {"password": "x" * 65_536}, "password"), ("a", {"password_hash": "x"}, "password_hash"),
    ("a", {"password": 1}, "password"), ("a", {"pass": "x"}, "pass"),
])
def test_a_wrong_user_is_refused_with_its_field(name, body, field, guarded):
    assert put(guarded, f"/v1/users/{name}", body).problem(400)["field"] == field


def test_the_commands(guarded, tmp_path):
    def run(*arguments: str, code: int = 0, stdin: bytes = b"") -> str:
        done = hermesctl("users", *arguments, broker=guarded, stdin=stdin)
        assert done.code == code, done
        return done.output + done.errors

    assert run("add", "bob", "--password-stdin", stdin=b"hunter2\n") == 'Added "bob".\n'
    assert code(guarded, "bob", "hunter2") == 0
    with closing(RawClient(guarded.address)) as bob:
        bob.connect("bob", user_name="bob", password=b"hunter2")
        changed = run("add", "bob", "--password-stdin", "--disconnect", stdin=b"hunter3")
        assert changed == 'Changed the password of "bob", and closed 1 connection.\n'
        bob.await_closed()
    assert run("list").splitlines() == [
        "USER  HASH", "ann   argon2id m=19456,t=2,p=1", "bob   argon2id m=19456,t=2,p=1"]
    more = tmp_path / "more.ndjson"
    more.write_text('{"name": "eve", "password": "x"}\n{"name": "a/b", "password": "x"}\n')
    text = run("import", str(more), code=REFUSED)
    assert "taken   1\n" in text and "line 2: " in text and "1 of 2 lines were not taken." in text
    assert run("remove", "bob") == 'Removed "bob".\n'
    assert "There is no user" in run("remove", "bob", code=REFUSED)
    wrong = run("list", "--password-file", "x", code=USAGE)
    assert "Give either --password-file" in wrong
