"""Faults on a TLS listener: wrong protocols, stalled handshakes, cut streams, bad settings."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import subprocess
import threading
import warnings

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import Hermesd, inherited_environment
from harness.certificates import Authority, Certificate
from harness.raw_client import RawClient
from harness.tls import TLSClient, client_context, tls_environment
from harness.waiting import PATIENCE, eventually
from harness.wire import Will

pytestmark = pytest.mark.hermesd("its TLS settings are its own")


# --- the wrong protocol ---------------------------------------------------------------------


def test_plain_mqtt_on_a_tls_port(tls_broker, raw):
    client = raw(tls_broker)
    client.send(wire.connect("plain"))
    assert client.await_closed() == []
    line = tls_broker.log.await_match("TLS handshake failed").string
    assert "reason=not_tls" in line and "NOTICE" in line
    assert "point it to a listener without tls, or let it use TLS" in line


def test_what_comes_in_place_of_tls_is_named_and_hides_nothing_else(tls_broker, raw):
    for bytes_ in (wire.connect("plain"), b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n",
                   b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"):
        client = raw(tls_broker)
        client.send(bytes_)
        assert client.await_closed() == []
    for hint in ("the client speaks HTTP", "a PROXY header from an address"):
        tls_broker.log.await_match(f'TLS handshake failed.*hint="{hint}.*reason=not_tls')
    lines = [line for line in tls_broker.log.lines if "TLS handshake failed" in line]
    assert sum("hint=" not in line for line in lines) == 1, "plain MQTT has the explanation alone"


def test_tls_on_a_plain_port(broker, authority, raw):
    start = len(broker.log.lines)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TLSClient(broker, client_context(authority.certificate))
    line = broker.log.await_match(
        "Connection closed, the client speaks TLS", start=start).string
    assert "reason=tls_on_plain_listener" in line
    assert "point the client to one with tls" in line


def test_tls_1_1_is_refused(tls_broker, authority):
    context = client_context(authority.certificate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TLSClient(tls_broker, context)
    line = tls_broker.log.await_match("TLS handshake failed").string
    assert "reason=no_common_parameters" in line and "unsupported protocol" in line


def test_tls_1_2_can_be_turned_off(start_broker, pair, authority):
    broker = start_broker(environment=tls_environment(pair, minimum_version="1.3"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TLSClient(
            broker, client_context(authority.certificate, version=ssl.TLSVersion.TLSv1_2))
    TLSClient(broker, client_context(authority.certificate)).connect("new")


def test_a_flood_of_failures_is_one_line_a_second(tls_broker, raw):
    for _ in range(100):
        client = raw(tls_broker)
        client.send(wire.connect("plain"))
        client.await_closed()
    eventually(
        lambda: 'hermes_tls_handshake_failures_total{reason="not_tls"} 100'
        in AdminAPI(tls_broker).request("GET", "/metrics").body.decode(), "100 failures")
    lines = [line for line in tls_broker.log.lines if "TLS handshake failed" in line]
    assert 1 <= len(lines) <= 10


# --- stalled handshakes ---------------------------------------------------------------------


@pytest.mark.parametrize("hello", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_a_handshake_that_stalls_is_ended(start_broker, pair, raw, hello):
    broker = start_broker(connect_timeout="300ms", environment=tls_environment(pair))
    client = raw(broker)
    if hello:
        client.send(hello)
    assert client.await_closed() == []
    assert 'hermes_connections_closed_total{reason="connect_timeout"} 1' in AdminAPI(
        broker).request("GET", "/metrics").body.decode()


def test_a_client_that_finishes_its_handshake_must_still_connect(start_broker, pair, authority):
    broker = start_broker(connect_timeout="300ms", environment=tls_environment(pair))
    client = TLSClient(broker, client_context(authority.certificate))
    assert client.await_closed() == []


def test_stalled_handshakes_make_room_for_new_ones(start_broker, pair, authority, raw):
    broker = start_broker(
        environment={**tls_environment(pair), "HERMES_LIMITS_MAX_HANDSHAKES": "3"})
    context = client_context(authority.certificate)
    held = TLSClient(broker, context)
    held.connect("held")
    stalled = [raw(broker) for _ in range(3)]

    # Waits in the kernel until the oldest of them has had its two seconds.
    client = TLSClient(broker, context)
    assert client.connect("newcomer").return_code == 0

    broker.log.await_match("TLS handshakes at their limit.*limits.max_handshakes")
    broker.log.await_match("TLS handshake failed.*reason=displaced")
    assert stalled[0].await_closed() == []
    held.ping()
    for one in (held, client):
        one.disconnect()


def test_more_clients_than_handshakes_at_a_time_all_get_in(start_broker, pair, authority):
    broker = start_broker(
        environment={**tls_environment(pair), "HERMES_LIMITS_MAX_HANDSHAKES": "2"})
    context = client_context(authority.certificate)
    sockets = [socket.create_connection(broker.address) for _ in range(12)]
    secured = [context.wrap_socket(
        one, server_hostname="localhost", do_handshake_on_connect=False) for one in sockets]
    for one in secured:
        one.settimeout(PATIENCE)
        one.do_handshake()
    for one in secured:
        one.sendall(wire.connect("many"))
        one.close()


class Flood:
    """Clients that send a ClientHello and nothing else, and come again when they are closed."""

    def __init__(self, broker, count: int) -> None:
        self._address = broker.address
        hello = ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
        self._hello = hello.read()
        self._selector = selectors.DefaultSelector()
        self._is_over = threading.Event()
        for _ in range(count):
            self._connect()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _connect(self) -> None:
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(self._address)
        self._selector.register(client, selectors.EVENT_WRITE)

    def _run(self) -> None:
        while not self._is_over.is_set():
            for key, events in self._selector.select(0.1):
                client = key.fileobj
                try:
                    if events & selectors.EVENT_WRITE:
                        client.send(self._hello)
                        self._selector.modify(client, selectors.EVENT_READ)
                    if not events & selectors.EVENT_READ or client.recv(65_536):
                        continue
                except OSError:
                    pass
                self._selector.unregister(client)
                client.close()
                self._connect()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()


@pytest.mark.timeout(240)
def test_more_handshakes_than_can_be_made_keep_nobody_out(start_broker, authority):
    """Each step waits for seconds in the workers' queue, which the clients have not caused."""
    most = 600
    pair = authority.issue("slow", rsa=4096)
    broker = start_broker(
        connect_timeout="60s",
        environment={**tls_environment(pair), "HERMES_LIMITS_MAX_HANDSHAKES": str(most)})
    context = client_context(authority.certificate)
    held = broker.open_descriptors()
    flood = Flood(broker, most + 50)
    try:
        broker.log.await_match("TLS handshakes at their limit")
        for number in range(2):
            client = RawClient(broker.address)
            client.socket = context.wrap_socket(
                client.socket, server_hostname="localhost", do_handshake_on_connect=False)
            client.socket.settimeout(100)
            client.socket.do_handshake()
            assert client.connect(f"honest {number}").return_code == 0
            # No handshake goes on that is counted nowhere.
            assert broker.open_descriptors() <= held + most + number + 20
            assert gauge(broker, "hermes_tls_handshakes_under_way") <= most
        # And a stop waits for none of them.
        assert broker.stop() == 0
    finally:
        flood.end()


