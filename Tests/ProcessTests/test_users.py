"""Users and passwords (section 3.1.3.4)."""

import stat
import subprocess

import paho.mqtt.client as paho
import pytest

from harness import wire
from harness.admin import hermesctl
from harness.broker import Settings
from harness.wire import Connack

BAD_USER_OR_PASSWORD, NOT_AUTHORIZED = 4, 5
made_by_hermesctl = pytest.mark.hermesd("the password file is made by hermesctl")
USERS = {"alice": "correct horse", "bob": "b\u00e4ttery staple"}


@pytest.fixture(scope="module")
def guarded(broker_class):
    """A broker with users, shared by the tests of this module."""
    broker = broker_class(Settings(users=USERS))
    broker.start()
    yield broker
    assert broker.stop() == 0
    broker.remove_files()


def connack(raw, broker, client_id, **credentials):
    """The CONNACK; a refused connection must then close [MQTT-3.2.2-5]."""
    connection = raw(broker)
    answer = connection.connect(client_id, **credentials)
    if answer.return_code:
        assert connection.await_closed() == []
    else:
        connection.ping()
    return answer


@pytest.mark.parametrize("name", USERS)
def test_the_right_password_opens(name, guarded, raw, names):
    answer = connack(
        raw, guarded, names.client(), user_name=name, password=USERS[name].encode()
    )
    assert answer == Connack(False, 0)


@pytest.mark.parametrize(
    ("user_name", "password"),
    [
        ("alice", b"wrong"), ("alice", b""), ("alice", b"correct horse "),
        pytest.param(
            "alice", b"correct horse\0",
            marks=pytest.mark.mosquitto_deviates("reads a password up to its first NUL"),
        ),
        pytest.param(
            "alice\n", b"correct horse",
            marks=pytest.mark.mosquitto_deviates("closes at control characters"),
        ),
        ("alice", b"Correct horse"), ("alice", None),
        ("alice", "b\u00e4ttery staple".encode()), ("mallory", b"correct horse"),
        ("Alice", b"correct horse"), ("", b""), ("", None), ("alice:x", b"correct horse"),
    ],
)
def test_anything_else_is_refused(user_name, password, guarded, raw, names):
    answer = connack(raw, guarded, names.client(), user_name=user_name, password=password)
    assert answer.return_code in (BAD_USER_OR_PASSWORD, NOT_AUTHORIZED)


def test_a_wrong_name_and_a_wrong_password_look_alike(guarded, raw, names):
    """User names cannot be guessed from outside."""
    answers = {
        connack(raw, guarded, names.client(), user_name=user_name, password=b"guess")
        for user_name in ("alice", "nobody")
    }
    assert len(answers) == 1


def test_anonymous_clients_are_refused(guarded, raw, names):
    answer = connack(raw, guarded, names.client())
    assert answer == Connack(False, NOT_AUTHORIZED)


def test_paho_with_and_without_the_password(guarded, names, paho_client):
    options = {"to": guarded, "user_name": "alice", "password": USERS["alice"]}
    for protocol in (paho.MQTTv31, paho.MQTTv311):
        assert not paho_client(names.client(), protocol=protocol, **options).is_refused
    assert paho_client(names.client(), **{**options, "password": "wrong"}).is_refused


def test_mosquitto_pub_with_and_without_the_password(guarded, names):
    command = [
        "mosquitto_pub", "-h", guarded.address[0], "-p", str(guarded.port), "-t", names.topic(),
        "-m", "x", "-q", "1",
    ]
    good = subprocess.run([*command, "-u", "alice", "-P", USERS["alice"]], timeout=10, check=False)
    bad = subprocess.run(
        [*command, "-u", "alice", "-P", "wrong"], timeout=10, check=False, capture_output=True
    )
    assert (good.returncode, bad.returncode != 0) == (0, True)


def test_nothing_is_processed_before_the_password_is_checked(guarded, raw, names):
    """[MQTT-3.1.4-5] a PUBLISH right behind a CONNECT that is refused has no effect."""
    alice = {"user_name": "alice", "password": USERS["alice"].encode()}
    watcher = raw(guarded)
    watcher.connect(names.client("watcher"), **alice)
    watcher.subscribe((names.topic(), 0))
    intruder = raw(guarded)
    intruder.send(
        wire.connect(names.client("intruder"), user_name="alice", password=b"wrong"),
        wire.publish(names.topic(), b"intruder"),
    )
    refused, = intruder.await_closed()
    assert refused.return_code in (BAD_USER_OR_PASSWORD, NOT_AUTHORIZED)
    assert watcher.messages_so_far() == []

    # Behind one that is accepted it has its effect, in order.
    prompt = raw(guarded)
    prompt.send(
        wire.connect(names.client("prompt"), **alice), wire.subscribe(1, (names.topic(), 0)),
        wire.publish(names.topic(), b"prompt"), wire.PINGREQ,
    )
    kinds = [type(prompt.receive()).__name__ for _ in range(4)]
    assert kinds == ["Connack", "Suback", "Publish", "Pingresp"]


