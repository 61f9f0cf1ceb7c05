"""Operating the store: readiness, damage, queues, backups, a full disk."""

import os
import re
import sqlite3
import stat
import subprocess
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import wire
from harness.admin import AdminAPI, curl, hermesctl
from harness.broker import Hermesd, Settings
from harness.database import edited
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("the store is hermesd's own")

DONE, REFUSED, LOCAL_FILE = 0, 1, 2
NEEDS_A_PERSON = 78
"""The exit code after which the unit does not try again (EX_CONFIG)."""
MEBI = 1 << 20
PAGE = 16_384
"""Bytes of a page of the database (docs/decisions/0009)."""


def restart(hermesd, broker, **settings):
    assert broker.stop() == 0
    return hermesd(data=broker.data, **settings)


def readiness(broker):
    """The status, and the document."""
    answer = curl(f"{broker.admin_url}/readyz")
    return answer.status, answer.json


def reason(broker):
    """Why it is not ready."""
    return curl(f"{broker.admin_url}/readyz").problem(503)["detail"]


def check(broker):
    return hermesctl("store", "check", "--data-directory", str(broker.data), token=None)


def metric(broker, name, **labels):
    text = AdminAPI(broker).request("GET", "/metrics").body.decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    raise AssertionError(f"no series {name} {labels}")


def absent_phone(broker, topic="a", qos=1):
    """A persistent session whose client is offline."""
    phone = RawClient(broker.address)
    phone.connect("phone", clean_session=False)
    phone.subscribe((topic, qos))
    phone.disconnect()


def returning_phone(broker):
    phone = RawClient(broker.address)
    assert phone.connect("phone", clean_session=False).session_present
    return phone


def publish(broker, payloads, topic="a", qos=1):
    """Each in a commit of its own, because each waits for its acknowledgement."""
    publisher = RawClient(broker.address)
    publisher.connect("publisher")
    for payload in payloads:
        publisher.publish(topic, payload, qos=qos)
    publisher.disconnect()


def numbered(numbers):
    return [b"message-%04d-end" % number for number in numbers]


def journal_files(broker):
    return sorted((broker.data / "journal").glob("journal-*.segment"))


def flip(broker, payload):
    """Damages a stored message where it lies in the journal."""
    for path in journal_files(broker):
        content = path.read_bytes()
        if (place := content.find(payload)) >= 0:
            with path.open("r+b") as file:
                file.seek(place)
                file.write(bytes(byte ^ 0xFF for byte in payload))
            return
    raise AssertionError(f"{payload!r} is not in the journal")


# --- readiness -----------------------------------------------------------------------------


def test_a_healthy_broker_is_ready(hermesd):
    broker = hermesd()
    assert readiness(broker) == (200, {"status": "ready", "durability": "sync"})
    assert metric(broker, "hermes_ready") == 1
    done = check(broker)
    assert (done.code, done.output) == (DONE, f"{broker.data}: ok\n"), done
    accepted = hermesctl("store", "accept-loss", broker=broker)
    assert (accepted.code, accepted.output) == (DONE, "Nothing was lost.\n")


def test_without_durability_it_is_ready_and_says_so(hermesd):
    broker = hermesd(arguments=("--durability", "none"))
    assert readiness(broker) == (200, {"status": "ready", "durability": "none"})
    assert "store" not in AdminAPI(broker).status()
    refused = hermesctl("backup", str(broker.directory / "copy"), broker=broker)
    assert refused.code == REFUSED and "durability" in refused.errors
    assert check(broker).code == LOCAL_FILE


def test_the_length_of_the_interval_is_shown(hermesd):
    broker = hermesd(environment={"HERMES_DURABILITY": "interval 50ms"})
    status = AdminAPI(broker).status()
    assert (status["durability"], status["durability_interval_ms"]) == ("interval", 50)
    table = hermesctl("status", broker=broker).output
    assert re.search(r"^durability +interval 50ms$", table, re.MULTILINE), table


