"use strict";
// The page: a list of tables that is there at once, one table beside it; or a report, whose data is in the file.

const ENTRIES_AT_ONCE = 250, SUMMARIES_AT_ONCE = 40;

const data = JSON.parse(document.getElementById("page-data").textContent);
const main = document.getElementById("main"), side = document.getElementById("side"), statusLine = document.getElementById("status");

/** One part of the server's answers; its absence is a trouble like any other. */
function ask(route, parameters) {
  const query = new URLSearchParams(parameters);
  return fetch(`api/${route}?${query}`, { cache: "no-store" }).then((answer) => {
    if (answer.ok) return answer.json();
    return { trouble: { code: "", what: "the server refuses this page", why: `status ${answer.status}`, fix: "open the address that tablestore ui has printed" } };
  }).catch(() => ({ trouble: { code: "", what: "the server does not answer", why: "tablestore ui has ended, or the connection broke", fix: "start tablestore ui again and open its address" } }));
}

const serverSource = {
  difference: (name, from, to) => ask("difference", { name, from, to }),
  snapshots: (name, before) => ask("snapshots", before === null ? { name } : { name, before }),
  rows: (name) => ask("rows", { name }),
  topic: (found) => ask("topic", { name: found.name }),
  streams: (found) => ask("streams", { name: found.name }),
};

function reportSource(report) {
  const none = (what, fix) => ({ trouble: { code: "", what, why: "a report has no connection", fix } });
  return {
    difference: (name, from, to) => Promise.resolve(report.differences[`${from}…${to}`] || none("this difference is not in the report", `run tablestore diff ${name} ${from} ${to}`)),
    snapshots: null,
    rows: null,
    topic: (found) => Promise.resolve(found.topic || none("the brokers were not asked", `run tablestore log show ${found.name}`)),
    streams: (found) => Promise.resolve(found.streams || { value: [] }),
  };
}

// theme --------------------------------------------------------------------------------------------

const themes = ["system", "light", "dark"];
function kept(change) { try { return change(); } catch { return null; } }
function setTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = `Theme: ${name}`;
}
let theme = kept(() => localStorage.getItem("tablestore-theme"));
if (!themes.includes(theme)) theme = "system";
setTheme(theme);
document.getElementById("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  kept(() => localStorage.setItem("tablestore-theme", theme));
  setTheme(theme);
});
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("[data-jump]") : null;
  const part = link ? document.getElementById(link.dataset.jump) : null;
  if (!part) return;
  event.preventDefault();
  part.setAttribute("tabindex", "-1");
  part.scrollIntoView();
  part.focus({ preventScroll: true });
});

// list of tables -----------------------------------------------------------------------------------

let listing = null, summaries = new Map(), wanted = "", watcher = null, waiting = new Set();

function drawSide() {
  const find = el("input", { type: "search", id: "filter", autocomplete: "off", spellcheck: "false", placeholder: "part of a name" });
  const list = el("ul", null), counted = el("p", { class: "counted", id: "counted" }), more = el("button", { type: "button", class: "more" });
  put(side, el("div", { class: "find" }, el("label", { for: "filter" }, "Tables"), find, counted), list, more);
  let most = ENTRIES_AT_ONCE;
  const draw = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = listing.relations.filter(([, name]) => words.every((word) => name.toLowerCase().includes(word)));
    watcher.disconnect();
    put(list, ...found.slice(0, most).map(([kind, name]) => entry(kind, name)));
    counted.textContent = words.length ? `${count(found.length)} of ${count(listing.relations.length)}` : plural(listing.relations.length, "name");
    more.hidden = found.length <= most;
    more.textContent = `Show ${count(Math.min(ENTRIES_AT_ONCE, found.length - most))} more`;
  };
  watcher = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) { watcher.unobserve(one.target); waiting.add(one.target.dataset.name); }
    flush();
  }, { root: list, rootMargin: "200px" });
  find.addEventListener("input", () => { most = ENTRIES_AT_ONCE; draw(); });
  more.addEventListener("click", () => { most += ENTRIES_AT_ONCE; draw(); });
  list.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (next === undefined || at < 0) return;
    event.preventDefault();
    if (next < 0) find.focus(); else if (links[next]) links[next].focus();
  });
  find.addEventListener("keydown", (event) => { const first = list.querySelector("a"); if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); } });
  draw();
}

