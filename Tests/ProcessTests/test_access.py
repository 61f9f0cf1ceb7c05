"""Access rules (docs/security.md) against real clients: publish and subscribe rights."""

from __future__ import annotations

import os
import resource
import signal
import subprocess

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.broker import Hermesd
from harness.command_line_clients import mosquitto_pub
from harness.waiting import PATIENCE, Deadline
from harness.wire import Pubcomp, Pubrec, Will

pytestmark = pytest.mark.hermesd("access rules are a file of hermesd")

USERS = {"backend": "b-secret", "anna": "a-secret"}
RULES = """
# A phone's rights: its own orders, its own uplink.
deny   user anna       subscribe  orders/anna/secret
allow  user anna       subscribe  orders/%u/#
allow  user anna       publish    devices/%c/up
allow  user backend    both       #
"""


class Guarded:
    """A broker with rules in a file that a test may change."""

    def __init__(self, broker: Hermesd, file) -> None:
        self.broker = broker
        self.file = file

    def reload(self, rules: str | None = None) -> int:
        """Sends SIGHUP; returns the number of log lines before it."""
        assert self.broker.process is not None and self.broker.log is not None
        if rules is not None:
            self.file.write_text(rules)
        lines = len(self.broker.log.lines)
        self.broker.process.send_signal(signal.SIGHUP)
        return lines

    def use(self, rules: str) -> None:
        self.broker.log.await_match("Configuration read again", start=self.reload(rules))
        # The loop has the rules in its mailbox by now; it answers this after it has taken them.
        AdminAPI(self.broker).status()

    def refusals(self, action: str) -> int:
        text = AdminAPI(self.broker).request("GET", "/metrics").body.decode()
        sample = f'hermes_acl_refusals_total{{action="{action}"}} '
        return int(text.split(sample)[1].split()[0])

    def await_refusals(self, action: str, count: int) -> None:
        deadline = Deadline(PATIENCE, f"{count} refusals of {action}")
        while self.refusals(action) != count:
            assert not deadline.is_over, f"{self.refusals(action)} refusals of {action}"

    def log_count(self, text: str) -> int:
        return sum(text in line for line in self.broker.log.lines)


@pytest.fixture
def guarded(start_broker, tmp_path):
    def start(rules: str = RULES, **settings) -> Guarded:
        file = tmp_path / "acl"
        file.write_text(rules)
        settings.setdefault("users", USERS)
        broker = start_broker(arguments=("--acl-file", str(file)), **settings)
        return Guarded(broker, file)

    return start


def as_user(name: str) -> dict:
    return {"user_name": name, "password": USERS[name].encode()}


def test_paho_gets_what_its_rules_allow(guarded, paho_client, names):
    one = guarded()
    anna = paho_client(
        names.client("a"), to=one.broker, user_name="anna", password=USERS["anna"])
    assert anna.subscribe(("orders/anna/1", 1), ("orders/berta/1", 1), ("#", 1)) == [1, 0x80, 1]
    backend = paho_client(
        names.client("b"), to=one.broker, user_name="backend", password=USERS["backend"])
    for topic in ("orders/anna/secret", "orders/berta/1", "other", "orders/anna/1"):
        backend.publish(topic, topic.encode(), qos=1)
    assert anna.take().topic == "orders/anna/1"
    assert [message.topic for message in anna.stop()] in ([], ["orders/anna/1"])
    assert one.refusals("subscribe") == 1
    assert one.refusals("deliver") == 3


def test_mosquitto_clients_learn_of_a_refusal(guarded, names):
    one = guarded()
    host, port = one.broker.address
    client = ["-h", host, "-p", str(port), "-u", "anna", "-P", USERS["anna"], "-i", names.client()]
    denied = subprocess.run(
        ["mosquitto_pub", *client, "-t", "orders/berta/1", "-m", "x", "-q", "1"],
        timeout=PATIENCE, check=False, capture_output=True,
    )
    assert denied.returncode != 0
    denied = subprocess.run(
        ["mosquitto_sub", *client, "-t", "orders/berta/#", "-W", "5", "-E"],
        timeout=PATIENCE + 5, check=False, capture_output=True,
    )
    assert b"denied" in denied.stderr.lower() or denied.returncode != 0
    mosquitto_pub(one.broker, *client[4:], "-t", f"devices/{client[-1]}/up", "-m", "x", "-q", "1")
    assert (one.refusals("publish"), one.refusals("subscribe")) == (1, 1)
    metrics = AdminAPI(one.broker).request("GET", "/metrics").body.decode()
    assert 'reason="publish_denied"} 1\n' in metrics


