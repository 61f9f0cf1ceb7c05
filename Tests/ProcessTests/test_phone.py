"""hermes-phone, and with it HermesClient, against a real broker over a bad network."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.broker import Hermesd
from harness.phone import Phone
from harness.raw_client import RawClient
from harness.relay import Relay
from harness.waiting import eventually

pytestmark = [pytest.mark.hermesd("order statuses"), pytest.mark.timeout(120)]

Start = Callable[..., Hermesd]
StartPhone = Callable[..., Phone]
FILTER = "orders/s-42/#"
IN_FLIGHT = 20
"""limits.max_in_flight, unless a test sets it."""


def post(broker: Hermesd, order: str, status: str = "APPROVED") -> None:
    answer = AdminAPI(broker).post_json(
        f"/v1/orders/{order}/status", {"sales_id": "s-42", "status": status})
    assert answer.status == 200, answer


def orders(phone: Phone) -> list[str]:
    return [message["orderStatus"]["orderId"] for message in phone.messages]


def sequences(phone: Phone) -> list[int]:
    return [message["sequence"] for message in phone.messages]


def test_an_order_status_is_json_with_its_place_in_the_channel(
    hermesd: Start, phone: StartPhone
) -> None:
    broker = hermesd()
    seven = phone(broker.address, "phone-7", "-s", FILTER)
    seven.await_note("subscribed")
    post(broker, "o-1", "FUNDED")
    (message,) = seven.await_messages(1)
    assert message["topic"] == "orders/s-42/o-1/status"
    assert (message["channel"], message["sequence"], message["qos"]) == ("orders/s-42", 1, 1)
    assert message["orderStatus"]["orderId"] == "o-1"
    assert message["orderStatus"]["status"] == "ORDER_STATUS_FUNDED"
    assert seven.stop() == 0
    assert "state: stopped, as asked" in seven.log.text


def test_1_a_killed_broker_is_found_again_and_what_it_queued_comes(
    hermesd: Start, phone: StartPhone, tmp_path: Path
) -> None:
    broker = hermesd()
    relay = Relay(broker.address)
    seven = phone(relay.address, "phone-7", "-s", FILTER, storage=tmp_path / "log")
    seven.await_note("subscribed")
    broker.kill()
    seven.await_note("disconnected: the broker, or something between, closed the connection")
    again = hermesd(data=broker.data)
    post(again, "o-1")
    relay.retarget(again.address)
    seven.tell("now")
    seven.await_note("connected, the session goes on")
    seven.await_messages(1)
    assert orders(seven) == ["o-1"]


def test_9_a_killed_phone_gets_what_it_had_not_acknowledged_and_nothing_else_twice(
    hermesd: Start, phone: StartPhone, tmp_path: Path
) -> None:
    broker = hermesd()
    first = phone(broker.address, "phone-7", "-s", FILTER, storage=tmp_path / "log")
    first.await_note("subscribed")
    post(broker, "o-1")
    first.await_messages(1)
    eventually(lambda: AdminAPI(broker).client("phone-7")["publishes_acknowledged"] == 1, "the PUBACK")
    first.kill()
    deaf = phone(broker.address, "phone-7", "--never-acknowledge", storage=tmp_path / "log")
    deaf.await_note("connected, the session goes on")
    post(broker, "o-2")
    deaf.await_messages(1)
    deaf.kill()
    post(broker, "o-3")
    last = phone(broker.address, "phone-7", storage=tmp_path / "log")
    last.await_messages(2)
    assert orders(last) == ["o-2", "o-3"]


def test_3_a_dead_link_is_found_within_seconds_of_a_change_of_the_network(
    hermesd: Start, phone: StartPhone
) -> None:
    broker = hermesd()
    relay = Relay(broker.address)
    seven = phone(relay.address, "phone-7", "-s", FILTER)
    seven.await_note("subscribed")
    relay.hold()
    post(broker, "o-1")
    relay.go_on()
    mark = seven.mark
    seven.tell("network cellular")
    seven.await_note("no PINGRESP came within 3 s after a change of the network", start=mark)
    seven.await_messages(1)
    assert orders(seven) == ["o-1"]


def test_a_take_over_fight_ends_with_a_wait_that_says_so(
    hermesd: Start, phone: StartPhone
) -> None:
    broker = hermesd()
    seven = phone(broker.address, "phone-7")
    seven.await_note("connected")
    for _ in range(2):
        mark = seven.mark
        with closing(RawClient(broker.address)) as thief:
            thief.connect("phone-7", clean_session=False)
            seven.await_note("state: waiting", start=mark)
            if "another client takes" in seven.log.text:
                break
            mark = seven.mark
            thief.disconnect()
        seven.tell("now")
        seven.await_note("connected, the session goes on", start=mark)
    else:
        pytest.fail(f"the phone saw no fight:\n{seven.log.text}")
    seven.await_note(r"waiting (4[5-9]|[56]\d|7[0-5]) s, another client takes this one's session")


def test_7_a_lost_session_is_told_and_its_subscriptions_are_renewed(
    hermesd: Start, phone: StartPhone
) -> None:
    broker = hermesd()
    seven = phone(broker.address, "phone-7", "-s", FILTER)
    seven.await_note("subscribed")
    with closing(RawClient(broker.address)) as other:
        other.connect("phone-7", clean_session=True)
        other.disconnect()
    seven.await_note("state: waiting")
    seven.tell("now")
    seven.await_note("the broker had lost the session")
    eventually(lambda: FILTER in json.dumps(AdminAPI(broker).client("phone-7")), "SUBSCRIBE")
    post(broker, "o-1")
    seven.await_messages(1)


def test_a_broker_that_lost_its_store_counts_channels_anew_and_no_message_is_taken_for_a_repeat(
    hermesd: Start, phone: StartPhone, tmp_path: Path
) -> None:
    broker = hermesd()
    relay = Relay(broker.address)
    seven = phone(relay.address, "phone-7", "-s", FILTER, storage=tmp_path / "log")
    seven.await_note("subscribed")
    for order in ("o-1", "o-2", "o-3"):
        post(broker, order)
    seven.await_messages(3)
    broker.kill()
    seven.await_note("disconnected")
    empty = hermesd()
    relay.retarget(empty.address)
    seven.tell("now")
    seven.await_note("the broker had lost the session")
    eventually(lambda: FILTER in json.dumps(AdminAPI(empty).client("phone-7")), "SUBSCRIBE")
    for order in ("o-4", "o-5"):
        post(empty, order)
    seven.await_messages(5)
    assert orders(seven) == ["o-1", "o-2", "o-3", "o-4", "o-5"]
    assert sequences(seven) == [1, 2, 3, 1, 2]
    assert "lost in" not in seven.log.text


def test_4_5_13_what_is_published_without_a_connection_arrives_once(
    hermesd: Start, phone: StartPhone, tmp_path: Path
) -> None:
    broker = hermesd()
    with closing(RawClient(broker.address)) as office:
        office.connect("office")
        office.subscribe(("phones/#", 2))
        relay = Relay(broker.address)
        relay.close()
        nowhere = phone(relay.address, "phone-7", "--qos", "2", storage=tmp_path / "log")
        nowhere.tell("publish phones/7 offline")
        nowhere.await_note("published: phones/7")
        assert "acknowledged" not in nowhere.log.text
        nowhere.kill()
        later = phone(broker.address, "phone-7", "--qos", "2", storage=tmp_path / "log")
        later.tell("publish phones/7 online")
        later.await_note("acknowledged: phones/7")
        assert [message.payload for message in office.take_messages(2)] == [b"offline", b"online"]
        assert office.messages_so_far() == []


def test_2_background_disconnects_reports_and_comes_back_anew(
    hermesd: Start, phone: StartPhone
) -> None:
    broker = hermesd()
    with closing(RawClient(broker.address)) as office:
        office.connect("office")
        office.subscribe(("hermes/reports/#", 1))
        seven = phone(broker.address, "phone-7", "-s", FILTER)
        seven.await_note("subscribed")
        post(broker, "o-1")
        seven.await_messages(1)

        def is_counted() -> bool:
            mark = seven.mark
            seven.tell("statistics")
            return "received 1," in seven.await_note("statistics:", start=mark)

        eventually(is_counted, "the message's acknowledgement")
        seven.tell("background")
        seven.await_note("suspended")
        report = office.take_message()
        assert report.topic == "hermes/reports/phone-7"
        # received = 1 and connects = 1: fields 1 and 4 of hermes.v1.ClientReport.
        assert b"\x08\x01" in report.payload and b"\x20\x01" in report.payload
        api = AdminAPI(broker)
        eventually(lambda: not api.client("phone-7")["connected"], "the end of it")
        (read,) = api.get("/v1/arrivals?client_id=phone-7")["clients"]
        assert read["counts"]["received"] == read["counts"]["connects"] == 1
        assert read["heartbeat_seconds"] == 120
        post(broker, "o-2")
        mark = seven.mark
        seven.tell("foreground")
        seven.await_note("connected, the session goes on", start=mark)
        seven.await_messages(2)
        assert orders(seven) == ["o-1", "o-2"]


def test_a_device_is_registered_and_forgotten_by_the_phone(
    hermesd: Start, phone: StartPhone
) -> None:
    broker = hermesd()
    api = AdminAPI(broker)
    seven = phone(broker.address, "phone-7", "-s", FILTER)
    token = "a1" * 160
    seven.tell(f"device {token} com.example.app")
    seven.await_note("acknowledged: device")
    device = api.get("/v1/clients/phone-7/device")
    assert (device["token"], device["bundle"]) == (token[:8] + "…", "com.example.app")
    assert (device["kind"], device["environment"]) == ("apns", "production")
    seven.tell("device")
    seven.await_note("acknowledged: no device")
    assert api.request("GET", "/v1/clients/phone-7/device").status == 404
    seven.tell("device 00 " + "a" * 156)
    seven.await_note("not published: device: a bundle identifier has 1 to 155 bytes")
    seven.tell("device 0 app")
    seven.await_note("is no command")


def test_14_a_broker_that_sends_nonsense_is_left_with_a_reason(phone: StartPhone) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        seven = phone(server.getsockname(), "phone-7")
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"\x20\xff\xff\xff\xff\xff\xff")
            seven.await_note("disconnected: the broker sent a malformed packet")
        seven.await_note("state: waiting")


def test_refused_credentials_stop_the_phone_and_say_so(
    start_broker: Callable[..., Hermesd], phone: StartPhone
) -> None:
    broker = start_broker(users={"seven": "secret"})
    wrong = phone(
        broker.address, "phone-7", "--user", "seven", environment={"HERMES_PASSWORD": "guess"})
    wrong.await_note("state: stopped, the broker refuses the credentials")
    right = phone(
        broker.address, "phone-7", "--user", "seven", environment={"HERMES_PASSWORD": "secret"})
    right.await_note("state: connected")


def test_mistakes_at_the_start_are_told_with_their_cure(
    hermesd: Start, phone: StartPhone, tmp_path: Path
) -> None:
    broker = hermesd()
    first = phone(broker.address, "phone-7", storage=tmp_path / "log")
    first.await_note("connected")
    second = phone(broker.address, "phone-8", storage=tmp_path / "log")
    second.await_note("is in use by another client of this or another program; stop that one")
    assert second.process.wait(10) == 1
    pinned = phone(
        broker.address, "phone-7", "--pin", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
    pinned.await_note("1 pins are given; two different ones are needed")
    filters = phone(broker.address, "phone-9", "-s", "a/#/b")
    filters.await_note('not subscribed: a/#/b: "a/#/b" is no topic filter')


FORBIDDING = """
allow user seven subscribe orders/#
allow user seven publish seen/#
"""


def test_a_publish_that_the_broker_forbids_costs_nothing_else(
    hermesd: Start, phone: StartPhone, tmp_path: Path
) -> None:
    (tmp_path / "acl").write_text(FORBIDDING)
    broker = hermesd(
        users={"seven": "secret"}, arguments=("--acl-file", str(tmp_path / "acl")))
    login = {"environment": {"HERMES_PASSWORD": "secret"}, "storage": tmp_path / "log"}
    seven = phone(
        broker.address, "phone-7", "--user", "seven", "-s", FILTER, tries_at_once=True, **login)
    seven.await_note("subscribed")
    seven.tell("publish forbidden/x one")
    seven.tell("publish seen/1 two")
    for number in range(60):
        post(broker, f"o-{number}")
    seven.await_note("event: the broker refused a message to forbidden/x, which is held back")
    seven.await_note("acknowledged: seen/1")
    seven.await_messages(60)
    assert orders(seven) == [f"o-{number}" for number in range(60)]
    assert "another client" not in seven.log.text
    seven.kill()
    again = phone(broker.address, "phone-7", "--user", "seven", **login)
    again.await_note("connected, the session goes on")
    again.tell("outbox")
    number = again.await_note("outbox: .*forbidden/x, QoS 1, 3 bytes, held back").split()[1]
    again.tell(f"discard {number.rstrip(',')}")
    again.await_note("discarded: ")
    post(broker, "o-60")
    again.await_messages(1)
    assert "disconnected" not in again.log.text


@pytest.mark.parametrize("qos", [1, 2])
def test_every_message_arrives_once_over_a_link_that_is_cut_again_and_again(
    hermesd: Start, phone: StartPhone, tmp_path: Path, qos: int
) -> None:
    count = 300
    broker = hermesd(environment={"HERMES_ORDERS_QOS": str(qos)})
    relay = Relay(broker.address, cut_between=(300, 6_000), seed=qos)
    arguments = ("-s", FILTER, "--qos", str(qos))
    seven = phone(
        relay.address, "phone-7", *arguments, storage=tmp_path / "log", tries_at_once=True)
    seven.await_note("subscribed")
    api = AdminAPI(broker)
    lives: list[list[int]] = []
    for number in range(count):
        body = {"sales_id": "s-42", "status": "SIGNED"}
        assert api.post_json(f"/v1/orders/o-{number}/status", body).status == 200
        if number % 100 == 50:
            seven.kill()
            lives.append(sequences(seven))
            seven = phone(
                relay.address, "phone-7", *arguments, storage=tmp_path / "log",
                tries_at_once=True)
    relay.stop_cutting()
    eventually(
        lambda: len(set(sum(lives, sequences(seven)))) == count,
        "all messages", within=60)
    lives.append(sequences(seven))
    assert relay.cuts > 3
    assert "lost in" not in seven.log.text
    for life in lives:
        assert life == sorted(set(life)), "in order, and none twice"
    # A kill between lines on standard output and the record of their acknowledgements brings again
    # what was printed last, at most what was in flight.
    for before, after in pairwise(lives):
        again = [sequence for sequence in after if sequence in before]
        assert again == before[len(before) - len(again):] and len(again) <= IN_FLIGHT, lives
    assert hermesctl("clients", "show", "phone-7", broker=broker).code == 0
