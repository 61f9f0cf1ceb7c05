"""Shared subscriptions of offline members: neither a crash nor a session's end loses a message."""

from contextlib import closing

import pytest

from harness import wire
from harness.admin import AdminAPI, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("the store is hermesd's own")

FILTER = "$share/workers/jobs/#"


def killed(hermesd, broker, **settings):
    broker.kill()
    return hermesd(data=broker.data, **settings)


def absent(broker, *names):
    """Persistent members whose clients are offline."""
    for name in names:
        client = RawClient(broker.address)
        client.connect(name, clean_session=False)
        assert client.subscribe((FILTER, 2)) == (2,)
        client.disconnect()


def publish(broker, numbers, qos=1):
    client = RawClient(broker.address)
    client.connect("publisher")
    for number in numbers:
        client.publish("jobs/one", b"%d" % number, qos=qos)
    client.disconnect()


def owed(broker, name):
    """A member's queue, received and acknowledged until it is empty."""
    client = RawClient(broker.address)
    assert client.connect(name, clean_session=False).session_present
    received = []

    def is_empty():
        for one in client.messages_so_far():
            received.append(int(one.payload))
            if one.qos == 1:
                client.send(wire.puback(one.packet_id))
            else:
                client.send(wire.pubrec(one.packet_id))
                client.await_packet(wire.Pubrel)
                client.send(wire.pubcomp(one.packet_id))
        summary = AdminAPI(broker).client(name)
        return summary["queued"] == summary["in_flight"] == 0

    eventually(is_empty, f"{name}'s queue to be empty")
    client.disconnect()
    return received


def throw_away(broker, name):
    client = RawClient(broker.address)
    assert not client.connect(name, clean_session=True).session_present
    client.disconnect()


def waiting(broker, name):
    return AdminAPI(broker).client(name)["queued"]


def test_what_waits_for_absent_members_outlives_a_crash(hermesd):
    broker = hermesd()
    absent(broker, "a", "b", "c")
    publish(broker, range(30))
    publish(broker, range(30, 60), qos=2)
    broker = killed(hermesd, broker)
    assert [waiting(broker, name) for name in "abc"] == [20, 20, 20]
    received = [owed(broker, name) for name in "abc"]
    assert sorted(sum(received, [])) == list(range(60))


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
@pytest.mark.parametrize(
    "limit", [{"QUEUE_MESSAGES": "3"}, {"QUEUE_BYTES": "3072", "MAX_PACKET": "1024"}])
def test_a_full_member_costs_no_message_while_another_has_room(hermesd, policy, limit):
    environment = {f"HERMES_LIMITS_{key}": value for key, value in limit.items()}
    broker = hermesd(environment={**environment, "HERMES_LIMITS_QUEUE_POLICY": policy})
    absent(broker, "full", "empty")
    with closing(RawClient(broker.address)) as client:
        client.connect("full", clean_session=False)
        client.subscribe(("own", 1))
        client.disconnect()
    size = 900 if "QUEUE_BYTES" in limit else 3
    with closing(RawClient(broker.address)) as client:
        client.connect("publisher")
        for _ in range(3):
            client.publish("own", b"x" * size, qos=1)
        for number in range(3):
            client.publish("jobs/one", (b"%d" % number).ljust(size), qos=1)
    api = AdminAPI(broker)
    assert [waiting(broker, name) for name in ("full", "empty")] == [3, 3]
    assert api.metric('hermes_messages_dropped_total{reason="queue_full"}') == 0
    assert owed(broker, "empty") == [0, 1, 2]


@pytest.mark.parametrize("crash", ["before", "after", "both"])
def test_a_session_that_is_thrown_away_gives_its_share_back(hermesd, crash):
    broker = hermesd()
    absent(broker, "a", "b")
    publish(broker, range(300))
    if crash != "after":
        broker = killed(hermesd, broker)
    throw_away(broker, "a")
    if crash != "before":
        broker = killed(hermesd, broker)
    # In slices, after the answer to the client that removed the session.
    eventually(lambda: waiting(broker, "b") == 300, "all to wait for the other member")
    assert sorted(owed(broker, "b")) == list(range(300))
    assert broker.stop() == 0
    assert owed(hermesd(data=broker.data), "b") == []


