"""Rows that no broker writes: every column with values out of its range, and facts with flipped bits.

Nothing of it may end the process by a signal: a start goes on without the row and tells, or it is
refused with the exit code of damage.
"""

import random
import shutil
from pathlib import Path

import pytest

from harness import wire
from harness.admin import AdminAPI, curl
from harness.broker import Hermesd, Settings
from harness.database import edited
from harness.raw_client import ConnectionClosed, RawClient
from harness.waiting import PATIENCE
from test_tags import change

pytestmark = pytest.mark.hermesd("another broker has no such tables")

NEEDS_A_PERSON = 78
NUMBERS = (2**63 - 1, -2**63, 2**62, 2**32, 255, -1, 0)
TEXTS = (b"a" * 65_536, b"", b"\xff\x00#+", b"a" * 200_000, b"a/#/b")
#: Columns of numbers, and of bytes, that a start or a read of a queue uses.
COLUMNS = {
    "meta": (("value",), ()),
    "sessions": (("number", "attached", "since_ms", "horizon", "end", "waiting_messages",
                  "waiting_bytes", "holds_shared", "ended"), ("client_identifier", "user_name")),
    "subscriptions": (("session", "qos"), ("filter",)),
    "queue": (("session", "position", "message", "bytes", "qos", "retain", "released", "shared",
               "published_qos", "published_retain", "expires_at_ms"),
              ("topic", "payload", "message_id", "shared_filter")),
    "messages": (("number", "published_qos", "expires_at_ms"),
                 ("topic", "payload", "message_id")),
    "inbound": (("session", "packet_identifier"), ()),
    "retained": (("message",), ("topic",)),
    "wills": (("session", "message"), ()),
    "facts": (("fact_table", "owner"), ("key", "value")),
}
CLIENTS = [f"client-{number}" for number in range(7)]


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A data directory with rows in every table, all of them in the database."""
    broker = Hermesd(Settings())
    broker.start()
    api = AdminAPI(broker)
    for number, name in enumerate(CLIENTS):
        client = RawClient(broker.address)
        client.connect(name, clean_session=False)
        client.subscribe(("t/#", 2), (f"$share/group/s{number}/#", 1), ("gone/+", 0))
        client.send(wire.publish("u", b"x", qos=2, packet_id=7))
        client.await_packet(wire.Pubrec)
        client.disconnect()
        assert change(api, name, add=["tag"]).status == 200
        registration = b"\x0a\x20" + bytes([number] * 32) + b"\x12\x05app.x"
        client = RawClient(broker.address)
        client.connect(name, clean_session=False)
        client.publish("$hermes/device", registration, qos=1)
        client.disconnect()
        assert api.post_json("/v1/messages", {
            "topic": f"s{number}/1", "payload": "shared", "qos": 1}).status == 200
        assert api.post_json("/v1/messages", {
            "topic": "t/later", "payload": "x", "message_id": f"later-{number}",
            "deliver_in_s": 7_200}).status == 202
        assert api.post_json("/v1/pushes", {
            "message": {"topic": "t/push", "payload": "x", "message_id": f"push-{number}"},
            "to": {"clients": [name]}, "deliver_in_s": 7_200}).status == 202
    for number in range(16):
        body = {"topic": f"t/{number}", "payload": "x" * 40, "qos": 1 + number % 2,
                "message_id": f"m-{number}", "receipts": True}
        if number % 3 == 0:
            body |= {"expires_in_s": 86_400}
        if number % 2 == 0:
            body |= {"retain": True}
        assert api.post_json("/v1/messages", body).status == 200
    assert broker.stop() == 0
    with edited(broker.data / "hermes.sqlite") as database:
        # A stop publishes wills, so those of a killed broker are made here.
        for place, (session,) in enumerate(database.execute(
                "SELECT number FROM sessions").fetchall()):
            database.execute(
                "INSERT INTO messages (number, reference_count, published_qos, published_retain, "
                "expires_at_ms, topic, payload) VALUES (?, 1, 1, 0, 0, ?, ?)",
                (900_000 + place, b"t/will", b"gone"))
            database.execute("INSERT INTO wills VALUES (?, ?)", (session, 900_000 + place))
        database.execute("UPDATE meta SET value = 1000000 WHERE name = 'last_message'")
    folder = tmp_path_factory.mktemp("rows") / "data"
    shutil.copytree(broker.data, folder)
    broker.remove_files()
    return folder


def start_on(data: Path) -> str:
    """Starts a broker on a damaged directory and uses it; returns what `/readyz` complains of.

    The empty text means that it complains of nothing, or that the start was refused as damage is.
    """
    broker = Hermesd(Settings(), data=data)
    try:
        try:
            broker.start()
        except AssertionError:
            code = broker.process.wait(PATIENCE)
            # `start` kills a broker that does not come up; it has ended by itself before.
            assert code == NEEDS_A_PERSON, f"it ended with {code}:\n{broker.log.tail()}"
            return ""
        for name in CLIENTS[:2]:
            client = RawClient(broker.address)
            try:
                client.connect(name, clean_session=False)
                client.publish("t/1", b"new", qos=1)
                client.packets_so_far()
            except ConnectionClosed:
                assert broker.is_running, broker.log.tail()
            client.close()
        api = AdminAPI(broker)
        for path in ("/v1/clients", "/v1/scheduled", "/v1/pushes", "/v1/retained", "/v1/devices",
                     "/v1/messages/m-0", f"/v1/clients/{CLIENTS[2]}/queue", "/metrics"):
            api.request("GET", path)
        assert api.post_json("/v1/messages", {
            "topic": "t/0", "payload": "x", "message_id": "new", "receipts": True}).status == 200
        answer = curl(f"{broker.admin_url}/readyz")
        text = "" if answer.status == 200 else answer.json["detail"]
        code = broker.stop()
        assert code >= 0, f"it ended with {code}:\n{broker.log.tail()}"
        return text
    finally:
        if broker.is_running:
            broker.kill()
        broker.remove_files()


def damage(data: Path, table: str, column: str, values, first: int) -> int:
    """Gives the rows of a table these values in turn; returns the number of rows."""
    with edited(data / "hermes.sqlite") as database:
        keys = [row[1] for row in sorted(database.execute(f"PRAGMA table_info({table})"),
                                         key=lambda row: row[5]) if row[5]]
        rows = database.execute(f"SELECT {', '.join(keys)} FROM {table}").fetchall()
        for place, row in enumerate(rows):
            database.execute(
                f"UPDATE OR IGNORE {table} SET \"{column}\" = ? WHERE "
                + " AND ".join(f"{key} IS ?" for key in keys),
                (values[(first + place) % len(values)], *row))
    return len(rows)


@pytest.mark.parametrize("table", COLUMNS)
def test_no_value_of_a_row_ends_the_broker(stored, tmp_path, table):
    for columns, values in zip(COLUMNS[table], (NUMBERS, TEXTS), strict=True):
        for column in columns:
            first = 0
            while first < len(values):
                data = tmp_path / f"{column}-{first}"
                shutil.copytree(stored, data)
                rows = damage(data, table, column, values, first)
                start_on(data)
                first += max(1, rows)


def test_a_row_that_makes_no_sense_is_told_and_the_others_live(stored, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(stored, data)
    with edited(data / "hermes.sqlite") as database:
        database.execute("UPDATE sessions SET client_identifier = ? WHERE client_identifier = ?",
                         (b"a" * 65_536, CLIENTS[6].encode()))
        database.execute("UPDATE subscriptions SET filter = ? WHERE filter = ?",
                         (b"gone/\xff", b"gone/+"))
    text = start_on(data)
    assert "hold what no broker writes" in text and "accept-loss" in text, text
    lines = (data / "damage.txt").read_text()
    assert "1 rows of the table sessions" in lines, lines
    assert "rows of the table subscriptions" in lines, lines


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits_of_facts_end_no_broker(stored, tmp_path, seed):
    data = tmp_path / "data"
    shutil.copytree(stored, data)
    chance = random.Random(seed)
    with edited(data / "hermes.sqlite") as database:
        for table, key, value in database.execute(
                "SELECT fact_table, key, value FROM facts").fetchall():
            if not value:
                continue
            damaged = bytearray(value)
            for _ in range(chance.randint(1, 8)):
                damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            database.execute("UPDATE facts SET value = ? WHERE fact_table = ? AND key = ?",
                             (bytes(damaged), table, key))
    start_on(data)
