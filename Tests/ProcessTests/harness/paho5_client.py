"""paho-mqtt with MQTT 5.0: properties, reason codes, and waits with deadlines."""

from __future__ import annotations

import queue
import ssl
import threading
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from .broker import Broker
from .waiting import PATIENCE, Deadline


def properties(packet: int, values: dict[str, Any]) -> Properties | None:
    """Properties by the names of the specification without blanks, such as `ReceiveMaximum`."""
    if not values:
        return None
    made = Properties(packet)
    for name, value in values.items():
        setattr(made, name, value)
    return made


def read(received: Properties | None) -> dict[str, Any]:
    """The properties of a received packet by the same names."""
    if received is None:
        return {}
    return {
        name.replace(" ", ""): getattr(received, name.replace(" ", ""))
        for name in received.names if hasattr(received, name.replace(" ", ""))
    }


@dataclass(frozen=True)
class Message:
    """One message as paho showed it."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.payload.decode()


@dataclass(frozen=True)
class Will:
    topic: str
    payload: bytes = b"gone"
    qos: int = 1
    retain: bool = False
    properties: dict[str, Any] = field(default_factory=dict)


class Paho5Client:
    """A paho client of MQTT 5.0 that has got its CONNACK; look at `code`.

    It does not come back by itself after the broker has closed the connection.
    """

    def __init__(
        self,
        broker: Broker,
        client_id: str,
        *,
        clean_start: bool = True,
        keep_alive: int = 60,
        will: Will | None = None,
        user_name: str | None = None,
        password: str | None = None,
        context: ssl.SSLContext | None = None,
        websocket_path: str | None = None,
        is_acknowledging: bool = True,
        **connect: Any,
    ) -> None:
        """`connect` are CONNECT's properties. A client that does not acknowledge answers no PUBLISH."""
        self._messages: queue.Queue[Message] = queue.Queue()
        self._connected = threading.Event()
        self._disconnected = threading.Event()
        self._codes: queue.Queue[list[int]] = queue.Queue()
        self._published: dict[int, int] = {}
        self._publishing = threading.Condition()
        self.code = -1
        self.session_present = False
        self.properties: dict[str, Any] = {}
        self.end: int | None = None

        self.client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5,
            transport="tcp" if websocket_path is None else "websockets",
            reconnect_on_failure=False, manual_ack=not is_acknowledging,
        )
        if websocket_path is not None:
            self.client.ws_set_options(
                websocket_path,
                headers=lambda usual: {k: v for k, v in usual.items() if k != "Origin"})
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_message = self._on_message
        self.client.on_publish = self._on_publish
        # paho 2.1 reads the reason of a DISCONNECT only if properties follow it.
        read_disconnect = self.client._handle_disconnect
        self.client._handle_disconnect = lambda: self._on_end(read_disconnect)
        self.client.on_subscribe = self._on_codes
        self.client.on_unsubscribe = self._on_codes
        if will is not None:
            self.client.will_set(
                will.topic, will.payload, will.qos, will.retain,
                properties(PacketTypes.WILLMESSAGE, will.properties))
        if user_name is not None:
            self.client.username_pw_set(user_name, password)
        host, port = broker.address
        if context is not None:
            self.client.tls_set_context(context)
            host = "localhost"
        self.client.connect(
            host, port, keepalive=keep_alive, clean_start=clean_start,
            properties=properties(PacketTypes.CONNECT, connect))
        self.client.loop_start()
        if not self._connected.wait(PATIENCE):
            self.client.loop_stop()
            raise AssertionError(f"paho client {client_id} got no CONNACK in {PATIENCE:g} s")

    # --- callbacks -----------------------------------------------------------------------

    def _on_connect(self, _client, _userdata, flags, reason, received) -> None:
        self.session_present = flags.session_present
        self.code = reason.value
        self.properties = read(received)
        self._connected.set()

    def _on_end(self, read_disconnect) -> None:
        body = bytes(self.client._in_packet["packet"])
        self.end = body[0] if body else 0
        read_disconnect()

    def _on_disconnect(self, _client, _userdata, _flags, _reason, _properties) -> None:
        self._disconnected.set()

    def _on_message(self, _client, _userdata, message) -> None:
        self._messages.put(
            Message(
                message.topic, message.payload, message.qos, bool(message.retain),
                read(message.properties)))

    def _on_publish(self, _client, _userdata, identifier, reason, _properties) -> None:
        with self._publishing:
            self._published[identifier] = reason.value
            self._publishing.notify_all()

    def _on_codes(self, _client, _userdata, _identifier, reasons, _properties) -> None:
        self._codes.put([reason.value for reason in reasons])

    # --- exchanges -----------------------------------------------------------------------

    def subscribe(
        self, name: str, qos: int = 0, *, no_local: bool = False, as_published: bool = False,
        handling: int = 0, identifier: int | None = None,
    ) -> int:
        """Subscribes and returns the reason code."""
        options = SubscribeOptions(qos, no_local, as_published, handling)
        values = {} if identifier is None else {"SubscriptionIdentifier": identifier}
        self.client.subscribe(
            name, options=options, properties=properties(PacketTypes.SUBSCRIBE, values))
        return self._take_codes(name)

    def unsubscribe(self, name: str) -> int:
        self.client.unsubscribe(name)
        return self._take_codes(name)

    def _take_codes(self, name: str) -> int:
        try:
            (code,) = self._codes.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no answer for {name} in {PATIENCE:g} s") from None
        return code

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 1, retain: bool = False, **values: Any
    ) -> int:
        """Publishes, waits until the exchange is over, and returns its reason code.

        The codes 0x00 and 0x10 (nobody has subscribed) both count as 0.
        """
        information = self.client.publish(
            topic, payload, qos, retain, properties(PacketTypes.PUBLISH, values))
        deadline = Deadline(PATIENCE, f"the end of a PUBLISH of QoS {qos} to {topic}")
        with self._publishing:
            while information.mid not in self._published:
                assert not deadline.is_over and not self._disconnected.is_set(), deadline.failure()
                self._publishing.wait(min(deadline.remaining, 0.1))
            code = self._published.pop(information.mid)
        return 0 if code == 0x10 else code

    def take(self, timeout: float = PATIENCE) -> Message:
        deadline = Deadline(timeout, "a message at the paho client")
        try:
            return self._messages.get(timeout=timeout)
        except queue.Empty:
            raise deadline.failure() from None

    def so_far(self) -> list[Message]:
        """Messages before the answer to a request that needs an answer of the broker."""
        self.unsubscribe("$nothing/is/subscribed/here")
        found = []
        while not self._messages.empty():
            found.append(self._messages.get())
        return found

    # --- ends ----------------------------------------------------------------------------

    def await_end(self, timeout: float = PATIENCE) -> int | None:
        """Waits for the close; the code of the broker's DISCONNECT, `None` without one."""
        assert self._disconnected.wait(timeout), f"still connected after {timeout:g} s"
        self.client.loop_stop()
        return self.end

    def cut(self) -> None:
        """Ends the connection without a DISCONNECT."""
        self.client.loop_stop()
        network = self.client.socket()
        if network is not None:
            network.close()

    def stop(self, code: int = 0, **values: Any) -> None:
        """Sends DISCONNECT with a code and properties, and waits for the close."""
        self.client.disconnect(
            ReasonCode(PacketTypes.DISCONNECT, identifier=code) if code else None,
            properties(PacketTypes.DISCONNECT, values))
        self.client.loop_stop()
