// The operator's page of Hermes. All that it shows comes from the HTTP API with the token that the
// operator types, which stays in a variable of this file. Text of clients is set as text only, and
// escaped as hermesctl does it. Live messages are shown by tail.js, which never sees the token.

import { forgetTail, showListeners, showShed, tailClientID } from "/ui/tail.js";
import {
  byID, bytes, clockTime, linkTo, microseconds, named, printable, put, rate, setText, show, span,
  visible,
  whole,
} from "/ui/text.js";

let token = null;
let stream = null;

const dropWords = {
  offline: "QoS 0, receiver offline",
  slow_reader: "QoS 0, receiver read too slowly",
  queue_full: "the receiver's queue was full",
  expired: "expired before delivery",
  reserved_topic: "published below $SYS/",
  operator: "an operator emptied the queue",
  acl: "denied by the access rules",
  session_ended: "the session ended",
  handed_over: "another member of the shared subscription got it",
  too_large: "larger than the receiver's packets",
  refused: "refused by the receiver",
  replaced: "replaced by a later message of its collapse key",
};

// MARK: Tables

/**
 * Makes the rows of a table those of `rows`, and keeps the ones that stay, so that focus and
 * selected text stay too. A row is `{key, cells, kind}`; a cell is text, or
 * `{text, note, link, kind}`.
 */
function fill(table, rows) {
  show(table, rows.length > 0);
  const body = table.tBodies[0];
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  rows.forEach(({ key, cells, kind = "" }, index) => {
    let row = old.get(key);
    old.delete(key);
    if (!row) {
      row = document.createElement("tr");
      row.dataset.key = key;
      cells.forEach(() => row.insertCell());
    }
    if (row.className !== kind) row.className = kind;
    cells.forEach((cell, column) => fillCell(row.cells[column], cell));
    if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
  });
  for (const row of old.values()) row.remove();
}

function fillCell(element, cell) {
  const { text, note = "", link, kind = "" } = typeof cell === "string" ? { text: cell } : cell;
  if (element.className !== kind) element.className = kind;
  const name = link ? "a" : "bdi";
  if (element.firstElementChild?.localName !== name) {
    element.replaceChildren(document.createElement(name));
  }
  setText(element.firstElementChild, text);
  if (link && element.firstElementChild.getAttribute("href") !== link) {
    element.firstElementChild.setAttribute("href", link);
  }
  if (note && !element.children[1]) element.append(document.createElement("small"));
  if (element.children[1]) setText(element.children[1], note);
}

const number = (value) => ({ text: whole.format(value), kind: "number" });
const short = (text) => ({ text, kind: "short" });

// MARK: The API

/** What the broker answered instead of what was asked for. */
class Refusal extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `The broker answered with status ${status}.`);
    this.status = status;
    this.fix = problem?.fix ?? "";
  }

  get text() {
    if (this.status === 401 && !this.message.includes("expired")) {
      return "The broker does not know this token. Paste it whole, or make another: "
        + "hermesctl tokens create NAME --scope read.";
    }
    return printable(`${this.message} ${this.fix}`.trim());
  }
}

async function call(method, path, signal) {
  const response = await fetch(path, {
    method, signal, headers: { Authorization: `Bearer ${token}` },
    cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
  });
  if (response.ok) return response;
  throw new Refusal(response.status, await response.json().catch(() => null));
}

const get = async (path) => (
  await call("GET", path, AbortSignal.timeout(longestSilence))).json();

/** Why a request failed, in words with a cure. */
function reason(error) {
  if (error instanceof Refusal) return error.text;
  return "The broker does not answer. See whether hermesd runs and its address is reached.";
}

// MARK: Live figures

/** Milliseconds of silence after which a connection or an answer is given up. */
const longestSilence = 10_000;

/**
 * The state of the stream: when figures came last, what is wrong with it, when anything came last,
 * the connection under way, and the time before the next one.
 */
const live = { lastAt: null, problem: "", heardAt: 0, attempt: null, wait: 1_000 };

/** Snapshots of the last minute, the newest last. */
let snapshots = [];

