"use strict";
// The parts of one table, in reading order. `source` answers for more: a page of the server, or the data of a report.

function drawTable(found, source) {
  const now = found.now_ms;
  if (found.kind === "view") return drawView(found);
  found = withoutRepeats(found);
  return [
    drawHeadline(found, now),
    drawHeldBack(found),
    drawSnapshots(found, source),
    drawStaged(found, now),
    drawFirstRows(found, source),
    el("div", { class: "pair" }, drawSizes(found), drawTopic(found, source)),
    found.facts.trouble ? [] : drawStreams(found, source, now),
    drawDefinition(found),
  ];
}

/** A damaged table has one cause: it is shown once, in the place of the facts. */
function withoutRepeats(found) {
  const cause = found.facts.trouble ? JSON.stringify(found.facts.trouble) : null;
  return Object.fromEntries(Object.entries(found).filter(([key, part]) => key === "facts" || !part || !part.trouble || JSON.stringify(part.trouble) !== cause));
}

function drawTitle(name) {
  const dot = name.indexOf(".");
  return el("h1", null, el("span", { class: "soft" }, isolated(name.slice(0, dot)), "."), isolated(name.slice(dot + 1)));
}

function drawView(found) {
  return [el("div", { class: "headline" }, drawTitle(found.name), el("p", { class: "soft" }, "View")),
    card("Query", null, shown(found.view, (view) => [view.comment ? el("p", null, isolated(view.comment)) : null, el("pre", { tabindex: "0" }, view.sql || "")]))];
}

function drawHeadline(found, now) {
  const fact = (title, value) => el("div", null, el("dt", null, title), el("dd", null, value));
  const names = (list) => list.flatMap((one, at) => [at ? ", " : "", isolated(one)]);
  return el("div", { class: "headline" }, drawTitle(found.name), shown(found.facts, (facts) => [
    facts.comment ? el("p", { class: "comment" }, isolated(facts.comment)) : null,
    el("dl", { class: "facts" },
      fact("Rows", count(facts.rows)),
      facts.waiting_rows ? fact("Waiting for a compaction", plural(facts.waiting_rows, "row")) : null,
      fact("Snapshot", facts.snapshot === null ? "none yet" : count(facts.snapshot)),
      fact("Last commit", moment(facts.committed_at, now, true)),
      fact("Size", `${bytes(facts.bytes)} in ${plural(facts.files, "file")}`),
      fact("Primary key", facts.primary_key.length ? names(facts.primary_key) : "none"),
      facts.partition_by.length ? fact("Partitioned by", names(facts.partition_by)) : null,
      fact("Buckets", facts.buckets < 0 ? "unaware" : count(facts.buckets)),
      facts.topic ? fact("Topic", isolated(facts.topic)) : null)]));
}

function value(part, otherwise) { return part && !part.trouble ? part.value : otherwise; }

function drawHeldBack(found) {
  const red = value(found.staged, []).filter((one) => one.red.length);
  return red.map((one) => el("p", { class: "trouble" }, el("span", null, mark("bad", "✕", "Held back: "), "staged snapshot ", isolated(one.name), ` is not published because ${plural(one.red.length, "test")} failed (`, one.red.flatMap((test, at) => [at ? ", " : "", isolated(test)]), "). ", el("a", { href: "#staged", "data-jump": "staged" }, "See the failing rows"))));
}

