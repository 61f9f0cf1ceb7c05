"""paho-mqtt with its own network thread, and waits with deadlines."""

from __future__ import annotations

import queue
import ssl
import threading

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from .broker import Broker
from .command_line_clients import Received
from .waiting import PATIENCE, Deadline


class PahoClient:
    """A connected paho client (`protocol` is MQTTv31 or MQTTv311)."""

    def __init__(
        self,
        broker: Broker,
        client_id: str,
        *,
        protocol: int = paho.MQTTv311,
        clean_session: bool = True,
        keep_alive: int = 60,
        will: Received | None = None,
        user_name: str | None = None,
        password: str | None = None,
        context: ssl.SSLContext | None = None,
        websocket_path: str | None = None,
        websocket_headers: dict[str, str] | None = None,
    ) -> None:
        """With `websocket_path` over WebSocket, without the Origin that paho adds."""
        self._messages: queue.Queue[Received] = queue.Queue()
        self._connected = threading.Event()
        self._disconnected = threading.Event()
        self._granted: queue.Queue[list[int]] = queue.Queue()
        self._unsubscribed = threading.Event()
        self.is_refused = False
        self.session_present = False

        self.client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id, clean_session, protocol=protocol,
            transport="tcp" if websocket_path is None else "websockets",
        )
        if websocket_path is not None:
            self.client.ws_set_options(
                websocket_path, headers=lambda usual: {
                    **{name: value for name, value in usual.items() if name != "Origin"},
                    **(websocket_headers or {}),
                })
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = lambda *_: self._disconnected.set()
        self.client.on_message = self._on_message
        self.client.on_subscribe = self._on_subscribe
        self.client.on_unsubscribe = lambda *_: self._unsubscribed.set()
        if will is not None:
            self.client.will_set(will.topic, will.payload, will.qos, will.retain)
        if user_name is not None:
            self.client.username_pw_set(user_name, password)
        host, port = broker.address
        if context is not None:
            self.client.tls_set_context(context)
            host = "localhost"
        self.client.connect(host, port, keepalive=keep_alive)
        self.client.loop_start()
        if not self._connected.wait(PATIENCE):
            self.client.loop_stop()
            raise AssertionError(f"paho client {client_id} got no CONNACK in {PATIENCE:g} s")

    def _on_connect(self, _client, _userdata, flags, reason, _properties) -> None:
        self.session_present = flags.session_present
        self.is_refused = reason.is_failure
        self._connected.set()

    def _on_subscribe(self, _client, _userdata, _mid, reasons, _properties) -> None:
        self._granted.put([reason.value for reason in reasons])

    def _on_message(self, _client, _userdata, message) -> None:
        self._messages.put(
            Received(message.topic, message.payload, message.qos, bool(message.retain))
        )

    def subscribe(self, *filters: tuple[str, int]) -> list[int]:
        """Subscribes and returns the granted QoS of each filter."""
        self.client.subscribe(list(filters))
        try:
            return self._granted.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no SUBACK for {filters} in {PATIENCE:g} s") from None

    def unsubscribe(self, *filters: str) -> None:
        self._unsubscribed.clear()
        self.client.unsubscribe(list(filters))
        assert self._unsubscribed.wait(PATIENCE), f"no UNSUBACK for {filters}"

    def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False) -> None:
        """Publishes and waits until the exchange of the QoS is complete."""
        information = self.client.publish(topic, payload, qos, retain)
        information.wait_for_publish(PATIENCE)
        assert information.is_published(), f"QoS {qos} publish to {topic} was not completed"

    def take(self, timeout: float = PATIENCE) -> Received:
        deadline = Deadline(timeout, "a message at the paho client")
        try:
            return self._messages.get(timeout=timeout)
        except queue.Empty:
            raise deadline.failure() from None

    def assert_connected_for(self, seconds: float) -> None:
        assert not self._disconnected.wait(seconds), "the broker closed the connection"

    def cut(self) -> None:
        """Ends the connection without a DISCONNECT and does not come back."""
        self.client.loop_stop()
        network = self.client.socket()
        if network is not None:
            network.close()

    def stop(self) -> list[Received]:
        """Sends DISCONNECT; returns the remaining messages."""
        self.client.disconnect()
        self.client.loop_stop()
        return list(self._messages.queue)
