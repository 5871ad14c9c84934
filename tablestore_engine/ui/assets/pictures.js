"use strict";
// Pictures as inline SVG. Each has a text table beside it, so that nothing is said by a picture alone.

const KIND_WORDS = { APPEND: "append", COMPACT: "compact", OVERWRITE: "overwrite", ANALYZE: "analyze" };
const FLAGS_TOP = 46, UP_DOWN = 170, AXIS_BELOW = 44, LEFT = 52, STAGED_PITCH = 92;

function kindWord(kind) { return KIND_WORDS[kind] || String(kind).toLowerCase(); }

/** Linear, or logarithmic when one commit would hide all others. */
function rowScale(entries) {
  const ups = entries.map((one) => one.inserted + one.updated), downs = entries.map((one) => one.deleted);
  const changed = [...ups, ...downs].filter((rows) => rows > 0).sort((a, b) => a - b);
  const isLog = changed.length > 1 && changed[changed.length - 1] > 12 * changed[Math.floor((changed.length - 1) / 2)];
  const bend = isLog ? (rows) => Math.log10(1 + rows) : (rows) => rows;
  const up = bend(Math.max(0, ...ups)), down = bend(Math.max(0, ...downs));
  const unit = up + down > 0 ? (UP_DOWN - 12) / (up + down) : 0;
  const height = (rows) => (rows > 0 ? Math.max(2, bend(rows) * unit) : 0);
  const zero = FLAGS_TOP + 6 + (up + down > 0 ? up * unit : UP_DOWN / 2);
  return { isLog, height, zero, top: Math.max(0, ...ups), bottom: Math.max(0, ...downs) };
}

function bars(x, width, entry, scale, extra) {
  const up = scale.height(entry.inserted + entry.updated), down = scale.height(entry.deleted);
  const share = entry.inserted + entry.updated > 0 ? entry.inserted / (entry.inserted + entry.updated) : 0;
  const rect = (kind, y, height) => (height > 0 ? svg("rect", { class: `${kind}-fill ${extra}`, x, y, width, height: Math.max(1, height), rx: 1 }) : null);
  const drawn = [
    rect("inserted", scale.zero - up * share, up * share),
    rect("updated", scale.zero - up, up * (1 - share)),
    rect("deleted", scale.zero, down),
  ];
  return up + down > 0 ? drawn : [svg("circle", { class: "quiet-fill", cx: x + width / 2, cy: scale.zero, r: 2.5 })];
}

function snapshotLabel(one) {
  const tags = one.tags.length ? `, tags ${one.tags.map(visible).join(", ")}` : "";
  return `Snapshot ${one.id}, ${kindWord(one.kind)}, ${one.committed_at.slice(0, 19).replace("T", " ")} UTC, ${count(one.inserted)} inserted, ${count(one.updated)} updated, ${count(one.deleted)} deleted, ${plural(one.stored_rows, "row")} stored${tags}`;
}

function stagedState(one) {
  if (one.red.length) return { kind: "bad", icon: "✕", text: `held back: ${plural(one.red.length, "test")} failed` };
  if (one.tests.some((test) => test.verdict === "missing")) return { kind: "wait", icon: "…", text: "waits for tests" };
  return { kind: "good", icon: "✓", text: one.tests.length ? "tests passed" : "no tests" };
}

function stagedLabel(one) {
  return `Staged snapshot ${visible(one.name)}, ${stagedState(one).text}, ${count(one.inserted)} inserted, ${count(one.updated)} updated, ${count(one.deleted)} deleted`;
}