function drawSnapshots(found, source) {
  if (!found.snapshots) return [];
  const box = el("div", { class: "stack" }), result = el("div", { class: "stack", "aria-live": "polite" });
  const newer = el("button", { type: "button" }, "Newer"), older = el("button", { type: "button" }, "Older"), newest = el("button", { type: "button" }, "Newest");
  let ends = [], picture = null, page = null;
  const inputs = ["From", "To"].map((title) => el("input", { name: title.toLowerCase(), autocomplete: "off", spellcheck: "false", placeholder: "snapshot or tag" }));
  const compare = el("form", { class: "compare", submit: (event) => { event.preventDefault(); ends = inputs.map((one) => one.value.trim()).filter(Boolean); show(); } },
    inputs.map((one, at) => el("label", null, at ? "To" : "From", one)), el("button", { type: "submit" }, "Show the difference"),
    el("button", { type: "button", class: "quiet", click: () => { ends = []; show(); } }, "Clear"));
  const show = () => {
    inputs.forEach((one, at) => { one.value = ends[at] || ""; });
    if (picture) picture.choose(ends);
    if (ends.length < 2) { put(result, el("p", { class: "soft" }, ends.length ? "Select the second snapshot." : "Select two snapshots to see what changed between them.")); return; }
    const asked = ends.join("…");
    put(result, el("p", { class: "soft" }, "Reading the difference…"));
    source.difference(found.name, ends[0], ends[1]).then((part) => { if (asked === ends.join("…")) put(result, ...shown(part, drawDifference)); });
  };
  const pick = (end) => { ends = end === null ? [] : ends.length >= 2 ? [end] : ends.includes(end) ? ends.filter((one) => one !== end) : [...ends, end]; show(); };
  const draw = (next) => {
    page = next;
    const readout = el("p", { class: "readout soft" }, "Move over the timeline, or use the arrow keys in it.");
    const staged = page.has_newer ? [] : value(found.staged, []);
    picture = timeline(page.snapshots, staged, value(found.horizon, null), page.tags, pick, (text) => { readout.textContent = text; });
    newer.disabled = newest.disabled = !page.has_newer;
    older.disabled = !page.has_older || !source.snapshots;
    put(box, ...drawPage(page, picture, readout, found, source, ask));
    picture.scrollLeft = picture.scrollWidth;
    requestAnimationFrame(() => { picture.scrollLeft = picture.scrollWidth; });
    show();
  };
  const ask = (before) => source.snapshots && source.snapshots(found.name, before).then((part) => (part.trouble ? put(box, troubleBox(part.trouble)) : draw({ ...part.value, has_newer: part.value.snapshots.length > 0 && part.value.snapshots[part.value.snapshots.length - 1].id < part.value.newest })));
  older.addEventListener("click", () => ask(page.snapshots[0].id));
  newer.addEventListener("click", () => ask(page.snapshots[page.snapshots.length - 1].id + page.snapshots.length + 1));
  newest.addEventListener("click", () => ask(null));
  const drawn = shown(found.snapshots, (first) => { draw({ ...first, has_newer: false }); return box; });
  const total = value(found.snapshots, { total: 0 }).total;
  const tools = total > 1 && source.snapshots && value(found.snapshots, {}).has_older ? [older, newer, newest] : null;
  return card(total ? `Snapshots (${count(total)})` : "Snapshots", tools, drawn, total || value(found.staged, []).length ? [compare, result] : null);
}

function drawPage(page, picture, readout, found, source, ask) {
  const staged = value(found.staged, []);
  if (!page.snapshots.length && !staged.length) return [el("p", { class: "soft" }, "Nothing was committed yet.")];
  const key = (kind, text) => el("span", { class: "key" }, swatch(kind), text);
  const horizon = value(found.horizon, null);
  const legend = el("p", { class: "legend" }, key("inserted", "inserted"), key("updated", "updated"), key("deleted", "deleted"), staged.length ? key("staged", "staged, not visible to readers") : null, horizon && horizon.end !== null ? key("expiry", "expiry horizon") : null, el("span", null, "A append, C compact, O overwrite"), picture.isLog ? el("span", null, "logarithmic scale") : null);
  const expiry = horizon && horizon.end !== null
    ? `${horizon.on_commit ? "Snapshots before" : "Expiry would delete snapshots before"} ${count(horizon.end)}${horizon.on_commit ? " expire with the next commit" : ""}${horizon.log_may_keep ? ", unless the topic still needs them" : ""}: ${horizon.reason}.`
    : horizon ? `No snapshot expires with the next commit: ${horizon.reason}.` : null;
  const gone = page.tags.filter((tag) => page.oldest === null || tag.snapshot < page.oldest);
  return [
    page.history && page.history.length ? el("figure", null, history(page.history, page.snapshots, (id) => ask(id + 60)), el("figcaption", { class: "soft" }, `Stored rows from snapshot ${page.history[0].id} to ${page.history[page.history.length - 1].id}. The frame is the part below.`)) : null,
    picture, readout, legend,
    found.horizon && found.horizon.trouble ? troubleBox(found.horizon.trouble) : null,
    expiry ? el("p", { class: "soft" }, expiry) : null,
    gone.length ? el("p", { class: "soft" }, "Tags that keep expired snapshots: ", gone.flatMap((tag, at) => [at ? ", " : "", isolated(tag.name), ` (${tag.snapshot})`])) : null,
    fold("Snapshots as a table", snapshotTable(page, found)),
  ].filter(Boolean);
}

function snapshotTable(page, found) {
  const rows = [...page.snapshots].reverse().map((one) => [String(one.id), moment(one.committed_at, found.now_ms), kindWord(one.kind), count(one.inserted), count(one.updated), count(one.deleted), count(one.stored_rows), one.tags.flatMap((tag, at) => [at ? ", " : "", isolated(tag)])]);
  const staged = page.has_newer ? [] : value(found.staged, []).map((one) => [isolated(`@staged:${one.name}`), moment(one.written, found.now_ms), stagedState(one).text, count(one.inserted), count(one.updated), count(one.deleted), null, []]);
  return table("Snapshots of this part, newest first", ["Snapshot", "Committed", "Kind", "Inserted", "Updated", "Deleted", "Rows stored", "Tags"], ["", "", "", "number", "number", "number", "number", ""], [...staged, ...rows]);
}