def test_the_store_is_measured(hermesd):
    broker = hermesd()
    absent_phone(broker)
    before = metric(broker, "hermes_store_commits_total")
    publish(broker, numbered(range(10)))
    assert metric(broker, "hermes_store_commits_total") >= before + 10
    store = AdminAPI(broker).status()["store"]
    assert store["committed_bytes"] > 10 * len(numbered([0])[0])
    assert 0 < store["longest_sync_us"] <= store["sync_us"]
    assert store["longest_commit_us"] >= store["longest_sync_us"]
    files = sum(path.stat().st_size for path in journal_files(broker))
    assert store["journal_bytes"] in (files, files - 16 * MEBI), "one may be on its way"
    assert store["free_bytes"] > 0 and store["failures"] == 0 and store["damage"] == []
    table = hermesctl("status", broker=broker).output
    assert re.search(r"^ready +yes$", table, re.MULTILINE), table


# --- damage --------------------------------------------------------------------------------


def test_damage_keeps_it_red_until_the_loss_is_accepted(hermesd):
    broker = hermesd()
    absent_phone(broker)
    publish(broker, numbered(range(20)))
    broker.kill()
    flip(broker, numbered([7])[0])

    broker = hermesd(data=broker.data)
    assert "damaged" in reason(broker) and "accept-loss" in reason(broker)
    assert curl(f"{broker.admin_url}/healthz").status == 200
    assert metric(broker, "hermes_ready") == 0 and metric(broker, "hermes_store_damage") >= 1
    broker.log.await_match("Stored data was damaged")
    # Everything else is there, and new messages are accepted.
    phone = returning_phone(broker)
    kept = numbered([*range(7), *range(8, 20)])
    assert [one.payload for one in phone.take_messages(19)] == kept
    phone.disconnect()
    publish(broker, [b"new"])

    # Seeing it is not accepting it, nor is a restart.
    done = check(broker)
    assert done.code == REFUSED and "damaged" in done.output and "accept-loss" in done.output
    broker = restart(hermesd, broker)
    assert "damaged" in reason(broker)
    assert hermesctl("status", broker=broker).output.count("damage  ") >= 1

    accepted = hermesctl("store", "accept-loss", "--json", broker=broker)
    assert accepted.code == DONE and accepted.json["accepted"]
    assert readiness(broker)[0] == 200
    assert metric(broker, "hermes_store_damage") == 0
    broker = restart(hermesd, broker)
    assert readiness(broker)[0] == 200
    assert check(broker).code == DONE
    assert list((broker.data / "journal").glob("damaged-*.accepted")), "the file is kept"
    assert returning_phone(broker).take_message().payload == b"new"


def test_a_missing_journal_is_told_of_across_restarts(hermesd):
    """No file is left that could show it."""
    broker = hermesd()
    absent_phone(broker)
    publish(broker, numbered(range(3)))
    broker = restart(hermesd, broker)
    publish(broker, numbered(range(3, 6)))
    broker.kill()
    for path in journal_files(broker):
        path.unlink()

    broker = hermesd(data=broker.data)
    assert "missing" in reason(broker)
    broker = restart(hermesd, broker)
    assert "missing" in reason(broker)
    phone = returning_phone(broker)
    assert [one.payload for one in phone.take_messages(3)] == numbered(range(3))
    phone.disconnect()

    # The broker has stopped: hermesctl does it itself.
    assert broker.stop() == 0
    arguments = ("--data-directory", str(broker.data))
    accepted = hermesctl("store", "accept-loss", *arguments, token=None)
    assert accepted.code == DONE and "damage.txt" in accepted.output, accepted
    assert readiness(hermesd(data=broker.data))[0] == 200


def test_a_broker_that_runs_is_asked_to_accept(hermesd):
    """Without --url: the lock of the data directory tells that it runs."""
    broker = hermesd()
    (broker.data / "damage.txt").write_text("a test\n")
    port = str(broker.admin_address[1])
    done = subprocess.run(
        [str(Hermesd.control_executable()), "store", "accept-loss", "--data-directory", str(broker.data)],
        env=os.environ | broker.environment() | {"HERMES_ADMIN_PORT": port},
        capture_output=True, text=True, check=False, timeout=10,
    )
    assert done.returncode == DONE and "damage.txt" in done.stdout, done
    assert not (broker.data / "damage.txt").exists()


