"""What is sent again after a crash stays within the in-flight window."""

from __future__ import annotations

from contextlib import closing

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.raw_client import RawClient
from harness.wire import Publish, Pubrel

pytestmark = pytest.mark.hermesd("what is on disk")

COUNT, WINDOW = 200, 20


@pytest.mark.parametrize("qos", [1, 2])
def test_a_client_that_never_acknowledges_gets_one_window_after_each_kill(hermesd, qos):
    """After a crash the broker does not know what it had sent [MQTT-4.4.0-1]: up to the 64 messages
    of a queue that were in memory."""
    broker = hermesd(max_in_flight=WINDOW)
    with closing(RawClient(broker.address)) as phone, closing(RawClient(broker.address)) as office:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("orders/#", qos))
        phone.disconnect()
        office.connect("office")
        for number in range(COUNT):
            office.publish("orders/7", b"%d" % number, qos=qos)
    most = WINDOW
    for kills in range(3):
        with closing(RawClient(broker.address)) as phone:
            phone.connect("phone", clean_session=False)
            phone.ping()
            sent = [packet for packet in phone.packets_so_far() if isinstance(packet, Publish)]
            assert [int(publish.payload) for publish in sent] == list(range(WINDOW))
            assert all(publish.dup == (kills > 0) for publish in sent)
            # What is in flight grows once, by what may have been sent, and not with each crash.
            in_flight = AdminAPI(broker).client("phone")["in_flight"]
            assert WINDOW <= in_flight <= WINDOW + 64
            assert most == WINDOW or in_flight == most
            most = in_flight
            broker.kill()
        broker = hermesd(data=broker.data, max_in_flight=WINDOW)

    arrived: list[int] = []
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        while len(arrived) < COUNT:
            packet = phone.receive()
            if isinstance(packet, Pubrel):
                phone.send(wire.pubcomp(packet.packet_id))
                continue
            assert isinstance(packet, Publish)
            arrived.append(int(packet.payload))
            phone.send(wire.puback(packet.packet_id) if qos == 1 else wire.pubrec(packet.packet_id))
        phone.ping()
    assert arrived == list(range(COUNT))


def test_a_message_whose_pubrec_came_late_is_never_sent_again(hermesd):
    """After a crash, and with a lower limit, more is in flight than the window holds. The phone
    answers on its new connection what it got on the former one: from then on the broker owes
    PUBREL, also after the next crash [MQTT-4.3.3-1]."""
    broker = hermesd(max_in_flight=WINDOW)
    with closing(RawClient(broker.address)) as phone, closing(RawClient(broker.address)) as office:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("orders/#", 2))
        office.connect("office")
        for number in range(COUNT):
            office.publish("orders/7", b"%d" % number, qos=2)
        sent = [phone.receive() for _ in range(WINDOW)]
        assert [int(publish.payload) for publish in sent] == list(range(WINDOW))
        broker.kill()
    late = [sent[12], sent[17]]
    broker = hermesd(data=broker.data, max_in_flight=5)
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        assert [int(phone.receive().payload) for _ in range(5)] == list(range(5))
        for publish in late:
            phone.send(wire.pubrec(publish.packet_id))
            assert phone.receive() == Pubrel(publish.packet_id)
        broker.kill()
    broker = hermesd(data=broker.data, max_in_flight=5)

    arrived: list[int] = []
    released: list[int] = []
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone", clean_session=False)
        while len(arrived) < COUNT - len(late) or len(released) < COUNT:
            packet = phone.receive()
            if isinstance(packet, Pubrel):
                released.append(packet.packet_id)
                phone.send(wire.pubcomp(packet.packet_id))
            else:
                assert isinstance(packet, Publish)
                arrived.append(int(packet.payload))
                phone.send(wire.pubrec(packet.packet_id))
        phone.ping()
        assert AdminAPI(broker).client("phone")["in_flight"] == 0
    assert arrived == [number for number in range(COUNT) if number not in (12, 17)]