def gauge(broker, name: str) -> float:
    lines = AdminAPI(broker).request("GET", "/metrics").body.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


# --- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("end", ["close_notify", "cut", "garbage", "disconnect"])
def test_only_a_disconnect_spares_the_will(tls_broker, authority, version, end):
    context = client_context(authority.certificate, version=version)
    watcher = TLSClient(tls_broker, context)
    watcher.connect("watcher")
    watcher.subscribe(("will", 0))
    client = TLSClient(tls_broker, context)
    client.connect("testator", will=Will("will", b"gone"))
    if end == "disconnect":
        client.disconnect()
        assert watcher.messages_so_far() == []
        return
    if end == "close_notify":
        # Returns once the broker has said the same.
        client.socket.unwrap().close()
    else:
        descriptor = socket.socket(fileno=client.socket.detach())
        if end == "garbage":
            descriptor.sendall(b"\x17\x03\x03\x00\x20" + b"\x00" * 32)
            # An alert that says why, and then the end.
            descriptor.settimeout(PATIENCE)
            answer = descriptor.recv(100)
            assert answer[0] in (21, 23) and len(answer) > 20
        descriptor.close()
    assert watcher.take_message().payload == b"gone"


def test_the_broker_says_close_notify(tls_broker, authority):
    client = TLSClient(tls_broker, client_context(authority.certificate))
    client.socket.suppress_ragged_eofs = False
    client.connect("polite")
    client.send(wire.DISCONNECT)
    # A cut stream would raise SSLEOFError.
    assert client.socket.recv(1) == b""


