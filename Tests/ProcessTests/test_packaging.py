"""Readiness notification, the systemd unit, the image, and the lists that have to agree."""

from __future__ import annotations

import ctypes
import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import wire
from harness.admin import AdminAPI
from harness.broker import REPOSITORY, Hermesd, Settings, inherited_environment
from harness.certificates import Authority
from harness.waiting import PATIENCE

pytestmark = pytest.mark.hermesd("hermesd's own packaging")

UNIT = REPOSITORY / "packaging/systemd/hermes.service"
DOCKERFILE = REPOSITORY / "docker/Dockerfile"
GUIDE = REPOSITORY / "docs/deployment.md"


class ServiceManager:
    """The receiving end of sd_notify(3), at a path or under an abstract name (`@…`)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def receive(self, *, within: float = PATIENCE) -> dict[str, str]:
        """The next message, by variable."""
        message = self.receive_if_any(within=within)
        if message is None:
            raise AssertionError(f"waited {within:g} s for a message to {self.name}")
        return message

    def receive_if_any(self, *, within: float) -> dict[str, str] | None:
        self._socket.settimeout(within or 1e-6)
        try:
            text = self._socket.recv(4_096).decode()
        except TimeoutError:
            return None
        pairs = [line.split("=", 1) for line in text.splitlines()]
        assert all(len(pair) == 2 for pair in pairs), text
        assert len({name for name, _ in pairs}) == len(pairs), text
        return {name: value for name, value in pairs}

    def received(self) -> list[dict[str, str]]:
        """All waiting datagrams."""
        messages = []
        while (message := self.receive_if_any(within=0)) is not None:
            messages.append(message)
        return messages

    def fill(self) -> int:
        """Sends to itself until no message more fits; returns how many did."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for count in range(100_000):
                try:
                    sender.sendto(b"FILLER=1", self._socket.getsockname())
                except BlockingIOError:
                    return count
        raise AssertionError("the queue of a Unix socket has no end")

    def close(self) -> None:
        self._socket.close()


class Service(Hermesd):
    """A broker whose start waits for READY=1, as systemd's does."""

    manager: ServiceManager
    ready: dict[str, str]

    def await_ready(self) -> None:
        # The loop is alive before all is ready, and may say so.
        messages = iter(self.manager.receive, None)
        self.ready = next(message for message in messages if "WATCHDOG" not in message)
        addresses = re.findall(r"([0-9.]+):([0-9]+)", self.ready["STATUS"])
        # A dependent service may connect at once.
        for host, port in addresses:
            socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        super().await_ready()
        assert addresses == [(host, str(port)) for host, port in (self.address, self.admin_address)]


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceManager]:
    names = {"path": str(tmp_path / "notify"), "abstract": f"@hermes-test/{os.getpid()}"}
    one = ServiceManager(names[request.param])
    yield one
    one.close()


@pytest.fixture
def path_manager(tmp_path: Path) -> Iterator[ServiceManager]:
    one = ServiceManager(str(tmp_path / "notify"))
    yield one
    one.close()


StartService = Callable[..., Hermesd]


@pytest.fixture
def start_service() -> Iterator[StartService]:
    """Starts brokers with these variables; with a manager, once that has READY=1."""
    started: list[Hermesd] = []

    def start(manager: ServiceManager | None = None, **variables: str) -> Hermesd:
        if manager is not None:
            variables.setdefault("NOTIFY_SOCKET", manager.name)
        settings = Settings(environment=variables)
        broker = Hermesd(settings) if manager is None else Service(settings)
        if isinstance(broker, Service):
            broker.manager = manager
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        try:
            if broker.is_running:
                assert broker.stop() == 0, broker.log.tail()
        finally:
            broker.remove_files()


# Readiness.


def test_readiness_is_told_once_the_ports_accept(manager, start_service):
    broker = start_service(manager)
    assert broker.ready["READY"] == "1"
    assert set(broker.ready) == {"READY", "STATUS"}
    assert manager.received() == []
    assert "Service manager" not in broker.log.text


