// The live messages of the operator's page: a client of the broker's own listener of WebSocket,
// with the rights of the user that the operator names. This file is given no token of the HTTP API,
// and keeps user name and password nowhere but in the form.

import { fits, flawOfFilter, mostFilters, Subscription } from "/ui/mqtt.js";
import { byID, linkTo, put, rate, setText, show, visible, whole } from "/ui/text.js";

const mostRows = 200;

/** Milliseconds between two changes of the table, however many messages come. */
const renderEvery = 100;

/** Characters of a topic, and bytes of a payload in hexadecimal, that a row shows. */
const mostTopicShown = 256;
const mostHexShown = 256;

/** The listeners of WebSocket, each with its number in the configuration. */
let doors = [];

/** The subscription under way, with its client identifier, URL, filters and counts; or null. */
let tail = null;

/** Messages that wait for the table, the oldest first. */
let waiting = [];

/** Messages that the table never shows: too fast for it, during a pause, given up by the broker. */
const missed = { rows: 0, paused: 0, shed: 0 };

let isPaused = false;

// MARK: Listeners

/** Shows what of `GET /v1/listeners` can be chosen. */
export function showListeners(listeners) {
  const chosen = byID("tail-listener").value;
  doors = listeners
    .map((listener, number) => ({ ...listener, number }))
    .filter(({ websocket }) => websocket);
  byID("tail-listener").replaceChildren(...doors.map((door) => {
    const option = document.createElement("option");
    option.value = String(door.number);
    setText(option, `${urlOf(door)} (listeners[${door.number}])`);
    return option;
  }));
  if (doors.some(({ number }) => String(number) === chosen)) byID("tail-listener").value = chosen;
  show(byID("tail-form"), doors.length > 0);
  show(byID("tail-none"), doors.length === 0);
  put("tail-none-lines", [
    "listeners:",
    "  - port: 1883",
    "  - port: 8083",
    "    protocol: websocket",
    ...originLines([]),
  ].join("\n"));
  showHint();
}

/** The URL of a listener at the host of this page. */
function urlOf({ tls, address, websocket }) {
  const port = address.slice(address.lastIndexOf(":") + 1);
  return `${tls ? "wss" : "ws"}://${location.hostname}:${port}${websocket.path}`;
}

/** The lines of the configuration that let this page in beside `others`. */
function originLines(others) {
  const origins = [...others, location.origin].map((one) => JSON.stringify(one)).join(", ");
  return ["    websocket:", `      origins: [${origins}]`];
}

const chosenDoor = () => doors.find(({ number }) => String(number) === byID("tail-listener").value);

const lets = (door) => door.websocket.origins.includes(location.origin);

/** Says before a try that a listener does not let this page in. */
function showHint() {
  const door = chosenDoor();
  const isShut = door !== undefined && !lets(door);
  show(byID("tail-hint"), isShut);
  show(byID("tail-hint-lines"), isShut);
  if (!isShut) return;
  put("tail-hint", `This listener does not let pages of ${location.origin} in. Write this below `
    + `listeners[${door.number}] in the configuration, and restart the broker:`);
  put("tail-hint-lines", originLines(door.websocket.origins).join("\n"));
}

// MARK: A subscription

function start() {
  const filters = byID("tail-filters").value.split("\n").filter((line) => line !== "");
  const flaw = flawOf(filters);
  const userName = byID("tail-user").value;
  const password = byID("tail-password").value;
  put("tail-problem", flaw);
  if (flaw !== "") return;
  if (userName === "" && password !== "") {
    put("tail-problem", "MQTT 3.1.1 sends a password only with a user name: give one.");
    return;
  }
  if ([userName, password].some((text) => !fits(text))) {
    put("tail-problem", "User name and password have at most 65,535 bytes each in MQTT.");
    return;
  }
  stop();
  missed.shed = 0;
  clear();
  const door = chosenDoor();
  const random = crypto.getRandomValues(new Uint8Array(8));
  const own = {
    door, filters, clientID: `operator-page-${hex(random, "")}`, isGranted: false, count: 0,
    lately: [],
  };
  tail = own;
  const login = {
    clientID: own.clientID, userName: userName === "" ? null : userName,
    password: password === "" ? null : password,
  };
  own.subscription = new Subscription(urlOf(door), login, filters, {
    granted: (codes) => granted(own, codes),
    message: (message) => take(own, message),
    ended: (end) => ended(own, end),
  });
  show(byID("tail-client"), false);
  showState();
}

