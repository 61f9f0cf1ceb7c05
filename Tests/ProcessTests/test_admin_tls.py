"""The HTTP API over TLS: trusted certificates, and messages about rejected ones."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import time

import pytest

from harness.admin import CommandResult, hermesctl
from harness.broker import ADMIN_TOKEN, Hermesd, Settings
from harness.certificates import Authority, Certificate, self_signed
from harness.waiting import PATIENCE

pytestmark = pytest.mark.hermesd("the HTTP API")

UNREACHABLE = 3
CANNOT_TRUST = 60
"""curl's exit code for a certificate that does not pass."""


def https(pair: Certificate, **keys: object) -> dict[str, dict[str, str]]:
    """Settings of a broker whose HTTP API speaks TLS."""
    variables = {"certificate": pair.certificate, "key": pair.key, **keys}
    return {"environment": {
        f"HERMES_ADMIN_TLS_{name.upper()}": str(value) for name, value in variables.items()}}


def url(broker: Hermesd, host: str = "127.0.0.1") -> str:
    return f"https://{host}:{broker.admin_address[1]}"


def ask(
    broker: Hermesd, *options: str, host: str = "127.0.0.1"
) -> subprocess.CompletedProcess[str]:
    """curl's `GET /v1/status`, the status code at the end of its output."""
    return subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", f"{PATIENCE:g}", *options,
         "-H", f"Authorization: Bearer {ADMIN_TOKEN}", "--write-out", "\n%{http_code}",
         f"{url(broker, host)}/v1/status"],
        capture_output=True, text=True, check=False, timeout=PATIENCE + 5)


def control(broker: Hermesd, *options: str, host: str = "127.0.0.1") -> CommandResult:
    return hermesctl("status", "--json", "--url", url(broker, host), *options)


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path / "authority")


def trusting(authority: Authority) -> tuple[str, str]:
    return "--ca-file", str(authority.certificate)