def test_the_status_names_few_listeners_and_counts_the_rest(path_manager):
    broker = Hermesd(
        Settings(
            environment={"NOTIFY_SOCKET": path_manager.name},
            arguments=("--port", "0") * 5,
        )
    )
    broker.start()
    try:
        status = path_manager.receive()["STATUS"]
        listeners = AdminAPI(broker).status()["listeners"]
        shown = ", ".join(listeners[:4])
        assert len(listeners) == 6
        assert status == f"MQTT on {shown} and 2 more; admin API on 127.0.0.1:" + str(
            broker.admin_address[1]
        )
    finally:
        assert broker.stop() == 0
        broker.remove_files()


def test_a_start_that_fails_is_never_ready(path_manager, start_service, tmp_path):
    """The MQTT port is free and the admin port is not."""
    other = start_service()
    done = subprocess.run(
        [str(Hermesd.executable()), "--port", "0", "--admin-port", str(other.admin_address[1]),
         "--data-directory", str(tmp_path / "data")],
        env=inherited_environment() | {"NOTIFY_SOCKET": path_manager.name},
        capture_output=True, timeout=PATIENCE, check=False,
    )
    assert done.returncode == 1, done.stderr.decode()
    assert all("READY" not in message for message in path_manager.received())


def test_a_stop_is_told_when_it_begins(manager, start_service, client, raw, names):
    """With the time that it may take: the drain timeouts and a margin."""
    broker = start_service(manager, HERMES_LIMITS_DRAIN_TIMEOUT="2s")
    stalled = raw(broker, receive_buffer=4_096)
    stalled.connect(names.client("stalled"))
    stalled.subscribe((names.topic(), 0))
    publisher = client("pub", broker)
    for _ in range(500):
        publisher.send(wire.publish(names.topic(), b"x" * 16_384))
    publisher.ping()

    broker.process.send_signal(signal.SIGTERM)
    message = manager.receive(within=1)
    assert broker.is_running, "the peer that does not read keeps it for 2 s"
    assert message["STOPPING"] == "1" and message["STATUS"].startswith("Stopping")
    assert int(message["EXTEND_TIMEOUT_USEC"]) > (2 + 5) * 1_000_000
    assert broker.await_exit() == 0
    assert manager.received() == []


def test_a_stop_asks_for_the_time_of_the_configuration_in_force(path_manager, tmp_path):
    file = tmp_path / "hermes.yaml"
    file.write_text("limits: {drain_timeout: 1s}\n")
    broker = Hermesd(Settings(
        arguments=("--config", str(file)), environment={"NOTIFY_SOCKET": path_manager.name}))
    try:
        broker.start()
        assert path_manager.receive()["READY"] == "1"
        file.write_text("limits: {drain_timeout: 5m}\n")
        broker.process.send_signal(signal.SIGHUP)
        broker.log.await_match("Configuration read again changed=limits.drain_timeout")
        assert broker.stop() == 0
        assert int(path_manager.receive()["EXTEND_TIMEOUT_USEC"]) > 300 * 1_000_000
    finally:
        broker.remove_files()


def test_a_stop_asks_for_no_more_than_the_packages_give(path_manager, start_service):
    """With the default drain timeout; and it stays within the time it asked for."""
    broker = start_service(path_manager)
    begin = time.monotonic()
    assert broker.stop() == 0
    asked = int(path_manager.receive()["EXTEND_TIMEOUT_USEC"]) / 1e6
    assert time.monotonic() - begin < asked
    (unit_limit,) = unit_values("TimeoutStopSec")
    compose = (REPOSITORY / "docker/compose.yaml").read_text()
    (compose_limit,) = re.findall(r"stop_grace_period: (\w+)", compose)
    guide_limits = re.findall(
        r"(?:--stop-timeout|terminationGracePeriodSeconds:) (\d+)", GUIDE.read_text())
    assert len(guide_limits) == 2
    for limit in [unit_limit, compose_limit, *guide_limits]:
        assert int(limit.removesuffix("s")) >= asked, limit


# Without a service manager, or with one that does not listen.