/** Yields the events of a stream of server-sent events as `[name, data]`. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const fields = block.split("\n").map((line) => line.split(/: ?(.*)/s, 2));
        const field = (name) => fields.filter(([key]) => key === name).map(([, text]) => text);
        yield [field("event").at(-1) ?? "message", field("data").join("\n")];
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Follows the broker until the token is forgotten or refused. */
async function follow() {
  stream?.abort();
  const own = new AbortController();
  stream = own;
  while (!own.signal.aborted) {
    live.attempt = new AbortController();
    live.heardAt = Date.now();
    try {
      const signal = AbortSignal.any([own.signal, live.attempt.signal]);
      const response = await call("GET", "/v1/events", signal);
      show(byID("disconnect"), (response.headers.get("Hermes-Scopes") ?? "").split(",")
        .includes("admin"));
      for await (const [name, data] of events(response.body)) {
        live.heardAt = Date.now();
        const value = JSON.parse(data);
        if (name === "snapshot") take(value);
        else live.problem = new Refusal(value.status, value).text;
        if (name === "end" && value.status === 401) throw new Refusal(401, value);
      }
      live.problem ||= "The broker ended the connection.";
    } catch (error) {
      if (own.signal.aborted) return;
      if (error.status === 401 || error.status === 403 || error.status === 429) {
        forget(error.text);
        return;
      }
      live.problem = reason(error);
    }
    watch();
    await new Promise((resume) => setTimeout(resume, live.wait));
    live.wait = Math.min(5_000, live.wait * 2);
  }
}

function take(snapshot) {
  live.lastAt = new Date();
  live.problem = "";
  live.wait = 1_000;
  // The counters of another start are no measure for these.
  if (snapshots.at(-1)?.status.started_at_ms !== snapshot.status.started_at_ms) snapshots = [];
  snapshots.push(snapshot);
  while (snapshot.clock_ms - snapshots[0].clock_ms > 61_000) snapshots.shift();
  showSnapshot(snapshot);
  if (byID("board").hidden) {
    show(byID("entry"), false);
    show(byID("board"), true);
    show(byID("forget"), true);
    search();
    select();
  }
  readListeners(snapshot.status.started_at_ms);
  watch();
}

/** Tells whether what is shown is of now. */
function watch() {
  if (token === null || document.hidden) return;
  if (Date.now() - live.heardAt > longestSilence) live.attempt.abort();
  const silent = live.lastAt === null || Date.now() - live.lastAt > 3_500;
  const isStale = silent || live.problem !== "";
  const state = byID("live");
  show(state, true);
  state.className = isStale ? "live bad" : "live";
  setText(state, isStale ? "Not live" : "Live");
  document.body.classList.toggle("stale", isStale && live.lastAt !== null);
  show(byID("banner"), isStale && (live.lastAt !== null || live.problem !== ""));
  if (!isStale) return;
  // What the last snapshot said of readiness may be over, as after a stop.
  byID("readiness").className = "readiness bad";
  put("ready", "No answer");
  put("ready-reason", "Whether the broker is ready is not known at present.");
  const since = live.lastAt ? `These figures are of ${clockTime(live.lastAt)}. ` : "";
  put("banner", `${since}${live.problem || "The broker sends none at present."} Trying again.`);
}

/** The growth of a counter over about `seconds`, and the time it took. */
function growth(of, seconds) {
  const newest = snapshots.at(-1);
  const first = snapshots.find((one) => newest.clock_ms - one.clock_ms <= seconds * 1_000 + 500);
  return {
    count: of(newest) - of(first), seconds: (newest.clock_ms - first.clock_ms) / 1_000,
  };
}

function perSecond(of) {
  const { count, seconds } = growth(of, 5);
  return seconds > 0 ? rate(count / seconds) : "–";
}

function showSnapshot(snapshot) {
  const { status } = snapshot;
  put("where", `${status.version} · ${location.host}`);
  byID("readiness").className = snapshot.ready ? "readiness" : "readiness bad";
  put("ready", snapshot.ready ? "Ready" : "Not ready");
  put("ready-reason", snapshot.ready ? "" : printable(snapshot.not_ready_reason ?? ""));
  put("durability", durability(status));
  put("uptime", `Up for ${span(status.uptime_s)}.`);
  showClients(snapshot);
  showMessages(snapshot);
  showStore(status.store ?? null, snapshot.commits_pending);
  showMemory(status.memory ?? null);
  showCertificates(snapshot.certificates);
  showLosses();
}

