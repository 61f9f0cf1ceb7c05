"""The dashboard for Grafana and the alert rules for Prometheus (docs/grafana), against a real broker
and Debian's Prometheus."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from harness.admin import AdminAPI
from harness.broker import ADMIN_TOKEN, REPOSITORY
from harness.certificates import Authority
from harness.tls import tls_environment
from harness.waiting import PATIENCE, eventually
from harness.webhook_receiver import SECRET, Receiver

pytestmark = pytest.mark.hermesd("the metrics")

FOLDER = REPOSITORY / "docs/grafana"
RULES = FOLDER / "alerts.yaml"
RULE_TESTS = Path(__file__).with_name("alerts.test.yaml")
# What Prometheus adds to each series that it scrapes.
ADDED_LABELS = {"instance", "job"}


def rules() -> list[dict]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"]
            for rule in group["rules"]]


def dashboard() -> dict:
    return json.loads((FOLDER / "hermes.json").read_text())


def panels() -> list[dict]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    """What the panels ask for, as Grafana would send it for all brokers."""
    return [
        target["expr"].replace("$instance", ".*").replace("$__rate_interval", "15s")
        for panel in panels() for target in panel["targets"]
    ]


def program(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is missing; scripts/install-dependencies test installs it")
    return found


def promtool(*arguments: object, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
        timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def watched_broker(start_broker, tmp_path) -> Iterator:
    """A broker with all that metrics are absent without, but Apple's push service."""
    receiver = Receiver()
    own_authority = Authority(tmp_path / "authority")
    secret = tmp_path / "webhook.secret"
    secret.write_bytes(SECRET + b"\n")
    secret.chmod(0o600)
    authority_list = own_authority.directory / "revoked.crl"
    own_authority.write_list(authority_list)
    yield start_broker(environment={
        **tls_environment(
            own_authority.issue("localhost"), client_certificates="optional",
            client_ca_file=own_authority.certificate, crl_file=authority_list),
        "HERMES_WEBHOOK_URL": receiver.url, "HERMES_WEBHOOK_SECRET_FILE": str(secret),
    })
    receiver.close()


def test_every_metric_exists_with_the_labels_that_are_asked_for(watched_broker):
    # A route has series once it was asked for.
    AdminAPI(watched_broker).request("GET", "/v1/status")
    text = AdminAPI(watched_broker).request("GET", "/metrics").body.decode()
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    labels["up"] = set()
    asked = [rule["expr"] for rule in rules()] + queries()
    for expression in asked:
        names = re.findall(r"\b(?:hermes|process)_\w+|\bup\b", expression)
        assert names, expression
        for name in names:
            assert name in labels, f"{name} in {expression}"
        known = set().union(*(labels[name] for name in names)) | ADDED_LABELS
        grouped = {
            label.strip() for words in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
            for label in words.split(",")
        }
        assert grouped <= known, expression
        for name, matchers in re.findall(r"\b(\w+)\s*\{([^}]*)\}", expression):
            matched = set(re.findall(r"(\w+)(?:=~|!=|!~|=)\"", matchers))
            assert matched <= labels[name] | ADDED_LABELS, expression


def test_the_values_of_labels_exist(watched_broker):
    """A rule for a reason or a limit that is called otherwise would never fire."""
    text = AdminAPI(watched_broker).request("GET", "/metrics").body.decode()
    values: dict[tuple[str, str], set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            for label, value in sample.labels.items():
                values.setdefault((sample.name, label), set()).add(value)
    checked = 0
    for expression in [rule["expr"] for rule in rules()] + queries():
        for name, matchers in re.findall(r"\b(\w+)\s*\{([^}]*)\}", expression):
            for label, value in re.findall(r"(\w+)=~?\"([\w|]+)\"", matchers):
                if label not in ADDED_LABELS:
                    assert set(value.split("|")) <= values[name, label], expression
                    checked += 1
    assert checked >= 4


def test_promtool_finds_nothing_wrong_with_the_metrics(watched_broker):
    """Names, units and help texts, as Prometheus recommends them."""
    text = AdminAPI(watched_broker).request("GET", "/metrics").body
    done = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True,
        timeout=PATIENCE, check=False)
    assert done.returncode == 0 and not done.stdout + done.stderr, done


