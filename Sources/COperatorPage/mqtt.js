// A subscriber of MQTT 3.1.1 over WebSocket, as far as the live messages of the operator's page
// need one: QoS 0, Clean Session 1, and no publishing. Statements of the specification stand in
// brackets.

/** Bytes of a payload that are kept; the others are only counted. */
export const mostPayloadKept = 1_024;

/** Bytes of a packet's body that are kept: the longest topic name, and that much payload. */
const mostBodyKept = 2 + 0xFFFF + mostPayloadKept;

/** Bytes of a text in a packet: its length takes two bytes (section 1.5.3). */
const mostTextBytes = 0xFFFF;

export const mostFilters = 16;

const connack = 2;
const publish = 3;
const suback = 9;
const pingresp = 13;

/** The lengths that a body may have, for the packets that a broker sends such a subscriber. */
const bodyLengths = new Map([
  [connack, [2, 2]], [publish, [2, 0xFFF_FFFF]], [suback, [3, 2 + mostFilters]], [pingresp, [0, 0]],
]);

/** What came is no packet, or none that a broker sends to a subscriber at QoS 0. */
export class MalformedPacket extends Error {}

/**
 * Joins and splits the bytes of a connection into packets, which lie in the messages of WebSocket
 * as they like [MQTT-6.0.0-2]. Memory for a packet is bounded, whatever length it announces.
 */
export class PacketReader {
  #first = null;
  #length = 0;
  #lengthBytes = 0;
  #body = null;
  #passed = 0;