function durability({ durability, durability_interval_ms: interval }) {
  switch (durability) {
    case "sync": return "Durability sync: what is acknowledged is on the disk.";
    case "interval":
      return `Durability interval: a power failure loses at most ${interval ?? "?"} ms.`;
    default: return "Durability none: a restart loses sessions and queues.";
  }
}

function showClients({ status, offline, connections_peak: peak, connections_limit: limit }) {
  put("connections", whole.format(status.connections));
  put("offline", whole.format(offline));
  put("pending", whole.format(status.connections_pending));
  put("refused", whole.format(status.connections_refused));
  put("peak", `${whole.format(peak)} of ${whole.format(limit)}`);
}

function showMessages({ status }) {
  put("rate-in", perSecond((one) => one.status.publishes_received));
  for (const qos of [0, 1, 2]) {
    put(`in-${qos}`, perSecond((one) => one.publishes_received_by_qos[qos]));
    put(`out-${qos}`, perSecond((one) => one.publishes_sent_by_qos[qos]));
  }
  put("queued", whole.format(status.queued));
  put("queued-bytes", bytes(status.queued_bytes));
  put("in-flight", whole.format(status.in_flight));
  put("paused", whole.format(status.publishers_paused));
  put("retained", whole.format(status.retained));
}

/** The median and the 99th percentile of the last minute's times. */
function shares(name) {
  const bounds = snapshots.at(-1).store_times.bounds_us;
  const counts = [...bounds, 0].map(
    (_, index) => growth((one) => one.store_times[name][index], 60).count);
  if (counts.at(-1) === 0) return "–";
  return [0.5, 0.99].map((share) => percentile(bounds, counts, share)).join(", ");
}

/**
 * The time within which a share of the counted ended, estimated between two bounds; `counts` are
 * those within each bound, and all.
 */
function percentile(bounds, counts, share) {
  const wanted = counts.at(-1) * share;
  const bucket = counts.findIndex((count) => count >= wanted);
  if (bucket === bounds.length) return `> ${microseconds(bounds.at(-1))}`;
  const [from, below] = bucket > 0 ? [bounds[bucket - 1], counts[bucket - 1]] : [0, 0];
  const part = (wanted - below) / (counts[bucket] - below);
  return microseconds(from + (bounds[bucket] - from) * part);
}

function showStore(store, pending) {
  if (store === null) {
    put("sync-time", "–");
    put("sync-label", "nothing is stored");
    const figures = [
      "commit-rate", "commit-pending", "sync-shares", "commit-shares", "sync-longest",
      "commit-longest", "disk-free",
    ];
    for (const id of figures) put(id, "–");
    return;
  }
  const commits = growth((one) => one.status.store.commits, 5);
  const syncing = growth((one) => one.status.store.sync_us, 5);
  put("sync-time", commits.count > 0 ? microseconds(syncing.count / commits.count) : "–");
  put("sync-label", commits.count > 0 ? "fdatasync for a commit" : "no commit lately");
  put("commit-rate", commits.seconds > 0 ? rate(commits.count / commits.seconds) : "–");
  put("commit-pending", whole.format(pending));
  put("sync-shares", shares("fdatasyncs"));
  put("commit-shares", shares("commits"));
  put("sync-longest", microseconds(store.longest_sync_us));
  put("commit-longest", microseconds(store.longest_commit_us));
  put("disk-free", bytes(store.free_bytes));
}

const pressureWords = {
  none: ["Nothing is given up for want of memory.", ""],
  newcomers: ["Memory is short: new connections are refused.", "warn"],
  publishers: ["Memory is short: publishers are held back.", "warn"],
  readers: ["Memory is short: clients that do not read are closed.", "bad"],
};

function showMemory(memory) {
  if (memory === null) return;
  const { used_bytes: used, limit_bytes: limit, pressure } = memory;
  put("memory-used", bytes(used));
  put("memory-limit", limit ? `of ${bytes(limit)}` : "without a limit");
  const meter = byID("memory-meter");
  show(meter, Boolean(limit));
  if (limit) meter.value = Math.min(1, used / limit);
  let [words, kind] = pressureWords[pressure] ?? [`Pressure: ${visible(pressure)}.`, "warn"];
  if (memory.keeps_nothing_new) {
    [words, kind] = [`${words} No new sessions, subscriptions and retained messages.`, "bad"];
  }
  const remark = byID("pressure");
  remark.className = `remark ${kind}`;
  setText(remark, words);
}