# The rules.


def test_promtool_accepts_the_rules():
    assert f"SUCCESS: {len(rules())} rules found" in promtool("check", "rules", RULES)
    assert f"has {len(rules())} alert rules" in (REPOSITORY / "docs/metrics.md").read_text()


def test_each_rule_says_how_bad_it_is_and_what_to_do():
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        assert {"summary", "action"} == rule["annotations"].keys(), rule["alert"]


def test_the_rules_fire_when_they_should_and_not_before():
    """Each has a moment of either kind in alerts.test.yaml."""
    assert "SUCCESS" in promtool("test", "rules", RULE_TESTS.name, cwd=RULE_TESTS.parent)
    moments: dict[str, set[bool]] = {rule["alert"]: set() for rule in rules()}
    for test in yaml.safe_load(RULE_TESTS.read_text())["tests"]:
        for moment in test["alert_rule_test"]:
            moments[moment["alertname"]].add(bool(moment["exp_alerts"]))
    assert {name for name, kinds in moments.items() if kinds != {True, False}} == set()


# The dashboard.


def test_the_dashboard_is_one_that_grafana_can_show():
    board = dashboard()
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    variables = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(board["panels"]))) - {"__rate_interval"}
    assert used == variables
    places = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, f"{panel['title']} lies on another panel"
        places |= cells
        if panel["type"] != "row":
            assert panel["targets"] and panel["datasource"]["uid"] == "${datasource}"


class Prometheus:
    """Debian's Prometheus, which scrapes one broker every second with our rules."""

    def __init__(self, broker, folder: Path) -> None:
        (folder / "token").write_text(ADMIN_TOKEN)
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{
                "job_name": "hermes",
                "authorization": {"credentials_file": str(folder / "token")},
                "static_configs": [{"targets": ["{}:{}".format(*broker.admin_address)]}],
            }],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        self._folder = folder
        self.log = folder / "log"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [program("prometheus"), f"--config.file={folder / 'prometheus.yml'}",
                 f"--storage.tsdb.path={folder / 'data'}", "--web.listen-address=127.0.0.1:0"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.port = 0
        eventually(self._is_ready, "Prometheus' readiness in its log")

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        text = self.log.read_text()
        found = re.search(r"Listening on.*address=127\.0\.0\.1:(\d+)", text)
        if found is None or "Server is ready to receive web requests" not in text:
            return False
        self.port = int(found[1])
        return True

    def get(self, path: str, **parameters: str) -> dict:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def result(self, query: str) -> list:
        return self.get("query", query=query)["result"]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)


def test_prometheus_scrapes_a_broker_and_fills_the_dashboard(start_broker, client, tmp_path):
    broker = start_broker()
    subscriber = client("sub", broker, clean_session=False)
    subscriber.subscribe(("m/#", 1))
    publisher = client("pub", broker)
    # Short paths, and gone with the test: its database takes some megabytes.
    with tempfile.TemporaryDirectory(prefix="hermes-prometheus-") as folder:
        prometheus = Prometheus(broker, Path(folder))
        try:
            def is_delivered() -> bool:
                publisher.publish("m/x", b"x", qos=1)
                subscriber.take_message()
                return bool(prometheus.result("rate(hermes_delivery_seconds_count[15s]) > 0"))

            eventually(is_delivered, "a rate of deliveries in Prometheus")
            (target,) = prometheus.get("targets", state="active")["activeTargets"]
            assert target["health"] == "up", target["lastError"]
            for query in queries():
                found = prometheus.result(query)
                # Absent without TLS or a webhook, and what did not happen.
                if "hermes_tls_c" in query or "webhook" in query or query.endswith("> 0"):
                    continue
                if not found:
                    # A series that began lately has no rate before its second sample.
                    eventually(lambda: prometheus.result(query), f"data of {query}")
            states = {
                rule["name"]: (rule["health"], rule["state"])
                for group in prometheus.get("rules")["groups"] for rule in group["rules"]
            }
            assert len(states) == len(rules())
            assert all(state == ("ok", "inactive") for state in states.values()), states
        finally:
            prometheus.close()