function drawDifference(found) {
  const sign = (kind, text) => el("span", { class: `sign ${kind}` }, text);
  const rows = found.samples.flatMap((one) => {
    const lines = [];
    const isUpdate = one.kind === "updated";
    const cells = (own, other) => own.map((cell, at) => (isUpdate && cell !== other[at] ? el("span", { class: "changed" }, cell === null ? "NULL" : isolated(cell)) : cell));
    if (one.before) lines.push([sign(one.kind, isUpdate ? "-U" : "-D"), ...cells(one.before, one.after || [])]);
    if (one.after) lines.push([sign(one.kind, isUpdate ? "+U" : "+I"), ...cells(one.after, one.before || [])]);
    return lines;
  });
  return [
    el("h3", null, "Difference, ", isolated(found.title)),
    el("p", { class: "totals" }, sign("inserted", `+${count(found.inserted)} inserted`), sign("updated", `~${count(found.updated)} updated`), sign("deleted", `-${count(found.deleted)} deleted`)),
    rows.length ? table("First rows of each kind", ["", ...found.columns], ["", ...found.columns.map(() => "value")], rows) : el("p", { class: "soft" }, "No row differs."),
  ];
}

function drawStaged(found, now) {
  if (!found.staged || (!found.staged.trouble && !found.staged.value.length)) return [];
  const part = card("Staged snapshots", null, shown(found.staged, (staged) => staged.map((one) => drawStagedOne(one, now))));
  part.id = "staged";
  return [part];
}

function drawStagedOne(one, now) {
  const state = stagedState(one);
  const verdicts = { green: mark("good", "✓", "passed"), red: mark("bad", "✕", "failed"), error: mark("bad", "✕", "error"), missing: mark("wait", "…", "not run"), abstains: mark("wait", "–", "abstains") };
  return el("div", { class: "stack" },
    el("h3", null, isolated(one.name), " ", mark(state.kind, state.icon, state.text)),
    el("p", { class: "soft" }, one.base_snapshot === null ? "The first snapshot of the table" : `Built on snapshot ${one.base_snapshot}`, ", written ", moment(one.written, now, true), one.owner ? [", by ", isolated(one.owner)] : null, one.kept_until ? [", kept until ", moment(one.kept_until, now)] : null, ". ", isolated(one.reason), "."),
    one.tests.map((test) => el("div", { class: "test" },
      el("p", null, verdicts[test.verdict] ? verdicts[test.verdict].cloneNode(true) : isolated(test.verdict), " ", isolated(one.short[test.test] || test.test)),
      test.failing ? table(visible(`Rows that fail ${one.short[test.test] || test.test}`), test.failing.columns, test.failing.columns.map(() => "value"), test.failing.rows) : null,
      !test.failing && (test.verdict === "red") ? el("p", { class: "soft" }, "No rows were kept: keep_failing_rows is false, or the test ran with an earlier version.") : null)));
}

/** Behind a button: the page itself reads no rows. */
function drawFirstRows(found, source) {
  const facts = value(found.facts, null);
  if (!source.rows || !facts || facts.snapshot === null) return [];
  const box = el("div", { class: "stack", "aria-live": "polite" });
  const read = () => {
    put(box, el("p", { class: "soft" }, "Reading rows…"));
    source.rows(found.name).then((part) => put(box, ...shown(part, (first) => [
      first.rows.length ? table(`${count(first.rows.length)} of ${plural(first.total, "row")}`, first.columns, first.columns.map(() => "value"), first.rows) : el("p", { class: "soft" }, "The table has no rows."),
      first.more_columns ? el("p", { class: "soft" }, `${plural(first.more_columns, "more column")}.`) : null])));
  };
  put(box, el("button", { type: "button", click: read }, "Show the first rows"));
  return card("Rows", null, box);
}

function drawSizes(found) {
  if (!found.sizes) return [];
  return card("Levels and sizes", null, shown(found.sizes, (sizes) => {
    if (!sizes.levels.length) return el("p", { class: "soft" }, "There are no data files.");
    const kinds = ["", "number", "number", "number", "number"];
    const cells = (one) => [count(one.files), bytes(one.bytes), count(one.rows), count(one.deleted)];
    const places = sizes.buckets.flatMap((bucket) => bucket.levels.map((one) => [bucket.partition ? isolated(bucket.partition) : "–", String(bucket.bucket), String(one.level), ...cells(one)]));
    return [
      levelBars(sizes.levels),
      el("p", { class: "legend" }, el("span", { class: "key" }, swatch("size"), "bytes"), sizes.levels.some((one) => one.deleted) ? el("span", { class: "key" }, swatch("dead"), "share of deleted rows") : null),
      fold("Levels as a table", table("Files by level", ["Level", "Files", "Bytes", "Rows", "Deleted"], kinds, sizes.levels.map((one) => [String(one.level), ...cells(one)]))),
      fold(`Buckets (${count(sizes.buckets.length + sizes.more)})`, table(sizes.more ? `The largest ${sizes.buckets.length} buckets; ${sizes.more} more` : "Files by bucket and level", ["Partition", "Bucket", "Level", "Files", "Bytes", "Rows", "Deleted"], ["", "number", "number", ...kinds.slice(1)], places)),
    ];
  }));
}