/** Why these filters cannot be subscribed to, in words; empty when they can. */
function flawOf(filters) {
  if (filters.length === 0) return "Give a topic filter, such as orders/# or # for all topics.";
  if (filters.length > mostFilters) return `Give at most ${mostFilters} topic filters.`;
  for (const filter of filters) {
    if (filter.startsWith("$share/")) {
      return "A shared subscription would take messages away from the members of its group: "
        + "leave $share/ and the group out.";
    }
    const flaw = flawOfFilter(filter);
    if (flaw !== null) return `The topic filter ${cut(filter).text} ${flaw}.`;
  }
  return "";
}

function granted(own, codes) {
  const denied = own.filters.filter((_, index) => codes[index] === 0x80);
  own.isGranted = true;
  showLink(own);
  if (denied.length > 0) {
    const names = denied.map((filter) => cut(filter).text).join(", ");
    put("tail-problem", `The broker does not grant ${names}: the access rules deny it to this `
      + "client, or a limit is met. The client's view says which.");
    if (denied.length === own.filters.length) stop();
  }
  showState();
}

function ended(own, end) {
  put("tail-problem", wordsOf(end, own.door));
  if (end.why === "refused") showLink(own);
  stop();
}

/** Ends the subscription; what has come stays. */
function stop() {
  tail?.subscription.stop();
  tail = null;
  showState();
  showMissed();
}

/** Ends it, and leaves nothing behind. */
export function forgetTail() {
  stop();
  missed.shed = 0;
  clear();
  doors = [];
  byID("tail-listener").replaceChildren();
  for (const id of ["tail-filters", "tail-user", "tail-password"]) byID(id).value = "";
  byID("tail-link").removeAttribute("href");
  const texts = ["tail-problem", "tail-hint", "tail-hint-lines", "tail-none-lines", "tail-link"];
  for (const id of texts) put(id, "");
  show(byID("tail-client"), false);
}

/** The client identifier of the subscription under way; null without one. */
export const tailClientID = () => tail?.clientID ?? null;

/** Shows how many messages the broker gave up because this client read too slowly. */
export function showShed(clientID, count) {
  if (clientID !== tailClientID()) return;
  missed.shed = count;
  showMissed();
}

// MARK: Ends, in words

const refusals = new Map([
  [1, "The listener does not speak MQTT 3.1.1."],
  [2, "The broker refuses the client identifier, which begins with operator-page-: raise "
    + "limits.max_client_id to 30 or more."],
  [3, "The broker has no room at present, is busy, or is being drained. Look at the figures above, "
    + "and try again."],
  [4, "The user name or the password is wrong, or the token has expired."],
  [5, "The broker does not let this client in: the listener wants a user name and a password, or "
    + "the user, the client or this address is shut out."],
]);

const closings = new Map([
  [1000, "The broker closed the connection: an operator disconnected this client, or it kept silent "
    + "for longer than its keep alive."],
  [1001, "The broker stopped, or is being drained."],
  [1002, "The broker did not understand this page. Reload it, as the broker may be of another "
    + "version now."],
  [1006, "The connection broke. See whether the broker runs, and start again."],
  [1008, "The broker closed the connection by a rule or a limit, such as the end of a token."],
  [1011, "The broker closed the connection because its store failed."],
  [1013, "The broker closed the connection for want of room."],
]);

