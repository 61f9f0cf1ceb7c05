"""Configuration: file, environment, flags, and its errors."""

import subprocess

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.broker import REPOSITORY, Hermesd, inherited_environment
from harness.waiting import PATIENCE

pytestmark = pytest.mark.hermesd("hermesd's configuration")


def refuse(*arguments, environment=None):
    """Starts hermesd with an invalid configuration; returns its errors."""
    done = subprocess.run(
        [str(Hermesd.executable()), *arguments], env=environment or {}, capture_output=True,
        timeout=PATIENCE, check=False,
    )
    assert done.returncode not in (0, None), done.stderr.decode()
    return done.stderr.decode()


def test_all_errors_at_once_with_their_lines(tmp_path):
    file = tmp_path / "hermes.yaml"
    file.write_text(
        "listeners:\n"
        "  - port: 70000\n"
        "    adress: 127.0.0.1\n"
        "limits:\n"
        "  max_in_flight: many\n"
        "  connect_timeout: 10\n"
        "colour: blue\n"
    )
    errors = refuse(
        "--config", str(file), "--max-packet", "0", "--data-directory", str(tmp_path / "data"),
        environment={"HERMES_LOGGING_LEVEL": "loud"},
    )
    for expected in (
        f"{file}:2", "70000", f"{file}:3", "adress", "address", f"{file}:5", "max_in_flight",
        f"{file}:6", "connect_timeout", f"{file}:7", "colour", "--max-packet",
        "HERMES_LOGGING_LEVEL", "loud",
    ):
        assert expected in errors, f"{expected} is not in:\n{errors}"
    assert not (tmp_path / "data").exists(), "nothing is touched before all is valid"


def test_config_check_says_the_same(tmp_path):
    good = hermesctl("config", "check", str(REPOSITORY / "Config/hermes.yaml"))
    assert good.code == 0, good
    file = tmp_path / "hermes.yaml"
    file.write_text("limits:\n  max_in_flight: 0\n  queue: 3\n")
    bad = hermesctl("config", "check", str(file))
    assert bad.code != 0
    text = bad.output + bad.errors
    assert f"{file}:2" in text and f"{file}:3" in text


APNS = "key_id: ABCDE12345, team_id: ABCDE12345"


@pytest.mark.parametrize(("line", "key"), [
    ("password_file: {}", "password_file"),
    ("acl_file: {}", "acl_file"),
    ("admin: {{tokens_file: {}}}", "admin.tokens_file"),
    ("admin: {{tls: {{certificate: {0}, key: {0}}}}}", "admin.tls.certificate"),
    ("listeners: [{{port: 0, tls: {{certificate: {0}, key: {0}}}}}]", "listeners[0].tls.certificate"),
    ("auth: {{jwt: {{key_file: {}}}}}", "auth.jwt.key_file"),
    ("auth: {{jwt: {{jwks_file: {}}}}}", "auth.jwt.jwks_file"),
    ("auth: {{jwt: {{jwks_url: 'https://127.0.0.1/', ca_file: {}}}}}", "auth.jwt.ca_file"),
    ("auth: {{http: {{url: 'https://127.0.0.1/', ca_file: {}}}}}", "auth.http.ca_file"),
    ("auth: {{http: {{url: 'http://127.0.0.1/', token_file: {}}}}}", "auth.http.token_file"),
    ("webhook: {{url: 'http://127.0.0.1/', secret_file: {}}}", "webhook.secret_file"),
    ("wakes: {{webhook: {{url: 'http://127.0.0.1/', secret_file: {}}}}}",
     "wakes.webhook.secret_file"),
    (f"wakes: {{{{apns: {{{{key_file: {{}}, {APNS}}}}}}}}}", "wakes.apns"),
    ("data_directory: {}/no/such", "data_directory"),
])
def test_a_mistake_in_a_named_file_has_the_line_that_names_it(line, key, tmp_path):
    named = tmp_path / "named"
    named.write_bytes(b"\0 is in no file that the broker reads\n" * 2)
    named.chmod(0o600)
    file = tmp_path / "hermes.yaml"
    file.write_text(f"logging: {{level: info}}\n{line.format(named)}\n")
    place = f"{file}:2: {key}: "
    told = {
        "hermesd": refuse(
            "--config", str(file), "--admin-port", "0", "--port", "0",
            *(() if key == "data_directory" else ("--data-directory", str(tmp_path / "data")))),
        "hermesctl": hermesctl("config", "check", str(file)).errors.replace("hermesctl: ", "")}
    for who, errors in told.items():
        lines = [each for each in errors.splitlines() if str(named) in each]
        assert any(each.startswith(place) for each in lines), f"{who}: {errors}"
        # Those of a certificate's key are in it too.
        assert all(each.startswith(f"{file}:2: ") for each in lines), f"{who}: {errors}"