@pytest.mark.parametrize("shared", ["$share/g/#", "$share/g/+/+/+", "$share/g/orders/#"])
def test_wildcards_and_shared_subscriptions_reach_no_further(shared, guarded, client):
    """Each message is checked, whatever filter it came by."""
    one = guarded()
    anna = client("a", one.broker, **as_user("anna"))
    assert anna.subscribe((shared, 1)) == (1,)
    backend = client("b", one.broker, **as_user("backend"))
    for topic in ("orders/berta/1", "orders/anna/secret", "orders/anna/1"):
        backend.publish(topic, b"x", qos=1)
    assert anna.take_message().topic == "orders/anna/1"
    assert anna.messages_so_far() == []


@pytest.mark.parametrize("name", ["#", "+", "a/b", "a/#", "%c", "$x"])
def test_names_that_are_patterns_fill_no_placeholder(name, guarded, raw):
    """CVE-2017-7650."""
    one = guarded("allow everyone both own/%c\nallow everyone subscribe open")
    hostile = raw(one.broker)
    assert hostile.connect(name, **as_user("anna")).return_code == 0
    expected = 0 if name == "%c" else 0x80
    assert hostile.subscribe(("own/victim", 0), ("own/" + name, 0), ("open", 0)) == (
        0x80, expected, 0)
    hostile.send(wire.publish("own/victim", b"x"))
    hostile.await_closed()


def test_an_empty_file_denies_everything(guarded, client):
    """CVE-2018-12550."""
    one = guarded("# no rule\n")
    backend = client("b", one.broker, **as_user("backend"))
    assert backend.subscribe(("a", 0), ("#", 0), ("$SYS/#", 0)) == (0x80, 0x80, 0x80)
    backend.send(wire.publish("a", b"x"))
    assert backend.await_closed() == []


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("allow everyone both #\nallow eveyone both a\n", r"acl:2: "),
        ("\n\npermit user anna both #\n", r"acl:3: "),
        ("allow user anna both a/#/b\n", r"acl:1: "),
        ("allow user anna both \x1b[31m\n", r"acl:1: "),
        (None, r"acl: cannot open"),
    ],
)
def test_a_broken_file_stops_a_start_and_changes_nothing_later(
    rules, complaint, guarded, client, tmp_path
):
    """Whatever is wrong with the file opens nothing."""
    one = guarded()
    anna = client("a", one.broker, **as_user("anna"))
    assert anna.subscribe(("orders/anna/1", 0)) == (0,)
    if rules is None:
        one.file.unlink()
    start = one.reload(rules)
    one.broker.log.await_match("Unusable ACL file.*" + complaint, start=start)
    one.broker.log.await_match("everything stays as it was", start=start)
    assert anna.subscribe(("orders/anna/1", 0), ("orders/berta/1", 0)) == (0, 0x80)
    assert not any(b"\x1b" in line for line in one.broker.log.raw_lines)

    started = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", "0", "--data-directory",
         str(tmp_path / "data"), "--acl-file", str(one.file)],
        env={}, capture_output=True, timeout=PATIENCE, check=False,
    )
    assert started.returncode not in (0, None)
    assert complaint.split(":")[0] in started.stderr.decode()
    assert b"MQTT listener ready" not in started.stderr
    assert b"\x1b" not in started.stderr


def test_a_reload_without_free_descriptors_opens_nothing(guarded, client, raw, names):
    """CVE-2017-7652: rules and users stay as they were, and come when there is room."""
    one = guarded()
    anna = client("a", one.broker, **as_user("anna"))
    pid = one.broker.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    before = len(one.broker.log.lines)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        start = one.reload("allow everyone both #\n")
        one.broker.log.await_match("Unusable ACL file.*descriptor|Unusable ACL file.*open files",
                                   start=start)
        one.broker.log.await_match("everything stays as it was", start=start)
        assert anna.subscribe(("orders/berta/1", 0), ("orders/anna/1", 0)) == (0x80, 0)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert before < len(one.broker.log.lines)
    one.use("allow everyone both #\n")
    assert anna.subscribe(("orders/berta/1", 0)) == (0,)