function wordsOf(end, door) {
  switch (end.why) {
    case "unopened": return whyUnopened(door);
    case "forbidden": return whyForbidden(door);
    case "refused":
      return refusals.get(end.code) ?? `The broker refused the client with code ${end.code}.`;
    case "closed":
      return closings.get(end.code) ?? `The connection ended with code ${end.code} of WebSocket.`;
    case "silent": return "The broker does not answer. See whether it hangs, and start again.";
    default:
      return `${urlOf(door)} is no listener of this broker, or a proxy changed what it sent: `
        + `${end.text}.`;
  }
}

/** Why the policy of this page does not name the listener. */
function whyForbidden(door) {
  const { hostname, host } = new URL(urlOf(door));
  return hostname.startsWith("[")
    ? "No policy of a page can name an IPv6 address, so the browser opens no connection from this "
      + "one. Open this page by a name, such as localhost."
    : `This page was not told of ${host} when it was loaded. Reload it; if that does not help, open `
      + "it by a name of letters, digits, hyphens and dots.";
}

/** What may be the reason why a connection did not open: browsers tell none. */
function whyUnopened(door) {
  const reasons = [];
  if (location.protocol.startsWith("https") && !door.tls) {
    reasons.push("This page came over HTTPS, so the browser opens no connection without TLS: give "
      + `listeners[${door.number}] a certificate (tls), or choose a listener that has one.`);
  }
  if (!lets(door)) {
    reasons.push("The listener does not let this page in: the lines above cure that.");
  }
  if (reasons.length > 0) return reasons.join(" ");
  if (door.tls) {
    const address = new URL(urlOf(door));
    address.protocol = "https";
    reasons.push("Most often the browser does not trust the listener's certificate: open "
      + `${address.href} in another tab, which says so. Otherwise:`);
  }
  reasons.push(`${new URL(urlOf(door)).host} cannot be reached from here: the listener is bound to `
    + `${door.address}, a firewall or a tunnel may be between, or this address is banned. If the `
    + "broker refused the request, its log has a line “Connection closed, its WebSocket was "
    + "broken” with the reason.");
  return reasons.join(" ");
}

// MARK: Messages

function take(own, message) {
  own.count += 1;
  if (isPaused) {
    missed.paused += 1;
    return;
  }
  message.at = Date.now();
  if (waiting.push(message) === 1) requestAnimationFrame(render);
  if (waiting.length > mostRows) {
    waiting.shift();
    missed.rows += 1;
  }
}

let renderedAt = 0;

/** Moves all that waits into the table, the newest first, a few times a second. */
function render(now) {
  if (waiting.length === 0) return;
  if (now - renderedAt < renderEvery) {
    requestAnimationFrame(render);
    return;
  }
  renderedAt = now;
  const rows = waiting.reverse().map(rowOf);
  waiting = [];
  const body = byID("tail-rows").tBodies[0];
  body.prepend(...rows);
  while (body.rows.length > mostRows) body.lastElementChild.remove();
  show(byID("tail-rows"), true);
  showState();
  showMissed();
}

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
});

function rowOf({ at, topic, qos, isRetained, size, payload }) {
  const row = document.createElement("tr");
  const name = cut(topic);
  const content = contentOf(payload, size);
  const cells = [
    { text: clock.format(at), kind: "short" }, name,
    { text: isRetained ? `${qos}, retained` : String(qos), kind: "short" },
    { text: whole.format(size), kind: "number" }, content,
  ];
  for (const { text, note = "", kind = "" } of cells) {
    const cell = row.insertCell();
    cell.className = kind;
    const value = document.createElement("bdi");
    value.textContent = text;
    cell.append(value);
    if (note === "") continue;
    const remark = document.createElement("small");
    remark.textContent = note;
    cell.append(remark);
  }
  return row;
}

/** A topic with at most so many of its characters, none of them cut in half. */
function cut(topic) {
  if (topic.length <= mostTopicShown) return { text: visible(topic) };
  const start = topic.slice(0, mostTopicShown).replace(/[\uD800-\uDBFF]$/, "");
  return { text: visible(start), note: `the first of ${whole.format(topic.length)} characters` };
}