@pytest.mark.parametrize(
    "variables",
    [{}, {"NOTIFY_SOCKET": ""}, {"WATCHDOG_USEC": "100000"}],
    ids=["nothing set", "empty", "watchdog alone"],
)
def test_without_a_socket_nothing_is_said(variables, start_service):
    broker = start_service(**variables)
    assert broker.stop() == 0
    assert "service" not in broker.log.text.lower()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("relative/notify", "neither an absolute path nor an abstract name"),
        ("vsock:2:1234", "neither an absolute path nor an abstract name"),
        ("/" + "x" * 200, "201 bytes"),
        ("@" + "x" * 107, "108 bytes"),
        ("/nonexistent/notify", "No such file or directory"),
        ("@hermes-test-nobody-listens", "Connection refused"),
        ("/nonexistent/\x1b[31m\nnotify", "No such file or directory"),
    ],
)
def test_a_bad_socket_is_a_warning_and_no_more(name, reason, start_service, client):
    broker = start_service(NOTIFY_SOCKET=name, WATCHDOG_USEC="20000")
    warning = broker.log.await_match("WARN.*Service manager")
    assert reason in warning.string
    client("one", broker).ping()
    assert broker.stop() == 0
    assert len(re.findall("Service manager", broker.log.text)) == 1, broker.log.text
    assert all(byte >= 32 for line in broker.log.raw_lines for byte in line)


def test_a_manager_that_does_not_read_holds_nothing_up(path_manager, start_service, client):
    """Its queue is full: a message waits for a second, a sign of life not at all."""
    assert path_manager.fill() > 0
    begin = time.monotonic()
    broker = start_service(NOTIFY_SOCKET=path_manager.name, WATCHDOG_USEC="20000")
    client("one", broker).ping()
    broker.log.await_match("WARN.*Service manager does not take messages")
    assert time.monotonic() - begin < 5
    assert broker.stop() == 0


# Signs of life.


def test_signs_of_life_come_at_half_of_the_watchdog_time(manager, start_service):
    start_service(manager, WATCHDOG_USEC="800000")
    manager.received()
    begin = time.monotonic()
    for _ in range(4):
        assert manager.receive() == {"WATCHDOG": "1"}
    # Not more often, which would be a load; at the whole of the time it would take 3.2 s.
    assert 3 * 0.4 < time.monotonic() - begin < 2.8


def test_they_are_the_loops_own(path_manager, start_service, request):
    """With the loop's thread standing still, the rest of the process says nothing in its place."""
    broker = start_service(path_manager, WATCHDOG_USEC="200000")
    assert path_manager.receive() == {"WATCHDOG": "1"}
    resume = hold_thread(broker.process.pid, "hermes-shard-0")
    request.addfinalizer(resume)
    # One may have been on its way.
    assert len(path_manager.received()) <= 1
    assert path_manager.receive_if_any(within=1) is None, "ten times its turn, and the loop hangs"
    assert AdminAPI(broker).request("GET", "/healthz").status == 200, "the admin plane lives"
    resume()
    assert path_manager.receive() == {"WATCHDOG": "1"}


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-20000"},
    ],
    ids=["not asked for", "of another process", "no number", "zero", "negative"],
)
def test_without_a_watchdog_there_are_none(variables, path_manager, start_service):
    broker = start_service(path_manager, **variables)
    assert path_manager.receive_if_any(within=0.3) is None
    warned = "WATCHDOG_USEC is no number" in broker.log.text
    assert warned == (bool(variables) and "WATCHDOG_PID" not in variables)


def test_a_watchdog_time_below_a_millisecond_is_no_busy_loop(path_manager, start_service):
    broker = start_service(path_manager, WATCHDOG_USEC="1")
    path_manager.received()
    # Messages that waited in the socket make the time look shorter, so many are taken; a busy loop
    # sends them hundreds of times as fast.
    begin = time.monotonic()
    for _ in range(500):
        assert path_manager.receive() == {"WATCHDOG": "1"}
    assert time.monotonic() - begin > 499 * 0.001 / 2
    assert AdminAPI(broker).status()["connections"] == 0