function showCertificates(certificates) {
  show(byID("no-certificates"), certificates.length === 0);
  fill(byID("certificates"), certificates.map((one) => ({
    key: `${one.section} ${one.file}`,
    kind: one.days_left < 7 ? "bad" : one.days_left < 30 ? "warn" : "",
    cells: [
      { text: visible(one.section), note: visible(one.file) },
      one.days_left < 0 ? "expired" : whole.format(Math.floor(one.days_left)),
    ],
  })));
}

/** Rows of counters by reason, those that grew lately first. */
function lossRows(of, words) {
  return Object.entries(of(snapshots.at(-1)))
    .filter(([, count]) => count > 0)
    .map(([name, count]) => ({
      name, count, lately: growth((one) => of(one)[name] ?? 0, 60).count,
    }))
    .sort((a, b) => b.lately - a.lately || b.count - a.count || (a.name < b.name ? -1 : 1))
    .map(({ name, count, lately }) => ({
      key: name, kind: lately > 0 ? "warn" : "",
      cells: [words(name), whole.format(lately), whole.format(count)],
    }));
}

function showLosses() {
  const drops = lossRows((one) => one.status.dropped, (name) => (
    { text: visible(name), note: dropWords[name] ?? "" }));
  show(byID("no-drops"), drops.length === 0);
  fill(byID("drops"), drops);
  const limits = lossRows((one) => one.status.limits_reached, (name) => `limits.${visible(name)}`);
  const denials = lossRows((one) => one.access_refusals, (name) => `denied: ${visible(name)}`)
    .map((row) => ({ ...row, key: `denied ${row.key}` }));
  show(byID("no-limits"), limits.length + denials.length === 0);
  fill(byID("limits"), [...limits, ...denials]);
}

// MARK: The list of clients

/** The search that is shown: how many clients at most, and whether there are more. */
const mostListed = 1_000;
const list = { limit: 25, hasMore: false, request: 0, isBusy: false };

async function search() {
  if (token === null) return;
  list.request += 1;
  list.isBusy = true;
  const request = list.request;
  // Not URLSearchParams, which writes a space as `+`.
  const query = [["limit", list.limit], ["prefix", byID("prefix").value],
    ["connected", byID("state").value]]
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("&");
  try {
    const { clients, next } = await get(`/v1/clients?${query}`);
    if (request !== list.request || token === null) return;
    list.hasMore = typeof next === "string";
    showList(clients);
  } catch (error) {
    if (request === list.request && token !== null) put("found", reason(error));
  } finally {
    if (request === list.request) list.isBusy = false;
  }
}

function showList(clients) {
  const count = clients.length;
  const more = list.hasMore ? "the first " : "";
  put("found", count === 0 ? "No client's identifier begins like this."
    : `Showing ${more}${whole.format(count)} ${count === 1 ? "client" : "clients"}.`);
  // Also of a client that never got in something is known.
  const sought = byID("prefix").value;
  show(byID("unknown"), count === 0 && sought !== "");
  byID("unknown-link").href = linkTo(sought);
  put("unknown-link", `What is known of ${named(sought)}`);
  show(byID("more"), list.hasMore && list.limit < mostListed);
  fill(byID("list"), clients.map((client) => ({
    key: client.client_id,
    cells: [
      { text: named(client.client_id), link: linkTo(client.client_id) },
      {
        text: `${client.connected ? "connected" : "offline"} ${age(client.since_at_ms)}`,
        kind: client.connected ? "short state-on" : "short state-off",
      },
      number(client.queued), number(client.in_flight), number(client.subscriptions),
      named(client.user_name ?? "–"),
      short(client.address ?? "–"),
    ],
  })));
}

/** The time since a moment, by the broker's clock. */
function age(milliseconds) {
  const now = snapshots.at(-1)?.at_ms ?? Date.now();
  return span((now - milliseconds) / 1_000);
}

