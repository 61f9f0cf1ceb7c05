"""Reports of clients that the broker reads, and the silences before lost connections."""

from __future__ import annotations

from contextlib import closing

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("reports of clients")

REFUSED = 1


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def report(*, received: int = 0, duplicates: int = 0, losses: int = 0, network: str = "") -> bytes:
    """hermes.v1.ClientReport, with counters that began in 2100."""
    loss = b"\x0a\x08orders/7\x10" + varint(losses)
    return (
        b"\x08" + varint(received) + b"\x10" + varint(duplicates)
        + b"\x1a" + varint(len(loss)) + loss + b"\x28" + varint(240)
        + b"\x30" + varint(4_102_444_800_000)
        + b"\x3a" + varint(len(network.encode())) + network.encode()
    )


def tell(broker, client_id: str, *reports: bytes) -> None:
    """Publishes reports over a connection of its own."""
    with closing(RawClient(broker.address)) as client:
        client.connect(client_id)
        for payload in reports:
            client.publish(f"hermes/reports/{client_id}", payload, qos=1)
        client.disconnect()


def test_a_report_is_there_when_it_is_acknowledged(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    assert api.get("/v1/arrivals")["clients"] == []
    tell(broker, "a/1", report(received=100, duplicates=1, losses=1, network="wifi"))
    page = api.get("/v1/arrivals?client_id=a%2F1")
    (client,) = page["clients"]
    assert client["arrival_rate"] == 0.99
    assert client["counts"]["losses"] == 1
    assert client["heartbeat_seconds"] == 240 and client["network"] == "wifi"
    tell(broker, "b", report(received=100))
    total = api.get("/v1/arrivals")["total"]
    assert total["clients"] == 2 and total["counts"]["received"] == 200
    assert total["reports"]["taken"] == 2
    (lossy,) = api.get("/v1/arrivals?losses=true")["clients"]
    assert lossy["client_id"] == "a/1"
    assert api.metric('hermes_client_reported_total{counter="losses"}') == 1
    assert api.metric("hermes_clients_with_reports ") == 2

    table = hermesctl("arrivals", broker=broker).output
    assert "arrival rate           99.50 %" in table
    rows = [line.split() for line in table.splitlines()[-2:]]
    assert [row[0] for row in rows] == ["a/1", "b"]
    assert rows[0][1:6] == ["99.00", "%", "100", "1", "1"]
    nobody = hermesctl("arrivals", "--client", "nobody", broker=broker)
    assert nobody.code == REFUSED and "no report of" in nobody.errors


def test_a_report_of_another_client_is_not_believed(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    with closing(RawClient(broker.address)) as watcher, closing(RawClient(broker.address)) as liar:
        watcher.connect("watcher")
        watcher.subscribe(("hermes/reports/#", 0))
        liar.connect("liar")
        for payload in [report(losses=7), b"\x08"]:
            liar.publish("hermes/reports/honest", payload, qos=1)
        liar.publish("hermes/reports/liar", b"\x08", qos=1)
        # Subscribers get all of them.
        assert len(watcher.take_messages(3)) == 3
    page = api.get("/v1/arrivals")
    assert page["clients"] == []
    reports = {name: count for name, count in page["total"]["reports"].items() if count}
    assert reports == {"foreign": 2, "malformed": 1}


def test_reports_stay_within_their_bytes(start_broker):
    broker = start_broker(environment={"HERMES_LIMITS_REPORT_BYTES": "1KiB"})
    for number in range(20):
        tell(broker, f"phone-{number}", report(received=1))
    total = AdminAPI(broker).get("/v1/arrivals")["total"]
    assert total["clients"] == total["counts"]["received"] == 6
    assert total["reports"]["forgotten"] == 14
    assert AdminAPI(broker).metric("hermes_report_bytes ") <= 1_024


def test_lost_connections_are_counted_by_the_network_of_the_report(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    with closing(RawClient(broker.address)) as lost:
        lost.connect("phone")
        lost.publish("hermes/reports/phone", report(network='wi"fi'), qos=1)
        lost.reset()
    eventually(lambda: api.get("/v1/lost-connections")["lost"] != [], "a lost connection")
    (group,) = api.get("/v1/lost-connections")["lost"]
    assert group["network"] == 'wi"fi' and group["count"] == 1
    assert group["cause"] in ("network_error", "peer_closed")
    assert group["silences"] == [{"from_seconds": 0, "below_seconds": 10, "count": 1}]
    series = 'hermes_lost_connection_silence_seconds_count{cause="%s",network="wi\\"fi"}'
    assert api.metric(series % group["cause"]) == 1
    with closing(RawClient(broker.address)) as silent:
        silent.connect("silent", keep_alive=1)
        assert silent.await_closed(10) == []
    tell(broker, "wanted", report(received=1))
    rows = [line.split() for line in hermesctl("lost-connections", broker=broker).output.splitlines()]
    assert ["keep_alive", "-", "0", "to", "10", "s", "1"] in rows and len(rows) == 3


def test_the_silence_before_a_ping_is_shown(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    with closing(RawClient(broker.address)) as phone:
        phone.connect("phone")
        assert "heartbeat_seconds" not in api.client("phone")

        eventually(lambda: api.client("phone")["last_packet_ms_ago"] >= 1_000, "a second of silence")
        phone.ping()
        assert 1 <= api.client("phone")["heartbeat_seconds"] < 30
        assert "heartbeat" in hermesctl("clients", "show", "phone", broker=broker).output
