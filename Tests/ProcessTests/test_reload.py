"""SIGHUP: the configuration is read again, checked and replaced; no client is disconnected."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harness.admin import hermesctl

pytestmark = pytest.mark.hermesd("SIGHUP means something else elsewhere")


def test_new_limits_count_and_nobody_is_dropped(from_file, client):
    broker = from_file("limits: {max_subscriptions: 100}")
    connection = client("held", to=broker)
    assert connection.subscribe(("a", 0)) == (0,)

    start = broker.reload("limits: {max_subscriptions: 2}\nlogging: {level: debug}\n")

    line = broker.log.await_match("Configuration read again", start=start).string
    assert "limits.max_subscriptions" in line and "logging.level" in line
    assert connection.subscribe(("b", 0)) == (0,)
    assert connection.subscribe(("c", 0)) == (0x80,)
    start = len(broker.log.lines)
    client("seen", to=broker)
    broker.log.await_match("Client connected", start=start)


def test_what_cannot_change_while_running_is_named(from_file, client):
    broker = from_file("sys_interval: 10s")
    start = broker.reload("sys_interval: 30s\nlisteners: [{port: 1}, {port: 2}]\n")
    line = broker.log.await_match("take effect at the next start", start=start).string
    assert "sys_interval" in line
    client("still", to=broker).ping()


@pytest.mark.parametrize(
    ("configuration", "complaint"),
    [
        ("limits: {max_subscriptions: many}", r"limits.max_subscriptions: many is"),
        ("limits: {max_subscriptions: 1, max_in_fligt: 3}", r"max_in_flight"),
        ("limits: [", r"hermes\.yaml"),
        ("\x1b[31m: 1", r"hermes\.yaml"),
    ],
)
def test_a_bad_file_changes_nothing(configuration, complaint, from_file, client):
    broker = from_file("limits: {max_subscriptions: 100}")
    connection = client("held", to=broker)
    start = broker.reload(configuration)
    broker.log.await_match(complaint, start=start)
    broker.log.await_match("everything stays as it was", start=start)
    assert connection.subscribe(("a", 0)) == (0,)
    assert connection.subscribe(("b", 0)) == (0,)
    assert b"\x1b" not in b"".join(broker.log.raw_lines)


def test_a_refusal_is_told_to_who_asks_and_stays_in_the_status(from_file):
    broker = from_file("limits: {max_subscriptions: 100}")
    broker.file.write_text("limits: {max_subscriptions: many}\n")
    refused = hermesctl("config", "reload", broker=broker)
    assert refused.code == 1 and "max_subscriptions" in refused.errors, refused
    assert "hermes.yaml:1" in refused.errors
    status = hermesctl("status", broker=broker).output
    assert "last reload" in status and "refused" in status

    broker.file.write_text("limits: {max_subscriptions: 7}\nsys_interval: 33s\n")
    done = hermesctl("config", "reload", broker=broker)
    assert (done.code, done.output) == (
        0, "Changed: limits.max_subscriptions\nAt the next start: sys_interval\n"), done
    assert "refused" not in hermesctl("status", broker=broker).output.split("last reload")[1]


def test_a_missing_file_changes_nothing(from_file, client):
    broker = from_file("limits: {max_subscriptions: 1}")
    broker.file.unlink()
    start = broker.reload()
    broker.log.await_match("everything stays as it was", start=start)
    connection = client("held", to=broker)
    assert connection.subscribe(("a", 0)) == (0,)
    assert connection.subscribe(("b", 0)) == (0x80,)


def test_a_bad_password_file_refuses_the_whole_reload(from_file, client):
    broker = from_file("limits: {max_subscriptions: 100}", users={"alice": "secret"})
    credentials = {"user_name": "alice", "password": b"secret"}
    connection = client("held", to=broker, **credentials)
    (broker.directory / "passwords").write_text("not a password line\n")

    start = broker.reload("limits: {max_subscriptions: 1}")

    broker.log.await_match("Unusable password file", start=start)
    broker.log.await_match("everything stays as it was", start=start)
    assert connection.subscribe(("a", 0)) == (0,)
    assert connection.subscribe(("b", 0)) == (0,)
    client("again", to=broker, **credentials).ping()


@pytest.fixture
def with_files(start_broker, tmp_path):
    """A broker with users, access rules and tokens in files that a test may change."""
    (tmp_path / "acl").write_text("allow everyone both #\n")
    broker = start_broker(
        users={"alice": "secret"}, arguments=("--acl-file", str(tmp_path / "acl")))
    return broker, {
        "acl_file": tmp_path / "acl",
        "password_file": broker.directory / "passwords",
        "admin.tokens_file": broker.data / "tokens",
    }


def reload(broker) -> list[str]:
    """The lines of one reload."""
    start = len(broker.log.lines)
    broker.process.send_signal(signal.SIGHUP)
    broker.log.await_match("Configuration read again|everything stays as it was", start=start)
    return broker.log.lines[start:]


def test_the_reload_names_the_files_that_have_changed(with_files):
    broker, files = with_files
    assert reload(broker)[-1].endswith("Configuration read again changed=nothing")
    digest = "0" * 64
    added = {
        "acl_file": "deny user mallory both #\n",
        "password_file": "# a comment\n",
        "admin.tokens_file": f"a read 2025-01-31T08:00:00Z never sha256:{digest}\n",
    }
    for key, text in added.items():
        with files[key].open("a") as file:
            file.write(text)
        files[key].chmod(0o600)
        lines = reload(broker)
        assert lines[-1].endswith(f"changed={key}"), lines
        assert any("file read again" in line and str(files[key]) in line for line in lines), lines
        assert reload(broker)[-1].endswith("changed=nothing")


def test_nothing_is_said_of_good_files_of_a_reload_that_is_refused(with_files):
    broker, files = with_files
    files["acl_file"].write_text("deny everyone both #\n")
    files["password_file"].write_text("nonsense\n")
    lines = reload(broker)
    assert "everything stays as it was" in lines[-1]
    assert not [line for line in lines if "ACL file" in line], lines


def test_every_mistake_has_its_line_and_the_rest_is_counted(with_files, raw):
    broker, files = with_files
    files["password_file"].write_text("".join(f"nonsense {number}\n" for number in range(30)))

    def mistakes(lines: list[str], message: str) -> list[str]:
        lines = [line for line in lines if message in line]
        assert all(line.count("there is no") <= 1 and "…(+" not in line for line in lines), lines
        return lines

    said = mistakes(reload(broker), "Unusable password file")
    assert len(said) == 21 and "passwords:20: " in said[19] and "10 more lines" in said[20]

    # The same at a CONNECT, which notices the change by itself.
    files["password_file"].write_text("".join(f"nonsense {number}\n" for number in range(22)))
    start = len(broker.log.lines)
    connection = raw(broker)
    assert connection.connect("x", user_name="alice", password=b"secret").return_code == 0
    broker.log.await_match("2 more lines are malformed", start=start)
    said = mistakes(broker.log.lines[start:], "Password file unusable, users stay as they were")
    assert len(said) == 21


def test_a_long_path_cuts_off_no_cure(start_broker, tmp_path):
    folder = tmp_path / ("long-" * 40)
    folder.mkdir()
    file = folder / "acl"
    file.write_text("allow everyone both #\n")
    broker = start_broker(arguments=("--acl-file", str(file)))
    file.write_text("allow everybody both #\n")
    unusable, = (line for line in reload(broker) if "Unusable ACL file" in line)
    assert str(file) in unusable and "…(+" not in unusable
    assert unusable.endswith('."'), unusable


def test_an_empty_file_that_locks_everyone_out_is_a_warning(with_files, raw):
    broker, files = with_files
    files["password_file"].write_text("")
    lines = reload(broker)
    assert any("WARNING Password file names no user" in line for line in lines), lines
    assert raw(broker).connect("x", user_name="alice", password=b"secret").return_code == 4
    files["acl_file"].write_text("# none\n")
    lines = reload(broker)
    assert any("WARNING ACL file holds no rule" in line for line in lines), lines

    # As well when a CONNECT notices it.
    added = hermesctl(
        "users", "add", "bob", "--password-stdin", "--password-file", str(files["password_file"]),
        stdin=b"secret")
    assert added.code == 0, added
    assert raw(broker).connect("y", user_name="bob", password=b"secret").return_code == 0
    start = len(broker.log.lines)
    files["password_file"].write_text("")
    assert raw(broker).connect("z", user_name="bob", password=b"secret").return_code == 4
    broker.log.await_match("WARNING Password file names no user", start=start)


def test_files_open_to_others_are_warned_about_at_every_reload(with_files):
    broker, files = with_files
    assert not [line for line in reload(broker) if "WARNING" in line]
    files["password_file"].chmod(0o644)
    files["acl_file"].chmod(0o666)
    for _ in range(2):
        lines = reload(broker)
        assert any("WARNING Password file is open to others" in line and "chmod 600" in line
                   for line in lines), lines
        assert any("WARNING ACL file can be changed by others" in line and "chmod go-w" in line
                   for line in lines), lines


def test_a_storm_of_signals_is_survived(from_file, client):
    broker = from_file("limits: {max_subscriptions: 100}")
    connection = client("held", to=broker)
    for _ in range(50):
        broker.reload()
    start = broker.reload("limits: {max_subscriptions: 7}")
    broker.log.await_match(r"read again.*limits\.max_subscriptions", start=start)
    connection.ping()
    assert Path(f"/proc/{broker.process.pid}").exists()