def test_new_rules_hold_for_what_is_live_queued_and_retained(guarded, client, raw, names):
    """No subscription, queue or retained message outlives its right."""
    one = guarded()
    broker = one.broker
    anna = client("a", broker, **as_user("anna"))
    anna.subscribe(("orders/anna/#", 1))
    away = client("away", broker, clean_session=False, **as_user("anna"))
    away.subscribe(("orders/anna/#", 1))
    away.disconnect()
    backend = client("b", broker, **as_user("backend"))
    backend.publish("orders/anna/1", b"before", qos=1, retain=True)
    assert anna.take_message().payload == b"before"

    one.use("allow user backend both #\nallow user anna subscribe news\n")

    backend.publish("orders/anna/1", b"after", qos=1, retain=True)
    assert anna.messages_so_far() == []
    assert anna.subscribe(("orders/anna/1", 1), ("#", 1)) == (0x80, 1)
    assert anna.messages_so_far() == []
    back = raw(broker)
    assert back.connect(
        names.client("away"), clean_session=False, **as_user("anna")).session_present
    assert back.messages_so_far() == []
    broker.log.await_match("Queued messages dropped.*orders/anna/1")

    one.use(RULES)
    backend.publish("orders/anna/2", b"again", qos=1)
    assert anna.take_message().payload == b"again"
    assert back.take_message().payload == b"again"


def test_a_retained_message_outlives_its_publishers_right(guarded, client):
    """CVE-2018-12546, as docs/security.md says: a client with write access removes it."""
    one = guarded("allow everyone both #\n")
    anna = client("a", one.broker, **as_user("anna"))
    anna.publish("orders/anna/1", b"left behind", qos=1, retain=True)
    one.use("allow user backend both #\n")
    backend = client("b", one.broker, **as_user("backend"))
    backend.subscribe(("orders/#", 0))
    assert backend.take_message().payload == b"left behind"
    backend.publish("orders/anna/1", b"", qos=1, retain=True)
    late = client("c", one.broker, **as_user("backend"))
    late.subscribe(("orders/#", 0))
    assert late.messages_so_far() == []


def test_an_unfinished_qos_2_message_is_not_published_a_second_time(guarded, client, raw, names):
    """It was allowed on arrival; after the revocation only its exchange ends."""
    one = guarded()
    backend = client("b", one.broker, **as_user("backend"))
    backend.subscribe(("devices/+/up", 2))
    name = names.client("a")
    topic = f"devices/{name}/up"
    anna = client("a", one.broker, clean_session=False, **as_user("anna"))
    anna.send(wire.publish(topic, b"once", qos=2, packet_id=7))
    assert anna.expect(Pubrec) == Pubrec(7)
    assert backend.take_messages(1)[0].payload == b"once"
    anna.close()
    one.use("allow user backend both #\n")
    anna = raw(one.broker)
    assert anna.connect(name, clean_session=False, **as_user("anna")).session_present
    anna.send(
        wire.publish(topic, b"once", qos=2, packet_id=7, dup=True), wire.pubrel(7))
    assert anna.expect(Pubrec) == Pubrec(7)
    assert anna.expect(Pubcomp) == Pubcomp(7)
    anna.send(wire.publish(topic, b"more", qos=2, packet_id=8))
    assert anna.await_closed() == []
    assert backend.messages_so_far() == []


@pytest.mark.parametrize("is_revoked", [False, True])
@pytest.mark.parametrize("retain", [False, True])
def test_a_will_is_judged_when_it_fires(is_revoked, retain, guarded, client, names):
    """Not when CONNECT brought it."""
    one = guarded()
    backend = client("b", one.broker, **as_user("backend"))
    topic = f"devices/{names.client('a')}/up"
    backend.subscribe((topic, 1))
    anna = client("a", one.broker, will=Will(topic, b"gone", 1, retain), **as_user("anna"))
    if is_revoked:
        one.use("allow user backend both #\n")
    anna.reset()
    if not is_revoked:
        assert backend.take_message().payload == b"gone"
        return
    one.await_refusals("will", 1)
    one.broker.log.await_match("Will not published.*anna")
    assert backend.messages_so_far() == []
    backend.subscribe((topic, 1))
    assert backend.messages_so_far() == []