def test_a_manager_that_went_away_is_one_warning(path_manager, start_service, client):
    broker = start_service(path_manager, WATCHDOG_USEC="10000")
    assert path_manager.receive() == {"WATCHDOG": "1"}
    path_manager.close()
    broker.log.await_match("WARN.*does not take messages.*refused.*service.message=WATCHDOG")
    one = client("one", broker)
    for _ in range(20):
        one.ping()
    assert broker.stop() == 0
    assert len(re.findall("does not take messages", broker.log.text)) == 1


def hold_thread(process: int, name: str) -> Callable[[], None]:
    """Stops one thread, see ptrace(2); returns a function that resumes it."""
    seize, interrupt, detach, wait_for_threads = 0x4206, 0x4207, 17, 0x40000000
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    library.ptrace.restype = ctypes.c_long

    tasks = Path(f"/proc/{process}/task")
    (thread,) = (
        int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == name
    )
    if library.ptrace(seize, thread, None, None) != 0:
        pytest.skip(f"this machine lets nobody trace: {os.strerror(ctypes.get_errno())}")
    assert library.ptrace(interrupt, thread, None, None) == 0
    os.waitpid(thread, wait_for_threads)
    held = [thread]

    def resume() -> None:
        for one in held:
            library.ptrace(detach, one, None, None)
        held.clear()

    return resume


# Files.


@pytest.mark.parametrize("mask", ["000", "022", "027", "077"])
def test_files_are_private_whatever_the_umask(mask, tmp_path):
    """Mode 0700 for the data directory and 0600 for its files; the Unix socket 0600 too."""

    class Masked(Hermesd):
        def command(self) -> list[str]:
            return ["sh", "-c", f'umask {mask}; exec "$@"', "sh", *super().command()]

    broker = Masked(Settings(makes_its_own_token=True), data=tmp_path / "data")
    broker.start()
    try:
        assert stat.S_IMODE(broker.data.stat().st_mode) == 0o700
        files = list(broker.data.rglob("*"))
        assert broker.data / "admin.token" in files
        for file in [*files, broker.unix_socket]:
            if file.suffix == ".new" and not file.exists():
                # The journal's next segment was ready, and has its own name since.
                file = file.with_suffix("")
            wanted = 0o700 if file.is_dir() else 0o600
            assert stat.S_IMODE(file.stat().st_mode) == wanted, file
    finally:
        assert broker.stop() == 0
        broker.remove_files()


# The systemd unit.


@pytest.fixture
def systemd_analyze() -> str:
    found = shutil.which("systemd-analyze")
    if not found:
        pytest.skip("systemd-analyze is missing; scripts/install-dependencies test installs it")
    return found


def unit_values(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.MULTILINE)


