"""GET /metrics for Prometheus, in its text format 0.0.4 (docs/metrics.md)."""

import math
import re
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.admin import AdminAPI, curl
from harness.broker import ADMIN_TOKEN, REPOSITORY
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("the HTTP API")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SERIES = re.compile(rf"({NAME})(\{{{LABEL}(?:,{LABEL})*\}})? ([^ ]+)")


def scrape(api):
    """The text, checked line by line and by Prometheus' own parser; values by series."""
    answer = api.request("GET", "/metrics")
    assert (answer.status, answer.content_type) == (200, CONTENT_TYPE), answer
    text = answer.body.decode()
    assert_well_formed(text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text) for sample in family.samples
    }


def assert_well_formed(text):
    """HELP, TYPE and then the series of one metric, every series once, every value finite."""
    assert text.endswith("\n") and "\r" not in text
    seen_families, seen_names, seen_series, family, kind = set(), set(), set(), None, None
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if match := re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line):
            family, kind = match[1], None
            assert family not in seen_families, f"line {number}: {family} a second time"
            seen_families.add(family)
        elif match := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line):
            assert match[1] == family and kind is None, f"line {number}: {line}"
            kind = match[2]
            assert family.endswith("_total") == (kind == "counter"), family
        else:
            match = SERIES.fullmatch(line)
            assert match, f"line {number} is no series: {line!r}"
            name = re.sub("_(bucket|sum|count)$", "", match[1]) if kind == "histogram" else match[1]
            assert name == family and kind is not None, f"line {number}: {line}"
            seen_names.add(name)
            series = (match[1], match[2])
            assert series not in seen_series, f"line {number}: {line} a second time"
            seen_series.add(series)
            value = float(match[3])
            assert math.isfinite(value) and value >= 0, line
    assert seen_names == seen_families, "a metric without a series"


def value(figures, name, **labels):
    return figures[name, tuple(sorted(labels.items()))]


@pytest.fixture
def own_broker(start_broker):
    return start_broker()


@pytest.fixture
def own_api(own_broker):
    return AdminAPI(own_broker)


def test_the_metrics_are_those_of_the_documentation(own_api):
    """Names, types and labels; the same whatever clients do."""
    documented = {}
    for line in (REPOSITORY / "docs/metrics.md").read_text().splitlines():
        if "Absent without" in line:
            continue
        if match := re.match(r"\| `(\w+)` \| (counter|gauge|histogram) \| (?:`([\w,]+)`)? ?\|", line):
            documented[match[1]] = (match[2], set((match[3] or "").split(",")) - {""})
    # A route has series once it was asked for.
    assert own_api.request("GET", "/v1/status").status == 200
    text = own_api.request("GET", "/metrics").body.decode()
    existing = {}
    for family in text_string_to_metric_families(text):
        # The parser takes the suffix off a counter's name.
        labels = {label for sample in family.samples for label in sample.labels}
        suffix = "_total" if family.type == "counter" else ""
        existing[family.name + suffix] = (family.type, labels)
    assert existing == documented


def test_traffic_is_counted(own_broker, own_api, client):
    before = scrape(own_api)
    subscriber = client("sub", own_broker)
    subscriber.subscribe(("m/#", 2))
    publisher = client("pub", own_broker)
    for qos in (0, 1, 2):
        publisher.publish("m/x", b"0123456789", qos=qos)
        subscriber.take_message()
    subscriber.ping()
    publisher.ping()
    after = scrape(own_api)

    def growth(name, **labels):
        # A route that nobody has asked for yet has no series.
        former = before.get((name, tuple(sorted(labels.items()))), 0)
        return value(after, name, **labels) - former

    for qos in "012":
        assert growth("hermes_publishes_received_total", qos=qos) == 1
        assert growth("hermes_publishes_sent_total", qos=qos) == 1
    assert growth("hermes_publish_received_bytes_total") == 30
    assert growth("hermes_publish_sent_bytes_total") == 30
    # CONNECT, SUBSCRIBE, PUBACK, PUBREC, PUBCOMP, PINGREQ; CONNECT, 3 PUBLISH, PUBREL, PINGREQ.
    assert growth("hermes_packets_received_total") >= 12
    assert growth("hermes_received_bytes_total") > 100
    assert growth("hermes_sent_bytes_total") > 80
    assert growth("hermes_connections_admitted_total") == 2
    assert value(after, "hermes_connections") == 2
    assert value(after, "hermes_subscriptions") == 1