def test_a_database_that_cannot_be_opened_keeps_the_broker_from_starting(hermesd):
    """An empty one would admit clients as if nothing had ever been."""
    broker = hermesd()
    absent_phone(broker)
    publish(broker, numbered(range(3)))
    assert broker.stop() == 0
    database = broker.data / "hermes.sqlite"
    database.write_bytes(os.urandom(database.stat().st_size))
    done = check(broker)
    assert done.code == REFUSED and done.output.startswith("database: "), done
    assert "store check" not in done.output, "it advises itself"

    refused = Hermesd(Settings(), data=broker.data)
    with pytest.raises(AssertionError):
        refused.start()
    refused.remove_files()
    command = f"hermesctl store accept-loss --data-directory '{broker.data}'"
    assert refused.process.wait(PATIENCE) == NEEDS_A_PERSON and command in refused.log.text
    done = hermesctl(*command.replace("'", "").split()[1:], token=None)
    assert done.code == DONE and "damaged-1" in done.output, done

    broker = hermesd(data=broker.data)
    assert readiness(broker)[0] == 200
    assert (broker.data / "damaged-1/hermes.sqlite").exists()
    absent_phone(broker)
    publish(broker, [b"new"])
    broker = restart(hermesd, broker)
    assert returning_phone(broker).take_message().payload == b"new"


def test_data_of_a_newer_version_is_no_reason_to_try_again(hermesd):
    broker = hermesd()
    assert broker.stop() == 0
    with edited(broker.data / "hermes.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    refused = Hermesd(Settings(), data=broker.data)
    with pytest.raises(AssertionError):
        refused.start()
    refused.remove_files()
    assert refused.process.wait(PATIENCE) == NEEDS_A_PERSON, refused.log.text
    assert "version 99" in refused.log.text


def test_check_finds_damage_within_the_database(hermesd):
    broker = hermesd()
    absent_phone(broker)
    publish(broker, numbered(range(200)))
    assert broker.stop() == 0
    database = broker.data / "hermes.sqlite"
    content = bytearray(database.read_bytes())
    # A page of the queue: its header makes no sense any more.
    page = content.index(numbered([150])[0]) // PAGE * PAGE
    assert page > 0
    content[page:page + 64] = b"\xee" * 64
    database.write_bytes(content)
    done = hermesctl("store", "check", "--data-directory", str(broker.data), "--json", token=None)
    assert done.code == REFUSED and done.json["database"] and done.json["lost"] == []


def test_it_does_not_start_on_sessions_that_cannot_be_loaded(hermesd):
    """Most of such a database can still be saved, so nothing is deleted."""
    broker = hermesd()
    absent_phone(broker)
    assert broker.stop() == 0
    database = broker.data / "hermes.sqlite"
    connection = sqlite3.connect(database)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'"
    (page,) = connection.execute(query).fetchone()
    connection.close()
    content = bytearray(database.read_bytes())
    content[(page - 1) * PAGE:page * PAGE] = b"\xee" * PAGE
    database.write_bytes(content)
    with pytest.raises(AssertionError, match="the broker ended"):
        hermesd(data=broker.data)
    done = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", "0", "--data-directory",
         str(broker.data)],
        capture_output=True, text=True, check=False, timeout=20,
    )
    assert done.returncode == NEEDS_A_PERSON
    assert str(database) in done.stderr and f"its page {page} does not fit its checksum" in done.stderr
    assert "hermesctl store check" in done.stderr and "backup" in done.stderr
    assert database.read_bytes()[(page - 1) * PAGE:page * PAGE] == b"\xee" * PAGE
    assert check(broker).code == REFUSED


# --- queues --------------------------------------------------------------------------------