# --- settings -------------------------------------------------------------------------------


def refused_start(environment: dict[str, str], tmp_path) -> str:
    """The errors of a hermesd that does not start."""
    done = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", "0", "--data-directory",
         str(tmp_path / "data")],
        env=inherited_environment() | environment, capture_output=True, text=True,
        timeout=PATIENCE, check=False)
    # As for every mistake of a configuration, and before anything is made.
    assert done.returncode == 78, done.stderr
    assert not (tmp_path / "data").exists()
    assert "MQTT listener ready" not in done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("key", [
    "certificate", "key", "minimum_version", "client_certificates", "client_ca_file", "crl_file",
    "user_name_from_certificate",
])
def test_a_part_of_the_settings_never_opens_a_plain_listener(pair, authority, tmp_path, key):
    values = {
        "certificate": pair.certificate, "key": pair.key, "minimum_version": "1.3",
        "client_certificates": "required", "client_ca_file": authority.certificate,
        "crl_file": authority.certificate, "user_name_from_certificate": "true",
    }
    text = refused_start(
        {f"HERMES_LISTENERS_0_TLS_{key.upper()}": str(values[key])}, tmp_path)
    assert "listeners[0].tls" in text


def test_files_that_cannot_serve_are_all_named_at_the_start(pair, authority, tmp_path):
    loose = authority.issue("loose")
    loose.key.chmod(0o644)
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    text = refused_start(
        tls_environment(
            loose, client_certificates="required", client_ca_file=broken,
            crl_file=tmp_path / "missing"), tmp_path)
    assert "listeners[0].tls.key" in text and "chmod 600" in text
    assert "listeners[0].tls.client_ca_file" in text
    assert "listeners[0].tls.crl_file" in text and "No such file" in text


def config_check(environment: dict[str, str], tmp_path) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "hermes.yaml"
    file.write_text("logging:\n  level: info\n")
    return subprocess.run(
        [str(Hermesd.control_executable()), "config", "check", str(file)],
        env=inherited_environment() | environment, capture_output=True, text=True,
        timeout=PATIENCE, check=False)


def test_config_check_reads_the_files_as_the_broker_does(pair, authority, tmp_path):
    good = config_check(tls_environment(pair), tmp_path)
    assert (good.returncode, good.stderr) == (0, ""), good.stderr

    other = authority.issue("other")
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    wrong = Certificate(pair.certificate, other.key)
    done = config_check(
        {
            **tls_environment(
                wrong, client_certificates="required", client_ca_file=broken,
                crl_file=tmp_path / "missing"),
            "HERMES_ADMIN_TLS_CERTIFICATE": str(tmp_path / "missing"),
            "HERMES_ADMIN_TLS_KEY": str(other.key),
        }, tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    for text in (
        "listeners[0].tls.key", "is not the key of", "listeners[0].tls.client_ca_file",
        "listeners[0].tls.crl_file", "No such file", "admin.tls.certificate",
    ):
        assert text in done.stderr, text


def test_config_check_says_what_is_over_and_what_ends_soon(authority, tmp_path):
    over = authority.issue("over", valid_from_days=-10, valid_until_days=-1)
    done = config_check(tls_environment(over), tmp_path)
    assert done.returncode == 2
    assert "listeners[0].tls.certificate" in done.stderr and "is over since 20" in done.stderr

    soon = Authority(tmp_path / "soon", valid_days=3)
    lists = soon.write_list(tmp_path / "lists", days=2)
    done = config_check(
        tls_environment(
            soon.issue("soon", valid_until_days=1), client_certificates="required",
            client_ca_file=soon.certificate, crl_file=lists), tmp_path)
    assert done.returncode == 0 and done.stdout.endswith(": ok\n")
    for key in ("certificate", "client_ca_file", "crl_file"):
        assert f"warning: listeners[0].tls.{key}" in done.stderr


def test_a_broker_says_at_the_start_what_is_over_and_what_ends_soon(
    start_broker, authority, tmp_path
):
    soon = Authority(tmp_path / "soon", valid_days=3)
    lists = soon.write_list(tmp_path / "lists", days=-1)
    broker = start_broker(
        environment=tls_environment(
            authority.issue("here"), client_certificates="required",
            client_ca_file=soon.certificate, crl_file=lists))
    assert str(lists) in broker.log.await_match("ERROR.*Revocation list is over").string
    line = broker.log.await_match("WARNING.*Authority of clients' certificates ends soon").string
    assert "days_left=" in line and str(soon.certificate) in line
