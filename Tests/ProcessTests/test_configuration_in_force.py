"""The configuration in force, with where it comes from, and changes while the broker runs."""

from __future__ import annotations

from contextlib import closing

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.raw_client import RawClient
from harness.waiting import eventually

pytestmark = pytest.mark.hermesd("hermesctl config")

REFUSED = 1


def setting(broker, key: str) -> dict:
    settings = AdminAPI(broker).get("/v1/config")["settings"]
    return next(one for one in settings if one["key"] == key)


def test_each_value_says_where_it_comes_from(hermesd):
    broker = hermesd(environment={"HERMES_LIMITS_QUEUE_MESSAGES": "7"})
    assert setting(broker, "limits.queue_messages") == {
        "key": "limits.queue_messages", "value": "7", "from": "HERMES_LIMITS_QUEUE_MESSAGES",
        "reloadable": True}
    assert setting(broker, "limits.max_sessions")["from"] == "default"
    done = hermesctl("config", "show", "--changed", broker=broker)
    rows = {line.split()[0]: line.split()[1:3] for line in done.output.splitlines()[1:]}
    assert rows["limits.queue_messages"] == ["7", "HERMES_LIMITS_QUEUE_MESSAGES"]
    assert "limits.max_sessions" not in rows


def test_a_limit_changes_at_once_and_back(hermesd):
    broker = hermesd()
    with closing(RawClient(broker.address)) as phone, closing(RawClient(broker.address)) as office:
        phone.connect("phone", clean_session=False)
        phone.subscribe(("a", 1))
        phone.disconnect()
        office.connect("office")
        done = hermesctl("config", "set", "limits.queue_messages=2", broker=broker)
        assert done.code == 0 and "run time" in done.output, done
        eventually(
            lambda: AdminAPI(broker).client("phone")["connected"] is False, "its end")
        for _ in range(5):
            office.publish("a", b"x", qos=1)
        assert AdminAPI(broker).client("phone")["queued"] == 2
        assert hermesctl("config", "set", "limits.queue_messages=", broker=broker).code == 0
        for _ in range(5):
            office.publish("a", b"x", qos=1)
        assert AdminAPI(broker).client("phone")["queued"] == 7
    assert setting(broker, "limits.queue_messages")["from"] == "default"


def test_the_level_of_the_log_changes(hermesd):
    broker = hermesd()
    assert hermesctl("config", "set", "logging.level=warning", broker=broker).code == 0
    assert setting(broker, "logging.level")["value"] == "warning"


@pytest.mark.parametrize(("change", "words"), [
    ("data_directory=x", "data_directory takes effect at a start only"),
    ("limits.max_packet=2MiB", "takes effect at a start only"),
    ("limits.nothing=1", 'There is no key "limits.nothing"'),
    ("limits.queue_messages=many", "limits.queue_messages"),
])
def test_what_cannot_change_says_why_and_changes_nothing(hermesd, change, words):
    broker = hermesd()
    before = AdminAPI(broker).get("/v1/config")
    done = hermesctl(
        "config", "set", change, "limits.max_in_flight=3", broker=broker)
    assert done.code == REFUSED and words in done.errors, done
    assert "Nothing was changed. hermesctl config show lists the keys" in done.errors
    assert AdminAPI(broker).get("/v1/config") == before


def test_options_may_stand_before_the_command(hermesd):
    broker = hermesd()
    done = hermesctl("--json", "--timeout=5", "clients", "list", broker=broker)
    assert done.code == 0 and done.json["clients"] == []
