"""Moving the clients of a broker elsewhere at a rate: /v1/drain and `hermesctl drain`."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import ExitStack, closing

import pytest

from harness.admin import AdminAPI, hermesctl
from harness.broker import ADMIN_TOKEN, Hermesd, inherited_environment
from harness.proxy import line
from harness.raw_client import RawClient
from harness.tls import TLSClient, client_context
from harness.waiting import eventually
from harness.websocket import WebSocketClient
from harness.wire import Will

pytestmark = pytest.mark.hermesd("drains are its own")

SERVER_UNAVAILABLE = 3
GOING_AWAY = 1001
"""The code of a close frame."""
REFUSED, USAGE = 1, 64


def start(broker, rate: int) -> dict:
    answer = AdminAPI(broker).post_json("/v1/drain", {"per_second": rate})
    assert answer.status == 200, answer
    return answer.json


def drain(broker) -> dict:
    return AdminAPI(broker).get("/v1/drain")


def stop(broker) -> dict:
    answer = AdminAPI(broker).request("DELETE", "/v1/drain")
    assert answer.status == 200, answer
    return answer.json


def await_drained(broker) -> dict:
    return eventually(
        lambda: (status := drain(broker))["state"] == "drained" and status, "the drain's end"
    )


def is_refused(broker) -> bool:
    """True when nothing listens on the broker's port."""
    try:
        socket.create_connection(broker.address, timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def clients(stack: ExitStack, broker, count: int, **options: object) -> list[RawClient]:
    """So many connected clients, c0 and so on."""
    made = []
    for number in range(count):
        client = stack.enter_context(closing(RawClient(broker.address)))
        client.connect(f"c{number}", **options)
        made.append(client)
    return made


def test_connections_end_at_the_rate_and_keep_their_sessions(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    with ExitStack() as stack:
        all_clients = clients(stack, broker, 200, clean_session=False)
        all_clients[0].subscribe(("orders/#", 1))
        began = start(broker, 50)
        assert (began["state"], began["connections"], began["seconds_left"]) == ("draining", 200, 4)
        clock = api.status()["drain"]["started_at_ms"]
        assert clock == began["started_at_ms"]
        seen = [began["closed"]]
        while (now := drain(broker))["state"] == "draining":
            # Never ahead of its rate: what it has closed is due by its own clock.
            seen.append(now["closed"])
            assert now["closed"] + now["connections"] == 200, now
        assert seen == sorted(seen) and len(set(seen)) > 20, "closed in few bursts"
        assert now["state"] == "drained" and now["closed"] == 200, now
        for client in all_clients:
            client.await_closed()
    lines = [text for text in broker.log.lines if "reason=draining" in text]
    assert len(lines) == 200
    assert api.metric('hermes_connections_closed_total{reason="draining"}') == 200
    # Publishing goes on meanwhile, and waits for who comes back.
    published = api.post_json(
        "/v1/messages", {"topic": "orders/1", "payload": "kept", "qos": 1})
    assert published.status in (200, 202), published
    assert is_refused(broker)
    ended = stop(broker)
    assert (ended["state"], ended["closed"]) == ("off", 200), ended
    with closing(RawClient(broker.address)) as again:
        assert again.connect("c0", clean_session=False).session_present
        assert again.take_message().payload == b"kept"
    explained = hermesctl("explain", "c1", broker=broker)
    assert "an operator drained the broker" in explained.output, explained


def test_two_hundred_clients_at_fifty_a_second_take_three_seconds_at_least(hermesd):
    """By the broker's own times of the first and last connection's end, not by a stop watch here."""
    broker = hermesd()
    with ExitStack() as stack:
        clients(stack, broker, 200)
        start(broker, 50)
        await_drained(broker)
    ends = [
        event["last_at_ms"]
        for number in range(200)
        for event in AdminAPI(broker).get(f"/v1/clients/c{number}/history")["events"]
        if event["kind"] == "disconnected"
    ]
    assert len(ends) == 200
    assert max(ends) - min(ends) >= 3_000
    # Spread over each second: at 50 a second, a second has room for 50, and five in a late turn.
    first = min(ends)
    for second in range((max(ends) - first) // 1_000 + 1):
        assert sum((end - first) // 1_000 == second for end in ends) <= 56, sorted(ends)


def test_new_connections_are_refused_and_readiness_says_so(hermesd):
    broker = hermesd()
    api = AdminAPI(broker)
    with ExitStack() as stack:
        clients(stack, broker, 10)
        early = stack.enter_context(closing(RawClient(broker.address)))
        assert api.get("/readyz")["status"] == "ready"
        start(broker, 1)
        # One that was there before, and comes with its CONNECT only now: the last to be closed.
        assert early.connect("early").return_code == SERVER_UNAVAILABLE
        early.await_closed()
        broker.log.await_match(r"Connection refused .*client\.id=early .*reason=draining")
        assert is_refused(broker)
        problem = api.request("GET", "/readyz").problem(503)
        assert problem["detail"].startswith("draining"), problem
        assert api.get("/healthz")["status"] == "ok"
        assert (api.metric("hermes_ready"), api.metric("hermes_draining")) == (0, 1)
        stop(broker)
        assert (api.metric("hermes_ready"), api.metric("hermes_draining")) == (1, 0)
        assert api.get("/readyz")["status"] == "ready"
        with closing(RawClient(broker.address)) as late:
            assert late.connect("late").return_code == 0


def is_closed(client: RawClient) -> bool:
    """True when the broker has closed it already."""
    client.socket.settimeout(0.05)
    try:
        return client.socket.recv(1) == b""
    except TimeoutError:
        return False


def test_a_stop_in_the_midst_keeps_who_is_left(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        all_clients = clients(stack, broker, 40)
        start(broker, 20)
        eventually(lambda: drain(broker)["closed"] >= 3, "some ends")
        ended = stop(broker)
        assert ended["state"] == "off" and 3 <= ended["closed"] < 40, ended
        assert ended["connections"] == 40 - ended["closed"]
        left = [client for client in all_clients if not is_closed(client)]
        assert len(left) == ended["connections"]
        for client in left:
            client.ping()
        assert "closed" not in drain(broker)
        assert "closed" not in stop(broker), "a second end changes nothing"
        # And again, from the start.
        assert start(broker, 1000)["closed"] == 0
        assert await_drained(broker)["closed"] == len(left)
    broker.log.await_match("Drain ended, clients can connect again .*drain.closed=")


def test_wills_are_published_as_after_a_lost_connection(hermesd):
    broker = hermesd()
    with closing(RawClient(broker.address)) as watcher, closing(RawClient(broker.address)) as device:
        watcher.connect("watcher", clean_session=False)
        watcher.subscribe(("wills/#", 1))
        device.connect("device", will=Will("wills/device", b"gone", 1))
        start(broker, 100)
        device.await_closed()
        await_drained(broker)
        stop(broker)
    with closing(RawClient(broker.address)) as again:
        again.connect("watcher", clean_session=False)
        assert again.take_message().payload == b"gone"


def test_a_broker_without_clients_is_drained_at_once(hermesd):
    broker = hermesd()
    done = hermesctl("drain", "start", "--wait", broker=broker)
    assert (done.code, done.output.splitlines()[0]) == (0, "Drained: no connection is left."), done
    assert drain(broker)["state"] == "drained"
    assert is_refused(broker)
    assert hermesctl("drain", "stop", broker=broker).code == 0
    with closing(RawClient(broker.address)) as client:
        assert client.connect("c").return_code == 0


def test_a_signal_ends_a_broker_that_drains_and_a_restart_ends_the_drain(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        all_clients = clients(stack, broker, 20, clean_session=False)
        start(broker, 1)
        broker.process.send_signal(signal.SIGTERM)
        assert broker.await_exit() == 0
        for client in all_clients:
            client.await_closed()
    again = hermesd(data=broker.data)
    assert drain(again)["state"] == "off"
    with closing(RawClient(again.address)) as client:
        assert client.connect("c7", clean_session=False).session_present


def test_a_port_that_another_process_has_taken_keeps_the_drain(hermesd):
    broker = hermesd()
    start(broker, 100)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(broker.address)
        other.listen()
        problem = AdminAPI(broker).request("DELETE", "/v1/drain").problem(409)
        assert problem["type"].endswith(":cannot-listen"), problem
        assert f"{broker.port}" in problem["detail"], problem
        refused = hermesctl("drain", "stop", broker=broker)
        assert refused.code == REFUSED and "still drained" in refused.errors, refused
    assert drain(broker)["state"] == "drained"
    stop(broker)
    with closing(RawClient(broker.address)) as client:
        assert client.connect("c").return_code == 0


def test_a_proxy_is_refused_too_and_its_clients_are_drained(hermesd):
    broker = hermesd(
        environment={
            "HERMES_LISTENERS_0_PROXY_FROM": "127.0.0.1",
            "HERMES_LISTENERS_0_ALLOW_ANONYMOUS": "true",
        })
    with closing(RawClient(broker.address)) as client:
        client.send(line("192.0.2.7", 50_001))
        client.connect("behind")
        start(broker, 100)
        client.await_closed()
    await_drained(broker)
    assert is_refused(broker)


def test_every_listener_is_drained_and_comes_back(hermesd, tmp_path, pair, authority):
    """One of TLS, and one of WebSocket, whose clients read why."""
    configuration = tmp_path / "hermes.yaml"
    configuration.write_text(
        "listeners:\n"
        f"  - {{port: 0, tls: {{certificate: {pair.certificate}, key: {pair.key}}}}}\n"
        "  - {port: 0, protocol: websocket}\n")
    broker = hermesd(
        arguments=("--port", "0", "--config", str(configuration)))
    listeners = [
        (host, int(port)) for host, _, port in
        (text.rpartition(":") for text in AdminAPI(broker).status()["listeners"])
    ]
    secured = TLSClient(broker, client_context(authority.certificate))
    web = WebSocketClient(listeners[1])
    secured.connect("secured")
    web.connect("web")
    start(broker, 100)
    secured.await_closed()
    assert web.web.await_end() == GOING_AWAY
    await_drained(broker)
    for address in listeners:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=5)
    stop(broker)
    with closing(TLSClient(broker, client_context(authority.certificate))) as again:
        assert again.connect("secured").return_code == 0
    again = WebSocketClient(listeners[1])
    assert again.connect("web").return_code == 0
    again.close()


def test_hermesctl_drains_shows_and_stops(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        clients(stack, broker, 60)
        begun = hermesctl("drain", "start", "--rate", "20", broker=broker)
        assert begun.code == 0, begun
        assert begun.output == (
            "Draining 60 connections at 20 a second, which takes about 3s. New ones are refused.\n")
        shown = hermesctl("drain", "status", broker=broker)
        assert "draining" in shown.output and "20 a second" in shown.output, shown
        assert "draining" in hermesctl("status", broker=broker).output
        assert hermesctl("drain", "status", "--json", broker=broker).json["state"] == "draining"
        waited = hermesctl("drain", "start", "--rate", "200", "--wait", broker=broker)
        assert waited.code == 0, waited
        assert waited.output.splitlines()[-1] == "Drained: 60 connections closed, none left."
    ended = hermesctl("drain", "stop", broker=broker)
    assert ended.output == "Clients can connect again; the drain closed 60 connections.\n", ended
    assert hermesctl("drain", "stop", broker=broker).output == (
        "The broker was not being drained.\n")
    assert hermesctl("drain", "start", "--rate", "0", broker=broker).code == USAGE


def test_who_waits_for_a_drain_that_is_stopped_is_told(hermesd):
    broker = hermesd()
    with ExitStack() as stack:
        clients(stack, broker, 50)
        waiting = subprocess.Popen(
            [str(Hermesd.control_executable()), "drain", "start", "--rate", "1", "--wait",
             "--url", broker.admin_url],
            env=inherited_environment() | {"HERMES_ADMIN_TOKEN": ADMIN_TOKEN},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        eventually(lambda: drain(broker)["state"] == "draining", "the drain's begin")
        stop(broker)
        _, errors = waiting.communicate(timeout=20)
    assert waiting.returncode == REFUSED and "stopped before" in errors, errors


def test_every_change_is_in_the_log_with_its_author(hermesd):
    broker = hermesd()
    start(broker, 10)
    stop(broker)
    broker.log.await_match(r"admin\.token_name=admin.*http\.method=POST http\.path=/v1/drain")
    broker.log.await_match(r"admin\.token_name=admin.*http\.method=DELETE http\.path=/v1/drain")
