"""What an operator can list: clients in order, subscriptions, receivers, retained messages; `top`."""

from __future__ import annotations

from contextlib import ExitStack, closing
from urllib.parse import quote

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("lists")

REFUSED, USAGE = 1, 64


def listed(broker, *arguments: str) -> list[list[str]]:
    """The cells of a table, without its heading line."""
    done = hermesctl(*arguments, broker=broker)
    assert done.code == 0, done
    return [line.split() for line in done.output.splitlines()[1:]]


def connect(broker, stack: ExitStack, client_id: str, **more: object) -> RawClient:
    client = stack.enter_context(closing(RawClient(broker.address)))
    client.connect(client_id, **more)
    return client


def test_clients_sorted_by_what_stands_out(hermesd):
    broker = hermesd(environment={"HERMES_LIMITS_QUEUE_MESSAGES": "3"})
    with ExitStack() as stack:
        for name, _ in (("few", 1), ("many", 3), ("none", 0)):
            phone = connect(broker, stack, name, clean_session=False)
            phone.subscribe((f"to/{name}", 1))
            phone.disconnect()
        office = connect(broker, stack, "office")
        for name, count in (("few", 1), ("many", 5)):
            for _ in range(count):
                office.publish(f"to/{name}", b"x", qos=1)
        rows = listed(broker, "clients", "list", "--sort", "queued")
        assert [row[0] for row in rows[:2]] == ["many", "few"]
        worst = listed(broker, "clients", "list", "--sort", "dropped", "--limit", "1")
        assert worst[0][0] == "many"
        assert [row[0] for row in listed(
            broker, "clients", "list", "--address", "127.0.0.0/8")] == ["office"]
        assert listed(broker, "clients", "list", "--address", "10.0.0.0/8") == []
        assert listed(broker, "clients", "list", "--protocol", "3.1") == []
        assert len(listed(broker, "clients", "list", "--within", "1h")) == 4
        assert listed(broker, "clients", "list", "--longer-than", "1h") == []
        page = AdminAPI(broker).get("/v1/clients?sort=dropped&limit=1")
        assert page["clients"][0]["messages_dropped"] == 2


def test_a_queue_has_as_many_bytes_after_a_restart_as_before(hermesd):
    broker = hermesd()
    sizes = (0, 1, 100, 121, 122, 20_000)
    with ExitStack() as stack:
        phone = connect(broker, stack, "phone", clean_session=False)
        phone.subscribe(("to/phone", 1))
        phone.disconnect()
        office = connect(broker, stack, "office")
        for size in sizes:
            office.publish("to/phone", b"x" * size, qos=1)
    expected = sum(len("to/phone") + size for size in sizes)
    for ends_cleanly in (True, False):
        api = AdminAPI(broker)
        assert (api.client("phone")["queued"], api.client("phone")["queued_bytes"]) == (
            len(sizes), expected)
        assert api.status()["queued_bytes"] == expected
        if ends_cleanly:
            broker.stop()
        else:
            broker.kill()
        broker = hermesd(data=broker.data)
    assert AdminAPI(broker).client("phone")["queued_bytes"] == expected


