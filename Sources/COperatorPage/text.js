// Words, numbers and elements of the operator's page. Text of clients is set as text only, and
// escaped as hermesctl does it.

export const byID = (id) => document.getElementById(id);

// MARK: Words and numbers

export const whole = new Intl.NumberFormat("en");
const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Escapes what shows nothing of its own or changes how other text is shown. */
export function visible(text) {
  return String(text).replace(/[\\\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    switch (character) {
      case "\\": return "\\\\";
      case "\n": return "\\n";
      case "\r": return "\\r";
      case "\t": return "\\t";
      default: return `\\u{${character.codePointAt(0).toString(16).toUpperCase()}}`;
    }
  });
}

/** The same for text that the broker has escaped already: backslashes stay single. */
export const printable = (text) => text.split("\\").map(visible).join("\\");

/**
 * A name that somebody chose, escaped so that two names which differ look different: blanks at its
 * ends and beside one another are drawn, and other white space is written as its code.
 */
export function named(text) {
  return visible(text)
    .replace(/(?! )[\p{Zs}\u2423]/gu, (character) => (
      `\\u{${character.codePointAt(0).toString(16).toUpperCase()}}`))
    .replace(/^ +| +$| {2,}/g, (blanks) => "\u2423".repeat(blanks.length));
}

/** A rate: one decimal below 10, whole above. */
export function rate(value) {
  return value < 10 && value > 0 ? tenths.format(value) : whole.format(Math.round(value));
}

export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const text = unit > 0 && value < 10 ? tenths.format(value) : whole.format(Math.floor(value));
  return `${text} ${units[unit]}`;
}

export function microseconds(count) {
  if (count < 1_000) return `${whole.format(Math.round(count))} µs`;
  return count < 1_000_000
    ? `${tenths.format(count / 1_000)} ms` : `${tenths.format(count / 1_000_000)} s`;
}

/** A span in its two largest units, such as `2h 5m`. */
export function span(seconds) {
  const rest = Math.max(0, Math.floor(seconds));
  const units = [["d", 86_400], ["h", 3_600], ["m", 60], ["s", 1]];
  const first = units.findIndex(([, length]) => rest >= length);
  if (first < 0) return "0s";
  const [large, length] = units[first];
  const small = units[first + 1];
  const count = small ? Math.floor((rest % length) / small[1]) : 0;
  return `${Math.floor(rest / length)}${large}${count > 0 ? ` ${count}${small[0]}` : ""}`;
}

export const clockTime = (date) => date.toLocaleTimeString("en-GB");

// MARK: Elements

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, isShown) {
  if (element.hidden === isShown) element.hidden = !isShown;
}

export const put = (id, text) => setText(byID(id), text);

/** The address in this page of a client's view. */
export const linkTo = (clientID) => `#client=${encodeURIComponent(clientID)}`;
