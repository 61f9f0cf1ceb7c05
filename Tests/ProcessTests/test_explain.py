"""What the operator is told of a client: its history, and `hermesctl explain`."""

from __future__ import annotations

from contextlib import closing

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("hermesctl explain")

REFUSED = 1


def kinds(broker, client_id: str) -> list[str]:
    events = AdminAPI(broker).get(f"/v1/clients/{client_id}/history")["events"]
    return [event["kind"] for event in events]


def explained(broker, *arguments: str) -> str:
    done = hermesctl("explain", *arguments, broker=broker)
    assert done.code == 0, done
    return done.output


def test_a_client_that_is_away_with_a_full_queue(hermesd):
    broker = hermesd(environment={"HERMES_LIMITS_QUEUE_MESSAGES": "2"})
    with closing(RawClient(broker.address)) as phone, closing(RawClient(broker.address)) as office:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("a/#", 1))
        phone.disconnect()
        office.connect("office")
        eventually(lambda: kinds(broker, "phone")[:1] == ["disconnected"], "the end")
        for number in range(5):
            office.publish(f"a/{number}", b"x", qos=1)
    text = explained(broker, "phone")
    assert "- It is offline since" in text and "it said goodbye (DISCONNECT)" in text
    assert "- 2 messages are kept until it comes back.\n" in text
    assert "- It lost 3 of its messages: its queue was full" in text
    assert kinds(broker, "phone")[-2:] == ["disconnected", "connected"]
    assert "None of its subscriptions (1) matches b/1." in explained(
        broker, "phone", "--topic", "b/1")
    assert "Its subscription a/# (QoS 1) matches a/x/y." in explained(
        broker, "phone", "--topic", "a/x/y")


def test_a_topic_that_a_subscription_nearly_matches_and_who_gets_it(hermesd):
    broker = hermesd()
    with closing(RawClient(broker.address)) as phone, closing(RawClient(broker.address)) as other:
        phone.connect("phone")
        phone.subscribe(("orders/#", 1))
        other.connect("other")
        other.subscribe(("/orders/7/#", 1))
        text = explained(broker, "phone", "--topic", "/orders/7/status")
        assert (
            "- None of its subscriptions (1) matches /orders/7/status.\n"
            "- Its subscription orders/# nearly does: the topic begins with a slash, and it does "
            "not.\n"
            "- A message on /orders/7/status would reach other.\n") in text
        assert "- No client would get a message on b/1 now.\n" in explained(
            broker, "phone", "--topic", "b/1")


def test_a_wrong_password_is_told_although_there_is_no_session(start_broker):
    broker = start_broker(users={"ann": "secret"})
    for _ in range(3):
        with closing(RawClient(broker.address)) as stranger:
            assert stranger.connect("stranger", user_name="ann", password=b"no").return_code != 0
    text = explained(broker, "stranger")
    assert "It has no session" in text
    assert "Its CONNECT as user ann was refused 3 times" in text
    assert "wrong user name or password" in text
    nobody = hermesctl("explain", "nobody", broker=broker)
    assert nobody.code == REFUSED and "The broker knows no client" in nobody.output


def test_histories_can_be_off_and_outlive_sessions(hermesd):
    broker = hermesd()
    with closing(RawClient(broker.address)) as client:
        client.connect("gone")
        client.disconnect()
    eventually(lambda: kinds(broker, "gone") == ["disconnected", "connected"], "both events")
    assert "Its session was clean, and ended with its connection" in explained(broker, "gone")
    broker = hermesd(environment={"HERMES_LIMITS_HISTORY_BYTES": "0"})
    with closing(RawClient(broker.address)) as client:
        client.connect("here")
        assert kinds(broker, "here") == []
        assert "It is connected since" in explained(broker, "here")