def test_messages_of_qos_0_are_told_apart(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        phone = connect(broker, stack, "phone", clean_session=False)
        phone.subscribe(("one", 1), ("none", 0))
        office = connect(broker, stack, "office")
        for _ in range(4):
            office.publish("none", b"x", qos=1)
        office.publish("one", b"x", qos=1)
        phone.take_messages(5)
        eventually(
            lambda: AdminAPI(broker).client("phone")["publishes_acknowledged"] == 1, "the PUBACK")
        detail = AdminAPI(broker).client("phone")
        assert (detail["publishes_sent"], detail["publishes_sent_qos0"]) == (5, 4)
        shown = hermesctl("clients", "show", "phone", broker=broker).output
        assert "5, 4 with QoS 0, which nobody acknowledges" in shown
        told = hermesctl("explain", "phone", broker=broker).output
        assert "5 messages were sent to it, 4 with QoS 0, which nobody acknowledges; it acknowledged 1." in told
        phone.disconnect()
        office.publish("none", b"x", qos=1)
    told = hermesctl("explain", "phone", broker=broker).output
    assert "they or the matching subscription had QoS 0, and it was offline" in told


def test_wrong_orders_and_addresses_say_what_there_is(hermesd):
    broker = hermesd()
    done = hermesctl("clients", "list", "--sort", "size", broker=broker)
    assert done.code == USAGE and "There are client-id, since, queued" in done.errors, done
    done = hermesctl("clients", "list", "--address", "10.0.0", broker=broker)
    assert done.code == REFUSED and "as 10.1.2.3 or 10.1.0.0/16" in done.errors, done


def test_subscriptions_of_all_clients(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        ann = connect(broker, stack, "ann")
        ann.subscribe(("orders/#", 1), ("$share/g/jobs", 2))
        connect(broker, stack, "bob").subscribe(("orders/7", 0))
        rows = listed(broker, "subscriptions")
        assert sorted(rows) == [
            ["ann", "-", "connected", "1", "orders/#"],
            ["ann", "-", "connected", "2", "$share/g/jobs"],
            ["bob", "-", "connected", "0", "orders/7"],
        ]
        assert [row[0] for row in listed(broker, "subscriptions", "--prefix", "orders/7")] == ["bob"]
        assert len(listed(broker, "subscriptions", "--client", "ann")) == 2
        ann.unsubscribe("orders/#")
        assert len(listed(broker, "subscriptions", "--client", "ann")) == 1


def test_whom_a_topic_reaches(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        connect(broker, stack, "here").subscribe(("orders/+", 2))
        connect(broker, stack, "away", clean_session=False).subscribe(("orders/#", 1))
        connect(broker, stack, "member").subscribe(("$share/g/orders/#", 1))
        stack.close()
        here = connect(broker, stack, "here")
        here.subscribe(("orders/+", 2))
        connect(broker, stack, "member").subscribe(("$share/g/orders/#", 1))
        done = hermesctl("receivers", "orders/7", "-q", "2", broker=broker)
        rows = [line.split() for line in done.output.splitlines()]
        assert ["here", "-", "2", "sent"] in rows
        assert ["away", "-", "1", "kept", "until", "it", "comes", "back"] in rows
        at = rows.index("One member of $share/g/orders/#, which has 1:".split())
        assert rows[at + 1:at + 3] == [
            ["CANDIDATE", "USER", "QOS", "OUTCOME"], ["member", "-", "1", "sent"]]
        nobody = hermesctl("receivers", "other", broker=broker)
        assert nobody.output.startswith("Nobody"), nobody


def test_retained_messages_are_listed_shown_and_deleted_across_a_restart(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        office = connect(broker, stack, "office")
        for topic, payload in (("b/2", b"two"), ("a", "ä".encode()), ("b/1", b"\xff\x00")):
            office.publish(topic, payload, qos=1, retain=True)
        watcher = connect(broker, stack, "watcher")
        watcher.subscribe(("b/+", 0))
        watcher.take_messages(2)
        assert [row[0] for row in listed(broker, "retained", "list")] == ["a", "b/1", "b/2"]
        assert [row[0] for row in listed(
            broker, "retained", "list", "--filter", "b/+")] == ["b/1", "b/2"]
        shown = hermesctl("retained", "show", "a", broker=broker)
        assert "payload  ä\n" in shown.output, shown
        api = AdminAPI(broker)
        assert api.get(f"/v1/retained/message?topic={quote('b/1', safe='')}")[
            "payload_base64"] == "/wA="
        assert hermesctl("retained", "delete", "b/1", broker=broker).code == 0
        again = hermesctl("retained", "delete", "b/1", broker=broker)
        assert again.code == REFUSED and "has no retained message" in again.errors
        # Nobody was told.
        office.publish("b/3", b"next", qos=1)
        assert watcher.take_message().topic == "b/3"
    broker.kill()
    broker = hermesd(data=broker.data)
    assert [row[0] for row in listed(broker, "retained", "list")] == ["a", "b/2"]


def test_top_shows_rates_and_the_clients_that_stand_out(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        phone = connect(broker, stack, "phone", clean_session=False)
        phone.subscribe(("a", 1))
        phone.disconnect()
        office = connect(broker, stack, "office")
        for _ in range(3):
            office.publish("a", b"x", qos=1)
        eventually(lambda: AdminAPI(broker).status()["queued"] == 3, "three messages in a queue")
        done = hermesctl("top", "--looks", "2", "--interval", "1", broker=broker)
    assert done.code == 0, done
    first, second = done.output.split("\n\nHermes ", 1)
    assert first.startswith("Hermes ") and "3 queued" in first
    assert "messages  0/s in, 0/s out" in second
    head, table = second.split("\n\n")
    assert [line.split()[0] for line in table.splitlines()] == ["CLIENT", "phone", "office"]
    assert "\x1b" not in done.output, "no control sequences where there is no terminal"


