"""Certificates that pass, that do not, that change: with mosquitto's and paho's clients."""

from __future__ import annotations

import resource
import signal
import ssl
import subprocess
import time

import pytest

from harness.admin import AdminAPI
from harness.certificates import Authority, Certificate, self_signed
from harness.command_line_clients import mosquitto_pub
from harness.raw_client import RawClient
from harness.tls import TLSClient, client_context, tls_environment
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("its TLS settings are its own")

RELOAD_PATIENCE = 15.0
"""The broker looks at its files every 5 s."""


@pytest.fixture
def own_authority(tmp_path):
    return Authority(tmp_path / "own")


def metric(broker, name: str) -> float:
    return AdminAPI(broker).metric(name)


def refused_mosquitto(broker, *arguments: str) -> str:
    """The error of mosquitto_pub when it cannot connect."""
    done = subprocess.run(
        ["mosquitto_pub", "-h", broker.address[0], "-p", str(broker.port), "-t", "a", "-m", "b",
         "-d", *arguments],
        capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0, f"{arguments} got in"
    return done.stdout + done.stderr


def refused_paho(paho_client, broker, context: ssl.SSLContext) -> str:
    with pytest.raises((ssl.SSLError, ConnectionError)) as refusal:
        paho_client("refused", to=broker, context=context)
    return str(refusal.value)


def days_left(broker, kind: str) -> float:
    return (metric(broker, f"hermes_tls_{kind}_expiry_timestamp_seconds") - time.time()) / 86_400


def assert_refused_by_clients(broker, paho_client, authority_file, reason: str) -> None:
    """Both clients refuse; the broker logs it once, with advice, and counts it."""
    start = len(broker.log.lines)
    assert "certificate verify failed" in refused_mosquitto(
        broker, "--cafile", str(authority_file))
    line = broker.log.await_match("TLS handshake failed", start=start).string
    assert "reason=refused_by_client" in line and reason in line, line
    context = client_context(authority_file)
    assert "CERTIFICATE_VERIFY_FAILED" in refused_paho(paho_client, broker, context)
    eventually(
        lambda: metric(broker, 'hermes_tls_handshake_failures_total{reason="refused_by_client"}')
        >= 2, "both refusals to be counted")


# --- the broker's certificate ---------------------------------------------------------------


def test_an_expired_certificate(start_broker, authority, paho_client):
    pair = authority.issue("expired", valid_from_days=-10, valid_until_days=-1)
    broker = start_broker(environment=tls_environment(pair))

    line = broker.log.await_match("Certificate is over").string
    assert str(pair.certificate) in line and "renew it" in line
    assert -1.1 < days_left(broker, "certificate") < -0.9
    assert_refused_by_clients(broker, paho_client, authority.certificate, "certificate expired")


def test_a_certificate_that_ends_soon_is_said(start_broker, authority):
    pair = authority.issue("soon", valid_until_days=5)
    broker = start_broker(environment=tls_environment(pair))
    line = broker.log.await_match("Certificate ends soon").string
    assert "WARNING" in line and ("days_left=4" in line or "days_left=5" in line)
    assert 4.9 < days_left(broker, "certificate") < 5.1


def test_a_certificate_for_another_host(start_broker, authority, paho_client):
    pair = authority.issue("other", names="DNS:other.example")
    broker = start_broker(environment=tls_environment(pair))

    assert "host name verification failed" in refused_mosquitto(
        broker, "--cafile", str(authority.certificate))
    refusal = refused_paho(paho_client, broker, client_context(authority.certificate))
    assert "Hostname mismatch" in refusal
    # A client that does not check connects: the check is the client's.
    mosquitto_pub(
        broker, "--cafile", str(authority.certificate), "--insecure", "-t", "a", "-m", "b")


def test_a_self_signed_certificate(start_broker, authority, paho_client, tmp_path):
    pair = self_signed(tmp_path / "self")
    broker = start_broker(environment=tls_environment(pair))

    assert_refused_by_clients(broker, paho_client, authority.certificate, "alert")
    # A client with this authority connects.
    mosquitto_pub(broker, "--cafile", str(pair.certificate), "-t", "a", "-m", "b", "-q", "1")
    paho_client("trusting", to=broker, context=client_context(pair.certificate))


def test_a_certificate_for_each_name(start_broker, authority):
    first = authority.issue("first", names="DNS:first.example")
    second = authority.issue("second", names="DNS:second.example,DNS:*.wild.example", rsa=True)
    broker = start_broker(environment=tls_environment(first, second))
    context = client_context(authority.certificate)
    for name in ("first.example", "second.example", "a.wild.example"):
        client = TLSClient(broker, context, server_name=name)
        assert client.connect("named").return_code == 0
        client.disconnect()
    # A name without a certificate gets the first one, which the client rejects.
    with pytest.raises(ssl.SSLCertVerificationError):
        TLSClient(broker, context, server_name="nobody.example")


def test_sessions_are_resumed(start_broker, authority):
    broker = start_broker(environment=tls_environment(authority.issue("resumed")))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = client_context(authority.certificate, version=version)
        session = None
        # A phone resumes all day: each time with the ticket of the time before.
        for round_number in range(4):
            client = TLSClient(broker, context, session=session)
            assert client.socket.session_reused == (round_number > 0)
            assert client.connect("phone").return_code == 0
            session = client.socket.session
            client.disconnect()
    assert metric(broker, 'hermes_tls_handshakes_total{kind="full"}') == 2
    assert metric(broker, 'hermes_tls_handshakes_total{kind="resumed"}') == 6
    for version in ("1.2", "1.3"):
        assert metric(broker, f'hermes_tls_versions_total{{version="{version}"}}') == 4


# --- change ---------------------------------------------------------------------------------


def serial(broker, context) -> str:
    client = TLSClient(broker, context)
    try:
        return client.socket.getpeercert()["serialNumber"]
    finally:
        client.close()


@pytest.mark.parametrize("by_signal", [True, False], ids=["SIGHUP", "by itself"])
def test_a_renewed_certificate_is_served_and_nobody_is_dropped(
    start_broker, own_authority, by_signal
):
    pair = own_authority.issue("localhost")
    broker = start_broker(environment=tls_environment(pair))
    context = client_context(own_authority.certificate)
    client = TLSClient(broker, context)
    client.connect("held")
    client.subscribe(("a", 1))
    session = client.socket.session
    former = serial(broker, context)

    pair.replace(own_authority.issue("renewed"))
    start = len(broker.log.lines)
    if by_signal:
        broker.process.send_signal(signal.SIGHUP)
        broker.log.await_match("Configuration read again", start=start)
    else:
        broker.log.await_match(
            "TLS files have changed, new connections use them", start=start,
            within=RELOAD_PATIENCE)

    eventually(lambda: serial(broker, context) != former, "the new certificate")
    # Connected clients stay, and sessions can be resumed.
    client.publish("a", b"still here", qos=1)
    assert client.take_message().payload == b"still here"
    resumed = TLSClient(broker, context, session=session)
    assert resumed.socket.session_reused
    for one in (client, resumed):
        one.close()


@pytest.mark.parametrize("by_signal", [True, False], ids=["SIGHUP", "by itself"])
def test_a_bad_file_leaves_the_old_one(start_broker, own_authority, by_signal):
    pair = own_authority.issue("localhost")
    broker = start_broker(environment=tls_environment(pair))
    context = client_context(own_authority.certificate)
    former = serial(broker, context)
    good = pair.certificate.read_bytes()

    pair.certificate.write_text("-----BEGIN CERTIFICATE-----\nnothing\n")
    start = len(broker.log.lines)
    if by_signal:
        broker.process.send_signal(signal.SIGHUP)
        line = broker.log.await_match("Unusable TLS files", start=start).string
        broker.log.await_match("Reload refused, everything stays as it was", start=start)
    else:
        line = broker.log.await_match(
            "TLS files unusable, those read before stay in use", start=start,
            within=RELOAD_PATIENCE).string
    assert "listeners[0].tls.certificate" in line and str(pair.certificate) in line
    assert serial(broker, context) == former

    pair.certificate.write_bytes(good)
    start = len(broker.log.lines)
    broker.process.send_signal(signal.SIGHUP)
    broker.log.await_match("Configuration read again", start=start)
    assert serial(broker, context) == former


def test_files_that_the_system_could_not_open_are_read_a_second_later(
    start_broker, own_authority
):
    pair = own_authority.issue("localhost")
    broker = start_broker(environment=tls_environment(pair))
    context = client_context(own_authority.certificate)
    former = serial(broker, context)
    pid = broker.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    start = len(broker.log.lines)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        pair.replace(own_authority.issue("renewed"))
        line = broker.log.await_match(
            "TLS files unusable, those read before stay in use", start=start,
            within=RELOAD_PATIENCE).string
        assert "Too many open files" in line and "ulimit -n" in line
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    # The files do not change any more.
    broker.log.await_match(
        "TLS files have changed, new connections use them", start=start, within=RELOAD_PATIENCE)
    eventually(lambda: serial(broker, context) != former, "the new certificate")


# --- clients' certificates ------------------------------------------------------------------


@pytest.fixture
def strict(start_broker, own_authority):
    """A broker whose clients need a certificate, with a revocation list."""
    revoked = own_authority.write_list(own_authority.directory / "revoked.crl")
    return start_broker(
        environment=tls_environment(
            own_authority.issue("localhost"), client_certificates="required",
            client_ca_file=own_authority.certificate, crl_file=revoked,
            user_name_from_certificate="true"))


def certificate_options(authority, identity) -> tuple[str, ...]:
    return ("--cafile", str(authority.certificate), "--cert", str(identity.certificate),
            "--key", str(identity.key))


def test_the_common_name_is_the_user_name(strict, own_authority, paho_client):
    identity = own_authority.issue("müller", names=None)
    context = client_context(own_authority.certificate, certificate=identity)
    # A name in its CONNECT does not count, whatever it says.
    paho_client("office", to=strict, context=context, user_name="root", password="x")
    shown = AdminAPI(strict).get("/v1/clients/office")
    assert shown["user_name"] == "müller"


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_certificate_revoked_by_a_reloaded_list(
    strict, own_authority, paho_client, mosquitto_sub, version
):
    lost, kept = (own_authority.issue(name, names=None) for name in ("lost phone", "phone"))
    options = certificate_options(own_authority, lost)
    context = client_context(
        own_authority.certificate, certificate=lost, version=ssl.TLSVersion[version])
    mosquitto_pub(strict, *options, "-t", "a", "-m", "b", "-q", "1")
    live = TLSClient(strict, context)
    live.connect("live")
    session = live.socket.session
    other = TLSClient(
        strict, client_context(own_authority.certificate, certificate=kept))
    other.connect("other")

    own_authority.revoke(lost)
    own_authority.write_list(own_authority.directory / "revoked.crl")
    start = len(strict.log.lines)
    strict.process.send_signal(signal.SIGHUP)
    strict.log.await_match("Configuration read again", start=start)

    refused_mosquitto(strict, *options)
    line = strict.log.await_match("TLS handshake failed", start=start).string
    assert "reason=certificate " in line and "certificate revoked" in line
    assert 29 < days_left(strict, "revocation_list") < 31
    # Neither with the session that began before.
    for known in (None, session):
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            again = TLSClient(strict, context, session=known)
            again.connect("again")
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        paho_client("lost", to=strict, context=context)
    # The revoked client is closed; others stay.
    assert live.await_closed() == []
    strict.log.await_match(
        "Connection closed, its certificate counts no more.*reason=certificate_revoked", start=start)
    assert metric(
        strict, 'hermes_connections_closed_total{reason="certificate_revoked"}') == 1
    other.ping()
    mosquitto_pub(strict, *certificate_options(own_authority, kept), "-t", "a", "-m", "b")
    other.disconnect()


def test_a_handshake_that_began_before_its_certificate_was_revoked(strict, own_authority):
    lost = own_authority.issue("lost phone", names=None)
    context = client_context(own_authority.certificate, certificate=lost)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    client = RawClient(strict.address)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    client.socket.sendall(outgoing.read())
    while True:
        incoming.write(client.socket.recv(65_536))
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            continue

    # Its last message is still here when the list is read.
    own_authority.revoke(lost)
    own_authority.write_list(own_authority.directory / "revoked.crl")
    start = len(strict.log.lines)
    strict.process.send_signal(signal.SIGHUP)
    strict.log.await_match("Configuration read again", start=start)
    # New files are in use after one more turn of the broker.
    metric(strict, "hermes_tls_connections")

    client.socket.sendall(outgoing.read())
    line = strict.log.await_match("TLS handshake failed", start=start).string
    assert "reason=certificate " in line and "revoked during the handshake" in line
    client.socket.close()


def test_an_authority_between_and_its_revocation(start_broker, own_authority, paho_client, tmp_path):
    """The lists of all authorities above a client count, each of which has to be there."""
    middle = Authority(tmp_path / "middle", "Middle", issuer=own_authority)
    phone = middle.issue("phone", names=None)
    phone.certificate.write_text(
        phone.certificate.read_text() + middle.certificate.read_text())
    lists = own_authority.write_list(own_authority.directory / "revoked.crl", middle)
    broker = start_broker(
        environment=tls_environment(
            own_authority.issue("localhost"), client_certificates="required",
            client_ca_file=own_authority.certificate, crl_file=lists))
    options = certificate_options(own_authority, phone)
    context = client_context(own_authority.certificate, certificate=phone)
    mosquitto_pub(broker, *options, "-t", "a", "-m", "b", "-q", "1")
    paho_client("phone", to=broker, context=context)

    def reload() -> int:
        start = len(broker.log.lines)
        broker.process.send_signal(signal.SIGHUP)
        broker.log.await_match("Configuration read again", start=start)
        return start

    # Without the list of the root, whether the one between is revoked is not known.
    middle.write_list(lists)
    start = reload()
    refused_mosquitto(broker, *options)
    assert "unable to get certificate CRL" in broker.log.await_match(
        "TLS handshake failed", start=start).string

    own_authority.revoke(Certificate(middle.certificate, phone.key))
    own_authority.write_list(lists, middle)
    start = reload()
    refused_mosquitto(broker, *options)
    assert "certificate revoked" in broker.log.await_match(
        "TLS handshake failed", start=start).string
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        paho_client("phone", to=broker, context=context)


def test_who_needs_a_certificate_and_shows_none_or_anothers(
    strict, own_authority, authority, tmp_path
):
    start = len(strict.log.lines)
    refused_mosquitto(strict, "--cafile", str(own_authority.certificate))
    assert "one is required" in strict.log.await_match(
        "TLS handshake failed.*reason=no_certificate", start=start).string

    stranger = authority.issue("stranger", names=None)
    over = own_authority.issue("over", names=None, valid_from_days=-9, valid_until_days=-1)
    for identity in (stranger, over, self_signed(tmp_path / "self", "phone")):
        refused_mosquitto(
            strict, "--cafile", str(own_authority.certificate), "--cert",
            str(identity.certificate), "--key", str(identity.key))
    eventually(
        lambda: metric(
            strict, 'hermes_tls_handshake_failures_total{reason="certificate"}') == 3,
        "three certificates to be refused")


def test_a_common_name_that_cannot_be_a_user_name(strict, own_authority):
    start = len(strict.log.lines)
    identity = own_authority.issue("line\x1b[31mbreak", names=None)
    context = client_context(own_authority.certificate, certificate=identity)
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        TLSClient(strict, context).connect("named")
    line = strict.log.await_match("TLS handshake failed", start=start).string
    assert "reason=certificate_name" in line and "\x1b" not in line


def test_a_certificate_list_that_is_too_large(strict, own_authority, tmp_path):
    identity = own_authority.issue("large", names=None)
    chain = tmp_path / "chain.pem"
    others = "".join(
        own_authority.issue(f"filler {number}", names=",".join(
            f"DNS:{'x' * 50}{index}.example" for index in range(100))).certificate.read_text()
        for number in range(8))
    chain.write_text(identity.certificate.read_text() + others)
    context = client_context(own_authority.certificate)
    context.load_cert_chain(chain, identity.key)
    start = len(strict.log.lines)
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        TLSClient(strict, context).connect("large")
    strict.log.await_match("TLS handshake failed.*reason=too_large", start=start)


def test_nobody_claims_the_name_or_the_session_of_a_certificate(
    start_broker, own_authority, paho_client, tmp_path
):
    """Only certificates prove names here: a user name in CONNECT is ignored."""
    rules = tmp_path / "acl"
    rules.write_text("allow user * both users/%u/#\nallow anonymous both public/#\n")
    broker = start_broker(
        allow_anonymous=True,
        environment={
            **tls_environment(
                own_authority.issue("localhost"), client_certificates="optional",
                client_ca_file=own_authority.certificate, user_name_from_certificate="true"),
            "HERMES_ACL_FILE": str(rules),
        })
    named = client_context(
        own_authority.certificate, certificate=own_authority.issue("anna", names=None))
    nameless = client_context(own_authority.certificate)
    anna = paho_client("phone", to=broker, context=named, clean_session=False)
    assert anna.subscribe(("users/anna/#", 1), ("users/bert/#", 1)) == [1, 0x80]

    impostor = TLSClient(broker, nameless)
    assert impostor.connect("other", user_name="anna", password=b"x").return_code == 0
    assert impostor.subscribe(("users/anna/#", 1), ("public/a", 1)) == (0x80, 1)
    impostor.disconnect()
    thief = TLSClient(broker, nameless)
    assert thief.connect(
        "phone", user_name="anna", password=b"x", clean_session=False).return_code == 5
    anna.publish("users/anna/1", b"mine", qos=1)
    assert anna.take().payload == b"mine"


def test_a_session_of_a_certificates_user_outlives_the_password_file(hermesd, own_authority):
    """Without password file no name is proven, and claiming this one gives no access."""
    environment = tls_environment(
        own_authority.issue("localhost"), client_certificates="optional",
        client_ca_file=own_authority.certificate, user_name_from_certificate="true")
    named = client_context(
        own_authority.certificate, certificate=own_authority.issue("anna", names=None))
    nameless = client_context(own_authority.certificate)
    before = hermesd(users={"backend": "secret"}, environment=environment)
    anna = TLSClient(before, named)
    assert anna.connect("phone", clean_session=False).return_code == 0
    assert anna.subscribe(("orders/#", 1)) == (1,)
    anna.disconnect()
    assert before.stop() == 0

    after = hermesd(data=before.data, allow_anonymous=True, environment=environment)
    thief = TLSClient(after, nameless)
    assert thief.connect(
        "phone", user_name="anna", password=b"x", clean_session=False).return_code == 5
    answer = TLSClient(after, named).connect("phone", clean_session=False)
    assert answer.return_code == 0 and answer.session_present
