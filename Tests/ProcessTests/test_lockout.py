"""Locks after wrong passwords: limits.lockout_attempts and its kin, /v1/lockouts."""

from __future__ import annotations

from contextlib import closing

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("locks after wrong passwords are its own")

BAD_USER_OR_PASSWORD = 4
OTHER, THIRD = "127.0.0.2", "127.0.0.3"
"""Further addresses of this machine."""
USERS = {"ann": "secret", "bob": "secret"}


@pytest.fixture
def guarded(start_broker):
    """Brokers with users, where three wrong passwords lock out."""

    def start(**limits: str):
        keys = {"lockout_attempts": "3", "lockout_time": "60s", **limits}
        return start_broker(users=USERS, environment={
            f"HERMES_LIMITS_{key.upper()}": value for key, value in keys.items()})

    return start


def code(broker, user: str, password: str, source: str | None = None, name: str = "c") -> int:
    with closing(RawClient(broker.address, source=source)) as client:
        return client.connect(name, user_name=user, password=password.encode()).return_code


def reached(broker, limit: str) -> float:
    return AdminAPI(broker).metric(f'hermes_limit_reached_total{{limit="{limit}"}}')


def test_a_user_is_locked_out_at_the_address_that_guesses_and_nowhere_else(guarded):
    broker = guarded()
    for _ in range(3):
        assert code(broker, "ann", "guess") == BAD_USER_OR_PASSWORD
    assert reached(broker, "lockout_attempts") == 0
    # The right password now gets the same answer.
    assert code(broker, "ann", "secret") == BAD_USER_OR_PASSWORD
    assert reached(broker, "lockout_attempts") == 1
    assert code(broker, "ann", "secret", source=OTHER) == 0
    assert code(broker, "bob", "secret") == 0
    lockouts = AdminAPI(broker).get("/v1/lockouts")["lockouts"]
    assert [(one["user_name"], one["address"], one["wrong_passwords"]) for one in lockouts] == [
        ("ann", "127.0.0.1", 3)]
    assert AdminAPI(broker).metric("hermes_lockouts ") == 1
    line = broker.log.await_match(r".*Too many wrong passwords, locked out .*")[0]
    assert "user.name=ann" in line and "setting=limits.lockout_attempts" in line
    assert "lockout.wrong_passwords=3" in line and "lockout.seconds=60" in line
    broker.log.await_match(r"Connection refused .*reason=locked_out .*user\.name=ann")
    text = hermesctl("explain", "c", broker=broker).output
    assert "- Its user ann is locked out at 127.0.0.1 for another 5" in text
    assert "too many wrong passwords had come from its address" in text


def test_an_address_that_tries_many_users_is_locked_out_for_all(guarded):
    broker = guarded(lockout_attempts_per_address="4")
    for number in range(4):
        assert code(broker, f"user{number}", "guess", source=OTHER) == BAD_USER_OR_PASSWORD
    assert code(broker, "bob", "secret", source=OTHER) == BAD_USER_OR_PASSWORD
    assert reached(broker, "lockout_attempts_per_address") == 1
    assert code(broker, "bob", "secret", source=THIRD) == 0
    lockouts = AdminAPI(broker).get("/v1/lockouts")["lockouts"]
    assert [one["address"] for one in lockouts] == [OTHER] and "user_name" not in lockouts[0]


def test_a_right_password_begins_the_count_of_its_user_anew(guarded):
    broker = guarded(lockout_attempts_per_address="6")
    for _ in range(2):
        for _ in range(2):
            assert code(broker, "ann", "guess") == BAD_USER_OR_PASSWORD
        assert code(broker, "ann", "secret") == 0
    assert code(broker, "ann", "guess") == BAD_USER_OR_PASSWORD
    assert code(broker, "ann", "secret") == 0
    # The address's count goes on: five were wrong, and this is the sixth.
    assert code(broker, "bob", "guess") == BAD_USER_OR_PASSWORD
    assert code(broker, "bob", "secret") == BAD_USER_OR_PASSWORD


def test_a_lock_ends_by_itself(guarded):
    broker = guarded(lockout_time="1s")
    for _ in range(3):
        code(broker, "ann", "guess")
    assert code(broker, "ann", "secret") == BAD_USER_OR_PASSWORD
    eventually(lambda: code(broker, "ann", "secret") == 0, "the end of the lock")
    assert AdminAPI(broker).get("/v1/lockouts")["lockouts"] == []
    assert AdminAPI(broker).metric("hermes_lockouts_begun_total") == 1


def test_guesses_side_by_side_win_nothing(guarded):
    """The right password is the last of twenty that come at once: it is checked, and refused."""
    broker = guarded()
    clients = [RawClient(broker.address) for _ in range(20)]
    try:
        for number, client in enumerate(clients):
            password = b"secret" if number == 19 else b"guess%d" % number
            client.send(wire.connect(f"c{number}", user_name="ann", password=password))
        codes = [client.await_packet(wire.Connack).return_code for client in clients]
    finally:
        for client in clients:
            client.close()
    assert codes == [BAD_USER_OR_PASSWORD] * 20


def test_loopback_is_locked_out_only_when_asked(start_broker):
    broker = start_broker(users=USERS)
    for _ in range(12):
        assert code(broker, "ann", "guess") == BAD_USER_OR_PASSWORD
    assert code(broker, "ann", "secret") == 0
    broker = start_broker(users=USERS, environment={"HERMES_LIMITS_LOCKOUT_ATTEMPTS": "off"})
    for _ in range(12):
        assert code(broker, "ann", "guess") == BAD_USER_OR_PASSWORD
    assert code(broker, "ann", "secret") == 0


def test_an_operator_ends_locks(guarded):
    broker = guarded()

    def lock_everywhere() -> None:
        for source in ("127.0.0.1", OTHER, THIRD):
            for _ in range(3):
                code(broker, "ann", "guess", source=source)

    def run(*arguments: str) -> str:
        done = hermesctl("lockouts", *arguments, broker=broker)
        assert done.code == 0, done
        return done.output

    lock_everywhere()
    header, *rows = run("list").splitlines()
    assert header.split() == ["ADDRESS", "USER", "WRONG", "ENDS"] and len(rows) == 3
    assert run("clear", "--address", "127.0.0.2/31") == "Ended 2 locks.\n"
    assert code(broker, "ann", "secret", source=OTHER) == 0
    assert code(broker, "ann", "secret") == BAD_USER_OR_PASSWORD
    assert run("clear") == "Ended 1 locks.\n"
    assert code(broker, "ann", "secret") == 0
    problem = AdminAPI(broker).request("DELETE", "/v1/lockouts?address=here").problem(400)
    assert problem["field"] == "address"


def test_a_reload_changes_the_limits(from_file):
    broker = from_file("limits: {lockout_attempts: 2}", users=USERS)
    for _ in range(2):
        code(broker, "ann", "guess")
    assert code(broker, "ann", "secret") == BAD_USER_OR_PASSWORD
    start = broker.reload("limits: {lockout_attempts: off}")
    broker.log.await_match("Configuration read again", start=start)
    assert code(broker, "ann", "secret") == 0