function entry(kind, name) {
  const dot = name.indexOf(".");
  const line = el("span", { class: "line" }, kind === "view" ? "view" : "…");
  const link = el("a", { class: "entry", href: `#table=${encodeURIComponent(name)}`, "data-name": name, "aria-current": name === wanted ? "page" : null },
    el("span", { class: "title" }, el("span", { class: "of" }, isolated(name.slice(0, dot)), "."), isolated(name.slice(dot + 1))), line);
  if (kind === "table") { if (summaries.has(name)) fill(link, summaries.get(name)); else watcher.observe(link); }
  return el("li", null, link);
}

function fill(link, part) {
  const line = link.querySelector(".line");
  if (part.trouble) { put(line, mark("bad", "⚠", `${part.trouble.code} cannot be read`.trim())); return; }
  const one = part.value, texts = [];
  if (one.red) texts.push(mark("bad", "✕", "held back"), " · "); else if (one.staged) texts.push(mark("wait", "…", "staged"), " · ");
  texts.push(one.snapshot === null ? "no snapshot" : plural(one.rows, "row"));
  if (one.committed_at) texts.push(" · ", moment(one.committed_at, listing.now_ms, "only"));
  put(line, ...texts);
}

let asking = null;
/** Asks for all names that wait, each once; who calls it meanwhile waits for the same answers. */
function flush() {
  if (!asking) asking = askSummaries().finally(() => { asking = null; });
  return asking;
}
async function askSummaries() {
  while (waiting.size) {
    const names = [...waiting].slice(0, SUMMARIES_AT_ONCE);
    names.forEach((name) => waiting.delete(name));
    const unknown = names.filter((name) => !summaries.has(name));
    const found = unknown.length ? await ask("summaries", unknown.map((name) => ["name", name])) : {};
    for (const name of found.trouble ? [] : unknown) {
      if (!found[name]) continue;
      summaries.set(name, found[name]);
      const link = side.querySelector(`a[data-name="${CSS.escape(name)}"]`);
      if (link) fill(link, found[name]);
    }
  }
}

// content ------------------------------------------------------------------------------------------

/** Marks first: what a person has to look at; then the newest commit. */
function drawTableStates(names) {
  const of = (name) => { const part = summaries.get(name) || {}; return part.trouble ? { trouble: part.trouble } : part.value || {}; };
  const urgency = (one) => (one.red ? 0 : one.trouble ? 1 : one.staged ? 2 : 3);
  const state = (one) => (one.trouble ? mark("bad", "⚠", `${one.trouble.code} cannot be read`.trim()) : one.red ? mark("bad", "✕", "held back") : one.staged ? mark("wait", "…", "staged") : one.snapshot === undefined ? mark("wait", "…", "not known") : one.snapshot === null ? "no snapshot" : mark("good", "✓", "published"));
  const sorted = names.map((name) => [name, of(name)]).sort(([, a], [, b]) => urgency(a) - urgency(b) || String(b.committed_at || "").localeCompare(String(a.committed_at || "")));
  const rows = sorted.map(([name, one]) => [el("a", { href: `#table=${encodeURIComponent(name)}` }, isolated(name)), state(one),
    one.snapshot ? count(one.rows) : null, one.snapshot ? bytes(one.bytes) : null, one.committed_at ? moment(one.committed_at, listing.now_ms, "only") : null]);
  const total = (key) => sorted.reduce((sum, [, one]) => sum + (one[key] || 0), 0);
  return [el("p", null, `${plural(sorted.filter(([, one]) => one.red).length, "table")} held back, ${count(sorted.filter(([, one]) => one.staged && !one.red).length)} staged, ${plural(total("rows"), "row")} in ${bytes(total("bytes"))}.`),
    table("State of all tables", ["Table", "State", "Rows", "Size", "Last commit"], ["", "", "number", "number", ""], rows)];
}