def test_curl_and_hermesctl_speak_https(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin")))
    broker.log.await_match(r"Admin API ready.*admin\.tls=on")
    answer = ask(broker, "--cacert", str(authority.certificate))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.endswith("\n200")
    for host in ("127.0.0.1", "localhost"):
        result = control(broker, *trusting(authority), host=host)
        assert result.code == 0, result.errors
        assert "version" in result.json and result.errors == ""


@pytest.mark.parametrize("kind", ["RSA", "P-384", "P-521", "ed25519"])
def test_every_kind_of_key_serves_curl_and_hermesctl(kind, start_broker, authority):
    """As the broker's, and as the caller's."""
    keys = {"rsa": True} if kind == "RSA" else {"key_kind": kind}
    ours = authority.issue("admin", **keys)
    mine = authority.issue("ops", names=None, **keys)
    broker = start_broker(**https(ours, client_ca_file=authority.certificate))
    answer = ask(
        broker, "--cacert", str(authority.certificate), "--cert", str(mine.certificate), "--key",
        str(mine.key))
    assert answer.returncode == 0, answer.stderr
    result = control(
        broker, *trusting(authority), "--client-certificate", str(mine.certificate),
        "--client-key", str(mine.key))
    assert result.code == 0, result.errors


def test_the_unix_socket_stays_plain(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin")))
    result = hermesctl("status", "--socket", str(broker.unix_socket), token=None)
    assert result.code == 0, result.errors


@pytest.mark.parametrize(
    ("kind", "curl_says", "we_say"),
    [
        ("expired", "certificate has expired",
         r"cannot trust the broker: the certificate of https://127.0.0.1:PORT expired at 20"),
        ("not yet valid", "certificate is not yet valid", r"is not valid before 20"),
        ("wrong host", "no alternative certificate subject name matches",
         r'is for "broker.example", 192.0.2.7, and not for "127.0.0.1". Write one of its names in --url'),
        ("self-signed", "self-signed certificate",
         r"is self-signed: nobody vouches for it. If it is the broker's, copy the file admin.tls.certificate"),
        ("unknown authority", "unable to get local issuer certificate",
         r'was issued by "Test authority", which is not trusted here. Name that authority\'s certificate with --ca-file'),
    ],
)
def test_a_certificate_that_does_not_pass(
    kind, curl_says, we_say, start_broker, authority, tmp_path
):
    trusted = authority
    if kind == "expired":
        pair = authority.issue("admin", valid_from_days=-20, valid_until_days=-1)
    elif kind == "not yet valid":
        pair = authority.issue("admin", valid_from_days=2, valid_until_days=20)
    elif kind == "wrong host":
        pair = authority.issue("admin", names="DNS:broker.example,IP:192.0.2.7")
    elif kind == "self-signed":
        pair = self_signed(tmp_path / "self")
    else:
        pair = authority.issue("admin")
        trusted = Authority(tmp_path / "other", "Another authority")
    broker = start_broker(**https(pair))

    answer = ask(broker, "--cacert", str(trusted.certificate))
    assert answer.returncode == CANNOT_TRUST, answer.stderr
    assert curl_says in answer.stderr

    result = control(broker, *trusting(trusted))
    assert result.code == UNREACHABLE
    assert re.search(we_say.replace("PORT", str(broker.admin_address[1])), result.errors), result.errors
    assert result.output == ""
    # Neither has sent its token to anyone.
    assert "Admin request answered" not in broker.log.text


def test_a_self_signed_certificate_is_good_when_named(start_broker, tmp_path):
    pair = self_signed(tmp_path / "self")
    broker = start_broker(**https(pair))
    result = control(broker, "--ca-file", str(pair.certificate))
    assert result.code == 0, result.errors
    assert ask(broker, "--cacert", str(pair.certificate)).returncode == 0


def test_without_a_ca_file_this_system_decides(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin")))
    assert ask(broker).returncode == CANNOT_TRUST
    result = control(broker)
    assert result.code == UNREACHABLE and "--ca-file" in result.errors


def test_plain_http_on_the_port_is_answered_and_named(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin")))
    with socket.create_connection(broker.admin_address, timeout=PATIENCE) as plain:
        plain.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while chunk := plain.recv(65_536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "https://" in json.loads(body)["fix"]

    result = hermesctl(
        "status", "--url", "http://{}:{}".format(*broker.admin_address))
    assert result.code == 1 and "speaks HTTPS" in result.errors


def test_https_to_a_plain_port_says_so(broker):
    result = control(broker)
    assert result.code == UNREACHABLE
    assert "does not speak TLS. Write http:// in --url" in result.errors


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_and_weak_ciphers_are_refused(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin")))

    def handshake(**limits) -> str | None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(authority.certificate)
        # Old versions are refused by the library here, too, unless it is told to be careless.
        context.set_ciphers(limits.pop("ciphers", "DEFAULT") + ":@SECLEVEL=0")
        for name, value in limits.items():
            setattr(context, name, value)
        with socket.create_connection(broker.admin_address, timeout=PATIENCE) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                return secure.version()

    assert handshake() == "TLSv1.3"
    assert handshake(maximum_version=ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    for limits in (
        {"minimum_version": ssl.TLSVersion.TLSv1, "maximum_version": ssl.TLSVersion.TLSv1_1},
        {"maximum_version": ssl.TLSVersion.TLSv1_2, "ciphers": "ECDHE-ECDSA-AES128-SHA"},
    ):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake(**limits)
    newest = start_broker(**https(authority.issue("newest"), minimum_version="1.3"))
    refused = ask(newest, "--cacert", str(authority.certificate), "--tls-max", "1.2")
    assert refused.returncode == 35, refused.stderr
    assert ask(newest, "--cacert", str(authority.certificate)).returncode == 0


def test_callers_may_have_to_show_a_certificate(start_broker, authority, tmp_path):
    clients = Authority(tmp_path / "clients", "Clients")
    broker = start_broker(
        **https(authority.issue("admin"), client_ca_file=clients.certificate))
    mine, foreign = clients.issue("ops", names=None), authority.issue("stranger", names=None)
    trust = trusting(authority)

    nobody = control(broker, *trust)
    assert nobody.code == UNREACHABLE and "--client-certificate" in nobody.errors
    stranger = control(
        broker, *trust, "--client-certificate", str(foreign.certificate), "--client-key",
        str(foreign.key))
    assert stranger.code == UNREACHABLE and "--client-certificate" in stranger.errors
    known = control(
        broker, *trust, "--client-certificate", str(mine.certificate), "--client-key",
        str(mine.key))
    assert known.code == 0, known.errors
    broker.log.await_match(r"NOTICE Admin TLS handshake failed.*admin\.reason=peer_did_not_return")


def test_certificates_are_read_again_and_nobody_is_dropped(start_broker, authority, tmp_path):
    pair = authority.issue("admin")
    broker = start_broker(**https(pair))
    context = ssl.create_default_context(cafile=str(authority.certificate))

    def serial() -> str:
        with socket.create_connection(broker.admin_address, timeout=PATIENCE) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                return secure.getpeercert()["serialNumber"]

    with socket.create_connection(broker.admin_address, timeout=PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as kept:
            first = serial()
            # By the next connection, without a signal.
            pair.replace(authority.issue("second"))
            second = serial()
            assert second != first

            # A bad file leaves the certificate as it is, and so does SIGHUP with it.
            good = pair.certificate.read_bytes()
            pair.certificate.write_bytes(b"nonsense")
            assert serial() == second
            broker.log.await_match(r"ERROR Admin certificate unusable.*holds no certificate in PEM")
            broker.process.send_signal(signal.SIGHUP)
            broker.log.await_match(r"ERROR Unusable certificate of the HTTP API")
            broker.log.await_match(r"ERROR Reload refused")
            assert serial() == second
            pair.certificate.write_bytes(good)
            broker.process.send_signal(signal.SIGHUP)
            broker.log.await_match(r"NOTICE Configuration read again")
            assert serial() == second

            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert kept.recv(4_096).startswith(b"HTTP/1.1 200")


def expect_refusal(settings: dict[str, dict[str, str]], *sentences: str) -> None:
    """The broker does not start, and says why."""
    broker = Hermesd(Settings(**settings))
    try:
        with pytest.raises(AssertionError, match="the broker ended"):
            broker.start()
        for sentence in sentences:
            assert sentence in broker.log.text, broker.log.text
    finally:
        broker.remove_files()


def test_files_that_cannot_be_used_are_named_all_at_once(authority, tmp_path):
    pair, other = authority.issue("admin"), authority.issue("other")
    missing = tmp_path / "missing.crt"
    pair.key.chmod(0o644)
    expect_refusal(
        https(Certificate(missing, pair.key)),
        f'admin.tls.certificate: there is no file "{missing}". Correct the path',
        f'admin.tls.key: "{pair.key}" can be read by others, or changed by its group (mode 0644). '
        f"Run: chmod 600 '{pair.key}'",
    )
    expect_refusal(
        https(Certificate(pair.certificate, other.key)),
        f'admin.tls.key: "{other.key}" is not the key of the certificate in "{pair.certificate}"',
    )
    expect_refusal(
        https(Certificate(other.key, pair.certificate)),
        f'admin.tls.certificate: "{other.key}" holds no certificate in PEM',
    )
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "ec", "-aes128", "-passout", "pass:x", "-in", str(other.key), "-out",
         str(locked)], check=True, capture_output=True)
    locked.chmod(0o600)
    expect_refusal(https(Certificate(other.certificate, locked)), "without a passphrase")


def test_a_certificate_near_its_end_is_warned_of(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin", valid_until_days=5)))
    broker.log.await_match(r"WARNING Admin certificate ends soon.*days_left=[45]\b")
    metrics = control_metrics(broker, authority)
    (line,) = [one for one in metrics.splitlines() if one.startswith("hermes_tls_certificate_expiry_timestamp_seconds{")]
    assert 'listener="admin"' in line and f'file="{authority.directory}/admin.crt"' in line
    assert 3.9 < (float(line.split()[-1]) - time.time()) / 86_400 < 5.1


def control_metrics(broker: Hermesd, authority: Authority) -> str:
    """`GET /metrics` over https."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", f"{PATIENCE:g}", "--cacert",
         str(authority.certificate), "-H", f"Authorization: Bearer {ADMIN_TOKEN}",
         f"{url(broker)}/metrics"],
        capture_output=True, text=True, check=True, timeout=PATIENCE + 5)
    return done.stdout


def test_slow_and_silent_handshakes_are_ended(start_broker, authority):
    """Bytes before the handshake's end have a deadline; meanwhile others are served."""
    broker = start_broker(**https(authority.issue("admin")))
    begin = time.monotonic()
    with socket.create_connection(broker.admin_address, timeout=PATIENCE) as slow:
        slow.sendall(b"\x16\x03\x01\x02\x00")
        assert ask(broker, "--cacert", str(authority.certificate)).returncode == 0
        slow.settimeout(20)
        assert slow.recv(1) == b""
    assert 8 < time.monotonic() - begin < 18
    broker.log.await_match(r"NOTICE Admin TLS handshake failed.*admin\.reason=timeout")


def send(broker: Hermesd, bytes_: bytes) -> None:
    """Sends it, and waits for the end of the connection."""
    with socket.create_connection(broker.admin_address, timeout=PATIENCE) as plain:
        plain.sendall(bytes_)
        plain.shutdown(socket.SHUT_WR)
        try:
            while plain.recv(4_096):
                pass
        except ConnectionResetError:
            pass


DISTRUST = 'hint="the client may not trust admin.tls.certificate"'


@pytest.mark.parametrize(
    ("provoke", "reason", "hint"),
    [
        (lambda broker: send(broker, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "plain_http",
         'hint="this port speaks HTTPS; write https:// '),
        (lambda broker: send(broker, b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"), "plain_mqtt",
         'hint="this port speaks HTTPS; MQTT has ports of its own'),
        (lambda broker: send(broker, b"\x00" * 600), "not_tls", ""),
        # The alert of OpenSSL clients that do not know the authority.
        (lambda broker: ask(broker), "bad_packet_length", DISTRUST),
        (lambda broker: ask(broker, "--tls-max", "1.2"), "tlsv1_alert_unknown_ca", DISTRUST),
    ],
    ids=["plain HTTP", "plain MQTT", "neither", "distrust, TLS 1.3", "distrust, TLS 1.2"],
)
def test_the_log_says_why_a_handshake_failed(provoke, reason, hint, start_broker, authority):
    """The log names peer and advice; connections without a handshake are not logged."""
    broker = start_broker(**https(authority.issue("admin")))
    send(broker, b"")
    broker.log.await_match(
        r"DEBUG Admin TLS handshake failed.* admin\.peer=127\.0\.0\.1:\d+ admin\.reason=closed")
    provoke(broker)
    broker.log.await_match(
        r"NOTICE Admin TLS handshake failed.* admin\.peer=127\.0\.0\.1:\d+ "
        rf"admin\.reason={reason}\b.*{re.escape(hint)}")
    notices = [line for line in broker.log.lines if "NOTICE Admin TLS handshake" in line]
    assert len(notices) == 1, "one connection, one line"


def test_garbage_on_the_port_harms_nobody(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin")))
    for bytes_ in (b"\x00" * 600, b"\x16\x03\x01\xff\xff" + b"\xff" * 2_000, b"\x10\x0c\x00\x04MQTT",
                   b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", b"{}\r\n"):
        with socket.create_connection(broker.admin_address, timeout=PATIENCE) as plain:
            plain.sendall(bytes_)
            plain.shutdown(socket.SHUT_WR)
            while plain.recv(4_096):
                pass
    assert ask(broker, "--cacert", str(authority.certificate)).returncode == 0


def test_a_stop_does_not_wait_for_idle_connections(start_broker, authority):
    broker = start_broker(**https(authority.issue("admin")))
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with socket.create_connection(broker.admin_address, timeout=PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname="localhost"):
            begin = time.monotonic()
            assert broker.stop() == 0
            assert time.monotonic() - begin < 4


def test_nothing_is_spoken_in_the_clear_beyond_loopback(start_broker, authority):
    expect_refusal(
        {"environment": {"HERMES_ADMIN_ADDRESS": "0.0.0.0"}},
        "HERMES_ADMIN_ADDRESS: admin.address: the HTTP API would be spoken without TLS on an "
        "address that other machines reach",
        "admin.allow_plain: true",
    )
    pair = authority.issue("admin")
    secure = https(pair)["environment"] | {"HERMES_ADMIN_ADDRESS": "0.0.0.0"}
    broker = start_broker(environment=secure)
    assert control(broker, *trusting(authority)).code == 0
    allowed = {"HERMES_ADMIN_ADDRESS": "0.0.0.0", "HERMES_ADMIN_ALLOW_PLAIN": "true"}
    broker = start_broker(environment=allowed)
    broker.log.await_match(r"WARNING The HTTP API is spoken without TLS")