def test_the_unit_is_valid(systemd_analyze, tmp_path):
    """systemd says nothing about it, with the program where it was built."""
    copy = tmp_path / UNIT.name
    text = UNIT.read_text()
    assert "ExecStart=/usr/local/bin/hermesd" in text
    assert "ExecReload=/usr/local/bin/hermesctl config reload" in text
    copy.write_text(
        text.replace("/usr/local/bin/hermesd", str(Hermesd.executable()))
        .replace("/usr/local/bin/hermesctl", str(Hermesd.control_executable())))
    done = subprocess.run(
        [systemd_analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_unit_exposes_little(systemd_analyze):
    """1.2 of 10 by systemd's count, where a plain service has 9.6."""
    done = subprocess.run(
        [systemd_analyze, "security", "--offline=true", "--threshold=12", "--json=short",
         str(UNIT)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    open_points = {row["name"] for row in json.loads(done.stdout) if row["set"] is False}
    # Needs of a network server, settings of the machine's operator, and sched_setattr alone of its
    # group: systemd does not tell one call from all.
    assert open_points <= {
        "RestrictAddressFamilies=~AF_(INET|INET6)", "RestrictAddressFamilies=~AF_UNIX",
        "PrivateNetwork=", "IPAddressDeny=", "RootDirectory=/RootImage=", "DeviceAllow=",
        "SystemCallFilter=~@resources",
    }, open_points


def test_the_unit_gives_what_the_broker_needs():
    assert unit_values("Type") == ["notify"]
    assert unit_values("LimitNOFILE") == ["1048576"]
    assert unit_values("KillSignal") == [] and unit_values("Restart") == ["on-failure"]
    # EX_CONFIG: see Hermesd.swift.
    assert unit_values("RestartPreventExitStatus") == ["78"]


@pytest.mark.parametrize("file", [UNIT, DOCKERFILE, REPOSITORY / "docker/compose.yaml"], ids=str)
def test_settings_given_by_environment_exist(file):
    """hermesctl checks them as the broker would."""
    pattern = r"(HERMES_\w+)(?:=|: *)\"?([^\s\"]+)"
    variables = dict(re.findall(pattern, file.read_text()))
    assert variables.pop("HERMES_DATA_DIRECTORY", "/var/lib/hermes") == "/var/lib/hermes"
    variables.pop("HERMES_ADMIN_TOKEN", None)
    sample = REPOSITORY / "Config/hermes.yaml"
    done = subprocess.run(
        [str(Hermesd.control_executable()), "config", "check", str(sample)],
        env=inherited_environment() | variables, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_wrong_configuration_ends_with_the_code_that_the_unit_knows(tmp_path):
    done = subprocess.run(
        [str(Hermesd.executable()), "--config", str(tmp_path / "missing.yaml")],
        env=inherited_environment(), capture_output=True, timeout=PATIENCE, check=False,
    )
    assert done.returncode == 78, done.stderr


# The image.


def stages() -> tuple[str, str]:
    """The instructions of the build stage and of the run stage, without comments."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    build, run = re.split(r"^(?=FROM )", joined, flags=re.MULTILINE)[1:]
    return build, run


def run_stage_packages() -> set[str]:
    (words,) = re.findall(r"apt-get install ([^&]*)&&", stages()[1])
    return {word for word in words.split() if not word.startswith("-")}


@pytest.mark.measures("libraries")
def test_the_image_installs_every_library_that_the_programs_load():
    if not shutil.which("dpkg-query"):
        pytest.skip("this is no Debian system, so no package can be named")
    needed = {}
    for program in (Hermesd.executable(), Hermesd.control_executable()):
        listed = subprocess.run(
            ["ldd", str(program)], capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stdout
        assert "not found" not in listed, listed
        for path in re.findall(r"=> (/\S+)", listed):
            needed[Path(path).name] = owner_of(path)
    assert {"libc6", "libargon2-1"} <= set(needed.values()), needed
    missing = {
        library: package for library, package in needed.items()
        if package not in run_stage_packages() | {"libc6"}
    }
    assert missing == {}


def owner_of(library: str) -> str:
    # Debian's database knows a library by the path from before /lib became a link to /usr/lib.
    for path in (library, library.removeprefix("/usr"), "/usr" + library):
        done = subprocess.run(
            ["dpkg-query", "--search", path], capture_output=True, text=True, check=False,
            timeout=PATIENCE,
        )
        if done.returncode == 0:
            return done.stdout.split(":", 1)[0]
    return f"no package owns {library}"


def test_the_guide_names_the_packages_of_the_image():
    (words,) = re.findall(r"^apt-get install --no-install-recommends (ca-certificates .*)$", GUIDE.read_text(),
                          re.MULTILINE)
    assert set(words.split()) == run_stage_packages()


def test_the_image_copies_only_what_exists_and_is_not_ignored():
    """.dockerignore begins with everything; data, tokens and builds stay outside."""
    ignored = [
        line for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert ignored[0] == "*"
    admitted = [line.removeprefix("!") for line in ignored[1:]]
    assert all(line.startswith("!") for line in ignored[1:])
    copied = []
    for stage in stages():
        for words in re.findall(r"^COPY (?!--from)(.*)$", stage, re.MULTILINE):
            copied += shlex.split(words)[:-1]
    assert sorted(copied) == sorted(admitted)
    for path in copied:
        assert (REPOSITORY / path).exists(), path
    for secret in ("data/admin.token", ".build/release/hermesd", ".git/config", "users"):
        assert not any(
            fnmatch.fnmatch(secret, name) or secret.startswith(name + "/") for name in admitted
        ), secret


def test_the_image_copies_every_folder_that_the_package_names():
    """SwiftPM refuses a package of which a target's folder is missing, whatever it is to build."""
    manifest = (REPOSITORY / "Package.swift").read_text().split("if Context.environment")[0]
    named = [path for path in re.findall(r'path: "([^"]+)"', manifest) if "\\(" not in path]
    assert "Client/Sources/HermesClientCore" in named
    words = re.findall(r"^COPY (?!--from)(.*) \S+$", stages()[0], re.MULTILINE)
    copied = shlex.split(" ".join(words))
    missing = [
        path for path in named
        if not any(path == folder or path.startswith(folder + "/") for folder in copied)
    ]
    assert missing == []


def test_the_image_runs_as_an_ordinary_user_and_says_how_it_does():
    _, run = stages()
    assert re.search(r"^USER 10001:10001$", run, re.MULTILINE)
    assert re.search(r"^VOLUME /var/lib/hermes$", run, re.MULTILINE)
    assert re.search(r"^EXPOSE 1883 8080$", run, re.MULTILINE)
    assert re.search(r"^STOPSIGNAL SIGTERM$", run, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", run, re.MULTILINE)
    # Process 1, without a shell between it and the signals.
    assert json.loads(entry) == ["hermesd"]


def test_the_health_check_of_the_image_asks_where_the_broker_listens():
    _, run = stages()
    (path,) = re.findall(r"HERMES_ADMIN_UNIX_SOCKET=(\S+)", run)
    (words,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", run, re.MULTILINE)
    arguments = json.loads(words)
    assert arguments[arguments.index("--socket") + 1] == path
    # The one folder that a container without any other right can write to.
    (volume,) = re.findall(r"^VOLUME (\S+)$", run, re.MULTILINE)
    assert Path(path).parent == Path(volume)


@pytest.mark.parametrize("asked", ["plain", "https", "with client certificates"])
def test_the_health_check_of_the_image(asked, start_service, tmp_path):
    """Exit code 0 while the broker answers, 3 when it has ended; whatever address, token or TLS."""
    (words,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", stages()[1], re.MULTILINE)
    program, *arguments = json.loads(words)
    assert program == "hermesctl"
    variables = {}
    if asked != "plain":
        authority = Authority(tmp_path / "authority")
        pair = authority.issue("admin")
        variables = {"HERMES_ADMIN_TLS_CERTIFICATE": str(pair.certificate),
                     "HERMES_ADMIN_TLS_KEY": str(pair.key)}
    if asked == "with client certificates":
        variables["HERMES_ADMIN_TLS_CLIENT_CA_FILE"] = str(authority.certificate)

    broker = start_service(**variables)
    arguments[arguments.index("--socket") + 1] = str(broker.unix_socket)

    def check() -> int:
        return subprocess.run(
            [str(Hermesd.control_executable()), *arguments],
            env=inherited_environment(), capture_output=True, timeout=PATIENCE, check=False,
        ).returncode

    assert check() == 0
    assert broker.stop() == 0
    assert check() == 3


# --- removal -------------------------------------------------------------------------------


def test_a_purge_empties_a_data_directory_that_is_a_mount():
    """In a mount namespace, with disks of its own in the places of the package."""
    script = """
        set -e
        mount -t tmpfs tmpfs /var/lib
        mount -t tmpfs tmpfs /etc
        mkdir -p /var/lib/hermes /var/lib/hermes-backups /etc/hermes
        mount -t tmpfs tmpfs /var/lib/hermes
        touch /etc/hermes/hermes.yaml /var/lib/hermes/.hidden
        mkdir /var/lib/hermes/folder && touch /var/lib/hermes/folder/file
        sh "$1" purge
        test -d /var/lib/hermes && test -z "$(ls -A /var/lib/hermes)"
        test ! -e /etc/hermes && test ! -e /var/lib/hermes-backups
        umount /var/lib/hermes && ln -sfn /etc /var/lib/linked && rmdir /var/lib/hermes
        touch /etc/kept && ln -s /etc /var/lib/hermes
        sh "$1" purge
        test ! -e /var/lib/hermes && test -e /etc/kept
    """
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh",
         str(REPOSITORY / "packaging/debian/hermes.postrm")],
        capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode == 1 and "unshare" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stays, empty" in done.stdout
