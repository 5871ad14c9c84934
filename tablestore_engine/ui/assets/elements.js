"use strict";
// Elements and texts. INVARIANT: data reaches the document as text nodes and checked attributes alone, never as HTML.

const SVG_SPACE = "http://www.w3.org/2000/svg";

function make(space, tag, attributes, children) {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  return put(element, children);
}

/** Instead of what it had. A child that is null, undefined or false is none; replaceChildren would write its name. */
function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

function el(tag, attributes, ...children) { return make(null, tag, attributes, children); }
function svg(tag, attributes, ...children) { return make(SVG_SPACE, tag, attributes, children); }

/** Controls and marks of direction by their numbers: what is shown is what is there. Lines, tabs and joiners of emoji stay. */
function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]|(?![\u200c\u200d])\p{Cf}/gu, (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, "0")}`);
}

/** A name or value of the data, isolated: its direction has no effect on the text around it. */
function isolated(text) { return el("bdi", null, visible(text)); }

const NUMBERS = new Intl.NumberFormat("en-US");
function count(number) { return number === null || number === undefined ? "unknown" : NUMBERS.format(number); }
function plural(number, one, many) { return `${count(number)} ${number === 1 ? one : many || one + "s"}`; }

function bytes(size) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  while (size >= 1000 && at < units.length - 1) { size /= 1000; at += 1; }
  return `${at ? size.toFixed(1) : size} ${units[at]}`;
}

function seconds(time) {
  if (time < 90) return plural(Math.round(time), "second");
  if (time < 5400) return plural(Math.round(time / 60), "minute");
  if (time < 172800) return plural(Math.round(time / 3600), "hour");
  return plural(Math.round(time / 86400), "day");
}

/** `2026-01-31 12:00:00 UTC`, with the age. */
function moment(iso, nowMs, withAge) {
  if (!iso) return "never";
  const text = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
  const past = (nowMs - Date.parse(iso)) / 1000;
  const age = past < 1 ? "just now" : `${seconds(past)} ago`;
  return el("time", { datetime: iso, title: text }, withAge === "only" ? age : withAge ? `${text}, ${age}` : text);
}

/** Rows of cells; a cell is text, an element, or {value} for a value of the data. `kinds`: number, value or nothing. */
function table(caption, heads, kinds, rows) {
  const cell = (one, at) => {
    if (one === null || one === undefined) return el("td", { class: kinds[at] === "number" ? "number" : "null" }, kinds[at] === "value" ? "NULL" : "–");
    return el("td", { class: kinds[at] || null }, kinds[at] === "value" && typeof one === "string" ? isolated(one) : one);
  };
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", null,
      el("caption", null, caption),
      el("thead", null, el("tr", null, heads.map((one, at) => el("th", { scope: "col", class: kinds[at] === "number" ? "number" : null }, kinds[at] === "value" ? isolated(one) : one)))),
      el("tbody", null, rows.map((row) => el("tr", { class: row.mark || null }, (row.cells || row).map(cell))))));
}

function mark(kind, icon, text) {
  return el("span", { class: `mark ${kind}` }, el("span", { "aria-hidden": "true" }, `${icon} `), text);
}

/** What could not be read, in the place of it. */
function troubleBox(trouble) {
  return el("div", { class: "trouble", role: "note" },
    el("p", { class: "what" }, el("span", { "aria-hidden": "true" }, "⚠ "), trouble.code ? `${trouble.code} ` : "", isolated(trouble.what)),
    el("p", null, "Why: ", isolated(trouble.why)),
    el("p", null, "Next: ", isolated(trouble.fix)));
}

/** The drawing of a part, or its trouble. */
function shown(part, draw) {
  if (!part) return [];
  return part.trouble ? [troubleBox(part.trouble)] : [draw(part.value)].flat(Infinity);
}

let headings = 0;
/** A section with a heading; `tools` stand beside it. */
function card(title, tools, ...children) {
  const id = `part-${headings += 1}`;
  return el("section", { class: "card", "aria-labelledby": id }, el("div", { class: "bar" }, el("h2", { id }, title), tools), children);
}

function fold(summary, ...children) { return el("details", null, el("summary", null, summary), children); }