def test_checking_passwords_delays_nobody_else(guarded, raw, names):
    """A hash takes tens of milliseconds; the connected clients do not wait for it."""
    alice = {"user_name": "alice", "password": USERS["alice"].encode()}
    connected = raw(guarded)
    connected.connect(names.client("connected"), **alice)
    arriving = [raw(guarded) for _ in range(20)]
    for number, connection in enumerate(arriving):
        connection.send(wire.connect(names.client(f"new{number}"), **alice))
    for _ in range(20):
        connected.ping()
    for connection in arriving:
        assert connection.expect(Connack) == Connack(False, 0)


@pytest.mark.hermesd("mosquitto lets any user take over a client identifier")
@pytest.mark.parametrize("clean_session", [True, False])
def test_another_users_client_identifier_is_refused(clean_session, guarded, raw, names):
    """Before any take-over; the rightful client does not notice."""
    alice = {"user_name": "alice", "password": USERS["alice"].encode()}
    bob = {"user_name": "bob", "password": USERS["bob"].encode()}
    phone = raw(guarded)
    phone.connect(names.client("phone"), clean_session=False, **alice)
    phone.subscribe((names.topic(), 1))
    answer = connack(raw, guarded, names.client("phone"), clean_session=clean_session, **bob)
    assert answer == Connack(False, NOT_AUTHORIZED)
    phone.ping()

    # Nor while she is offline: the session and its queue stay hers.
    phone.disconnect()
    office = raw(guarded)
    office.connect(names.client("office"), **bob)
    office.publish(names.topic(), b"for alice", qos=1)
    answer = connack(raw, guarded, names.client("phone"), clean_session=clean_session, **bob)
    assert answer == Connack(False, NOT_AUTHORIZED)
    phone = raw(guarded)
    assert phone.connect(names.client("phone"), clean_session=False, **alice).session_present
    assert phone.take_message().payload == b"for alice"


def test_anonymous_clients_beside_users_by_explicit_setting(start_broker, raw, names):
    """A name then still needs its password."""
    broker = start_broker(users={"alice": "x"}, allow_anonymous=True)
    assert connack(raw, broker, names.client()).return_code == 0
    wrong = connack(raw, broker, names.client(), user_name="alice", password=b"no")
    assert wrong.return_code in (BAD_USER_OR_PASSWORD, NOT_AUTHORIZED)


@made_by_hermesctl
def test_add_list_and_remove(broker_class, tmp_path):
    path = tmp_path / "passwords"
    file = ("--password-file", str(path))
    for name in ("carol", "dave"):
        added = hermesctl(
            "users", "add", name, "--password-stdin", *file, stdin=b"secret of " + name.encode()
        )
        assert added.code == 0, added
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "secret" not in text and "argon2id" in text

    listed = hermesctl("users", "list", "--json", *file)
    assert listed.code == 0, listed
    assert [user["name"] for user in listed.json["users"]] == ["carol", "dave"]
    assert "$" not in listed.output, "a hash is nobody's business"

    assert hermesctl("users", "remove", "carol", *file).code == 0
    assert "carol" not in hermesctl("users", "list", *file).output
    again = hermesctl("users", "remove", "carol", *file)
    assert again.code != 0 and "carol" in again.errors


@made_by_hermesctl
def test_a_trailing_newline_is_no_part_of_the_password(
    start_broker, raw, names, tmp_path
):
    """As `echo` and most tools write it."""
    path = tmp_path / "passwords"
    hermesctl(
        "users", "add", "erin", "--password-stdin", "--password-file", str(path),
        stdin=b"piped\n",
    )
    broker = start_broker(environment={"HERMES_PASSWORD_FILE": str(path)})
    answer = connack(raw, broker, names.client(), user_name="erin", password=b"piped")
    assert answer.return_code == 0


@made_by_hermesctl
def test_changes_count_from_the_next_connect_on(start_broker, raw, names):
    """Without a restart: added, removed; connected clients stay."""
    broker = start_broker(users={"alice": "x"})
    file = ("--password-file", str(broker.directory / "passwords"))
    new = {"user_name": "new", "password": b"y"}
    assert connack(raw, broker, names.client(), **new).return_code != 0
    added = hermesctl("users", "add", "new", "--password-stdin", *file, stdin=b"y")
    assert added.code == 0, added
    connected = raw(broker)
    assert connected.connect(names.client("new"), **new).return_code == 0
    assert hermesctl("users", "remove", "new", *file).code == 0
    assert connack(raw, broker, names.client("later"), **new).return_code != 0
    connected.ping()


@made_by_hermesctl
def test_an_empty_password_file_denies(start_broker, raw, names, tmp_path):
    """Empty never means open."""
    path = tmp_path / "passwords"
    path.touch(mode=0o600)
    broker = start_broker(
        allow_anonymous=False, environment={"HERMES_PASSWORD_FILE": str(path)}
    )
    for credentials in ({}, {"user_name": "x"}, {"user_name": "x", "password": b"y"}):
        assert connack(raw, broker, names.client(), **credentials).return_code in (
            BAD_USER_OR_PASSWORD, NOT_AUTHORIZED,
        )