@pytest.mark.parametrize("topic", ["$CONTROL/dynamic-security/v1", "$SYS/broker/uptime"])
def test_wills_and_publishes_to_closed_topics_go_nowhere(topic, guarded, client):
    """Also when a rule names them."""
    one = guarded(f"allow everyone both {topic}\nallow everyone both #")
    watcher = client("w", one.broker, **as_user("backend"))
    watcher.subscribe(("$CONTROL/#", 0))
    forger = client("f", one.broker, will=Will(topic, b"will", 0, True), **as_user("anna"))
    forger.publish(topic, b"forged", qos=1, retain=True)
    forger.reset()
    deadline = Deadline(PATIENCE, "two dropped messages")
    while AdminAPI(one.broker).status()["dropped"]["reserved_topic"] != 2:
        assert not deadline.is_over
    assert watcher.messages_so_far() == []


def test_a_session_belongs_to_its_user(guarded, client, raw, names):
    """Another user neither takes a session over nor ends it."""
    one = guarded()
    anna = client("a", one.broker, clean_session=False, **as_user("anna"))
    anna.subscribe(("orders/anna/1", 1))
    for clean_session in (False, True):
        thief = raw(one.broker)
        assert thief.connect(
            names.client("a"), clean_session=clean_session, **as_user("backend")
        ).return_code == 5
    anna.ping()


def test_refusals_are_said_once_and_escaped(guarded, raw):
    """A client cannot write lines of its own into the log, nor fill it."""
    one = guarded("allow everyone subscribe a")
    for _ in range(30):
        hostile = raw(one.broker)
        assert hostile.connect("x\x1b[2J\nforged: yes", **as_user("anna")).return_code in (0, 2)
        hostile.send(wire.publish("b/\x1b[31m\nforged: yes", b"x"))
        hostile.await_closed()
    one.await_refusals("publish", 30)
    assert one.log_count("may not publish to this topic") == 1
    for line in one.broker.log.raw_lines:
        assert b"\x1b" not in line and not line.startswith(b"forged")
    flood = raw(one.broker)
    flood.connect("flood", **as_user("anna"))
    for number in range(300):
        assert flood.subscribe((f"{number}/x", 0)) == (0x80,)
    assert one.refusals("subscribe") == 300
    assert 1 <= one.log_count("Subscription refused by the access rules") <= 20


def test_acl_check_says_what_the_broker_does(guarded, client, names):
    one = guarded()
    anna = client("a", one.broker, **as_user("anna"))
    for topic, code in (
        ("orders/anna/1", 0), ("orders/berta/1", 0x80), ("#", 0), ("$share/g/orders/#", 0),
        ("orders/anna/secret", 0x80), ("$SYS/#", 0x80),
    ):
        answer = hermesctl(
            "acl", "check", "anna", names.client("a"), "subscribe", topic, "--file",
            str(one.file),
        )
        assert answer.code == (1 if code else 0), answer
        assert anna.subscribe((topic, 0)) == (code,)
    answer = hermesctl(
        "acl", "check", "anna", "x", "subscribe", "orders/anna/secret", "--file", str(one.file))
    assert f"{one.file}:3: deny user anna subscribe orders/anna/secret" in answer.output


def test_a_removed_user_is_refused_although_remembered(guarded, raw, names):
    """A password that was right a moment ago counts only while its user is there."""
    one = guarded()
    for _ in range(3):
        assert raw(one.broker).connect(names.client(), **as_user("anna")).return_code == 0
    file = one.broker.directory / "passwords"
    assert hermesctl("users", "remove", "anna", "--password-file", str(file)).code == 0
    assert raw(one.broker).connect(names.client(), **as_user("anna")).return_code == 4
    assert raw(one.broker).connect(names.client("b"), **as_user("backend")).return_code == 0


def test_out_of_the_box_nothing_listens_beyond_loopback(start_broker):
    """MQTT and the HTTP API."""
    broker = start_broker()
    listening = []
    for table, loopback in (("tcp", {"0100007F"}), ("tcp6", {"0" * 24 + "01000000"})):
        lines = open(f"/proc/{broker.process.pid}/net/{table}", encoding="ascii").readlines()[1:]
        sockets = socket_numbers(broker.process.pid)
        for columns in map(str.split, lines):
            if columns[3] == "0A" and columns[9] in sockets:
                listening.append(columns[1])
                assert columns[1].split(":")[0] in loopback, columns[1]
    assert len(listening) == 2


def socket_numbers(pid: int) -> set[str]:
    numbers = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        target = os.readlink(f"/proc/{pid}/fd/{name}")
        if target.startswith("socket:["):
            numbers.add(target[8:-1])
    return numbers
