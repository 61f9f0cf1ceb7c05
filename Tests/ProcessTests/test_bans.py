"""Clients, users and addresses that an operator shuts out: /v1/bans and `hermesctl bans`."""

from __future__ import annotations

import stat
from contextlib import closing
from pathlib import Path

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.proxy import Proxy, line
from harness.raw_client import ConnectionClosed, RawClient
from harness.tls import TLSClient, client_context
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("bans are its own")

NOT_AUTHORIZED = 5
REFUSED, BAD_FILE_HERE, BAD_FILE, USAGE = 1, 2, 78, 64
OTHER = "127.0.0.2"
"""Another address of this machine."""


def ban(broker, **what: object) -> dict:
    answer = AdminAPI(broker).post_json("/v1/bans", what)
    assert answer.status in (200, 201), answer
    return answer.json


def lift(broker, ban_id: str) -> None:
    assert AdminAPI(broker).request("DELETE", f"/v1/bans/{ban_id}").status == 200


def banned_file(broker) -> Path:
    return broker.data / "bans"


def is_let_in(broker, name: str = "probe", source: str | None = None, **options: object) -> bool:
    """False for a connection that is closed before its CONNECT is answered."""
    with closing(RawClient(broker.address, source=source)) as client:
        try:
            return client.connect(name, **options).return_code == 0
        except (ConnectionClosed, ConnectionResetError, BrokenPipeError):
            return False


def test_a_banned_client_is_closed_at_once_and_refused_until_lifted(hermesd):
    broker = hermesd()
    with closing(RawClient(broker.address)) as phone, closing(RawClient(broker.address)) as other:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("a/#", 1))
        other.connect("other")
        made = ban(broker, client_id="phone", reason="floods")
        assert made["disconnected"] == 1 and made["ban"]["by"] == "admin", made
        phone.await_closed()
        other.publish("a/1", b"x", qos=1)
    with closing(RawClient(broker.address)) as again:
        assert again.connect("phone", clean_session=False).return_code == NOT_AUTHORIZED
        again.await_closed()
    ban_id = made["ban"]["id"]
    broker.log.await_match(rf"Connection closed by the broker .*ban\.id={ban_id}.*reason=banned")
    broker.log.await_match(rf"Connection refused ban\.id={ban_id} .*client\.id=phone .*reason=banned")
    api = AdminAPI(broker)
    assert api.metric('hermes_ban_refusals_total{kind="client"}') == 1
    assert api.metric("hermes_bans ") == 1
    text = hermesctl("explain", "phone", broker=broker).output
    assert f"- It is banned until the ban is lifted, by admin: floods. Lift it with: hermesctl " \
        f"bans lift {ban_id}\n" in text
    assert "an operator banned it" in text
    # The session has stayed, with what was published meanwhile.
    lift(broker, ban_id)
    with closing(RawClient(broker.address)) as back:
        assert back.connect("phone", clean_session=False).session_present
        assert back.take_message().topic == "a/1"


def test_a_banned_user_is_refused_before_the_password_is_checked(start_broker):
    broker = start_broker(users={"ann": "secret", "bob": "secret"})
    ann = {"user_name": "ann", "password": b"secret"}
    with closing(RawClient(broker.address)) as one, closing(RawClient(broker.address)) as two:
        one.connect("one", **ann)
        two.connect("two", **ann)
        assert ban(broker, user_name="ann")["disconnected"] == 2
        one.await_closed()
        two.await_closed()
    for password in (b"secret", b"wrong"):
        with closing(RawClient(broker.address)) as again:
            connack = again.connect("one", user_name="ann", password=password)
            # A wrong password would be told by code 4.
            assert connack.return_code == NOT_AUTHORIZED
    assert is_let_in(broker, "three", user_name="bob", password=b"secret")
    assert AdminAPI(broker).metric('hermes_ban_refusals_total{kind="user"}') == 2
    text = hermesctl("explain", "one", broker=broker).output
    assert "- Its user ann is banned until the ban is lifted" in text


def test_a_banned_address_is_closed_before_a_byte_is_read(hermesd):
    broker = hermesd()
    with closing(RawClient(broker.address, source=OTHER)) as there:
        there.connect("there")
        made = ban(broker, address="127.0.0.2/31", for_s=3600)
        assert made["disconnected"] == 1
        there.await_closed()
    with closing(RawClient(broker.address, source=OTHER)) as again:
        # Nothing is sent, and the broker closes all the same.
        assert again.await_closed() == []
    assert is_let_in(broker)
    broker.log.await_match(
        rf"New connection closed, its address is banned ban\.id={made['ban']['id']}")
    text = hermesctl("explain", "there", broker=broker).output
    assert "- Its address is banned (127.0.0.2/31) for another 59m 5" in text
    lift(broker, made["ban"]["id"])
    assert is_let_in(broker, source=OTHER)


