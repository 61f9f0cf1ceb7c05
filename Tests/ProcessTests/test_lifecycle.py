"""Start and end of the process, and its output."""

import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import ADMIN_TOKEN, Hermesd, Settings, inherited_environment
from harness.raw_client import RawClient
from harness.waiting import PATIENCE, eventually
from harness.wire import Connack, Will

pytestmark = pytest.mark.hermesd("hermesd's own command line and files")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number, start_broker, client):
    """Exit code 0, connections closed, quickly."""
    broker = start_broker()
    one = client("one", broker)
    begin = time.monotonic()
    broker.process.send_signal(number)
    assert broker.await_exit() == 0
    assert time.monotonic() - begin < 3, "nothing was left to drain"
    assert one.await_closed() == []


def test_a_stop_delivers_what_was_taken(start_broker, client, names):
    """Messages acknowledged before the signal reach receivers that read."""
    broker = start_broker()
    subscriber, publisher = client("sub", broker), client("pub", broker)
    subscriber.subscribe((names.topic(), 0))
    payload = b"x" * 10_000
    # Half a mebibyte, which fits one connection's output.
    publisher.send(*(wire.publish(names.topic(), payload) for _ in range(50)))
    publisher.ping()
    broker.process.send_signal(signal.SIGTERM)
    received = subscriber.await_closed()
    assert [message.payload for message in received] == [payload] * 50
    assert broker.await_exit() == 0


def test_a_peer_that_does_not_read_delays_a_stop_only_so_long(start_broker, client, raw, names):
    """The drain timeout, 1 s here."""
    broker = start_broker(environment={"HERMES_LIMITS_DRAIN_TIMEOUT": "1s"})
    stalled = raw(broker, receive_buffer=4_096)
    stalled.connect(names.client("stalled"))
    stalled.subscribe((names.topic(), 0))
    publisher = client("pub", broker)
    for _ in range(500):
        publisher.send(wire.publish(names.topic(), b"x" * 16_384))
    publisher.ping()
    begin = time.monotonic()
    assert broker.stop() == 0
    assert time.monotonic() - begin < 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_drain(number, start_broker, client, raw, names):
    """Stored messages stay stored, and the exit is clean."""
    broker = start_broker(environment={"HERMES_LIMITS_DRAIN_TIMEOUT": "10m"})
    away = client("away", broker, clean_session=False)
    away.subscribe((names.topic("kept"), 1))
    away.disconnect()
    stalled = raw(broker, receive_buffer=4_096)
    stalled.connect(names.client("stalled"))
    stalled.subscribe((names.topic(), 0))
    publisher = client("pub", broker)
    for _ in range(500):
        publisher.send(wire.publish(names.topic(), b"x" * 16_384))
    publisher.publish(names.topic("kept"), b"kept", qos=1)

    broker.process.send_signal(signal.SIGTERM)
    broker.log.await_match("Stopping signal=SIGTERM")
    publisher.await_closed()
    assert broker.is_running
    broker.process.send_signal(number)
    broker.log.await_match("NOTICE Stopping without further waiting")
    assert broker.await_exit() == 0

    broker.start()
    back = client("away", broker, clean_session=False)
    assert back.take_message().payload == b"kept"


def test_a_hangup_during_a_stop_is_passed_over(start_broker, client, raw, names):
    """It could lengthen no drain any more, and says so."""
    broker = start_broker(environment={"HERMES_LIMITS_DRAIN_TIMEOUT": "10m"})
    stalled = raw(broker, receive_buffer=4_096)
    stalled.connect(names.client("stalled"))
    stalled.subscribe((names.topic(), 0))
    publisher = client("pub", broker)
    for _ in range(500):
        publisher.send(wire.publish(names.topic(), b"x" * 16_384))
    publisher.ping()
    broker.process.send_signal(signal.SIGTERM)
    publisher.await_closed()
    broker.process.send_signal(signal.SIGHUP)
    broker.log.await_match("NOTICE Reload passed over, the broker is stopping")
    broker.process.send_signal(signal.SIGTERM)
    assert broker.await_exit() == 0