// MARK: Live messages

/** The start of the broker whose listeners are shown, and the one whose listeners are asked for. */
const listeners = { shownOf: null, askedOf: null };

async function readListeners(start) {
  if (listeners.shownOf === start || listeners.askedOf !== null) return;
  listeners.askedOf = start;
  try {
    const answer = await get("/v1/listeners");
    if (token === null) return;
    showListeners(answer.listeners);
    listeners.shownOf = start;
  } catch {
    // The next snapshot asks again.
  } finally {
    listeners.askedOf = null;
  }
}

/** Tells the live messages what the broker gave up for them, since they read too slowly. */
async function readShed() {
  const clientID = tailClientID();
  if (clientID === null) return;
  try {
    const { dropped } = await get(`/v1/clients/${encodeURIComponent(clientID)}`);
    showShed(clientID, dropped.slow_reader ?? 0);
  } catch {
    // It has left, or the figures are not live, which is told.
  }
}

// MARK: One client

let shown = null;

/** The client that is being read, so that no second request is sent while one is under way. */
let reading = null;

function clientOfLocation() {
  const match = /^#client=(.+)$/.exec(location.hash);
  try {
    return match ? decodeURIComponent(match[1]) : null;
  } catch {
    return null;
  }
}

function select() {
  const clientID = clientOfLocation();
  if (clientID === shown || byID("board").hidden) return;
  shown = clientID;
  show(byID("client"), clientID !== null);
  if (clientID === null) return;
  put("client-id", named(clientID));
  put("client-result", "");
  show(byID("client-known"), false);
  byID("disconnect").disabled = true;
  byID("client").focus({ preventScroll: true });
  byID("client").scrollIntoView({ block: "start" });
  readClient();
}

async function readClient() {
  if (token === null || shown === null || reading === shown) return;
  const clientID = shown;
  reading = clientID;
  const path = `/v1/clients/${encodeURIComponent(clientID)}`;
  try {
    const [detail, explanation] = await Promise.all([
      get(path).catch((error) => {
        if (error.status === 404) return null;
        throw error;
      }),
      get(`${path}/explain`),
    ]);
    if (clientID === shown) showClient(detail, explanation);
  } catch (error) {
    if (clientID === shown && token !== null) put("client-result", reason(error));
  } finally {
    if (reading === clientID) reading = null;
  }
}

function showClient(detail, explanation) {
  show(byID("client-known"), true);
  byID("disconnect").disabled = !detail?.connected;
  const lines = byID("sentences");
  explanation.sentences.forEach((sentence, index) => {
    const line = lines.children[index] ?? lines.appendChild(document.createElement("li"));
    setText(line, visible(sentence));
  });
  while (lines.children.length > explanation.sentences.length) lines.lastChild.remove();

  const subscriptions = detail?.subscription_list ?? [];
  show(byID("no-subscriptions"), subscriptions.length === 0);
  fill(byID("subscriptions"), subscriptions.map(({ filter, qos }) => (
    { key: filter, cells: [named(filter), short(String(qos))] })));
  showFacts(detail);
  show(byID("no-events"), explanation.events.length === 0);
  fill(byID("events"), explanation.events.map((event, index) => ({
    key: String(index),
    cells: [
      short(`${age(event.last_at_ms)} ago`), short(event.kind.replaceAll("_", " ")),
      short(visible(event.reason)), number(event.count), short(event.address ?? "–"),
      named(event.user_name ?? "–"), named(event.topic ?? "–"),
    ],
  })));
}

function showFacts(detail) {
  const facts = detail === null ? [["Session", "none"]] : factsOf(detail);
  const element = byID("facts");
  facts.forEach(([name, value], index) => {
    const row = element.children[index] ?? element.appendChild(document.createElement("div"));
    if (row.children.length === 0) {
      row.append(document.createElement("dt"), document.createElement("dd"));
    }
    setText(row.children[0], name);
    setText(row.children[1], value);
  });
  while (element.children.length > facts.length) element.lastChild.remove();
}

