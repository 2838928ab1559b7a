"use strict";
// Draws the report from the JSON in #report-data. Names and reasons come from files of others: text
// reaches the page through textContent and canvas text alone, never as markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const entries = JSON.parse(byId("report-data").textContent).entries;
  const numSteps = Math.max(0, ...entries.map((entry) => entry.steps.length));
  let plans = [];  // of the chosen step, one per entry
  let lanes = [];
  let redrawCharts = [];
  let colors = {};
  let shownStep = 0;

  // ---------------------------------------------------------------------------------- numbers

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0);
  const integerText = (value) => Math.round(value).toLocaleString("en-US");
  const percentText = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
  const idleText = (share) => percentText(share, share < 0.01 ? 2 : 1);
  const plural = (count, word) => `${integerText(count)} ${word}${count === 1 ? "" : "s"}`;

  function scaledText(value, scales) {
    if (value === 0) return ["0", ""];
    const [factor, unit] = scales.find(([size]) => Math.abs(value) >= size) || scales[scales.length - 1];
    const scaled = value / factor;
    const size = Math.abs(scaled);
    const digits = size >= 1000 || (factor === 1 && Number.isInteger(value)) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
    return [scaled.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }), unit];
  }
  const clockScales = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const plainScales = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const byteScales = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
  // The preset `verl` counts workload, not nanoseconds.
  const hasClock = () => plans.some((plan) => plan.cost !== "verl");
  const timeParts = (ns) => scaledText(ns, hasClock() ? clockScales : plainScales);
  const byteParts = (bytes) => scaledText(bytes, byteScales);
  const join = ([number, unit]) => (unit ? `${number} ${unit}` : number);
  const timeText = (ns) => join(timeParts(ns));
  const bytesText = (bytes) => join(byteParts(bytes));
  const rangeText = (first, size) => (size === 1 ? `rank ${first}` : `ranks ${first}–${first + size - 1}`);

  // --------------------------------------------------------------------------------- elements

  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "class") made.className = value;
      else if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);  // strings become text nodes
    return made;
  }
  const fillWith = (target, ...children) => target.replaceChildren(...children);

  // A canvas that is as sharp as the screen; draw(context, width, height) in CSS pixels.
  function paint(canvas, draw) {
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (width === 0 || height === 0) return;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.textBaseline = "middle";
    draw(context, width, height);
  }
  const font = (size, weight = 400) => `${weight} ${size}px ${colors.sans}`;

  // ----------------------------------------------------------------------------------- colours

  function channels(hex) {
    const value = parseInt(hex.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  }

  // 64 colours from cheap to dear, each with a colour for text on it.
  function costRamp(style) {
    const stops = [0, 1, 2, 3, 4].map((i) => channels(style.getPropertyValue(`--ramp-${i}`).trim()));
    return Array.from({ length: 64 }, (_, i) => {
      const place = (i / 63) * (stops.length - 1);
      const left = Math.min(stops.length - 2, Math.floor(place));
      const mix = stops[left].map((from, k) => from + (stops[left + 1][k] - from) * (place - left));
      const isLight = 0.299 * mix[0] + 0.587 * mix[1] + 0.114 * mix[2] > 138;
      return { fill: `rgb(${mix.map(Math.round).join(",")})`, ink: isLight ? "#0c1a2b" : "#ffffff" };
    });
  }

  function hatchPattern(color) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const context = tile.getContext("2d");
    context.strokeStyle = color;
    context.lineWidth = 1.6;
    for (const shift of [-8, 0, 8]) {
      context.beginPath();
      context.moveTo(shift - 1, 9);
      context.lineTo(shift + 9, -1);
      context.stroke();
    }
    return context.createPattern(tile, "repeat");
  }

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(`--${name}`).trim();
    colors = { ramp: costRamp(style), hatch: hatchPattern(value("hatch")) };
    for (const name of ["surface", "text", "muted", "faint", "rule", "accent", "bar", "idle", "bound", "bad", "sans"]) {
      colors[name] = value(name);
    }
    colors.ruleStrong = value("rule-strong");
    colors.barSoft = value("bar-soft");
  }

  const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");
  let themeChoice = "auto";
  function applyTheme() {
    const isDark = themeChoice === "dark" || (themeChoice === "auto" && systemIsDark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    for (const button of byId("themes").children) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === themeChoice));
    }
    readColors();
    redraw();
  }

  // ----------------------------------------------------------------------------------- a plan

  // What is drawn of a group: without stages forward and backward are one block with a seam.
  function blocksOf(step) {
    const blocks = [];
    const open = new Map();
    for (const [group, stage, chunk, direction, begin, end] of step.bars) {
      const key = `${group} ${chunk}`;
      const before = open.get(key);
      if (step.stages === 1 && direction === 1 && before && before.end === begin) {
        before.seam = before.end;
        before.end = end;
        before.direction = -1;
        open.delete(key);
        continue;
      }
      const block = { group: step.groups[group], stage, chunk, direction, begin, end, seam: null };
      blocks.push(block);
      if (direction === 0) open.set(key, block);
    }
    return blocks;
  }

  function blocksByRow(step, blocks) {
    const rows = Array.from({ length: step.ranks * step.stages }, () => []);
    for (const block of blocks) {
      for (let i = 0; i < block.group.size; ++i) {
        rows[(block.group.first + i) * step.stages + block.stage].push(block);
      }
    }
    for (const row of rows) row.sort((a, b) => a.begin - b.begin);
    return rows;
  }

  function tokenCounts(step) {
    const counts = { real: 0, padded: 0, room: 0, rows: 2 * step.padding_rows };
    for (const group of step.groups) {
      if (group.sequences.length === 0) continue;
      counts.real += sum(group.sequences.map((id) => lengthOf(step, id)));
      counts.padded += group.tokens;
      counts.room += group.size * step.capacity;
    }
    return counts;
  }

  const lengthOf = (step, id) => (id < step.lengths.length ? step.lengths[id] : 2);  // padding rows have 2

  function preparedPlan(entry, index) {
    const step = entry.steps[index];
    if (!step) return null;
    const blocks = blocksOf(step);
    const filled = step.groups.filter((group) => group.sequences.length > 0);
    const rows = step.ranks * step.stages;
    return {
      ...step,
      name: entry.name,
      blocks,
      filled,
      rows,
      blocksOfRow: blocksByRow(step, blocks),
      hasTimeline: step.groups.length > 0,
      isInvalid: step.violation !== "",
      tokenCounts: tokenCounts(step),
      num_slots: step.groups.length === 0 ? 0 : 1 + largest(step.groups.map((group) => group.slot)),
      widest: largest(filled.map((group) => group.size)),
      bubble: step.step_ns > 0 ? 1 - sum(step.busy_ns) / (step.step_ns * rows) : 0,
      peak: largest(step.peak_bytes),
    };
  }

  // An entry that others are measured against: it has a time, and nothing is wrong with it.
  const isSound = (plan) => plan.hasTimeline && !plan.isInvalid;

  // ---------------------------------------------------------------------------------- summary

  const metrics = [
    { name: "Step time", value: (p) => p.step_ns, text: timeText, parts: timeParts, delta: "relative", key: true },
    { name: "Lower bound", value: (p) => p.bound_ns || null, text: timeText },
    { name: "Gap to the bound", value: (p) => (p.bound_ns > 0 ? p.step_ns / p.bound_ns - 1 : null),
      text: (gap) => percentText(gap, gap > 0 && gap < 0.0005 ? 4 : 2), key: true },
    { name: "Imbalance", note: "busiest rank over mean", value: (p) => p.imbalance, text: (x) => x.toFixed(3), key: true },
    { name: "Idle", note: "of all ranks, until the last one ends", value: (p) => p.bubble, text: idleText },
    { name: "Micro-batches", value: (p) => p.filled.length, text: integerText, key: true },
    { name: "Slots", value: (p) => p.num_slots, text: integerText },
    { name: "Widest group", value: (p) => p.widest, text: (c) => plural(c, "rank") },
    { name: "Token fill", note: "padded tokens of the capacity", key: true,
      value: (p) => (p.tokenCounts.room > 0 ? p.tokenCounts.padded / p.tokenCounts.room : null), text: percentText },
    { name: "Padding", note: "added so that groups divide", key: false,
      value: (p) => p.tokenCounts.padded - p.tokenCounts.real,
      text: (tokens) => plural(tokens, "token") },
    { name: "Peak memory", note: "activations of the fullest rank", value: (p) => p.peak || null, text: bytesText,
      parts: byteParts, delta: "relative", key: true },
  ];

  function deltaOf(metric, plan, before) {
    if (!before || before === plan || metric.delta !== "relative" || !isSound(plan)) return null;
    const from = metric.value(before);
    const to = metric.value(plan);
    if (!from || to === null) return null;
    const change = to / from - 1;
    const text = Math.abs(change) < 0.0005 ? "±0 %" : `${change < 0 ? "−" : "+"}${percentText(Math.abs(change))}`;
    return { text, kind: Math.abs(change) < 0.005 ? "" : change < 0 ? "better" : "worse" };
  }

  function statusPill(plan) {
    const status = plan.isInvalid ? "invalid" : plan.status;
    return element("span", { class: `pill ${status}` }, status);
  }

  function drawFigures(after, before) {
    fillWith(byId("figures"), ...metrics.filter((metric) => metric.key && after && after.hasTimeline).flatMap((metric) => {
      const value = metric.value(after);
      if (value === null) return [];
      const [number, unit] = metric.parts ? metric.parts(value) : [metric.text(value), ""];
      const shown = element("div", { class: "value" }, number);
      if (unit) shown.append(element("small", {}, ` ${unit}`));
      const delta = element("div", { class: "delta" });
      const change = deltaOf(metric, after, before);
      if (change) delta.append(element("span", { class: change.kind }, change.text), ` against ${before.name}`);
      else if (before && metric.value(before) !== null) delta.append(`${metric.text(metric.value(before))} in ${before.name}`);
      return [element("div", { class: "figure" }, element("div", { class: "name" }, metric.name), shown, delta)];
    }));
  }

  // A row of the table: a value of each plan and, beside it, its change.
  const comparisonRow = (name, note, cells) => element("tr", {}, element("th", { scope: "row", title: note }, name), ...cells.flat());
  const plainCells = (content) => plans.map((plan) => [element("td", { class: "value" }, content(plan)), element("td", { class: "change" })]);

  function metricCells(metric, before) {
    return plans.map((plan) => {
      const value = plan.hasTimeline ? metric.value(plan) : null;
      const change = value === null ? null : deltaOf(metric, plan, before);
      return [element("td", { class: value === null || plan.isInvalid ? "value void" : "value" }, value === null ? "–" : metric.text(value)),
        element("td", { class: `change ${change ? change.kind : ""}` }, change ? change.text : "")];
    });
  }

  function drawComparison(before) {
    byId("comparison-heading").textContent = plans.length > 1 ? "Side by side" : "In numbers";
    const head = element("tr", {}, element("th", { scope: "col" }, element("span", { class: "visually-hidden" }, "Quantity")),
      ...plans.flatMap((plan) => [element("th", { scope: "col" }, plan.name), element("td", { class: "change" })]));
    fillWith(byId("comparison"), element("caption", { class: "visually-hidden" }, "The plans side by side"),
      element("thead", {}, head), element("tbody", {},
        comparisonRow("Status", "", plainCells(statusPill)), comparisonRow("Context", "ranks that share a sequence", plainCells((plan) => plan.context)),
        ...metrics.map((metric) => comparisonRow(metric.name, metric.note || "", metricCells(metric, before)))));
  }

  function drawBanners() {
    const banner = (kind, title, text) => element("div", { class: `banner ${kind}`, role: kind ? "note" : "alert" },
      element("strong", {}, title), element("span", {}, text));
    const banners = plans.flatMap((plan) => {
      if (plan.isInvalid) return [banner("", `${plan.name} is invalid`, plan.violation)];
      if (plan.status === "infeasible") return [banner("", `${plan.name}: no plan exists`, plan.reason)];
      if (!plan.hasTimeline) return [banner("quiet", `${plan.name}: no plan`, plan.reason)];
      const notes = [];
      if (plan.oversized.length > 0) notes.push(`${plural(plan.oversized.length, "sequence")} over the capacity, each alone`);
      if (plan.dropped.length > 0) notes.push(`${plural(plan.dropped.length, "sequence")} dropped`);
      return notes.length > 0 ? [banner("quiet", plan.name, notes.join("; "))] : [];
    });
    fillWith(byId("banners"), ...banners);
  }

  function drawHeading() {
    const plan = plans[plans.length - 1];
    const names = plans.map((each) => each.name);
    const title = names.length === 1 ? names[0] : names.length <= 3
      ? `${names[names.length - 1]} against ${names.slice(0, -1).join(" and ")}` : `${names.length} plans side by side`;
    byId("title").textContent = title;
    document.title = `${title} · isochron`;
    const facts = [
      plural(plan.lengths.length, "sequence"), plural(sum(plan.lengths), "token"),
      plan.stages > 1 ? `${plural(plan.ranks, "rank")} × ${plural(plan.stages, "stage")}` : plural(plan.ranks, "rank"),
      `capacity ${integerText(plan.capacity)} tokens`, `context ${plan.context}`, `sync ${plan.sync}`, `cost ${plan.cost}`,
    ];
    if (plan.pass === "forward") facts.push("forward only");
    if (plan.first_sequence > 0) facts.push(`from sequence ${integerText(plan.first_sequence)}`);
    byId("subtitle").textContent = facts.join("  ·  ");
    byId("provenance").textContent = hasClock()
      ? `Times are predicted by the cost model ${plan.cost}; gradient reduction and the optimizer are not in them.`
      : "The cost model verl counts workload (24576 s + s²), not time.";
  }

  // ------------------------------------------------------------------------- time axis and view

  const gutter = 52;  // rank numbers
  const margin = 14;
  const view = { begin: 0, end: 1, top: 0, bottom: 1 };  // ns; share of the rows
  let lastTime = 1;

  const plotWidth = (width) => Math.max(1, width - gutter - margin);
  const xOf = (time, width) => gutter + ((time - view.begin) / (view.end - view.begin)) * plotWidth(width);
  const timeAt = (x, width) => view.begin + ((x - gutter) / plotWidth(width)) * (view.end - view.begin);
  const yOf = (row, rows, height) => ((row / rows - view.top) / (view.bottom - view.top)) * height;

  function setTimes(begin, end) {
    const span = clamp(end - begin, Math.max(lastTime * 1e-6, 1e-3), lastTime);
    view.begin = clamp(begin, 0, lastTime - span);
    view.end = view.begin + span;
    redrawTimeline();
  }
  function setRows(top, bottom) {
    const most = largest(lanes.map((lane) => lane.plan.rows));
    const span = clamp(bottom - top, Math.min(1, 1 / Math.max(1, most)), 1);
    view.top = clamp(top, 0, 1 - span);
    view.bottom = view.top + span;
    redrawTimeline();
  }
  function zoomTimes(factor, around = (view.begin + view.end) / 2) {
    const span = (view.end - view.begin) * factor;
    const share = (around - view.begin) / (view.end - view.begin);
    setTimes(around - share * span, around + (1 - share) * span);
  }
  function zoomRows(factor, around = (view.top + view.bottom) / 2) {
    const span = (view.bottom - view.top) * factor;
    const share = (around - view.top) / (view.bottom - view.top);
    setRows(around - share * span, around + (1 - share) * span);
  }
  function panBy(times, rows) {
    setTimes(view.begin + times * (view.end - view.begin), view.end + times * (view.end - view.begin));
    setRows(view.top + rows * (view.bottom - view.top), view.bottom + rows * (view.bottom - view.top));
  }
  function fitView() {
    Object.assign(view, { begin: 0, end: lastTime, top: 0, bottom: 1 });
    redrawTimeline();
  }

  // Round times, at least `gap` pixels apart.
  function ticks(from, to, width, gap) {
    const rough = ((to - from) * gap) / Math.max(1, width);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) || 10);
    const found = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-12) && found.length < 200; ++i) found.push(i * step + 0);  // never -0
    return { step, found };
  }

  function tickText(time, step, longest) {
    const scales = hasClock() ? clockScales : plainScales;
    const [factor, unit] = scales.find(([size]) => longest >= size) || scales[scales.length - 1];
    const digits = clamp(Math.ceil(-Math.log10(step / factor) - 1e-9), 0, 9);
    return join([(time / factor).toFixed(digits), unit]);
  }

  function drawAxis() {
    const canvas = byId("axis");
    paint(canvas, (context, width, height) => {
      const { step, found } = ticks(view.begin, view.end, plotWidth(width), 92);
      canvas.dataset.span = `${view.begin} ${view.end}`;
      context.font = font(11);
      context.textAlign = "center";
      const bounds = sharedBound();
      const boundX = bounds === null ? null : xOf(bounds, width);
      const boundText = bounds === null ? "" : `bound ${timeText(bounds)}`;
      context.font = font(11, 600);
      const boundHalf = context.measureText(boundText).width / 2 + 8;
      const isBoundShown = boundX !== null && boundX >= gutter && boundX <= width - margin + 1;
      const boundCentre = isBoundShown ? clamp(boundX, gutter + boundHalf, width - boundHalf) : 0;
      context.font = font(11);
      for (const time of found) {
        const x = xOf(time, width);
        context.fillStyle = colors.ruleStrong;
        context.fillRect(Math.round(x), height - 5, 1, 5);
        const text = tickText(time, step, view.end);
        const half = context.measureText(text).width / 2;
        if (isBoundShown && Math.abs(x - boundCentre) < half + boundHalf) continue;
        context.fillStyle = colors.muted;
        context.fillText(text, clamp(x, gutter - 8 + half, width - half - 4), height / 2 - 2);
      }
      if (isBoundShown) {
        context.font = font(11, 600);
        context.fillStyle = colors.bound;
        context.fillText(boundText, boundCentre, height / 2 - 2);
        context.fillRect(Math.round(boundX) - 0.5, height - 6, 1.5, 6);
      }
    });
  }

  // The bound of all lanes, if they agree.
  function sharedBound() {
    const bounds = new Set(lanes.map((lane) => lane.plan.bound_ns).filter((bound) => bound > 0));
    return bounds.size === 1 ? [...bounds][0] : null;
  }

  // ------------------------------------------------------------------------------------- lanes

  let dearest = 1;
  const colorOf = (cost) => colors.ramp[Math.round(63 * clamp(cost / dearest, 0, 1))];

  function laneHeight(plan) {
    const most = plans.length >= 3 ? 320 : plans.length === 2 ? 420 : 560;
    return Math.round(clamp(plan.rows * (plans.length >= 3 ? 26 : 34), 44, most));
  }

  // Block rectangles in pixels: one over all rows of a group, or one per rank where stages lie
  // between them.
  function* rectanglesOf(block, plan, width, height) {
    const left = xOf(block.begin, width);
    const right = xOf(block.end, width);
    const rowHeight = yOf(1, plan.rows, height) - yOf(0, plan.rows, height);
    const pieces = plan.stages === 1 ? 1 : block.group.size;
    for (let i = 0; i < pieces; ++i) {
      const row = (block.group.first + i) * plan.stages + block.stage;
      const rows = plan.stages === 1 ? block.group.size : 1;
      const exactTop = yOf(row, plan.rows, height);
      // Of the rows that share a pixel the first is drawn.
      const isShadowed = rows * rowHeight < 1 && Math.floor(exactTop) === Math.floor(exactTop - rows * rowHeight);
      const top = rowHeight < 1 ? Math.floor(exactTop) : Math.round(exactTop);
      const bottom = Math.max(top + 1, Math.round(yOf(row + rows, plan.rows, height)));
      const gapX = right - left > 4 ? 1 : 0;
      const gapY = bottom - top > 6 ? 1 : 0;
      yield { x: left, y: top, w: Math.max(right - left - gapX, 0.4), h: bottom - top - gapY, isShadowed };
    }
  }

  function drawBlock(context, block, plan, width, height, clip) {
    for (const rect of rectanglesOf(block, plan, width, height)) {
      if (rect.isShadowed || rect.x > clip.right || rect.x + rect.w < clip.left || rect.y > height || rect.y + rect.h < 0) continue;
      const left = Math.max(rect.x, clip.left);
      const w = Math.min(rect.x + rect.w, clip.right) - left;
      if (block.group.sequences.length === 0) {
        context.strokeStyle = colors.faint;
        context.lineWidth = 1;
        context.setLineDash([2, 2]);
        if (rect.h > 3) context.strokeRect(left + 0.5, rect.y + 0.5, Math.max(w - 1, 0.5), rect.h - 1);
        context.setLineDash([]);
        continue;
      }
      const color = colorOf(block.group.cost_ns);
      context.globalAlpha = plan.isInvalid ? 0.4 : 1;
      context.fillStyle = color.fill;
      context.fillRect(left, rect.y, w, rect.h);
      context.globalAlpha = 1;
      drawForwardShade(context, block, rect, left, w, width);
      if (plan.isInvalid) {
        context.fillStyle = colors.hatch;
        context.fillRect(left, rect.y, w, rect.h);
      } else {
        drawLabel(context, block, plan, { x: left, y: rect.y, w, h: rect.h }, color.ink);
      }
    }
  }

  function drawForwardShade(context, block, rect, left, w, width) {
    if (block.direction === 1) return;
    const end = block.seam === null ? left + w : Math.min(xOf(block.seam, width), left + w);
    if (end <= left) return;
    if (block.direction === -1 && rect.w < 6) return;
    context.globalAlpha = block.direction === -1 ? 0.13 : 0.36;
    context.fillStyle = colors.surface;
    context.fillRect(left, rect.y, end - left, rect.h);
    context.globalAlpha = 1;
  }

  function drawLabel(context, block, plan, rect, ink) {
    if (rect.h < 10.5 || rect.w < 16) return;
    const size = `×${block.group.size}`;
    const slot = plan.stages > 1 ? `${block.group.slot}${block.direction === 0 ? "F" : "B"}` : "";
    const candidates = plan.stages > 1
      ? [`${slot} ${size}`, slot]
      : [`${size}  ${plural(block.group.sequences.length, "sequence")}  ${timeText(block.group.cost_ns)}`,
        `${size}  ${timeText(block.group.cost_ns)}`, size];
    context.font = font(Math.min(12, rect.h > 15 ? 11.5 : 9.5), 560);
    const text = candidates.find((each) => context.measureText(each).width + 10 <= rect.w);
    if (!text) return;
    context.fillStyle = ink;
    context.textAlign = "left";
    context.fillText(text, rect.x + 5, rect.y + rect.h / 2 + 0.5);
  }

  function drawRankNumbers(context, plan, height) {
    const rankHeight = yOf(plan.stages, plan.rows, height) - yOf(0, plan.rows, height);
    let step = 1;
    while (step * rankHeight < 13) step *= 2;
    context.textAlign = "right";
    for (let rank = 0; rank < plan.ranks; ++rank) {
      const top = yOf(rank * plan.stages, plan.rows, height);
      if (top > height || top + rankHeight < 0) continue;
      if (plan.stages > 1 && rank > 0 && rankHeight > 8) {
        context.fillStyle = colors.rule;
        context.fillRect(0, Math.round(top), 100000, 1);
      }
      const isNumbered = rank % step === 0;
      const middle = rankHeight >= 13 ? top + rankHeight / 2 : top + Math.min(6, (step * rankHeight) / 2);
      if (isNumbered && middle >= 5 && middle <= height - 4) {
        context.font = font(10.5);
        context.fillStyle = colors.muted;
        context.fillText(String(rank), gutter - (plan.stages > 1 && rankHeight / plan.stages >= 11 ? 26 : 9), middle);
      }
      if (plan.stages > 1 && rankHeight / plan.stages >= 11) {
        for (let stage = 0; stage < plan.stages; ++stage) {
          const y = yOf(rank * plan.stages + stage + 0.5, plan.rows, height);
          context.font = font(9.5);
          context.fillStyle = colors.faint;
          context.fillText(`s${stage}`, gutter - 6, y);
        }
      }
    }
  }

  function drawLane(lane) {
    const { plan, canvas } = lane;
    paint(canvas, (context, width, height) => {
      const clip = { left: gutter, right: width - margin + 1 };
      const end = clamp(xOf(plan.step_ns, width), clip.left, clip.right);
      const begin = Math.max(xOf(0, width), clip.left);
      context.fillStyle = colors.idle;
      context.fillRect(begin, 0, Math.max(0, end - begin), height);
      context.fillStyle = colors.rule;
      for (const time of ticks(view.begin, view.end, plotWidth(width), 92).found) {
        context.fillRect(Math.round(xOf(time, width)), 0, 1, height);
      }
      drawRankNumbers(context, plan, height);
      for (const block of plan.blocks) {
        if (block.begin <= view.end && block.end >= view.begin) drawBlock(context, block, plan, width, height, clip);
      }
      drawMark(context, plan.step_ns, width, height, clip, colors.text, []);
      if (plan.bound_ns > 0) drawMark(context, plan.bound_ns, width, height, clip, colors.bound, [4, 3]);
    });
    drawOutlines(lane);
  }

  // On a canvas of their own: pointing at a block draws no other block again.
  function drawOutlines(lane) {
    paint(lane.outlines, (context, width, height) => {
      const clip = { left: gutter, right: width - margin + 1 };
      for (const block of [lane.hovered, lane.selected]) {
        if (block) outlineBlock(context, block, lane.plan, width, height, clip);
      }
    });
  }

  function drawMark(context, time, width, height, clip, color, dash) {
    const x = xOf(time, width);
    if (x < clip.left || x > clip.right + 1) return;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
    context.setLineDash([]);
  }

  function outlineBlock(context, block, plan, width, height, clip) {
    context.strokeStyle = colors.text;
    context.lineWidth = 2;
    for (const rect of rectanglesOf(block, plan, width, height)) {
      const left = Math.max(rect.x, clip.left);
      const right = Math.min(rect.x + rect.w, clip.right);
      if (right > left) context.strokeRect(left, rect.y, Math.max(right - left, 2), Math.max(rect.h, 2));
    }
  }

  function blockAt(lane, x, y) {
    const { plan, canvas } = lane;
    const width = canvas.clientWidth;
    if (x < gutter || x > width - margin + 1) return null;
    const row = Math.floor((view.top + (y / canvas.clientHeight) * (view.bottom - view.top)) * plan.rows);
    const slack = (1.5 / plotWidth(width)) * (view.end - view.begin);  // blocks thinner than a pixel
    const time = timeAt(x, width);
    let best = null;
    for (const block of plan.blocksOfRow[row] || []) {
      if (block.begin - slack > time) break;
      if (block.end + slack >= time) best = block;
      if (block.begin <= time && time < block.end) return block;
    }
    return best;
  }

  // --------------------------------------------------------------------- what a micro-batch is

  function blockTitle(block, plan) {
    const { group } = block;
    const kind = block.direction === 0 ? ", forward" : block.direction === 1 ? ", backward" : "";
    const where = plan.stages > 1 ? `, stage ${block.stage}${plan.virtual > 1 ? `, chunk ${block.chunk}` : ""}` : "";
    return `Slot ${group.slot}, ${rangeText(group.first, group.size)}${where}${kind}`;
  }

  function blockFacts(block, plan) {
    const { group } = block;
    const perRank = group.tokens / group.size;
    const facts = [["Group size", `c = ${group.size}`]];
    if (group.exchange) facts.push(["Exchange", group.exchange]);
    facts.push(["Cost per rank", timeText(group.cost_ns)]);
    facts.push(["Begin – end", `${timeText(block.begin)} – ${timeText(block.end)}`]);
    if (group.sequences.length === 0) facts.push(["Holds", "nothing: a placeholder"]);
    else facts.push(["Tokens per rank", `${integerText(perRank)} of ${integerText(plan.capacity)} (${percentText(perRank / plan.capacity)})`]);
    const list = element("dl", { class: "facts-list" });
    for (const [name, value] of facts) list.append(element("dt", {}, name), element("dd", {}, value));
    return list;
  }

  function sequenceTable(block, plan, most) {
    const { group } = block;
    const hasPrompts = plan.prompt_groups.length > 0;
    const ids = [...group.sequences].sort((a, b) => lengthOf(plan, b) - lengthOf(plan, a) || a - b).slice(0, most);
    const head = element("tr", {}, ...["Sequence", "Length", ...(hasPrompts ? ["Prompt"] : [])].map((name) => element("th", { scope: "col" }, name)));
    const rows = ids.map((id) => {
      const isPadding = id >= plan.lengths.length;
      const row = element("tr", {}, element("td", {}, isPadding ? `#${id} padding row` : `#${id}`), element("td", {}, integerText(lengthOf(plan, id))));
      if (hasPrompts) row.append(element("td", { class: "prompt" }, isPadding ? "" : plan.prompt_names[plan.prompt_groups[id]]));
      return row;
    });
    const parts = [element("table", { class: "sequences" }, element("thead", {}, head), element("tbody", {}, ...rows))];
    if (group.sequences.length > most) {
      parts.push(element("p", { class: "more" }, `and ${integerText(group.sequences.length - most)} shorter; click for all`));
    }
    return group.sequences.length === 0 ? [] : parts;
  }

  function showTip(x, y, ...content) {
    const tip = byId("tip");
    fillWith(tip, ...content);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${x + 16 + box.width > window.innerWidth ? Math.max(4, x - 16 - box.width) : x + 16}px`;
    tip.style.top = `${clamp(y + 14, 4, Math.max(4, window.innerHeight - box.height - 4))}px`;
  }
  const hideTip = () => { byId("tip").hidden = true; };

  const showBlockTip = (lane, block, x, y) => showTip(x, y, element("h3", {}, blockTitle(block, lane.plan)),
    blockFacts(block, lane.plan), ...sequenceTable(block, lane.plan, 8));

  function openDetail(lane, block) {
    const detail = byId("detail");
    const close = element("button", { type: "button", onclick: closeDetail }, "Close");
    fillWith(detail,
      element("header", {}, element("h3", {}, `${lane.plan.name}: ${blockTitle(block, lane.plan)}`), close),
      blockFacts(block, lane.plan),
      element("div", { class: "list", tabIndex: 0, "aria-label": "Sequences" }, ...sequenceTable(block, lane.plan, Infinity)));
    detail.hidden = false;
  }
  function closeDetail() {
    byId("detail").hidden = true;
    for (const lane of lanes) lane.selected = null;
    lanes.forEach(drawOutlines);
  }

  // --------------------------------------------------------------------------- pointer and keys

  function select(lane, block) {
    for (const each of lanes) each.selected = each === lane ? block : null;
    lanes.forEach(drawOutlines);
  }

  function followPointer(lane) {
    const { canvas } = lane;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, ...view, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      const wasClick = drag && !drag.moved;
      drag = null;
      canvas.classList.remove("dragging");
      if (!wasClick) return;
      const block = blockAt(lane, event.offsetX, event.offsetY);
      select(lane, block);
      if (block) openDetail(lane, block);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) return dragTo(event);
      const block = blockAt(lane, event.offsetX, event.offsetY);
      canvas.classList.toggle("over", block !== null);
      if (block !== lane.hovered) {
        lane.hovered = block;
        drawOutlines(lane);
      }
      if (block) showBlockTip(lane, block, event.clientX, event.clientY);
      else hideTip();
    });
    function dragTo(event) {
      const dx = event.clientX - drag.x;
      const dy = event.clientY - drag.y;
      if (Math.abs(dx) + Math.abs(dy) < 4 && !drag.moved) return;
      drag.moved = true;
      canvas.classList.add("dragging");
      hideTip();
      const times = (-dx / plotWidth(canvas.clientWidth)) * (drag.end - drag.begin);
      const rows = (-dy / canvas.clientHeight) * (drag.bottom - drag.top);
      setTimes(drag.begin + times, drag.end + times);
      setRows(drag.top + rows, drag.bottom + rows);
    }
    canvas.addEventListener("pointerleave", () => {
      lane.hovered = null;
      hideTip();
      drawOutlines(lane);
    });
    canvas.addEventListener("dblclick", (event) => {
      const block = blockAt(lane, event.offsetX, event.offsetY);
      if (block) setTimes(block.begin - (block.end - block.begin) / 4, block.end + (block.end - block.begin) / 4);
    });
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        zoomTimes(Math.exp(clamp(event.deltaY, -200, 200) / 250), timeAt(event.offsetX, canvas.clientWidth));
      } else if (event.altKey) {
        const share = event.offsetY / canvas.clientHeight;
        zoomRows(Math.exp(clamp(event.deltaY, -200, 200) / 250), view.top + share * (view.bottom - view.top));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        panBy((event.deltaX || event.deltaY) / plotWidth(canvas.clientWidth), 0);
      } else {
        return;  // the page scrolls
      }
      event.preventDefault();
    }, { passive: false });
  }

  // The neighbour of a block: the next one in time on its first row, or what runs beside it.
  function neighbour(lane, block, key) {
    const { plan } = lane;
    if (!block) return plan.blocks[0] || null;
    const row = block.group.first * plan.stages + block.stage;
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const others = plan.blocksOfRow[row];
      return others[others.indexOf(block) + (key === "ArrowRight" ? 1 : -1)] || block;
    }
    const span = plan.stages === 1 ? block.group.size : 1;
    const others = plan.blocksOfRow[key === "ArrowDown" ? row + span : row - 1];
    if (!others || others.length === 0) return block;
    const middle = (block.begin + block.end) / 2;
    return others.find((each) => each.end > middle) || others[others.length - 1];
  }

  function bringIntoView(block, plan) {
    const span = view.end - view.begin;
    if (block.begin < view.begin || block.end > view.end) setTimes(block.begin - span / 8, block.begin + (7 * span) / 8);
    const row = (block.group.first * plan.stages + block.stage) / plan.rows;
    const tall = view.bottom - view.top;
    if (row < view.top || row + 1 / plan.rows > view.bottom) setRows(row - tall / 2, row + tall / 2);
  }

  function followKeys(lane) {
    lane.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const actions = { "+": () => zoomTimes(0.6), "=": () => zoomTimes(0.6), "-": () => zoomTimes(1 / 0.6), 0: fitView, Home: fitView,
        Escape: () => { hideTip(); closeDetail(); },
        Enter: () => lane.selected && openDetail(lane, lane.selected) };
      const pans = { ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, -0.2], ArrowDown: [0, 0.2] };
      if (event.key in pans && event.shiftKey) panBy(...pans[event.key]);
      else if (event.key in pans) walk(event.key);
      else if (event.key in actions) actions[event.key]();
      else return;
      event.preventDefault();
    });
    lane.canvas.addEventListener("blur", hideTip);
    function walk(key) {
      const block = neighbour(lane, lane.selected, key);
      if (!block) return;
      select(lane, block);
      bringIntoView(block, lane.plan);
      const box = lane.canvas.getBoundingClientRect();
      const row = block.group.first * lane.plan.stages + block.stage;
      showBlockTip(lane, block, box.left + clamp(xOf(block.begin, box.width), gutter, box.width),
        box.top + yOf(row + 1, lane.plan.rows, box.height));
      lane.announce.textContent = `${blockTitle(block, lane.plan)}, ${plural(block.group.sequences.length, "sequence")}, ${timeText(block.group.cost_ns)}`;
    }
  }

  function laneOf(plan, before) {
    const facts = element("span", { class: "facts" });
    if (plan.hasTimeline) {
      const change = deltaOf(metrics[0], plan, before);
      facts.append(element("b", {}, timeText(plan.step_ns)));
      if (change) facts.append(" (", element("span", { class: change.kind }, change.text), ")");
      facts.append(` · idle ${idleText(plan.bubble)} · ${plural(plan.filled.length, "micro-batch").replace("batchs", "batches")}`);
      if (plan.widest > 1) facts.append(` · groups up to ${plural(plan.widest, "rank")}`);
    }
    const head = element("div", { class: "lane-head" }, element("h3", {}, plan.name), statusPill(plan), facts);
    const lane = { plan, hovered: null, selected: null, node: element("div", { class: "lane" }, head) };
    if (!plan.hasTimeline) {
      lane.node.append(element("p", { class: "empty" }, plan.violation || plan.reason || "There is nothing to draw."));
      return lane;
    }
    const label = `Timeline of ${plan.name}: ${plural(plan.ranks, "rank")}, ${timeText(plan.step_ns)}`;
    lane.canvas = element("canvas", { class: "plot", tabIndex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": label });
    lane.canvas.style.height = `${laneHeight(plan)}px`;
    lane.announce = element("span", { class: "visually-hidden", "aria-live": "polite" });
    lane.outlines = element("canvas", { class: "outlines", "aria-hidden": "true" });
    lane.node.append(element("div", { class: "plots" }, lane.canvas, lane.outlines), lane.announce);
    followPointer(lane);
    followKeys(lane);
    return lane;
  }

  function drawLegend() {
    const ramp = element("canvas", { "aria-hidden": "true" });
    ramp.style.width = "96px";
    ramp.style.height = "10px";
    const texts = [element("span", {}, "Cost per rank 0", ramp, timeText(dearest)),
      element("span", {}, "×c: group of c ranks"), element("span", {}, "lighter: forward")];
    if (lanes.some((lane) => lane.plan.isInvalid)) texts.push(element("span", {}, "hatched: invalid"));
    fillWith(byId("legend"), ...texts);
    paint(ramp, (context, width, height) => {
      for (let x = 0; x < width; ++x) {
        context.fillStyle = colors.ramp[Math.floor((63 * x) / (width - 1))].fill;
        context.fillRect(x, 0, 1.5, height);
      }
    });
  }

  function buildLanes(before) {
    const all = plans.map((plan) => laneOf(plan, before));
    fillWith(byId("lanes"), ...all.map((lane) => lane.node));
    lanes = all.filter((lane) => lane.canvas);
    byId("axis").hidden = lanes.length === 0;
    dearest = Math.max(1, largest(lanes.map((lane) => largest(lane.plan.filled.map((group) => group.cost_ns)))));
    lastTime = Math.max(1, largest(lanes.map((lane) => Math.max(lane.plan.step_ns, lane.plan.bound_ns))));
    Object.assign(view, { begin: 0, end: lastTime, top: 0, bottom: 1 });
    byId("detail").hidden = true;
  }

  // At most once a frame: wheels and pointers report more often.
  let isRedrawPending = false;
  function redrawTimeline() {
    if (isRedrawPending) return;
    isRedrawPending = true;
    requestAnimationFrame(() => {
      isRedrawPending = false;
      drawAxis();
      for (const lane of lanes) drawLane(lane);
    });
  }

  // ------------------------------------------------------------------------------------ charts

  // Bars from left to right, `soft` on top of `values`; more bars than pixels become their maxima.
  // chart: {values, soft, color, softColor, most, unit, format, first, last, lines, tip(index), label}, and of
  // a chart whose bars can be chosen {marked, pick(index)}
  function barChart(chart) {
    const canvas = element("canvas", { role: "img", "aria-label": chart.label });
    const left = 58;
    const top = 8;
    const bottom = 18;
    const count = chart.values.length;
    const indexAt = (x) => clamp(Math.floor(((x - left) / (canvas.clientWidth - left)) * count), 0, count - 1);
    const draw = () => paint(canvas, (context, width, height) => {
      const plot = height - top - bottom;
      const y = (value) => top + plot * (1 - value / chart.most);
      drawValueAxis(context, chart, width, left, y);
      const barWidth = (width - left) / Math.max(1, count);
      const columns = Math.min(count, Math.floor(width - left));
      for (let column = 0; column < columns; ++column) {
        const from = Math.floor((column * count) / columns);
        const to = Math.max(from + 1, Math.floor(((column + 1) * count) / columns));
        const hard = largest(chart.values.slice(from, to));
        const x = Math.round(left + (column * (width - left)) / columns);
        const w = Math.round(left + ((column + 1) * (width - left)) / columns) - x - (barWidth > 5 ? 1 : 0);
        if (chart.soft) {
          context.fillStyle = chart.softColor();
          const total = largest(chart.soft.slice(from, to));
          context.fillRect(x, y(total), w, y(hard) - y(total));
        }
        context.fillStyle = chart.color();
        context.fillRect(x, y(hard), w, top + plot - y(hard));
        if (from <= chart.marked && chart.marked < to) {
          context.fillStyle = colors.text;
          context.fillRect(x, top + plot, Math.max(w, 2), 3);
        }
      }
      drawLines(context, chart, width, left, y);
      drawIndexAxis(context, chart, width, height, left);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (count === 0 || event.offsetX < left) return hideTip();
      showTip(event.clientX, event.clientY, ...chart.tip(indexAt(event.offsetX)).map((line, i) => element(i === 0 ? "h3" : "div", {}, line)));
    });
    canvas.addEventListener("pointerleave", hideTip);
    if (chart.pick) {
      canvas.classList.add("pickable");
      canvas.addEventListener("click", (event) => event.offsetX >= left && chart.pick(indexAt(event.offsetX)));
    }
    redrawCharts.push(draw);
    return canvas;
  }

  function drawValueAxis(context, chart, width, left, y) {
    context.font = font(10.5);
    context.textAlign = "right";
    for (const value of ticks(0, chart.most / chart.unit, 124, 31).found.map((tick) => tick * chart.unit)) {
      context.fillStyle = colors.rule;
      context.fillRect(left, Math.round(y(value)), width - left, 1);
      context.fillStyle = colors.muted;
      context.fillText(chart.format(value), left - 8, y(value));
    }
  }

  function drawLines(context, chart, width, left, y) {
    for (const line of chart.lines) {
      context.strokeStyle = line.color();
      context.lineWidth = 1.5;
      context.setLineDash(line.dash);
      context.beginPath();
      context.moveTo(left, y(line.value));
      context.lineTo(width, y(line.value));
      context.stroke();
      context.setLineDash([]);
    }
  }

  function drawIndexAxis(context, chart, width, height, left) {
    const count = chart.values.length;
    context.font = font(10.5);
    context.fillStyle = colors.muted;
    context.textAlign = "left";
    context.fillText(chart.first, left, height - 7);
    context.textAlign = "right";
    if (count > 1) context.fillText(chart.last, width, height - 7);
  }

  function figure(plan, caption, canvas) {
    return element("figure", { class: "chart" }, element("figcaption", {}, element("h3", {}, plan.name), element("p", {}, caption)), canvas);
  }

  function busyOfRanks(plan) {
    return Array.from({ length: plan.ranks }, (_, rank) => largest(plan.busy_ns.slice(rank * plan.stages, (rank + 1) * plan.stages)));
  }

  // 0 to the largest, with the unit of the largest on every tick.
  function valueAxis(most, scales) {
    const [unit, name] = scales.find(([size]) => most >= size) || scales[scales.length - 1];
    return { most, unit, format: (value) => join([(value / unit).toLocaleString("en-US", { maximumSignificantDigits: 3 }), value === 0 ? "" : name]) };
  }
  const timeAxis = (most) => valueAxis(most, hasClock() ? clockScales : plainScales);

  function loadChart(plan, most) {
    const busy = busyOfRanks(plan);
    const slowest = busy.indexOf(largest(busy));
    const caption = `Busiest is rank ${slowest} with ${timeText(busy[slowest])}; mean ${timeText(sum(busy) / busy.length)}`;
    return figure(plan, caption, barChart({
      ...timeAxis(most), values: busy, soft: busy.map(() => plan.step_ns), first: "rank 0", last: `${plan.ranks - 1}`,
      color: () => colors.bar, softColor: () => colors.idle,
      lines: plan.bound_ns > 0 ? [{ value: plan.bound_ns, color: () => colors.bound, dash: [4, 3] }] : [],
      tip: (rank) => [`Rank ${rank}`, `busy ${timeText(busy[rank])}`, `idle ${percentText(1 - busy[rank] / Math.max(1, plan.step_ns))} of ${timeText(plan.step_ns)}`],
      label: `Busy time of each rank of ${plan.name}. ${caption}.`,
    }));
  }

  function fillChart(plan) {
    const groups = [...plan.filled].sort((a, b) => b.tokens / b.size - a.tokens / a.size);
    const padded = groups.map((group) => group.tokens / group.size);
    const real = groups.map((group) => sum(group.sequences.map((id) => lengthOf(plan, id))) / group.size);
    const most = Math.max(plan.capacity, largest(padded)) * 1.04;
    const over = padded.filter((tokens) => tokens > plan.capacity).length;
    const caption = `Fullest first; mean ${percentText(sum(padded) / Math.max(1, padded.length) / plan.capacity)} of the capacity`
      + (over > 0 ? `, ${integerText(over)} over it` : "");
    return figure(plan, caption, barChart({
      ...valueAxis(most, plainScales), values: real, soft: padded, first: "micro-batch 1", last: integerText(groups.length),
      color: () => colors.bar, softColor: () => colors.bound,
      lines: [{ value: plan.capacity, color: () => colors.text, dash: [] }],
      tip: (i) => [`Slot ${groups[i].slot}, ${rangeText(groups[i].first, groups[i].size)}`,
        `${integerText(padded[i])} of ${integerText(plan.capacity)} tokens per rank`,
        `${plural(groups[i].sequences.length, "sequence")}, padding ${integerText(groups[i].tokens - real[i] * groups[i].size)}`],
      label: `Tokens per rank of each micro-batch of ${plan.name}. ${caption}.`,
    }));
  }

  function memoryChart(plan, most) {
    const fullest = plan.peak_bytes.indexOf(plan.peak);
    const caption = `Fullest is rank ${fullest} with ${bytesText(plan.peak)}`
      + (plan.memory_limit > 0 ? `; limit ${bytesText(plan.memory_limit)}` : "");
    return figure(plan, caption, barChart({
      ...valueAxis(most, byteScales), values: plan.peak_bytes, first: "rank 0", last: `${plan.ranks - 1}`, color: () => colors.bar,
      lines: plan.memory_limit > 0 ? [{ value: plan.memory_limit, color: () => colors.bad, dash: [] }] : [],
      tip: (rank) => [`Rank ${rank}`, `${bytesText(plan.peak_bytes[rank])} of activations at most`],
      label: `Peak activation memory of each rank of ${plan.name}. ${caption}.`,
    }));
  }

  function drawCharts() {
    redrawCharts = [];
    const drawn = plans.filter((plan) => plan.hasTimeline);
    const longest = 1.04 * Math.max(1, largest(drawn.map((plan) => Math.max(plan.step_ns, plan.bound_ns))));
    fillWith(byId("load"), ...drawn.map((plan) => loadChart(plan, longest)));
    fillWith(byId("fill"), ...drawn.map(fillChart));
    const measured = drawn.filter((plan) => plan.peak > 0);
    const heaviest = 1.04 * Math.max(1, largest(measured.map((plan) => Math.max(plan.peak, plan.memory_limit))));
    fillWith(byId("memory"), ...measured.map((plan) => memoryChart(plan, heaviest)));
    drawRoom(drawn);
    for (const [id, shown] of [["load", drawn], ["fill", drawn], ["memory", measured], ["padding", drawn]]) {
      byId(id).closest("section").hidden = shown.length === 0;
    }
    drawHistory();
    for (const draw of redrawCharts) draw();
  }

  function drawRoom(drawn) {
    const item = (kind, text) => element("span", {}, element("i", { class: `swatch ${kind}` }), text);
    const legend = element("div", { class: "room-legend" }, item("real", "tokens of sequences"), item("pad", "padding"), item("unused", "unused"));
    const most = largest(drawn.map((plan) => plan.tokenCounts.room));
    const cells = drawn.flatMap((plan) => {
      const { real, padded, room, rows } = plan.tokenCounts;
      const part = (kind, tokens) => {
        const made = element("i", { class: kind });
        made.style.width = `${(100 * tokens) / Math.max(1, room)}%`;
        return made;
      };
      const track = element("div", { class: "track" }, part("real", real - rows), part("pad", padded - real + rows));
      track.style.width = `${(100 * room) / Math.max(1, most)}%`;
      const note = `${integerText(real - rows)} tokens, ${integerText(padded - real + rows)} padding, ${integerText(Math.max(0, room - padded))} unused of ${integerText(room)}`;
      return [element("span", { class: "label" }, plan.name), element("div", {}, track), element("span", { class: "note" }, note)];
    });
    fillWith(byId("padding"), legend, element("div", { class: "room" }, ...cells));
  }

  // The time of every step, one chart per entry.
  function drawHistory() {
    byId("history-section").hidden = numSteps < 2;
    if (numSteps < 2) return;
    const most = 1.04 * Math.max(1, largest(entries.flatMap((entry) => entry.steps.map((step) => step.step_ns))));
    fillWith(byId("history"), ...entries.map((entry) => {
      const times = entry.steps.map((step) => (step.violation ? 0 : step.step_ns));
      const played = times.filter((time) => time > 0);
      const caption = `${plural(entry.steps.length, "step")}, ${played.length > 0 ? `together ${timeText(sum(played))}` : "none valid"}`
        + (played.length < times.length ? `; ${integerText(times.length - played.length)} without a valid plan` : "");
      return figure(entry, caption, barChart({
        ...timeAxis(most), values: times, first: "step 1", last: integerText(times.length), color: () => colors.bar,
        lines: [], marked: shownStep, pick: showStep,
        tip: (i) => [`Step ${i + 1}`, times[i] > 0 ? timeText(times[i]) : entry.steps[i].violation || entry.steps[i].reason],
        label: `Time of each step of ${entry.name}. ${caption}.`,
      }));
    }));
  }

  // -------------------------------------------------------------------------------------- page

  function redraw() {
    if (plans.length === 0) return;
    drawLegend();
    redrawTimeline();
    for (const draw of redrawCharts) draw();
  }

  function showStep(index) {
    plans = entries.map((entry) => preparedPlan(entry, index)).filter((plan) => plan !== null);
    if (plans.length === 0) return;
    shownStep = index;
    document.body.classList.toggle("single", plans.length === 1);
    byId("step-choice").value = String(index);
    byId("previous-step").disabled = index === 0;
    byId("next-step").disabled = index === numSteps - 1;
    const after = plans[plans.length - 1];
    const before = plans.slice(0, -1).find(isSound) || null;
    drawHeading();
    drawBanners();
    drawFigures(after, before);
    drawComparison(before);
    buildLanes(before);
    drawLegend();
    redrawTimeline();
    drawCharts();
  }

  function addControls() {
    const choice = byId("step-choice");
    for (let i = 0; i < numSteps; ++i) choice.append(element("option", { value: String(i) }, `${i + 1} of ${numSteps}`));
    byId("steps").hidden = numSteps < 2;
    choice.addEventListener("change", () => showStep(Number(choice.value)));
    byId("previous-step").addEventListener("click", () => showStep(Number(choice.value) - 1));
    byId("next-step").addEventListener("click", () => showStep(Number(choice.value) + 1));
    for (const button of byId("themes").children) {
      button.addEventListener("click", () => {
        themeChoice = button.dataset.themeChoice;
        applyTheme();
      });
    }
    systemIsDark.addEventListener("change", applyTheme);
    byId("zoom-in").addEventListener("click", () => zoomTimes(0.6));
    byId("zoom-out").addEventListener("click", () => zoomTimes(1 / 0.6));
    byId("rows-in").addEventListener("click", () => zoomRows(0.5));
    byId("rows-out").addEventListener("click", () => zoomRows(2));
    byId("zoom-fit").addEventListener("click", fitView);
    let pending = 0;
    window.addEventListener("resize", () => {
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(redraw);
    });
  }

  addControls();
  applyTheme();
  showStep(0);
})();