def test_a_hangup_during_the_start_ends_nothing(tmp_path):
    """It is carried out once the broker runs."""
    broker = Hermesd(data=tmp_path / "data")
    process = subprocess.Popen(
        broker.command(), env=inherited_environment() | broker.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    try:
        eventually(lambda: catches(process.pid, signal.SIGHUP), "the trap")
        process.send_signal(signal.SIGHUP)
        for line in process.stdout:
            if "Configuration read again" in line:
                break
        else:
            pytest.fail(f"it ended with {process.wait()}")
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        broker.remove_files()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_ends_it(number, tmp_path):
    """At once, and as process 1 too, for which the kernel ignores signals without a handler."""
    broker = Hermesd(data=tmp_path / "data")
    process = subprocess.Popen(
        broker.command(), env=inherited_environment() | broker.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # Trapped behind the signals that end a start.
        eventually(lambda: catches(process.pid, signal.SIGHUP), "the trap")
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        broker.remove_files()


def catches(pid: int, number: signal.Signals) -> bool:
    """True if that process has a handler for the signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = re.findall(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return int(mask, 16) >> (number - 1) & 1 == 1


def test_no_client_waits_while_the_table_of_descriptors_grows(start_broker):
    """To double it holds up a process with threads for some 20 ms, so it has its size from the start."""
    broker = start_broker()
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    (size,) = re.findall(r"^FDSize:\s*(\d+)$", status, re.MULTILINE)
    most, _ = resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE)
    assert int(size) >= min(most, 262_144)


def test_a_stop_takes_no_new_connections(start_broker):
    broker = start_broker()
    address = broker.address
    assert broker.stop() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=PATIENCE)


def test_it_starts_again_on_its_data_directory():
    """And makes no second token."""
    first = Hermesd()
    first.start()
    assert first.stop() == 0
    second = Hermesd(data=first.data)
    second.start()
    try:
        assert AdminAPI(second).status()["connections"] == 0
    finally:
        assert second.stop() == 0
        second.remove_files()
        first.remove_files()


def test_a_data_directory_belongs_to_one_process(start_broker):
    broker = start_broker()
    second = Hermesd(data=broker.data)
    done = subprocess.run(
        second.command(), env=second.environment(), capture_output=True, timeout=PATIENCE,
        check=False,
    )
    second.remove_files()
    assert done.returncode not in (0, None)
    assert str(broker.data) in done.stderr.decode(), done.stderr.decode()
    assert AdminAPI(broker).status(), "the first one goes on"


def test_the_data_directory_is_private(start_broker):
    broker = start_broker(makes_its_own_token=True)
    assert stat.S_IMODE(broker.data.stat().st_mode) == 0o700
    for file in broker.data.rglob("*"):
        assert stat.S_IMODE(file.stat().st_mode) in (0o600, 0o700), file


@pytest.mark.parametrize("section", ["listeners[0]", "admin"])
def test_a_port_in_use_is_an_error_that_names_it(section, start_broker, tmp_path):
    """The error names fault, place and remedy."""
    broker = start_broker()
    port = broker.port if section == "listeners[0]" else broker.admin_address[1]
    ports = ("--port", "0", "--admin-port", str(port))
    if section == "listeners[0]":
        ports = ("--port", str(port), "--admin-port", "0")
    done = subprocess.run(
        [str(Hermesd.executable()), *ports, "--data-directory", str(tmp_path / "data")],
        capture_output=True, timeout=PATIENCE, check=False,
        env=inherited_environment() | {"HERMES_ADMIN_TOKEN": ADMIN_TOKEN},
    )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == (
        f"hermesd: {section}: cannot listen on 127.0.0.1:{port}: address already in use. Stop what "
        f"uses the address, or set another with {section}.port and {section}.address."
    )


def test_it_listens_on_several_ports(start_broker, names):
    broker = start_broker(arguments=("--port", "0"))
    listeners = AdminAPI(broker).status()["listeners"]
    assert len(set(listeners)) == 2
    for listener in listeners:
        host, port = listener.rsplit(":", 1)
        one = RawClient((host, int(port)))
        assert one.connect(names.client(port)) == Connack(False, 0)
        one.disconnect()


def test_the_log_holds_no_secrets_and_no_control_characters(start_broker, raw, names):
    """Client identifiers are logged, escaped; payloads, wills, passwords and tokens are not."""
    broker = start_broker()
    evil = "evil\x1b[31m\r\nfake line \x07\u202e\x7f"
    connection = raw(broker)
    connection.connect(
        evil, will=Will("will/topic", b"WILL-SECRET"), user_name="u\n", password=b"PASS-SECRET"
    )
    connection.subscribe((names.topic(), 1))
    connection.publish(names.topic(), b"PAYLOAD-SECRET", qos=1)
    connection.send(b"\xf0\x00")
    connection.await_closed()
    assert AdminAPI(broker, token=ADMIN_TOKEN + "x").request("GET", "/v1/status").status == 401
    broker.log.await_match("evil")
    assert broker.stop() == 0
    for line in broker.log.raw_lines:
        assert all(byte >= 32 and byte != 127 for byte in line), line
        assert "\u202e".encode() not in line
    assert "SECRET" not in broker.log.text and ADMIN_TOKEN not in broker.log.text
    assert not any(line.startswith("fake line") for line in broker.log.lines)


def test_the_log_as_json(raw):
    broker = Hermesd(Settings(environment={"HERMES_LOGGING_FORMAT": "json"}))
    broker.start()
    raw(broker).connect("json\n\x1b")
    broker.log.await_match(r"json\\n")
    assert broker.stop() == 0
    broker.remove_files()
    events = [json.loads(line) for line in broker.log.lines]
    assert "MQTT listener ready" in {event["message"] for event in events}
    assert all({"time", "level", "message"} <= set(event) for event in events)
    assert "json\n\x1b" in {event.get("client.id") for event in events}
    (ready,) = [event for event in events if event["message"] == "MQTT listener ready"]
    assert ready["listener.anonymous"] is True
    # A later connection in the same place of the broker's table has another name.
    assert all("." in event["connection.id"] for event in events if "connection.id" in event)


@pytest.mark.parametrize("mistake", ["configuration", "file", "port"])
def test_a_start_that_fails_says_so_as_json_too(mistake, tmp_path):
    config = tmp_path / "hermes.yaml"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        keys = {
            "configuration": "durability: maybe\n", "file": "password_file: /missing\n",
            "port": f"admin: {{port: {taken.getsockname()[1]}}}\n",
        }
        config.write_text(
            "logging: {format: json}\nlisteners: [{port: 0}]\n" + keys[mistake]
            + ("" if mistake == "port" else "admin: {port: 0}\n"))
        done = subprocess.run(
            [str(Hermesd.executable()), "--config", str(config), "--data-directory",
             str(tmp_path / "data")],
            env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == (1 if mistake == "port" else 78)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    (end,) = [event for event in events if event["message"] == "The broker ends"]
    assert end["level"] == "critical" and end["problem"], end


def test_version():
    done = subprocess.run(
        [str(Hermesd.executable()), "--version"], capture_output=True, timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.strip()
