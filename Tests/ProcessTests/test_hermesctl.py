"""hermesctl against a running broker."""

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("hermesctl")

REFUSED, UNREACHABLE, UNAUTHORIZED, USAGE = 1, 3, 4, 64


def succeed(*arguments, broker, stdin=b""):
    done = hermesctl(*arguments, broker=broker, stdin=stdin)
    assert done.code == 0, done
    return done


def test_status(broker, client):
    client("one")
    table = succeed("status", broker=broker).output
    assert "{}:{}".format(*broker.address) in table
    status = succeed("status", "--json", broker=broker).json
    assert status["connections"] >= 1
    assert set(status) == set(AdminAPI(broker).status())


def test_clients_list_and_show(broker, client, names):
    one = client("phone", keep_alive=77)
    one.subscribe((names.topic("a/+"), 2))
    name = names.client("phone")
    assert name in succeed("clients", "list", broker=broker).output
    listed = succeed("clients", "list", "--json", broker=broker).output
    assert name in listed

    shown = succeed("clients", "show", name, broker=broker).output
    assert names.topic("a/+") in shown and "77" in shown
    detail = succeed("clients", "show", name, "--json", broker=broker).json
    assert detail["client_id"] == name
    assert detail["subscription_list"] == [{"filter": names.topic("a/+"), "qos": 2}]


def test_clients_list_shows_all_of_many(broker, client, names):
    """More than one page of the API."""
    wanted = {names.client(f"m{number}") for number in range(250)}
    for number in range(250):
        client(f"m{number}")
    options = ("--prefix", names.client("m"), "--limit", "1000", "--json")
    listed = succeed("clients", "list", *options, broker=broker).json["clients"]
    assert {one["client_id"] for one in listed} == wanted and len(listed) == len(wanted)

    few = succeed("clients", "list", "--prefix", names.client("m"), "--limit", "3", broker=broker)
    assert "more" in few.errors


def test_clients_kick(broker, client, names):
    phone = client("phone")
    kicked = succeed("clients", "kick", names.client("phone"), broker=broker)
    assert names.client("phone") in kicked.output
    assert phone.await_closed() == []
    eventually(
        lambda: hermesctl("clients", "show", names.client("phone"), broker=broker).code == REFUSED,
        "the clean session to be gone",
    )


def test_publish(broker, client, names):
    phone = client("phone")
    phone.subscribe((names.topic(), 2))
    topic = ("publish", "--topic", names.topic())
    published = succeed(*topic, "-m", "hello", "--qos", "2", "--json", broker=broker)
    assert published.json["matched"] == 1
    message = phone.take_messages(1)[0]
    assert (message.payload, message.qos) == (b"hello", 2)

    binary = bytes(range(256))
    assert "matched" in succeed(*topic, broker=broker, stdin=binary).output
    assert phone.take_message().payload == binary

    succeed(*topic, "-m", "kept", "-q", "1", "--retain", broker=broker)
    late = client("late")
    late.subscribe((names.topic(), 1))
    assert (late.receive_publish().payload, phone.take_message().payload) == (b"kept", b"kept")


def test_over_the_unix_socket(broker):
    """Without a token: the file mode is the guard."""
    done = hermesctl("status", "--json", "--socket", str(broker.unix_socket), token=None)
    assert done.code == 0, done
    assert done.json["listeners"] == ["{}:{}".format(*broker.address)]


def test_an_unknown_client_is_an_error(broker, names):
    done = hermesctl("clients", "show", names.client("nobody"), broker=broker)
    assert done.code == REFUSED and names.client("nobody") in done.errors
    assert done.output == ""


def test_terminal_control_characters_are_escaped(broker, raw, names):
    """A client identifier is whatever its client likes."""
    evil = names.client("x") + "\x1b]0;owned\x07\x1b[2J\u202e"
    connection = raw()
    connection.connect(evil)
    for arguments in (("clients", "list"), ("clients", "show", evil)):
        output = succeed(*arguments, broker=broker).output
        assert names.client("x") in output
        controls = {character for character in output if character < " "} - {"\n"}
        assert not controls and "\u202e" not in output


def test_the_token_is_found_in_the_data_directory(start_broker):
    """On the broker's own machine nothing has to be copied."""
    broker = start_broker(makes_its_own_token=True)
    done = hermesctl(
        "status", "--json", "--data-directory", str(broker.data), broker=broker, token=None
    )
    assert done.code == 0, done
    assert done.json["connections"] == 0


def test_a_wrong_token_and_an_absent_broker_are_told_apart(start_broker):
    broker = start_broker()
    wrong = hermesctl("status", broker=broker, token="wrong")
    assert wrong.code == UNAUTHORIZED and "token" in wrong.errors.lower()
    assert broker.stop() == 0
    absent = hermesctl("status", broker=broker)
    assert absent.code == UNREACHABLE and str(broker.admin_address[1]) in absent.errors


def test_help_and_usage():
    helped = hermesctl("--help")
    assert helped.code == 0
    for command in ("status", "clients", "publish", "users", "config"):
        assert command in helped.output
    wrong = hermesctl("statsu")
    assert wrong.code == USAGE and wrong.errors