def test_a_queue_is_shown_and_dropped(hermesd):
    broker = hermesd(max_in_flight=2)
    absent_phone(broker, topic="t/#")
    phone = returning_phone(broker)
    publish(broker, numbered(range(2)), topic="t/sent")
    assert len([phone.receive_publish() for _ in range(2)]) == 2
    phone.close()
    eventually(
        lambda: not AdminAPI(broker).client("phone")["connected"], "the phone to be away"
    )
    publish(broker, numbered(range(2, 5)), topic="t/\u0007waits")

    shown = hermesctl("queue", "show", "phone", "--json", broker=broker).json
    assert shown["client_id"] == "phone" and "next" not in shown
    states = [(one["state"], one["topic"], one["payload_bytes"]) for one in shown["messages"]]
    size = len(numbered([0])[0])
    assert states == [("in_flight", "t/sent", size)] * 2 + [("waiting", "t/\u0007waits", size)] * 3
    table = hermesctl("queue", "show", "phone", "--limit", "4", broker=broker)
    assert table.output.count("in flight") == 2 and "t/\\u{7}waits" in table.output
    assert len(table.output.splitlines()) == 5 and "more" in table.errors

    asked = hermesctl("queue", "drop", "phone", broker=broker)
    assert asked.code == REFUSED and "3 messages" in asked.errors and "--yes" in asked.errors
    dropped = hermesctl("queue", "drop", "phone", "--yes", broker=broker)
    assert (dropped.code, dropped.output) == (
        DONE, 'Dropped 3 messages that waited for "phone".\n')
    assert metric(broker, "hermes_messages_dropped_total", reason="operator") == 3
    assert metric(broker, "hermes_queued_messages") == 0

    # Stored when it was answered: a crash brings nothing back.
    broker.kill()
    broker = hermesd(data=broker.data)
    left = hermesctl("queue", "show", "phone", "--json", broker=broker).json["messages"]
    assert [one["state"] for one in left] == ["in_flight"] * 2
    publish(broker, [b"after"], topic="t/after")
    phone = returning_phone(broker)
    messages = phone.take_messages(3)
    assert [one.payload for one in messages] == [*numbered(range(2)), b"after"]
    assert [one.dup for one in messages] == [True, True, False]


def test_a_long_queue_is_shown_in_pages(hermesd):
    broker = hermesd(queue_limit=5_000)
    absent_phone(broker)
    publish(broker, numbered(range(2_500)))
    shown = hermesctl("queue", "show", "phone", "--limit", "5000", "--json", broker=broker).json
    assert [one["position"] for one in shown["messages"]] == list(range(2_500))
    page = AdminAPI(broker).get("/v1/clients/phone/queue?limit=3&cursor=2400")
    assert [one["position"] for one in page["messages"]] == [2_400, 2_401, 2_402]
    assert page["next"] == "2403"


def test_the_queue_of_a_connected_client_and_of_nobody(hermesd):
    broker = hermesd(max_in_flight=1)
    busy = RawClient(broker.address)
    busy.connect("busy")
    busy.subscribe(("a", 2))
    publish(broker, numbered(range(3)), qos=2)
    busy.receive_publish()
    busy.send(wire.pubrec(1))
    busy.await_packet(wire.Pubrel)
    shown = AdminAPI(broker).get("/v1/clients/busy/queue")["messages"]
    assert [one["state"] for one in shown] == ["released", "waiting", "waiting"]
    assert "topic" not in shown[0] and shown[1]["topic"] == "a"
    for arguments in (("show", "nobody"), ("drop", "nobody", "--yes")):
        done = hermesctl("queue", *arguments, broker=broker)
        assert done.code == REFUSED and "nobody" in done.errors


# --- backups -------------------------------------------------------------------------------


class Publisher:
    """Publishes numbered messages until it is stopped."""

    def __init__(self, broker):
        self._client = RawClient(broker.address)
        self._client.connect("publisher")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged = 0
        self._thread.start()

    def _run(self):
        while not self._stopped.is_set():
            self._client.publish("a", numbered([self.acknowledged])[0], qos=1)
            self.acknowledged += 1

    def stop(self):
        self._stopped.set()
        self._thread.join(10)
        self._client.close()