function drawOverview() {
  const tables = listing.relations.filter(([kind]) => kind === "table").map(([, name]) => name), views = listing.relations.length - tables.length;
  const isSmall = tables.length <= 100, states = el("div", { class: "stack" }), streams = el("div", { class: "stack" });
  const readStates = async () => {
    put(states, el("p", { class: "soft" }, "Reading the state of all tables…"));
    tables.forEach((name) => waiting.add(name));
    await flush();
    put(states, ...drawTableStates(tables));
  };
  const readStreams = () => {
    put(streams, el("p", { class: "soft" }, "Reading the positions of all tables…"));
    ask("streams", {}).then((part) => put(streams, ...shown(part, (list) => (list.length ? streamTable("Tables that follow others", list, true) : el("p", { class: "soft" }, "No table follows a source.")))));
  };
  if (!tables.length) put(states, el("p", null, "There are no tables yet. Build a model with dbt, or run tablestore demo."));
  else if (isSmall) readStates(); else put(states, el("button", { type: "button", click: readStates }, `Read the state of ${count(tables.length)} tables`));
  if (isSmall) readStreams(); else streams.append(el("button", { type: "button", click: readStreams }, `Read the lag of ${count(tables.length)} tables`));
  put(main,
    el("div", { class: "headline" }, el("h1", null, "Warehouse"), el("p", { class: "soft" }, isolated(listing.warehouse)),
      el("dl", { class: "facts" }, el("div", null, el("dt", null, "Tables"), el("dd", null, count(tables.length))), el("div", null, el("dt", null, "Views"), el("dd", null, count(views))))),
    ...listing.troubles.map((one) => el("div", { class: "stack" }, el("p", null, "Database ", isolated(one.database), " is not listed."), troubleBox(one.trouble))),
    card("Tables", null, states),
    card("Streams", null, streams));
}

function setTitle(text) { document.title = text ? `${text} – tablestore` : "tablestore"; }

function nameOfAddress() { return new URLSearchParams(location.hash.slice(1)).get("table") || ""; }

let ahead = null; // the table of the first address, asked for together with the list

async function follow() {
  const name = nameOfAddress();
  const isFirst = wanted === "" && !main.childElementCount;
  wanted = name;
  setTitle(name);
  for (const link of side.querySelectorAll("a.entry")) { if (link.dataset.name === name) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current"); }
  if (!name) { drawOverview(); return; }
  put(main, el("div", { class: "headline" }, drawTitle(name), el("p", { class: "soft" }, "Reading…")));
  const part = await (ahead && ahead.name === name ? ahead.part : ask("table", { name }));
  ahead = null;
  if (wanted !== name) return;
  put(main, ...(part.trouble ? [el("div", { class: "headline" }, drawTitle(name)), troubleBox(part.trouble)] : drawTable(part.value, serverSource).flat(Infinity)));
  statusLine.textContent = `${name} is shown`;
  if (!isFirst) { main.focus({ preventScroll: true }); window.scrollTo(0, 0); }
}

async function start() {
  const place = document.getElementById("place");
  if (data.mode === "report") {
    document.getElementById("frame").classList.add("alone");
    side.remove();
    place.append("Report of ", isolated(data.table.name), ", ", moment(new Date(data.now_ms).toISOString(), data.now_ms), " · ", isolated(data.warehouse));
    setTitle(data.table.name);
    put(main, ...drawTable(data.table, reportSource(data)).flat(Infinity));
  } else {
    const name = nameOfAddress();
    if (name) ahead = { name, part: ask("table", { name }) };
    listing = await ask("tables", {});
    if (listing.trouble) { put(main, troubleBox(listing.trouble)); return; }
    place.append(isolated(listing.warehouse));
    const brand = document.getElementById("brand");
    put(brand, el("a", { href: "#" }, "tablestore"));
    drawSide();
    window.addEventListener("hashchange", follow);
    await follow();
  }
  document.documentElement.dataset.ready = "yes";
}

start();