def test_what_became_of_one_message_for_one_client(hermesd):
    broker = hermesd(environment={"HERMES_LIMITS_QUEUE_MESSAGES": "1"})
    api = AdminAPI(broker)

    def publish(name: str, topic: str, **more: object) -> None:
        answer = api.post_json(
            "/v1/messages", {"topic": topic, "payload": "x", "message_id": name, **more})
        assert answer.status == 200, answer

    def about(name: str) -> str:
        return explained(broker, "phone", "--message", name).splitlines()[1]

    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("a/#", 1))
        publish("sent", "a/1", receipts=True)
        eventually(lambda: "has not acknowledged it yet" in about("sent"), "sent")
        phone.take_messages(1)
        eventually(lambda: "It acknowledged the message sent" in about("sent"), "acknowledged")
        phone.disconnect()
    eventually(lambda: kinds(broker, "phone")[:1] == ["disconnected"], "the end")
    publish("old", "a/2", receipts=True)
    publish("plain", "a/3")
    publish("other", "b/1", receipts=True)
    assert about("old").endswith(
        " ago: its queue was full (limits.queue_messages, limits.queue_bytes).")
    assert "The message plain waits in its queue, at position" in about("plain")
    assert "to b/1, and was not for this client" in about("other")
    text = explained(broker, "phone", "--message", "other")
    assert "None of its subscriptions (1) matches b/1." in text
    assert "was not published with receipts in the last 24 hours" in about("nothing")
    both = hermesctl("explain", "phone", "--message", "a", "--topic", "b", broker=broker)
    assert both.code == 64 and "either --message or --topic" in both.errors


def test_an_operator_ends_sessions(start_broker):
    """One, and all of a user: connection, subscriptions and queue are gone, also after a kill."""
    broker = start_broker(users={"ann": "secret", "bob": "secret"})
    api = AdminAPI(broker)
    for name, user in [("phone", "ann"), ("tablet", "ann"), ("desk", "bob")]:
        with closing(RawClient(broker.address)) as client:
            assert client.connect(
                name, clean_session=False, user_name=user, password=b"secret").return_code == 0
            client.subscribe(("a/#", 1))
            client.disconnect()
    answer = api.post_json(
        "/v1/messages",
        {"topic": "a/1", "payload": "x", "message_id": "m-1", "receipts": True})
    assert answer.json["matched"] == 3

    def end(*arguments: str, code: int = 0) -> str:
        done = hermesctl("clients", "end", *arguments, broker=broker)
        assert done.code == code, done
        return done.output + done.errors

    assert "1 sessions with 1 messages" in end("desk", code=REFUSED)
    assert end("desk", "--yes") == 'Ended the session of "desk".\n'
    assert "There is no such client" in end("desk", "--yes", code=REFUSED)
    assert kinds(broker, "desk")[:2] == ["session_ended", "lost_messages"]
    gone = hermesctl("explain", "desk", broker=broker).output
    assert "An operator ended its session" in gone
    assert "1 of its messages ended with its session" in gone
    assert api.metric('hermes_messages_dropped_total{reason="session_ended"}') == 1
    lost = hermesctl("explain", "desk", "--message", "m-1", broker=broker).output
    assert "was lost" in lost and "its session ended before it acknowledged." in lost
    with closing(RawClient(broker.address)) as connected:
        assert connected.connect(
            "phone", clean_session=False, user_name="ann", password=b"secret").session_present
        assert sorted(end("--user", "ann", "--yes").splitlines()) == [
            'Ended the session of "phone".', 'Ended the session of "tablet".']
        connected.await_closed()
    assert 'the user "ann" has no session' in end("--user", "ann", "--yes", code=REFUSED)
    assert "Give either" in end("--yes", code=64)
    broker.kill()
    broker.start()
    assert api.get("/v1/clients")["clients"] == []
    with closing(RawClient(broker.address)) as again:
        connack = again.connect(
            "phone", clean_session=False, user_name="ann", password=b"secret")
        assert not connack.session_present


def test_what_expires_while_the_broker_is_stopped_is_told(hermesd):
    broker = hermesd()
    with closing(RawClient(broker.address)) as phone, closing(RawClient(broker.address)) as office:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("a/#", 1))
        phone.disconnect()
        office.connect("office")
        for number in range(5):
            office.publish(f"a/{number}", b"x", qos=1)
    broker.stop()
    broker = hermesd(data=broker.data, environment={"HERMES_LIMITS_SESSION_EXPIRY": "1s"})
    api = AdminAPI(broker)
    eventually(lambda: kinds(broker, "phone") == ["expired", "lost_messages"], "the end")
    assert api.metric('hermes_messages_dropped_total{reason="session_ended"}') == 5
    assert "5 of its messages ended with its session" in explained(broker, "phone")
    assert "phone" in hermesctl("troubles", broker=broker).output
    broker.log.await_match(r"Session ended with messages that nobody got.*messages=5")