/** The first bytes of a payload: text when they are UTF-8, otherwise hexadecimal. */
function contentOf(payload, size) {
  if (size === 0) return { text: "", note: "empty" };
  const isCut = payload.length < size;
  const part = (shown) => (
    shown < size ? `the first ${whole.format(shown)} of ${whole.format(size)} bytes` : "");
  try {
    // A stream may end within a character.
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const text = decoder.decode(payload, { stream: isCut });
    return { text: visible(text), note: part(payload.length), kind: "payload" };
  } catch {
    const shown = payload.subarray(0, mostHexShown);
    const notes = ["not UTF-8, in hexadecimal", part(shown.length)].filter((note) => note !== "");
    return { text: hex(shown, " "), note: notes.join(", "), kind: "payload" };
  }
}

function hex(bytes, between) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(between);
}

function clear() {
  waiting = [];
  missed.rows = missed.paused = 0;
  if (tail !== null) {
    tail.count = 0;
    tail.lately = [];
  }
  byID("tail-rows").tBodies[0].replaceChildren();
  show(byID("tail-rows"), false);
  showMissed();
  showState();
}

// MARK: The state

function showState() {
  byID("tail-stop").disabled = tail === null;
  byID("tail-clear").disabled = tail === null && byID("tail-rows").hidden;
  if (tail === null) put("tail-state", byID("tail-rows").hidden ? "" : "Ended.");
  else if (!tail.isGranted) put("tail-state", `Connecting to ${urlOf(tail.door)} …`);
  else {
    const { count, seconds } = growth(tail.lately);
    const speed = seconds > 0 ? `, ${rate(count / seconds)} a second` : "";
    put("tail-state", `${isPaused ? "Paused" : "Live"}: ${messages(tail.count)}${speed}.`);
  }
}

const messages = (count) => `${whole.format(count)} ${count === 1 ? "message" : "messages"}`;

/** The messages of about the last five seconds. */
function growth(lately) {
  if (lately.length < 2) return { count: 0, seconds: 0 };
  const [first, last] = [lately[0], lately.at(-1)];
  return { count: last.count - first.count, seconds: (last.at - first.at) / 1_000 };
}

function showMissed() {
  const lines = [
    [missed.rows, "came faster than this page shows them, or while nobody saw it, and are not "
      + "shown. A narrower filter helps."],
    [missed.paused, "came during a pause, and are not shown."],
    [missed.shed, "never came: the broker gave them up because this page read too slowly "
      + "(slow_reader). A narrower filter helps."],
  ];
  const text = lines.filter(([count]) => count > 0)
    .map(([count, words]) => `${messages(count)} ${words}`);
  put("tail-missed", text.join(" "));
}

/** Leads to the client's view. Of one that sent no CONNECT the broker knows nothing. */
function showLink({ clientID }) {
  const link = byID("tail-link");
  link.href = linkTo(clientID);
  setText(link, `What the broker knows of ${clientID}`);
  show(byID("tail-client"), true);
}

setInterval(() => {
  if (tail === null) return;
  tail.lately.push({ at: performance.now(), count: tail.count });
  if (tail.lately.length > 6) tail.lately.shift();
  showState();
  showMissed();
}, 1_000);

// MARK: Events of the page

byID("tail-form").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
byID("tail-listener").addEventListener("change", showHint);
byID("tail-stop").addEventListener("click", stop);
byID("tail-clear").addEventListener("click", clear);
byID("tail-pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byID("tail-pause").setAttribute("aria-pressed", String(isPaused));
  showState();
});
// A connection that the policy of this page forbids has no other event in some browsers.
document.addEventListener("securitypolicyviolation", ({ blockedURI }) => {
  if (tail !== null && blockedURI.startsWith(new URL(urlOf(tail.door)).origin)) {
    ended(tail, { why: "forbidden" });
  }
});