def test_each_ban_tells_what_it_has_refused(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    idle = ban(broker, client_id="nobody")["ban"]
    assert idle["refused"] == 0 and "last_refused_at_ms" not in idle
    made = {"client": ban(broker, client_id="phone")["ban"]["id"],
            "user": ban(broker, user_name="ann")["ban"]["id"],
            "address": ban(broker, address=OTHER)["ban"]["id"]}
    for _ in range(3):
        assert not is_let_in(broker, "phone")
    assert not is_let_in(broker, "tablet", user_name="ann", password=b"x")
    for _ in range(2):
        assert not is_let_in(broker, source=OTHER)
    listed = {each["id"]: each for each in api.get("/v1/bans")["bans"]}
    assert {kind: listed[name]["refused"] for kind, name in made.items()} == {
        "client": 3, "user": 1, "address": 2}
    assert all(listed[name]["last_refused_at_ms"] >= listed[name]["created_at_ms"]
               for name in made.values())
    # The same ban again keeps its count; one that was lifted is told with it, and forgotten.
    assert ban(broker, client_id="phone", reason="floods")["ban"]["refused"] == 3
    line = next(line for line in hermesctl("bans", "list", broker=broker).output.splitlines()
                if "client phone" in line)
    assert " 3, " in line and " ago" in line, line
    lifted = api.request("DELETE", f"/v1/bans/{made['client']}").json["lifted"]
    assert lifted["refused"] == 3
    assert ban(broker, client_id="phone")["ban"]["refused"] == 0


def test_a_banned_address_gets_no_tls_handshake(tls_broker, authority):
    broker = tls_broker
    ban(broker, address="127.0.0.0/8")
    with pytest.raises((ConnectionError, OSError)):
        TLSClient(broker, client_context(authority.certificate))
    assert AdminAPI(broker).metric("hermes_tls_handshakes_total") == 0
    assert AdminAPI(broker).metric('hermes_ban_refusals_total{kind="address"}') == 1


def test_behind_a_proxy_the_client_is_banned_and_not_the_proxy(start_broker):
    broker = start_broker(environment={
        "HERMES_LISTENERS_0_PROXY_FROM": OTHER,
        "HERMES_LISTENERS_0_ALLOW_ANONYMOUS": "true",
    })
    bad, good = "192.0.2.7", "198.51.100.7"
    with closing(Proxy(broker.address, line(bad, 5000))) as from_bad, \
            closing(Proxy(broker.address, line(good, 5000))) as from_good, \
            closing(RawClient(from_bad.address)) as victim:
        victim.connect("victim")
        ban(broker, address="192.0.2.0/24")
        victim.await_closed()
        assert not is_let_in(from_bad)
        assert is_let_in(from_good)
        ban(broker, address=OTHER)
        assert is_let_in(from_good, "another")


def test_bans_survive_restarts_and_end_by_themselves(hermesd):
    broker = hermesd()
    ban(broker, client_id="for ever", reason="über \"quoted\"\n")
    ban(broker, client_id="short", for_s=2)
    ban(broker, user_name="ann", for_s=3600)
    assert not is_let_in(broker, "short")
    mode = stat.S_IMODE(banned_file(broker).stat().st_mode)
    assert mode == 0o600, oct(mode)
    before = AdminAPI(broker).get("/v1/bans")["bans"]
    broker.kill()
    broker.start()
    assert not is_let_in(broker, "for ever")
    eventually(lambda: is_let_in(broker, "short"), "the end of the short ban", within=10)
    left = AdminAPI(broker).get("/v1/bans")["bans"]
    # What they refuse is counted from the broker's start on.
    assert [one.pop("refused") for one in left] == [1, 0]
    left[0].pop("last_refused_at_ms")
    assert left == [{name: value for name, value in one.items() if name != "refused"}
                    for one in before if one.get("client_id") != "short"]
    assert len(banned_file(broker).read_text().splitlines()) == 3
    # A further change leaves out what has expired.
    ban(broker, client_id="new")
    lines = banned_file(broker).read_text().splitlines()
    assert len(lines) == 3 and not any("client:short" in one for one in lines)


def test_a_repeated_ban_keeps_its_identifier(hermesd):
    broker = hermesd()
    first = ban(broker, client_id="phone", for_s=60)["ban"]
    again = AdminAPI(broker).post_json("/v1/bans", {"client_id": "phone", "reason": "still"})
    assert again.status == 200
    second = again.json["ban"]
    assert second["id"] == first["id"] and "expires_at_ms" not in second
    assert len(AdminAPI(broker).get("/v1/bans")["bans"]) == 1


def test_a_damaged_file_stops_the_start_and_says_where(hermesd):
    broker = hermesd()
    ban(broker, client_id="phone")
    assert broker.stop() == 0
    with banned_file(broker).open("a") as file:
        file.write("7f3a9c21 client:x yesterday never by: why:\n")
    with pytest.raises(AssertionError):
        broker.start()
    assert broker.process.returncode == BAD_FILE
    assert "bans:2: ban 7f3a9c21: a time is not written as" in broker.log.text


@pytest.mark.parametrize(("body", "field"), [
    ({}, None), ({"client_id": "a", "user_name": "b"}, None), ({"client_id": ""}, "client_id"),
    ({"user_name": ""}, "user_name"), ({"address": "10.0.0.1/8"}, "address"),
    ({"address": "example.com"}, "address"), ({"client_id": "a", "for_s": 0}, "for_s"),
    ({"client_id": "a", "reason": "x" * 513}, "reason"), ({"client": "a"}, "client"),
])
def test_a_wrong_ban_is_refused_with_its_field(body, field, api):
    problem = api.post_json("/v1/bans", body).problem(400)
    assert problem.get("field") == field, problem


def test_the_commands(hermesd):
    broker = hermesd()

    def run(*arguments: str, code: int = 0) -> str:
        done = hermesctl("bans", *arguments, broker=broker)
        assert done.code == code, done
        return done.output + done.errors

    added = run("add", "--client", "phone", "--for", "2h", "--reason", "floods")
    ban_id = added.split("(")[1].split(")")[0]
    assert added == f"Banned client phone for 2h ({ban_id}), and closed 0 connections.\n"
    assert "until it is lifted" in run("add", "--address", "192.0.2.0/24")
    header, first, second = run("list").splitlines()
    assert header.split() == ["BAN", "OF", "SINCE", "ENDS", "REFUSED", "BY", "REASON"]
    assert first.startswith(f"{ban_id}  client phone") and first.endswith("floods")
    assert "address 192.0.2.0/24" in second and "never" in second
    assert run("lift", ban_id) == "Lifted the ban of client phone.\n"
    assert "There is no ban" in run("lift", ban_id, code=REFUSED)
    assert "Give one of" in run("add", code=USAGE)
    assert "is no ban" in run("lift", "phone", code=USAGE)


def test_every_ban_is_in_the_audit_log(hermesd):
    broker = hermesd()
    ban(broker, client_id="phone")
    broker.log.await_match(
        r"Administrative request carried out .*admin\.token_name=admin .*http\.method=POST "
        r"http\.path=/v1/bans")
    broker.log.await_match(
        r"Banned ban\.expires=never ban\.id=\w{8} ban\.kind=client ban\.of=phone")


def test_a_ban_reaches_a_connect_whose_password_is_being_checked(start_broker):
    """The ban comes between the CONNECT and the answer of the password's check."""
    broker = start_broker(users={"ann": "secret"})
    for number in range(5):
        with closing(RawClient(broker.address)) as client:
            client.send(wire.connect(f"c{number}", user_name="ann", password=b"secret"))
            ban(broker, client_id=f"c{number}")
            packets = client.await_closed()
            assert not packets or packets[0].return_code in (0, NOT_AUTHORIZED)
        assert not any(
            one["connected"] for one in AdminAPI(broker).get("/v1/clients")["clients"])


def test_a_backup_holds_the_bans(hermesd):
    broker = hermesd()
    before, after = (broker.directory / name for name in ("before", "after"))
    assert hermesctl("backup", str(before), broker=broker).code == 0
    assert [path.name for path in before.iterdir()] == ["hermes.sqlite"], "nobody was ever banned"
    made = ban(broker, client_id="phone", reason="floods")
    assert hermesctl("backup", str(after), broker=broker).code == 0
    assert sorted(path.name for path in after.iterdir()) == ["bans", "hermes.sqlite"]
    assert stat.S_IMODE((after / "bans").stat().st_mode) == 0o600
    restored = hermesd(data=after)
    assert AdminAPI(restored).get("/v1/bans")["bans"] == [made["ban"]]
    with closing(RawClient(restored.address)) as client:
        assert client.connect("phone").return_code == NOT_AUTHORIZED
    # It is lifted there as anywhere.
    lift(restored, made["ban"]["id"])
    assert is_let_in(restored, "phone")


def test_a_backup_with_a_damaged_file_of_bans_is_refused(hermesd):
    broker = hermesd()
    ban(broker, client_id="phone")
    banned_file(broker).write_text("no ban\n")
    copy = broker.directory / "copy"
    refused = hermesctl("backup", str(copy), broker=broker)
    assert refused.code == REFUSED and "bans" in refused.errors, refused
    assert not copy.exists()


def test_config_check_reads_the_file_of_bans(hermesd):
    broker = hermesd()
    ban(broker, client_id="phone")
    configuration = broker.directory / "hermes.yaml"
    configuration.write_text(f"data_directory: {broker.data}\n")
    good = hermesctl("config", "check", str(configuration))
    assert good.code == 0, good
    with banned_file(broker).open("a") as file:
        file.write("no ban\n")
    bad = hermesctl("config", "check", str(configuration))
    assert bad.code == BAD_FILE_HERE and "bans:" in bad.errors and "Delete" in bad.errors, bad