/** The element, with `choose(ends)` that marks the selected ones. `pick(end)` is called by a click, Enter or Space. */
function timeline(snapshots, staged, horizon, tags, pick, read) {
  const own = staged.filter((one) => !one.beside);
  const scale = rowScale([...snapshots, ...own]);
  const frame = document.getElementById("main").clientWidth - 90, room = frame - LEFT - own.length * STAGED_PITCH;
  const pitch = Math.max(11, Math.min(26, Math.floor(room / Math.max(1, snapshots.length))));
  const published = LEFT + snapshots.length * pitch;
  const width = Math.max(frame, published + 10 + own.length * STAGED_PITCH + 16), height = FLAGS_TOP + UP_DOWN + AXIS_BELOW;
  const bottom = FLAGS_TOP + UP_DOWN;
  const every = Math.max(1, Math.ceil(46 / pitch));
  const xOf = (at) => LEFT + at * pitch;
  let day = "", dayAt = -1000;
  const days = [];
  const groups = snapshots.map((one, at) => {
    const x = xOf(at), thisDay = one.committed_at.slice(5, 10);
    const isNewDay = thisDay !== day && x - dayAt > 58;
    if (isNewDay) { day = thisDay; dayAt = x; days.push(svg("text", { x: x + 1, y: bottom + 40 }, one.committed_at.slice(0, 10))); }
    const isNamed = (snapshots.length - 1 - at) % every === 0;
    return svg("g", { class: "snap", role: "button", tabindex: "-1", "aria-pressed": "false", "aria-label": snapshotLabel(one), "data-end": one.id },
      svg("rect", { class: "hit", x, y: FLAGS_TOP, width: pitch, height: UP_DOWN + 16, rx: 3 }),
      bars(x + pitch * 0.17, pitch * 0.66, one, scale, ""),
      svg("text", { x: x + pitch / 2, y: bottom + 12, "text-anchor": "middle" }, kindWord(one.kind)[0].toUpperCase()),
      isNamed ? svg("text", { class: "id", x: x + pitch / 2, y: bottom + 26, "text-anchor": "middle" }, String(one.id)) : null);
  });
  const stagedGroups = own.map((one, at) => {
    const x = published + 10 + at * STAGED_PITCH, state = stagedState(one), middle = x + STAGED_PITCH / 2;
    return svg("g", { class: "snap", role: "button", tabindex: "-1", "aria-pressed": "false", "aria-label": stagedLabel(one), "data-end": `@staged:${one.name}` },
      svg("rect", { class: "hit", x, y: FLAGS_TOP, width: STAGED_PITCH - 4, height: UP_DOWN + 16, rx: 3 }),
      bars(middle - 12, 22, one, scale, "staged-fill"),
      svg("text", { class: state.kind, x: middle, y: FLAGS_TOP - 20, "text-anchor": "middle" }, `${state.icon} ${state.kind === "bad" ? "held back" : "staged"}`),
      svg("text", { x: middle, y: FLAGS_TOP - 6, "text-anchor": "middle" }, state.kind === "bad" ? plural(one.red.length, "test") + " failed" : state.text),
      svg("text", { class: "id", x: middle, y: bottom + 12, "text-anchor": "middle" }, "staged"),
      svg("text", { x: middle, y: bottom + 26, "text-anchor": "middle" }, one.base_snapshot === null ? "first" : `on ${one.base_snapshot}`));
  });
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Timeline of snapshots" },
    axis(scale, width), days, groups, stagedGroups, flags(snapshots, tags, xOf, pitch, width), horizonLine(snapshots, horizon, xOf, bottom));
  const box = el("div", { class: "timeline", role: "group", "aria-label": "Timeline. Arrow keys move, Enter selects a snapshot for the difference." }, picture);
  move(box, [...groups, ...stagedGroups], pick, read);
  box.choose = (ends) => { for (const group of [...groups, ...stagedGroups]) group.setAttribute("aria-pressed", String(ends.includes(group.dataset.end))); };
  box.isLog = scale.isLog;
  return box;
}

function axis(scale, width) {
  const label = (y, rows) => svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, shortCount(rows));
  const drawn = [svg("line", { class: "axis", x1: LEFT - 4, x2: width - 8, y1: scale.zero, y2: scale.zero }), label(scale.zero, 0)];
  if (scale.top > 0 && scale.height(scale.top) > 14) {
    const y = scale.zero - scale.height(scale.top);
    drawn.unshift(svg("line", { class: "grid", x1: LEFT - 4, x2: width - 8, y1: y, y2: y }), label(y, scale.top));
  }
  if (scale.bottom > 0 && scale.height(scale.bottom) > 14) drawn.push(label(scale.zero + scale.height(scale.bottom), scale.bottom));
  return drawn;
}

function shortCount(rows) {
  const units = ["", "k", "M", "G"];
  let at = 0, size = rows;
  while (size >= 1000 && at < 3) { size /= 1000; at += 1; }
  return `${at && size < 10 ? size.toFixed(1) : Math.round(size)}${units[at]}`;
}

function flags(snapshots, tags, xOf, pitch, end) {
  let free = [0, 0];
  return snapshots.flatMap((one, at) => {
    const here = tags.filter((tag) => tag.snapshot === one.id);
    if (!here.length) return [];
    const text = cut(visible(here[0].name), here.length > 1 ? 12 : 16) + (here.length > 1 ? ` +${here.length - 1}` : "");
    const x = xOf(at) + pitch / 2, width = 12 + text.length * 7.4;
    const row = free[0] <= x ? 0 : free[1] <= x ? 1 : -1;
    if (row < 0) return [svg("circle", { class: "flag-cloth", cx: x, cy: FLAGS_TOP - 2, r: 2.5 })];
    free[row] = x + width + 4;
    const y = row === 0 ? 4 : 23, begin = x + width > end ? x - width : x;
    return [svg("g", { "aria-hidden": "true" },
      svg("line", { class: "flag", x1: x, x2: x, y1: y, y2: FLAGS_TOP + 4 }),
      svg("rect", { class: "flag-cloth", x: begin, y, width, height: 16, rx: 2 }),
      svg("text", { class: "on-flag", x: begin + 5, y: y + 12, direction: "ltr", "unicode-bidi": "isolate" }, text))];
  });
}