  /**
   * Yields the packets that `chunk` completes, as `{type, flags, length, body}`: `length` is that
   * of the body, of which no more than `mostBodyKept` bytes are in `body`.
   *
   * @throws {MalformedPacket}
   */
  *packets(chunk) {
    let place = 0;
    while (place < chunk.length) {
      if (this.#body === null) {
        this.#takeHeader(chunk[place]);
        place += 1;
        if (this.#body === null) continue;
      }
      const end = Math.min(chunk.length, place + this.#length - this.#passed);
      const room = this.#body.length - this.#passed;
      if (room > 0) {
        this.#body.set(chunk.subarray(place, Math.min(end, place + room)), this.#passed);
      }
      this.#passed += end - place;
      place = end;
      if (this.#passed < this.#length) return;
      const packet = {
        type: this.#first >> 4, flags: this.#first & 0xF, length: this.#length, body: this.#body,
      };
      this.#first = this.#body = null;
      this.#length = this.#lengthBytes = this.#passed = 0;
      yield packet;
    }
  }

  /** Takes a byte of the fixed header; the body begins behind its last one (section 2.2.3). */
  #takeHeader(byte) {
    if (this.#first === null) {
      const type = byte >> 4;
      if (!bodyLengths.has(type)) throw new MalformedPacket(`a packet of type ${type}`);
      if (type !== publish && (byte & 0xF) !== 0) {
        throw new MalformedPacket("reserved flags [MQTT-2.2.2-2]");
      }
      this.#first = byte;
      return;
    }
    this.#length += (byte & 0x7F) * 128 ** this.#lengthBytes;
    this.#lengthBytes += 1;
    if (byte & 0x80) {
      if (this.#lengthBytes === 4) throw new MalformedPacket("a length of more than four bytes");
      return;
    }
    const [least, most] = bodyLengths.get(this.#first >> 4);
    if (this.#length < least || this.#length > most) {
      throw new MalformedPacket(`a packet of type ${this.#first >> 4} of ${this.#length} bytes`);
    }
    this.#body = new Uint8Array(Math.min(this.#length, mostBodyKept));
  }
}

/**
 * The message in a PUBLISH: `{topic, qos, isRetained, size, payload}`, where `payload` holds the
 * first bytes of `size`.
 *
 * @throws {MalformedPacket}
 */
export function messageIn({ flags, length, body }) {
  const qos = flags >> 1 & 3;
  if (qos !== 0) throw new MalformedPacket(`a message of QoS ${qos}, though 0 was subscribed`);
  const end = 2 + (body[0] << 8 | body[1]);
  if (end > length) throw new MalformedPacket("a topic name that is longer than its packet");
  return {
    topic: text(body.subarray(2, end)), qos, isRetained: (flags & 1) === 1, size: length - end,
    // A copy, so that the rest of a large body can go.
    payload: body.slice(end, end + mostPayloadKept),
  };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function text(bytes) {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new MalformedPacket("a topic name that is not UTF-8 [MQTT-1.5.3-1]");
  }
}

// MARK: Packets to the broker

function packet(first, ...parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = [first];
  let rest = length;
  do {
    bytes.push(rest % 128 + (rest > 127 ? 128 : 0));
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  const header = bytes.length;
  const result = new Uint8Array(header + length);
  result.set(bytes);
  let place = header;
  for (const part of parts) {
    result.set(part, place);
    place += part.length;
  }
  return result;
}

/** Text or bytes behind their length. */
function prefixed(value) {
  const bytes = new TextEncoder().encode(value);
  if (bytes.length > mostTextBytes) throw new RangeError(`a text of ${bytes.length} bytes`);
  return new Uint8Array([bytes.length >> 8, bytes.length & 0xFF, ...bytes]);
}

/** A CONNECT with Clean Session 1; `userName` and `password` are texts, or null. */
export function connectPacket({ clientID, keepAliveSeconds, userName, password }) {
  const flags = 0x02 | (userName === null ? 0 : 0x80) | (password === null ? 0 : 0x40);
  const login = [userName, password].filter((value) => value !== null).map(prefixed);
  const head = [4, flags, keepAliveSeconds >> 8, keepAliveSeconds & 0xFF];
  return packet(0x10, prefixed("MQTT"), head, prefixed(clientID), ...login);
}

/** A SUBSCRIBE with packet identifier 1 to all filters at QoS 0. */
export function subscribePacket(filters) {
  return packet(0x82, [0, 1], ...filters.flatMap((filter) => [prefixed(filter), [0]]));
}

const pingreq = packet(0xC0);
const disconnect = packet(0xE0);

/** True for a text that a packet can hold (section 1.5.3). */
export function fits(text) {
  return new TextEncoder().encode(text).length <= mostTextBytes;
}

/** Why a text is no topic filter (section 4.7), in words; null for a good one. */
export function flawOfFilter(filter) {
  if (!filter.isWellFormed() || filter.includes("\0")) return "holds a character that MQTT has not";
  if (!fits(filter)) return "is longer than 65,535 bytes";
  const levels = filter.split("/");
  if (levels.slice(0, -1).some((level) => level.includes("#"))) return "has levels behind its #";
  if (levels.some((level) => level.length > 1 && /[+#]/.test(level))) {
    return "has a + or # that is not a level of its own";
  }
  return null;
}

// MARK: A connection

/** Milliseconds for a connection to open, for CONNACK and SUBACK, and for an answer to PINGREQ. */
const patience = 15_000;

/** Milliseconds between two packets to the broker, whatever comes from it. */
const pingAfter = 10_000;

/** Much more than `pingAfter`, since browsers let timers of hidden tabs run once a minute. */
const keepAliveSeconds = 180;

/**
 * One subscription that lasts until either side ends it.
 *
 * `hear` has a function for each event: `granted(codes)` with the return codes of SUBACK;
 * `message(message)` as of `messageIn`; and, as the last one, `ended(end)`, where `end.why` is
 * - `unopened`: the browser opened no connection, and tells no page the reason;
 * - `refused`: `end.code` is the return code of CONNACK;
 * - `closed`: the broker closed with `end.code` of WebSocket (RFC 6455, section 7.4.1);
 * - `silent`: it did not answer in time;
 * - `malformed`: `end.text` says what it sent.
 */
export class Subscription {
  #socket;
  #hear;
  #reader = new PacketReader();
  /** What is awaited: `open`, `connack`, `suback`, or null. */
  #awaited = "open";
  #filters;
  #login;
  #heardAt = Date.now();
  /** When the last packet was sent, or the connection begun. */
  #sentAt = Date.now();
  #timer;

  /** Begins to connect. `login` is `{clientID, userName, password}`. */
  constructor(url, login, filters, hear) {
    this.#login = login;
    this.#filters = filters;
    this.#hear = hear;
    this.#timer = setInterval(() => this.#watch(), 1_000);
    // Throws for what the browser refuses at once, such as ws on a page of HTTPS.
    try {
      this.#socket = new WebSocket(url, "mqtt");
    } catch {
      queueMicrotask(() => this.#end({ why: "unopened" }));
      return;
    }
    this.#socket.binaryType = "arraybuffer";
    this.#socket.addEventListener("open", () => this.#opened());
    this.#socket.addEventListener("message", (event) => this.#take(event.data));
    this.#socket.addEventListener("close", (event) => {
      const isOpened = this.#awaited !== "open";
      this.#end(isOpened ? { why: "closed", code: event.code } : { why: "unopened" });
    });
  }

  /** Ends it without a further event. */
  stop() {
    this.#hear = null;
    this.#end(null);
  }

  #opened() {
    this.#send(connectPacket({ ...this.#login, keepAliveSeconds }), "connack");
    this.#login = null;
  }

  /** Sends a packet and awaits its answer. */
  #send(packet, answer) {
    this.#socket.send(packet);
    this.#awaited = answer;
    this.#sentAt = Date.now();
  }

  #take(data) {
    if (this.#hear === null) return;
    this.#heardAt = Date.now();
    try {
      if (typeof data === "string") throw new MalformedPacket("text in place of packets");
      for (const packet of this.#reader.packets(new Uint8Array(data))) {
        this.#handle(packet);
        if (this.#hear === null) return;
      }
    } catch (error) {
      if (!(error instanceof MalformedPacket)) throw error;
      this.#end({ why: "malformed", text: error.message });
    }
  }

  #handle(packet) {
    const { type, body } = packet;
    if ((type === connack) !== (this.#awaited === "connack")) {
      throw new MalformedPacket(`a packet of type ${type} at the wrong time`);
    }
    switch (type) {
      case connack:
        if (body[1] !== 0) {
          this.#end({ why: "refused", code: body[1] });
          return;
        }
        this.#send(subscribePacket(this.#filters), "suback");
        return;
      case suback:
        if (this.#awaited !== "suback" || body.length !== 2 + this.#filters.length) {
          throw new MalformedPacket("a SUBACK that answers nothing [MQTT-3.8.4-5]");
        }
        this.#awaited = null;
        this.#hear.granted([...body.subarray(2)]);
        return;
      case publish:
        this.#hear.message(messageIn(packet));
        return;
      case pingresp:
        if (this.#awaited === "pingresp") this.#awaited = null;
    }
  }

  #watch() {
    const now = Date.now();
    if (this.#awaited === null) {
      if (now - this.#sentAt > pingAfter) this.#send(pingreq, "pingresp");
    } else if (now - Math.max(this.#sentAt, this.#heardAt) > patience) {
      this.#end({ why: this.#awaited === "open" ? "unopened" : "silent" });
    }
  }

  #end(end) {
    clearInterval(this.#timer);
    const hear = this.#hear;
    this.#hear = null;
    this.#login = null;
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(disconnect);
    this.#socket?.close();
    hear?.ended(end);
  }
}