def test_a_backup_holds_all_that_was_acknowledged(hermesd):
    broker = hermesd(queue_limit=60_000)
    absent_phone(broker)
    retaining = RawClient(broker.address)
    retaining.connect("retaining")
    retaining.publish("r", b"value", qos=1, retain=True)
    publisher = Publisher(broker)
    copies = []
    try:
        for number in range(3):
            eventually(lambda: publisher.acknowledged >= 200 * (number + 1), "messages")
            before = publisher.acknowledged
            copy = broker.directory / f"copy-{number}"
            done = hermesctl("backup", str(copy), broker=broker)
            assert (done.code, done.output) == (DONE, f'Copied to "{copy}".\n'), done
            copies.append((copy, before))
    finally:
        publisher.stop()
    assert readiness(broker)[0] == 200

    for copy, before in copies:
        assert stat.S_IMODE(copy.stat().st_mode) == 0o700
        assert [path.name for path in copy.iterdir()] == ["hermes.sqlite"]
        assert stat.S_IMODE((copy / "hermes.sqlite").stat().st_mode) == 0o600
        restored = hermesd(data=copy, queue_limit=60_000)
        # Without a journal it misses none.
        assert readiness(restored)[0] == 200, readiness(restored)
        assert check(restored).code == DONE
        queued = AdminAPI(restored).client("phone")["queued"]
        assert before <= queued <= publisher.acknowledged
        phone = returning_phone(restored)
        assert [one.payload for one in phone.take_messages(queued)] == numbered(range(queued))
        late = RawClient(restored.address)
        late.connect("late")
        late.subscribe(("r", 1))
        assert late.receive_publish().payload == b"value"
        # It is a store like any other.
        phone.disconnect()
        publish(restored, [b"more"])
        restored = restart(hermesd, restored)
        assert readiness(restored)[0] == 200
        assert returning_phone(restored).take_message().payload == b"more"
        assert restored.stop() == 0


def test_a_backup_goes_nowhere_but_to_an_empty_folder(hermesd):
    broker = hermesd()
    full = broker.directory / "full"
    full.mkdir(mode=0o700)
    (full / "precious").write_text("mine")
    refused = hermesctl("backup", str(full), broker=broker)
    assert refused.code == REFUSED and "not empty" in refused.errors and str(full) in refused.errors
    assert (full / "precious").read_text() == "mine" and len(list(full.iterdir())) == 1

    shared = broker.directory / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    refused = hermesctl("backup", str(shared), broker=broker)
    assert refused.code == REFUSED and "0700" in refused.errors

    nowhere = hermesctl("backup", str(broker.directory / "no/such"), broker=broker)
    assert nowhere.code == REFUSED and "no such file" in nowhere.errors
    answer = AdminAPI(broker).request("POST", f"/v1/backup?directory={full}", b"")
    assert answer.problem(409)["type"].endswith("backup-folder")

    link = broker.directory / "link"
    link.symlink_to(broker.data)
    for inside in (broker.data / "copy", broker.data / "journal" / "copy", broker.data, link / "copy"):
        refused = hermesctl("backup", str(inside), broker=broker)
        assert refused.code == REFUSED and "lies in the data directory" in refused.errors, refused
        assert "outside" in refused.errors and not (broker.data / "copy").exists()

    empty = broker.directory / "empty"
    empty.mkdir(mode=0o700)
    copied = hermesctl("backup", str(empty), "--json", broker=broker)
    assert copied.code == DONE and copied.json == {"directory": str(empty)}
    again = hermesctl("backup", str(empty), broker=broker)
    assert again.code == REFUSED and "not empty" in again.errors


# --- a full disk ---------------------------------------------------------------------------