def test_a_refused_reload_has_the_line_that_names_the_file(hermesd, tmp_path):
    users, file = tmp_path / "users", tmp_path / "hermes.yaml"
    users.write_text("")
    users.chmod(0o600)
    file.write_text(f"admin: {{port: 0}}\npassword_file: {users}\n")
    broker = hermesd(arguments=("--config", str(file)))
    users.write_text("no hash\n")
    place = f"{file}:2: password_file: {users}:1: "
    refused = hermesctl("config", "reload", broker=broker)
    assert refused.code != 0 and place in refused.errors, refused
    broker.log.await_match(f"Unusable password file.*{place}")


def test_what_is_wrong_with_the_files_is_said_at_once_and_nothing_is_made(tmp_path):
    """With the code that a service manager does not start again after."""
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    users, acl, tokens = tmp_path / "users", tmp_path / "acl", data / "tokens"
    for file in (users, acl, tokens):
        file.write_text("nonsense\n")
        file.chmod(0o600)
    config = tmp_path / "hermes.yaml"
    config.write_text(
        f"data_directory: {data}\npassword_file: {users}\nacl_file: {acl}\n"
        f"admin: {{tls: {{certificate: {tmp_path}/none.pem, key: {tmp_path}/none.key}}}}\n")
    done = subprocess.run(
        [str(Hermesd.executable()), "--config", str(config)],
        env=inherited_environment() | {"HERMES_ADMIN_TOKEN": "short"}, capture_output=True,
        text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 78, done.stderr
    found = [f"{users}:1: ", f"{acl}:1: ", f"{tokens}:1: ", "admin.tls.certificate: ",
             "admin.tls.key: ", "chmod 700 "]
    for expected in [*found, "HERMES_ADMIN_TOKEN: "]:
        assert expected in done.stderr, f"{expected} is not in:\n{done.stderr}"
    assert [file.name for file in data.iterdir()] == ["tokens"]

    checked = hermesctl("config", "check", str(config))
    assert checked.code == 2
    for expected in found:
        assert expected in checked.errors, f"{expected} is not in:\n{checked.errors}"


def test_a_file_in_place_of_the_data_directory_is_one_mistake(tmp_path):
    file = tmp_path / "data"
    file.touch()
    done = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", "0", "--data-directory", str(file)],
        env=inherited_environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 78, done.stderr
    assert f"{file} is not a folder" in done.stderr
    assert f"{file}/" not in done.stderr


def test_a_data_directory_whose_disk_is_not_there_may_come(tmp_path):
    link = tmp_path / "data"
    link.symlink_to(tmp_path / "none")
    done = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", "0", "--data-directory", str(link)],
        env=inherited_environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    assert f"{link} is a link to a folder that is not there" in done.stderr


def test_what_may_pass_by_itself_is_no_mistake(start_broker, tmp_path):
    """Code 1, after which a service manager tries again."""
    done = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", "0", "--data-directory",
         str(tmp_path / "no" / "such")], env={}, capture_output=True, timeout=PATIENCE,
        check=False)
    assert done.returncode == 1, done.stderr.decode()


def test_a_missing_file(tmp_path):
    errors = refuse("--config", str(tmp_path / "absent.yaml"))
    assert str(tmp_path / "absent.yaml") in errors


def test_a_missing_password_file(tmp_path):
    errors = refuse(
        "--port", "0", "--admin-port", "0", "--data-directory", str(tmp_path / "data"),
        "--password-file", str(tmp_path / "absent"),
    )
    assert str(tmp_path / "absent") in errors


def test_an_open_listener_needs_users_or_an_explicit_word(tmp_path):
    """No listener is opened to the network by accident."""
    errors = refuse(
        "--port", "0", "--admin-port", "0", "--data-directory", str(tmp_path / "data"),
        environment={"HERMES_LISTENERS_0_ADDRESS": "0.0.0.0"},
    )
    assert "allow_anonymous" in errors or "--allow-anonymous" in errors, errors


def test_the_sample_starts_and_flags_override_it(start_broker):
    broker = start_broker(arguments=("--config", str(REPOSITORY / "Config/hermes.yaml")))
    assert broker.port != 1883
    assert AdminAPI(broker).status()["listeners"] == ["{}:{}".format(*broker.address)]


@pytest.mark.parametrize(
    ("flags", "environment", "window"),
    [
        ((), {}, 1),
        ((), {"HERMES_LIMITS_MAX_IN_FLIGHT": "2"}, 2),
        (("--max-in-flight", "3"), {"HERMES_LIMITS_MAX_IN_FLIGHT": "2"}, 3),
    ],
)
def test_flag_before_environment_before_file(
    flags, environment, window, start_broker, client, names, tmp_path
):
    """The in-flight window tells which of the three has won."""
    file = tmp_path / "hermes.yaml"
    file.write_text("limits:\n  max_in_flight: 1\n")
    broker = start_broker(environment=environment, arguments=("--config", str(file), *flags))
    phone, office = client("phone", broker), client("office", broker)
    phone.subscribe((names.topic(), 1))
    for _ in range(5):
        office.publish(names.topic(), b"x", qos=1)
    assert len(phone.messages_so_far()) == window