function drawTopic(found, source) {
  const facts = value(found.facts, null);
  if (!facts || !facts.topic) return [];
  const box = el("div", { class: "stack" }, el("p", { class: "soft" }, "Asking the brokers…"));
  source.topic(found).then((part) => put(box, ...shown(part, (topic) => drawTopicState(topic))));
  return card("Topic", null, el("p", null, isolated(facts.topic)), box);
}

function drawTopicState(topic) {
  if (!topic) return el("p", { class: "soft" }, "The table has no topic.");
  const lag = topic.lag;
  const state = topic.trouble ? mark("bad", "✕", "in trouble") : !lag ? mark("wait", "…", "not known") : lag.snapshots ? mark("wait", "…", `lags by ${plural(lag.snapshots, "snapshot")}`) : mark("good", "✓", "up to date");
  return [el("p", null, state),
    topic.trouble ? el("p", null, isolated(topic.trouble)) : null,
    table("State of the topic", ["Published", "Newest", "Lag in rows", "Lag in time", "Open transaction"], ["number", "number", "number", "", ""], [[count(topic.published), count(topic.newest), lag ? count(lag.rows) : null, lag ? seconds(lag.seconds) : null, topic.writer && topic.writer.open ? "yes" : "no"]])];
}

function drawStreams(found, source, now) {
  const box = el("div", { class: "stack" });
  const consumers = value(found.consumers, []);
  const readers = found.consumers && found.consumers.trouble ? [troubleBox(found.consumers.trouble)] : consumers.length
    ? [table("Consumers of this table", ["Consumer", "Next snapshot", "Lag in snapshots", "Lag in rows", "Last change", "Trouble"], ["", "number", "number", "number", "", ""], consumers.map((one) => [isolated(one.consumer), String(one.next_snapshot), count(one.lag_snapshots), count(one.lag_rows), moment(one.last_change, now), one.trouble ? mark("bad", "✕", isolated(one.trouble)) : ""]))] : [];
  const part = card("Streams", null, box, readers);
  part.hidden = !readers.length;
  source.streams(found).then((streams) => {
    const drawn = shown(streams, (list) => (list.length ? streamTable("Sources that this table follows", list) : []));
    put(box, ...drawn);
    if (drawn.length) part.hidden = false;
  });
  return part;
}

function streamTable(caption, list, withTable) {
  const rows = list.map((one) => [
    ...(withTable ? [el("a", { href: `#table=${encodeURIComponent(one.table)}` }, isolated(one.table))] : []),
    isolated(one.follows), one.at === null ? null : isolated(one.at), one.newest === null ? null : String(one.newest),
    one.lag ? count(one.lag.snapshots) : null, one.lag ? count(one.lag.rows) : null, one.lag ? seconds(one.lag.seconds) : null,
    one.state_bytes === null || one.state_bytes === undefined ? null : bytes(one.state_bytes),
    one.trouble ? mark("bad", "✕", isolated(one.trouble.split("\n")[0])) : mark("good", "✓", "can resume")]);
  return table(caption, [...(withTable ? ["Table"] : []), "Follows", "At", "Newest", "Lag in snapshots", "Lag in rows", "Lag in time", "State", "Condition"], [...(withTable ? [""] : []), "", "", "number", "number", "number", "", "number", ""], rows);
}

function drawDefinition(found) {
  if (!found.columns && found.facts.trouble) return [];
  return card("Definition", null,
    shown(found.columns, (columns) => fold(`Columns (${columns.length})`, table("Columns", ["Name", "Type", "NULL", "Comment"], ["value", "value", "", ""], columns.map((one) => [one.name, one.type, one.nullable ? "yes" : "no", one.comment ? isolated(one.comment) : ""])))),
    found.facts.trouble ? [] : shown(found.facts, (facts) => [
      fold(`Options (${Object.keys(facts.options).length})`, table("Options", ["Option", "Value"], ["", "value"], Object.entries(facts.options).map(([key, one]) => [isolated(key), one]))),
      el("p", { class: "soft" }, "Files: ", el("span", { class: "mono" }, isolated(facts.location)))]));
}