function cut(text, most) { const letters = [...text]; return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text; }

function horizonLine(snapshots, horizon, xOf, bottom) {
  const at = horizon && horizon.end !== null ? snapshots.findIndex((one) => one.id >= horizon.end) : -1;
  if (at < 0) return [];
  const x = xOf(at) + 0.5, left = at > 6;
  return [svg("g", { "aria-hidden": "true" },
    svg("line", { class: "horizon", x1: x, x2: x, y1: FLAGS_TOP - 4, y2: bottom }),
    svg("text", { class: "wait", x: left ? x - 6 : x + 6, y: FLAGS_TOP + 10, "text-anchor": left ? "end" : "start" }, left ? "expires next" : "◂ expires next"))];
}

/** One stop of the Tab key; arrows go along. */
function move(box, groups, pick, read) {
  if (!groups.length) return;
  let at = groups.length - 1;
  groups[at].setAttribute("tabindex", "0");
  const go = (next) => {
    groups[at].setAttribute("tabindex", "-1");
    at = Math.min(groups.length - 1, Math.max(0, next));
    groups[at].setAttribute("tabindex", "0");
    groups[at].focus();
    groups[at].scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const steps = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => groups.length - 1, PageUp: () => at - 10, PageDown: () => at + 10 };
  box.addEventListener("keydown", (event) => {
    if (steps[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); go(steps[event.key]()); }
    else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(groups[at].dataset.end); }
    else if (event.key === "Escape") pick(null);
  });
  groups.forEach((group, number) => {
    group.addEventListener("click", () => { go(number); pick(group.dataset.end); });
    group.addEventListener("focus", () => read(group.getAttribute("aria-label")));
    group.addEventListener("mouseenter", () => read(group.getAttribute("aria-label")));
  });
}

/** Stored rows over the whole history, from a sample of snapshots, with the window that the timeline shows. */
function history(points, snapshots, go) {
  const width = 720, height = 46, first = points[0].id, last = points[points.length - 1].id;
  const most = Math.max(1, ...points.map((one) => one.stored_rows));
  const x = (id) => 4 + ((id - first) / Math.max(1, last - first)) * (width - 8), y = (rows) => height - 5 - (rows / most) * (height - 12);
  const from = x(snapshots[0].id), to = x(snapshots[snapshots.length - 1].id);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, preserveAspectRatio: "none", role: "img", "aria-label": `Stored rows from snapshot ${first} to ${last}: ${count(points[0].stored_rows)} to ${count(points[points.length - 1].stored_rows)}. The timeline shows snapshots ${snapshots[0].id} to ${snapshots[snapshots.length - 1].id}.` },
    svg("rect", { class: "history-window", x: from, y: 1, width: Math.max(3, to - from), height: height - 2, rx: 2 }),
    svg("polyline", { class: "history-line", "vector-effect": "non-scaling-stroke", points: points.map((one) => `${x(one.id).toFixed(1)},${y(one.stored_rows).toFixed(1)}`).join(" ") }));
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    go(Math.round(first + ((event.clientX - box.left) / box.width) * (last - first)));
  });
  return picture;
}

/** One bar for each level: length by bytes, the hatched end by the share of deleted rows. */
function levelBars(levels) {
  const most = Math.max(1, ...levels.map((one) => one.bytes));
  const hatch = svg("defs", null, svg("pattern", { id: "dead", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("line", { class: "dead-line", x1: 0, y1: 0, x2: 0, y2: 5 })));
  return el("ul", { class: "levels", "aria-label": "Bytes of each level" }, levels.map((one, at) => {
    const length = Math.max(0.8, (one.bytes / most) * 100), dead = one.rows ? (one.deleted / one.rows) * length : 0;
    const share = one.deleted ? `, ${Math.max(1, Math.round((one.deleted / one.rows) * 100))} % deleted` : "";
    return el("li", null,
      el("span", null, `Level ${one.level}`),
      svg("svg", { width: "100%", height: 16, "aria-hidden": "true" }, at ? null : hatch,
        svg("rect", { class: "size-fill", width: `${length}%`, height: 16, rx: 2 }),
        dead > 0 ? svg("rect", { class: "dead-fill", x: `${length - dead}%`, width: `${dead}%`, height: 16 }) : null),
      el("span", { class: "figures soft" }, `${bytes(one.bytes)}, ${plural(one.files, "file")}${share}`));
  }));
}

function swatch(kind) {
  const classes = { staged: "inserted-fill staged-fill", expiry: "" };
  return svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, kind === "expiry"
    ? svg("line", { class: "horizon", x1: 6, x2: 6, y1: 0, y2: 12 })
    : svg("rect", { class: classes[kind] || `${kind}-fill`, x: 1, y: 1, width: 10, height: 10, rx: 1 }));
}