def test_a_session_that_expires_after_a_restart_gives_its_share_back(hermesd):
    broker = hermesd()
    absent(broker, "a")
    publish(broker, range(100))
    broker = killed(hermesd, broker, environment={"HERMES_LIMITS_SESSION_EXPIRY": "1s"})
    client = RawClient(broker.address)
    client.connect("b", clean_session=False)
    client.subscribe((FILTER, 1))
    messages = [int(one.payload) for one in client.take_messages(100)]
    assert messages == list(range(100))
    client.close()


def test_what_a_member_had_and_not_acknowledged_goes_to_another_after_a_crash(hermesd):
    broker = hermesd(max_in_flight=5)
    absent(broker, "a", "b")
    client = RawClient(broker.address)
    client.connect("a", clean_session=False)
    publish(broker, range(20))
    assert [client.receive_publish().payload for _ in range(5)] == [b"%d" % n for n in range(5)]
    broker = killed(hermesd, broker)
    client.close()
    throw_away(broker, "a")
    eventually(lambda: waiting(broker, "b") == 20, "all to wait for the other member")
    assert owed(broker, "b") == list(range(20))


def test_leaving_the_group_before_a_crash_gives_back_what_was_not_sent(hermesd):
    broker = hermesd(max_in_flight=5)
    absent(broker, "a")
    client = RawClient(broker.address)
    client.connect("a", clean_session=False)
    publish(broker, range(200))
    sent = [client.receive_publish() for _ in range(5)]
    absent(broker, "b")
    client.send(wire.unsubscribe(9, FILTER))
    client.await_packet(wire.Unsuback)
    broker = killed(hermesd, broker, max_in_flight=5)
    client.close()
    # The hand-over cut off by the crash continues when the former member reconnects. Messages that
    # may have been sent to it stay with it; after a crash these are more.
    kept = owed(broker, "a")
    assert kept[:5] == [int(one.payload) for one in sent]
    eventually(lambda: waiting(broker, "b") == 200 - len(kept), "the rest to wait for the other one")
    assert sorted(kept + owed(broker, "b")) == list(range(200))


@pytest.mark.parametrize("end", ["close", "stop", "operator"])
def test_leaving_a_group_changes_nothing_about_other_messages(hermesd, end):
    """Between the client's own messages the group's leave holes: those behind were never sent."""
    broker = hermesd(max_in_flight=1)
    phone = RawClient(broker.address)
    phone.connect("phone", clean_session=False)
    phone.subscribe(("own", 1), ("zero", 0), (FILTER, 1))
    publisher = RawClient(broker.address)
    publisher.connect("publisher")
    for topic in ("own", "own", "jobs/one", "zero", "jobs/two", "own"):
        publisher.publish(topic, topic.encode(), qos=1)
    assert not phone.receive_publish().dup
    other = RawClient(broker.address)
    other.connect("other")
    other.subscribe((FILTER, 1))
    phone.unsubscribe(FILTER)
    assert {other.take_message().topic for _ in range(2)} == {"jobs/one", "jobs/two"}
    phone.close()
    eventually(
        lambda: not AdminAPI(broker).client("phone")["connected"], "the phone's end")
    assert waiting(broker, "phone") == 3
    if end == "stop":
        assert broker.stop() == 0
        broker = hermesd(data=broker.data, max_in_flight=1)
    elif end == "operator":
        dropped = hermesctl("queue", "drop", "phone", "--yes", broker=broker)
        assert "Dropped 3 messages" in dropped.output, dropped.output
    phone = RawClient(broker.address)
    phone.connect("phone", clean_session=False)
    first = phone.take_message()
    assert (first.topic, first.dup) == ("own", True), "it was in flight"
    if end != "operator":
        rest = [(one.topic, one.qos, one.dup) for one in phone.take_messages(3)]
        assert rest == [("own", 1, False), ("zero", 0, False), ("own", 1, False)]
    assert phone.messages_so_far() == []
    eventually(lambda: waiting(broker, "phone") == 0, "an empty queue")
    for one in (phone, publisher, other):
        one.close()