function factsOf(client) {
  const facts = [
    [client.connected ? "Connected for" : "Offline for", age(client.since_at_ms)],
    ["Address", client.address ?? "–"],
    ["User", named(client.user_name ?? "–")],
    ["Protocol", `MQTT ${client.protocol}`],
    ["Clean session", client.clean_session ? "yes" : "no"],
    ["Keep alive", client.keep_alive_s === 0 ? "none" : `${client.keep_alive_s} s`],
    ["Queued", `${whole.format(client.queued)} (${bytes(client.queued_bytes)})`],
    ["In flight", whole.format(client.in_flight)],
    ["Sent to it", whole.format(client.publishes_sent) + (client.publishes_sent_qos0 > 0
      ? `, ${whole.format(client.publishes_sent_qos0)} with QoS 0` : "")],
    ["Acknowledged by it", whole.format(client.publishes_acknowledged)],
    ["Received from it", whole.format(client.publishes_received)],
    ["Unsent bytes", bytes(client.unsent_bytes)],
    ["Session's size", bytes(client.session_bytes)],
    ["Subscriptions", whole.format(client.subscriptions)
      + (client.subscriptions > client.subscription_list.length
        ? ` (${whole.format(client.subscription_list.length)} shown)` : "")],
  ];
  if (client.will_topic) facts.push(["Will", named(client.will_topic)]);
  for (const [name, count] of Object.entries(client.dropped)) {
    if (count > 0) facts.push([`Lost: ${visible(name)}`, whole.format(count)]);
  }
  return facts;
}

async function disconnect() {
  const clientID = byID("confirm").dataset.clientID;
  byID("confirm").close();
  try {
    const answer = await (
      await call("DELETE", `/v1/clients/${encodeURIComponent(clientID)}`,
        AbortSignal.timeout(longestSilence))).json();
    if (clientID !== shown) return;
    put("client-result", answer.disconnected
      ? `Its connection was closed at ${clockTime(new Date())}.` : "It was not connected.");
    readClient();
    search();
  } catch (error) {
    if (clientID === shown) put("client-result", reason(error));
  }
}

// MARK: The token

function open(text) {
  token = text;
  live.lastAt = null;
  live.problem = "";
  snapshots = [];
  put("token-error", "");
  shown = null;
  follow();
}

function forget(problem) {
  token = null;
  stream?.abort();
  shown = null;
  snapshots = [];
  for (const id of ["board", "forget", "live", "banner"]) show(byID(id), false);
  // What was shown goes too.
  for (const table of byID("board").querySelectorAll("table.list")) fill(table, []);
  for (const id of ["sentences", "facts"]) byID(id).replaceChildren();
  for (const id of ["client-id", "client-result", "confirm-id", "unknown-link"]) put(id, "");
  byID("prefix").value = "";
  forgetTail();
  listeners.shownOf = null;
  document.body.classList.remove("stale");
  byID("confirm").close();
  show(byID("entry"), true);
  put("token-error", problem);
  byID("token").value = "";
  byID("token").focus();
}

// MARK: Events of the page

byID("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byID("token").value.trim();
  if (!/^[!-~]+$/.test(text)) {
    put("token-error", "A token is letters, digits and signs without spaces. Paste it whole.");
    return;
  }
  byID("token").value = "";
  open(text);
});
byID("forget").addEventListener("click", () => forget(""));
byID("search").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["prefix", "state"]) {
  byID(id).addEventListener("input", () => {
    list.limit = 25;
    search();
  });
}
byID("more").addEventListener("click", () => {
  list.limit = Math.min(mostListed, list.limit + 100);
  search();
});
window.addEventListener("hashchange", select);
byID("disconnect").addEventListener("click", () => {
  byID("confirm").dataset.clientID = shown;
  put("confirm-id", named(shown));
  byID("confirm").showModal();
});
byID("confirm-no").addEventListener("click", () => byID("confirm").close());
byID("confirm-yes").addEventListener("click", disconnect);

// A page that nobody sees leaves its place among the viewers, and its connection: a browser opens
// six to one address.
document.addEventListener("visibilitychange", () => {
  if (token === null) return;
  if (document.hidden) stream.abort();
  else follow();
});

setInterval(watch, 1_000);
setInterval(() => {
  if (token === null || document.hidden || live.problem !== "") return;
  readClient();
  readShed();
  if (!list.isBusy) search();
}, 3_000);
byID("token").focus();
