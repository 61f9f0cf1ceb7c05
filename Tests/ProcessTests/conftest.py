"""Fixtures: a broker shared by the session, brokers of one's own, and clients for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.admin import AdminAPI
from harness.broker import Broker, FromFile, Hermesd, Mosquitto, Settings
from harness.certificates import Authority, Certificate
from harness.command_line_clients import MosquittoSub
from harness.paho_client import PahoClient
from harness.phone import Phone, executable as phone_executable
from harness.raw_client import RawClient
from harness.tls import tls_environment


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker", choices=("hermesd", "mosquitto"), default="hermesd",
        help="the broker under test; mosquitto checks the tests themselves",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--broker") == "hermesd":
        return
    for item in items:
        if mark := item.get_closest_marker("hermesd"):
            item.add_marker(pytest.mark.skip(reason=f"needs hermesd: {mark.args[0]}"))
        if mark := item.get_closest_marker("mosquitto_deviates"):
            strict = mark.kwargs.get("strict", True)
            item.add_marker(pytest.mark.xfail(reason=mark.args[0], strict=strict))


@pytest.fixture(scope="session")
def broker_class(pytestconfig: pytest.Config) -> type[Broker]:
    if pytestconfig.getoption("--broker") == "mosquitto":
        return Mosquitto
    for executable in (Hermesd.executable(), Hermesd.control_executable()):
        if not executable.exists():
            pytest.exit(f"{executable} is missing; scripts/test builds it", returncode=2)
    return Hermesd


def _end(broker: Broker) -> None:
    """Every broker ends cleanly at SIGTERM, whatever its test did to it."""
    try:
        code = broker.stop()
        assert broker.log is not None
        assert code == 0, f"the broker ended with {code}; its log:\n{broker.log.tail()}"
    finally:
        broker.remove_files()


@pytest.fixture(scope="session")
def shared_broker(broker_class: type[Broker]) -> Iterator[Broker]:
    broker = broker_class()
    broker.start()
    yield broker
    _end(broker)


@pytest.fixture
def broker(shared_broker: Broker) -> Iterator[Broker]:
    """The broker that tests share: use names of `names`, leave it as it was."""
    assert shared_broker.is_running, "an earlier test ended the shared broker"
    yield shared_broker
    assert shared_broker.log is not None
    assert shared_broker.is_running, f"the broker ended; its log:\n{shared_broker.log.tail()}"


StartBroker = Callable[..., Broker]


@pytest.fixture
def start_broker(broker_class: type[Broker]) -> Iterator[StartBroker]:
    """Starts brokers that belong to the test: `start_broker(max_in_flight=2)`."""
    started: list[Broker] = []

    def start(**settings: object) -> Broker:
        broker = broker_class(Settings(**settings))  # type: ignore[arg-type]
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        if broker.process is not None:
            _end(broker)


@pytest.fixture
def hermesd(broker_class: type[Broker]) -> Iterator[Callable[..., Hermesd]]:
    """Starts brokers, also on a data directory that an earlier one left: `hermesd(data=old.data)`."""
    started: list[Hermesd] = []

    def start(*, data: Path | None = None, **settings: object) -> Hermesd:
        broker = Hermesd(Settings(**settings), data=data)
        started.append(broker)
        broker.start()
        return broker

    yield start
    try:
        for broker in started:
            if broker.process is not None and broker.is_running:
                code = broker.stop()
                assert code == 0, f"ended with {code}; its log:\n{broker.log.tail()}"
    finally:
        for broker in started:
            broker.remove_files()


@pytest.fixture
def phone() -> Iterator[Callable[..., Phone]]:
    """Starts phones; they are killed at the end."""
    assert phone_executable().exists(), (
        f"{phone_executable()} is missing; "
        "TEST_ALL_PACKAGES=1 swift build --product hermes-phone makes it")
    started: list[Phone] = []

    def start(*arguments: object, **options: object) -> Phone:
        started.append(Phone(*arguments, **options))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.kill()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates") / "ca")


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Certificate:
    """Certificate of a listener, for `localhost` and 127.0.0.1."""
    return authority.issue("localhost")


@pytest.fixture
def tls_broker(start_broker: StartBroker, pair: Certificate) -> Broker:
    return start_broker(environment=tls_environment(pair))


@pytest.fixture
def from_file(broker_class: type[Broker]) -> Iterator[Callable[..., FromFile]]:
    """Starts brokers whose limits come from a file: `from_file("limits: {...}")`."""
    started: list[FromFile] = []

    def start(configuration: str, **settings: object) -> FromFile:
        broker = FromFile(configuration, Settings(**settings))
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        assert broker.stop() == 0
        broker.remove_files()


class Names:
    """Topics and client identifiers that no other test uses."""

    _numbers = itertools.count(1)

    def __init__(self) -> None:
        self._number = next(self._numbers)

    def topic(self, rest: str = "topic") -> str:
        return f"test{self._number}/{rest}"

    def client(self, name: str = "client") -> str:
        # At most 23 characters, which MQTT 3.1 asks for.
        return f"t{self._number}-{name}"[:23]


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def raw(request: pytest.FixtureRequest) -> Iterator[Callable[..., RawClient]]:
    """Opens sockets: `raw()` to the shared broker, `raw(broker)` to another."""
    opened: list[RawClient] = []

    def open_one(to: Broker | None = None, **options: object) -> RawClient:
        target = to if to is not None else request.getfixturevalue("broker")
        client = RawClient(target.address, **options)  # type: ignore[arg-type]
        opened.append(client)
        return client

    yield open_one
    for client in opened:
        client.close()


ConnectClient = Callable[..., RawClient]


@pytest.fixture
def client(raw: Callable[..., RawClient], names: Names) -> ConnectClient:
    """Connects raw clients: `client("name")`, with the options of `RawClient.connect`."""

    def connect_one(name: str, to: Broker | None = None, **options: object) -> RawClient:
        connection = raw(to)
        connack = connection.connect(names.client(name), **options)  # type: ignore[arg-type]
        assert connack.return_code == 0, f"{name} was refused: {connack}"
        return connection

    return connect_one


@pytest.fixture
def paho_client(request: pytest.FixtureRequest) -> Iterator[Callable[..., PahoClient]]:
    opened: list[PahoClient] = []

    def connect_one(client_id: str, to: Broker | None = None, **options: object) -> PahoClient:
        target = to if to is not None else request.getfixturevalue("broker")
        one = PahoClient(target, client_id, **options)  # type: ignore[arg-type]
        opened.append(one)
        return one

    yield connect_one
    for one in opened:
        one.stop()


@pytest.fixture
def mosquitto_sub(request: pytest.FixtureRequest) -> Iterator[Callable[..., MosquittoSub]]:
    """Starts mosquitto_sub and returns once it has subscribed."""
    started: list[MosquittoSub] = []

    def start(*arguments: str, to: Broker | None = None) -> MosquittoSub:
        target = to if to is not None else request.getfixturevalue("broker")
        one = MosquittoSub(target, *arguments)
        started.append(one)
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            one.stop()


@pytest.fixture
def api(broker: Broker) -> AdminAPI:
    """The admin API of the shared broker."""
    assert isinstance(broker, Hermesd)
    return AdminAPI(broker)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Shows the end of the shared broker's log beside a failure."""
    outcome = yield
    report = outcome.get_result()
    shared = getattr(item, "funcargs", {}).get("broker")
    if report.when == "call" and report.failed and isinstance(shared, Broker) and shared.log:
        report.sections.append(("log of the shared broker", shared.log.tail()))