def test_the_figures_are_those_of_the_status(own_broker, own_api, client):
    phone = client("phone", own_broker, clean_session=False)
    phone.subscribe(("m/#", 1))
    phone.disconnect()
    publisher = client("pub", own_broker)
    for number in range(3):
        publisher.publish(f"m/{number}", b"payload", qos=1, retain=number == 0)
    figures, status = scrape(own_api), own_api.status()
    for metric, member in {
        "hermes_connections": "connections", "hermes_sessions": "sessions",
        "hermes_sessions_persistent": "persistent_sessions", "hermes_retained_messages": "retained",
        "hermes_queued_messages": "queued", "hermes_queued_bytes": "queued_bytes",
        "hermes_connections_opened_total": "connections_total",
        "hermes_connections_refused_total": "connections_refused",
        "hermes_sent_bytes_total": "bytes_sent", "hermes_received_bytes_total": "bytes_received",
    }.items():
        assert value(figures, metric) == status[member], metric
    assert value(figures, "hermes_build_info", version=status["version"]) == 1
    assert value(figures, "hermes_durability_info", durability=status["durability"]) == 1


def test_the_process_is_measured(own_broker, own_api, raw):
    figures = scrape(own_api)
    resident = value(figures, "process_resident_memory_bytes")
    assert 0.5 < resident / own_broker.resident_bytes() < 2
    assert 0 < value(figures, "process_cpu_seconds_total") < 60
    assert abs(value(figures, "process_start_time_seconds") - time.time()) < 60
    descriptors = value(figures, "process_open_fds")
    assert 0 < descriptors < value(figures, "process_max_fds")
    for _ in range(20):
        raw(own_broker)
    eventually(
        lambda: value(scrape(own_api), "process_open_fds") >= descriptors + 20,
        "twenty more descriptors",
    )


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"connect_timeout": "200ms"}, "connect_timeout"),
        ({"environment": {"HERMES_LIMITS_MAX_CONNECTIONS": "2"}}, "max_connections"),
    ],
)
def test_limits_that_sockets_meet_are_counted(settings, limit, start_broker, raw):
    broker = start_broker(**settings)
    api = AdminAPI(broker)
    idle = [raw(broker) for _ in range(3)]
    idle[-1].await_closed()
    eventually(
        lambda: value(scrape(api), "hermes_limit_reached_total", limit=limit) >= 1, limit
    )


def test_a_scrape_needs_the_token(own_broker):
    url = f"{own_broker.admin_url}/metrics"
    assert curl(url).problem(401)["type"].endswith("unauthorized")
    assert curl("-H", f"Authorization: Bearer {ADMIN_TOKEN}", url).status == 200
    socket = curl("--unix-socket", str(own_broker.unix_socket), "http://localhost/metrics")
    assert (socket.status, socket.content_type) == (200, CONTENT_TYPE)
    assert_well_formed(socket.body.decode())


def test_times_of_requests_and_deliveries_are_counted(own_broker, own_api, client):
    subscriber = client("sub", own_broker)
    subscriber.subscribe(("m/#", 2))
    # Routes have series once they were asked for.
    assert own_api.request("POST", "/v1/publish?topic=other&qos=0", b"x").status == 200
    own_api.request("GET", "/v1/clients/no-such-client")
    before = scrape(own_api)
    for qos in (1, 2):
        assert own_api.request("POST", f"/v1/publish?topic=m/{qos}&qos={qos}", b"x").status == 200
        subscriber.take_message()
    subscriber.settle()
    eventually(
        lambda: own_api.metric('hermes_delivery_seconds_count{qos="2"}') == 1,
        "the PUBCOMP to be counted",
    )
    own_api.request("GET", "/v1/clients/no-such-client")
    after = scrape(own_api)

    def growth(name, **labels):
        return value(after, name, **labels) - value(before, name, **labels)

    for qos in "12":
        assert growth("hermes_delivery_seconds_count", qos=qos) == 1
        assert growth("hermes_delivery_seconds_bucket", qos=qos, le="+Inf") == 1
    publish = {"method": "POST", "route": "/v1/publish"}
    assert growth("hermes_http_requests_total", **publish, status="2xx") == 2
    assert growth("hermes_http_request_seconds_count", **publish) == 2
    assert growth("hermes_http_request_seconds_sum", **publish) > 0
    client_route = {"method": "GET", "route": "/v1/clients/{id}"}
    assert growth("hermes_http_requests_total", **client_route, status="4xx") == 1
    added = {dict(labels).get("route") for _, labels in set(after) - set(before)}
    assert added <= {"/v1/publish", "/v1/clients/{id}", "/metrics"}, "only routes add series"