@pytest.fixture
def volume(tmp_path):
    """Mounts a small file system: `volume(64)`, in MiB; skips where that is not permitted."""
    mounted = []

    def mount(mebibytes):
        path = tmp_path / f"volume-{len(mounted)}"
        path.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0700", "tmpfs", str(path)],
            capture_output=True, check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"mounting is not permitted here: {done.stderr.decode().strip()}")
        mounted.append(path)
        return path

    yield mount
    for path in mounted:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def used(folder):
    """Bytes of its files, in whole pages."""
    return sum(used_by(path) for path in folder.rglob("*") if path.is_file())


def used_by(file):
    return file.stat().st_blocks * 512


def whole_segments(data):
    """The files of the journal that have got all of their space."""
    return [path for path in data.rglob("journal-*.segment") if used_by(path) >= 16 * MEBI]


def post(broker, topic):
    return AdminAPI(broker).request("POST", f"/v1/publish?topic={topic}&qos=1", b"x" * 1_000)


def test_a_nearly_full_disk_refuses_what_it_would_have_to_store(hermesd, volume):
    disk = volume(96)
    broker = hermesd(data=disk / "data", environment={"HERMES_DISK_RESERVE": "16MiB"})
    absent_phone(broker)
    assert post(broker, "a").status == 200
    # The journal makes its second file on another thread; it takes no space after that.
    eventually(lambda: len(whole_segments(disk / "data")) == 2, "the journal's spare file")
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    filler.write_bytes(bytes(free - 8 * MEBI))

    # The store looks once a second, while it has something to do.
    refused = eventually(
        lambda: (answer := post(broker, "a")).status != 200 and answer, "a refusal")
    problem = refused.problem(507)
    assert problem["type"].endswith("disk-full") and refused.headers["retry-after"]
    assert "nearly full" in reason(broker)
    broker.log.await_match("Disk nearly full, new messages wait")
    # Messages that need no store continue.
    assert post(broker, "nobody/stores/this").status == 200
    phone = returning_phone(broker)
    assert phone.take_message().payload == b"x" * 1_000
    phone.ping()
    waiting = RawClient(broker.address)
    waiting.connect("waiting")
    waiting.send(wire.publish("a", b"patient", qos=1, packet_id=1))
    eventually(lambda: AdminAPI(broker).status()["publishers_paused"] == 1, "a paused publisher")
    broker.log.await_match("Client waits until the store takes more")

    filler.unlink()
    eventually(lambda: readiness(broker)[0] == 200, "the broker to be ready again")
    broker.log.await_match("Disk has room again")
    assert waiting.await_packet(wire.Puback) == wire.Puback(1)
    assert post(broker, "a").status == 200


def test_a_first_start_on_a_full_disk_says_so(hermesd, volume):
    disk = volume(96)
    data = disk / "data"
    filler = disk / "filler"
    # Room for no database; for no journal.
    for room, place in ((32, "hermes.sqlite"), (768, "journal-1.segment")):
        filler.write_bytes(bytes(96 * MEBI - room * 1_024 - used(data)))
        broker = Hermesd(Settings(), data=data)
        try:
            with pytest.raises(AssertionError):
                broker.start()
            said = broker.log.text
            assert str(data) in said and place in said, said
            assert re.search("disk is full", said) and re.search("[Ff]ree .*file system", said), said
        finally:
            broker.remove_files()
    # Its partial folder does not hinder it once there is space.
    filler.unlink()
    broker = hermesd(data=data, environment={"HERMES_DISK_RESERVE": "16MiB"})
    absent_phone(broker)
    publish(broker, [b"stored"])
    assert returning_phone(broker).take_message().payload == b"stored"


def test_a_backup_without_room_leaves_nothing(hermesd, volume):
    disk = volume(1)
    broker = hermesd()
    refused = hermesctl("backup", str(disk / "copy"), broker=broker)
    assert refused.code == REFUSED and "are free" in refused.errors, refused
    assert list(disk.iterdir()) == []
    target = str(disk / "copy")
    assert AdminAPI(broker).request("POST", f"/v1/backup?directory={target}", b"").status == 507
