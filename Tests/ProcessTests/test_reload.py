"""SIGHUP: the configuration is read again, checked whole, then swapped; nobody is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_a_storm_of_signals_is_survived(from_file, client):
    broker = from_file("limits: {max_subscriptions: 100}")
    connection = client("held", to=broker)
    for _ in range(50):
        broker.reload()
    start = broker.reload("limits: {max_subscriptions: 7}")
    broker.log.await_match(r"read again.*limits\.max_subscriptions", start=start)
    connection.ping()
    assert Path(f"/proc/{broker.process.pid}").exists()
