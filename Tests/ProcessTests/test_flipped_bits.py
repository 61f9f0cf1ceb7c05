"""Databases with bits that flipped on the disk: everything is delivered, or the loss is told."""

import random
import shutil
from pathlib import Path

import pytest

from harness.admin import AdminAPI, curl, hermesctl
from harness.broker import Hermesd, Settings
from harness.database import PAGE
from harness.raw_client import RawClient
from harness.waiting import PATIENCE

pytestmark = pytest.mark.hermesd("another broker has no such file")

NEEDS_A_PERSON = 78
PHONES = ["phone-a", "phone-b", "phone-c"]
MESSAGES = {f"message {number:03} " + "x" * (number % 90) for number in range(100)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A data directory with a hundred messages for each of three phones, all in the database."""
    broker = Hermesd(Settings())
    broker.start()
    for name in PHONES:
        phone = RawClient(broker.address)
        phone.connect(name, clean_session=False)
        phone.subscribe((f"to/{name}", 1), ("for/all", 1))
        phone.disconnect()
    office = RawClient(broker.address)
    office.connect("office")
    for number, text in enumerate(sorted(MESSAGES)):
        for topic in ["for/all"] if number % 2 else [f"to/{name}" for name in PHONES]:
            office.publish(topic, text.encode(), qos=1)
    office.publish("kept", b"retained", qos=1, retain=True)
    office.disconnect()
    assert broker.stop() == 0
    folder = tmp_path_factory.mktemp("flipped") / "data"
    shutil.copytree(broker.data, folder)
    broker.remove_files()
    return folder


def delivered(broker: Hermesd, name: str) -> set[str]:
    """The payloads that come until the broker ends the connection or has nothing more."""
    phone = RawClient(broker.address)
    got: set[str] = set()
    try:
        phone.connect(name, clean_session=False)
        while message := next(iter(phone.take_messages(1, 1.0)), None):
            got.add(message.payload.decode("latin-1"))
            if len(got) == len(MESSAGES):
                break
    except AssertionError:
        assert broker.is_running, broker.log.tail()
    phone.close()
    return got


def outcome(data: Path) -> str:
    """Starts a broker and reads everything; asserts that nothing is wrong or missing silently."""
    broker = Hermesd(Settings(), data=data)
    try:
        try:
            broker.start()
        except AssertionError:
            assert broker.process.wait(PATIENCE) == NEEDS_A_PERSON, broker.log.tail()
            assert "checksum" in broker.log.text or "damaged" in broker.log.text, broker.log.tail()
            return "refused"
        got = {name: delivered(broker, name) for name in PHONES}
        for name, texts in got.items():
            assert texts <= MESSAGES, f"{name} got what nobody sent: {texts - MESSAGES}"
        if all(texts == MESSAGES for texts in got.values()):
            return "delivered"
        ready = curl(f"{broker.admin_url}/readyz")
        assert ready.status == 503 and "checksum" in ready.json["detail"], ready.body
        return "told"
    finally:
        if broker.is_running:
            broker.kill()
        broker.remove_files()


def flip(data: Path, bits) -> None:
    path = data / "hermes.sqlite"
    content = bytearray(path.read_bytes())
    for bit in bits(len(content) * 8):
        content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(10))
def test_five_flipped_bits_lose_nothing_silently(stored, tmp_path, seed):
    data = tmp_path / "data"
    shutil.copytree(stored, data)
    chance = random.Random(seed)
    flip(data, lambda size: [chance.randrange(size) for _ in range(5)])
    outcome(data)


def test_a_flipped_bit_in_each_page_is_corrected_and_counted(stored, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(stored, data)
    chance = random.Random(11)
    flip(data, lambda size: [
        page * 8 + chance.randrange(PAGE * 8) for page in range(0, size // 8, PAGE)])
    done = hermesctl("store", "check", "--data-directory", str(data), "--json", token=None)
    assert len(done.json["database"]) == 1 and "nothing is lost" in done.json["database"][0]
    broker = Hermesd(Settings(), data=data)
    broker.start()
    try:
        assert all(delivered(broker, name) == MESSAGES for name in PHONES)
        assert AdminAPI(broker).status()["store"]["corrected_pages"] > 0
    finally:
        broker.kill()
        broker.remove_files()


@pytest.mark.parametrize("seed", range(4))
def test_a_page_that_lost_a_sector_is_told(stored, tmp_path, seed):
    """The sectors of a page that holds messages; nobody gets a part of one."""
    data = tmp_path / "data"
    shutil.copytree(stored, data)
    content = (data / "hermes.sqlite").read_bytes()
    sectors = [at for at in range(PAGE, len(content), 4_096)
               if b"message 0" in content[at:at + 4_096]]
    at = random.Random(seed).choice(sectors)
    flip(data, lambda size: [at * 8 + bit for bit in range(4_096 * 8) if content[at + bit // 8]
                             >> bit % 8 & 1])
    assert outcome(data) in ("told", "refused")
    done = hermesctl("store", "check", "--data-directory", str(data), "--json", token=None)
    assert any("checksum" in line for line in done.json["database"]), done.output


def test_a_repair_saves_what_other_pages_hold(stored, tmp_path):
    """Every page that has messages is damaged in turn; the broker starts on what is left."""
    content = (stored / "hermes.sqlite").read_bytes()
    pages = [at for at in range(PAGE, len(content), PAGE)
             if content.count(b"message ", at, at + PAGE) > 10]
    losses: list[int] = []
    for number, at in enumerate(pages):
        data = tmp_path / f"data-{number}"
        shutil.copytree(stored, data)
        flip(data, lambda size, at=at: [(at + 700) * 8 + bit for bit in range(100)])
        folder = ("--data-directory", str(data))
        done = hermesctl("store", "repair", *folder, "--json", token=None)
        assert done.code == 0 and done.json["repaired"], done
        assert any(f"page {at // PAGE + 1} " in line for line in done.json["lost"]), done.output
        again = hermesctl("store", "repair", *folder, token=None)
        assert again.code == 0 and "nothing was changed" in again.output, again
        broker = Hermesd(Settings(), data=data)
        broker.start()
        try:
            got = {name: delivered(broker, name) for name in PHONES}
            assert all(texts <= set(MESSAGES) for texts in got.values())
            losses.append(sum(len(MESSAGES) - len(texts) for texts in got.values()))
            told = [line for line in done.json["lost"] if "waited for sessions that are left" in line]
            assert [int(line.split()[0]) for line in told] == losses[-1:], (got, done.output)
            assert {"table": "sessions", "rows": len(PHONES)} in done.json["kept"], done.output
            ready = curl(f"{broker.admin_url}/readyz")
            assert ready.status == 503 and "page" in ready.json["detail"], ready.body
        finally:
            broker.kill()
            broker.remove_files()
    # The queues are in one page; of the messages that all three share, the content is in others.
    assert max(losses) == len(PHONES) * len(MESSAGES) and min(losses) < max(losses), losses


def test_a_repair_waits_for_the_broker_to_stop(hermesd):
    broker = hermesd()
    done = hermesctl("store", "repair", "--data-directory", str(broker.data), token=None)
    assert done.code != 0 and "Stop the broker" in done.errors, done
