"""Chromium as a client of WebSocket, with a few lines of JavaScript that speak MQTT."""

from __future__ import annotations

import shutil
from urllib.parse import urlencode

import pytest

from harness.admin import AdminAPI
from harness.browser import Pages, visit
from harness.websocket import websocket_environment

pytestmark = [
    pytest.mark.hermesd("its listeners of WebSocket are configured in its own way"),
    pytest.mark.skipif(
        shutil.which("chromium") is None,
        reason="there is no chromium; scripts/install-dependencies test installs it"),
]

PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>MQTT</title><script>
const query = new URLSearchParams(location.search), seen = [], sizes = [0, 100, 70000, 300000];
const bytes = (text) => new TextEncoder().encode(text);
const text = (value) => { const b = bytes(value); return [b.length >> 8, b.length & 255, ...b]; };
function packet(first, body) {
  const length = [];
  let rest = body.length;
  do { length.push((rest & 127) | (rest > 127 ? 128 : 0)); rest >>= 7; } while (rest > 0);
  return new Uint8Array([first, ...length, ...body]);
}
const finish = (result) => fetch("/result", {method: "POST", body: JSON.stringify(result)});
const socket = new WebSocket(query.get("url"), ["mqttv3.1", "mqtt"]);
socket.binaryType = "arraybuffer";
let stream = new Uint8Array(), identifier = 1, failed = false;
const payload = (size) => Array.from({length: size}, (_, index) => index * 7 & 255);
// Two messages of WebSocket for one packet.
function send(packet) {
  const middle = packet.length >> 1;
  socket.send(packet.slice(0, middle));
  socket.send(packet.slice(middle));
}
function publish() {
  const size = sizes.shift();
  if (size === undefined) { socket.send(packet(0xE0, [])); return; }
  identifier += 1;
  send(packet(0x32, [...text(query.get("topic")), identifier >> 8, identifier & 255, ...payload(size)]));
}
function handle(first, body) {
  switch (first >> 4) {
    case 2: seen.push("CONNACK " + body[1]); send(packet(0x82, [0, 1, ...text(query.get("topic")), 0])); break;
    case 9: seen.push("SUBACK " + body[2]); publish(); break;
    case 3: {
      const content = body.slice(2 + (body[0] << 8 | body[1]));
      const same = content.every((byte, index) => byte === (index * 7 & 255));
      seen.push("PUBLISH " + content.length + " " + same);
      publish();
      break;
    }
    case 4: break;
    default: seen.push("unknown " + first);
  }
}
socket.onopen = () => send(packet(0x10, [...text("MQTT"), 4, 2, 0, 60, ...text(query.get("client"))]));
socket.onmessage = (event) => {
  const grown = new Uint8Array(stream.length + event.data.byteLength);
  grown.set(stream); grown.set(new Uint8Array(event.data), stream.length);
  stream = grown;
  for (;;) {
    let length = 0, place = 1, shift = 0;
    do { if (place >= stream.length) return; length |= (stream[place] & 127) << shift; shift += 7; }
    while (stream[place++] & 128);
    if (stream.length < place + length) return;
    handle(stream[0], stream.slice(place, place + length));
    stream = stream.slice(place + length);
  }
};
socket.onerror = () => { failed = true; };
socket.onclose = (event) => finish({
  seen, failed, protocol: socket.protocol, extensions: socket.extensions, code: event.code, clean: event.wasClean,
});
</script>"""


@pytest.fixture
def pages():
    one = Pages(PAGE)
    yield one
    one.close()


def test_a_page_publishes_and_receives(pages, start_broker, names):
    broker = start_broker(environment=websocket_environment(origins=pages.origin))
    result = visit(pages, urlencode({
        "url": f"ws://127.0.0.1:{broker.port}/mqtt", "topic": names.topic(),
        "client": names.client("page"),
    }))
    assert result == {
        "seen": ["CONNACK 0", "SUBACK 0", "PUBLISH 0 true", "PUBLISH 100 true",
                 "PUBLISH 70000 true", "PUBLISH 300000 true"],
        "failed": False, "protocol": "mqtt", "extensions": "", "code": 1000, "clean": True,
    }
    assert AdminAPI(broker).metric(
        'hermes_connections_closed_total{reason="disconnect"}') == 1


def test_a_page_of_another_origin_sees_only_that_it_failed(pages, start_broker, names):
    broker = start_broker(environment=websocket_environment(origins="https://app.example"))
    result = visit(pages, urlencode({
        "url": f"ws://127.0.0.1:{broker.port}/mqtt", "topic": names.topic(), "client": "page",
    }))
    assert (result["seen"], result["failed"], result["code"]) == ([], True, 1006)
    broker.log.await_match("websocket.failure=.*Origin that the listener does not list")
