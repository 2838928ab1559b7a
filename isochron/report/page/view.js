// What part of the timelines is shown: one span of time and one share of the ranks for all of them.

const gutter = 52;  // rank numbers
const margin = 14;
// From begin to end in nanoseconds, from top to bottom as shares of all rows.
const view = {
  begin: 0,
  end: 1,
  top: 0,
  bottom: 1
};
let lastTime = 1;

const plotWidth = (width) => Math.max(1, width - gutter - margin);
const xOf = (time, width) =>
    gutter + ((time - view.begin) / (view.end - view.begin)) * plotWidth(width);
const timeAt = (x, width) =>
    view.begin + ((x - gutter) / plotWidth(width)) * (view.end - view.begin);
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
  setTimes(
      view.begin + times * (view.end - view.begin), view.end + times * (view.end - view.begin));
  setRows(
      view.top + rows * (view.bottom - view.top), view.bottom + rows * (view.bottom - view.top));
}
function fitView() {
  Object.assign(view, {begin: 0, end: lastTime, top: 0, bottom: 1});
  redrawTimeline();
}

// Round times, at least `gap` pixels apart.
function ticks(from, to, width, gap) {
  const rough = ((to - from) * gap) / Math.max(1, width);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) || 10);
  const found = [];
  const first = Math.ceil(from / step - 1e-9) + 0;  // + 0: never -0
  // Beyond 2^53 counting stands still.
  for (let i = first; i * step <= to * (1 + 1e-12) && found.length < 1000; ++i)
    found.push(i * step);
  return {step, found};
}

function tickText(time, step, longest) {
  const scales = hasClock() ? clockScales : plainScales;
  const [factor, unit] = scales.find(([size]) => longest >= size) || scales[scales.length - 1];
  const digits = clamp(Math.ceil(-Math.log10(step / factor) - 1e-9), 0, 9);
  return join([(time / factor).toFixed(digits), unit]);
}

function drawAxis() {
  const canvas = byId('axis');
  paint(canvas, (context, width, height) => {
    const mark = markLabel(context, width);
    const {step, found} = ticks(view.begin, view.end, plotWidth(width), 92);
    context.font = font(11);
    context.textAlign = 'center';
    for (const time of found) {
      const x = xOf(time, width);
      context.fillStyle = colors.ruleStrong;
      context.fillRect(Math.round(x), height - 5, 1, 5);
      const text = tickText(time, step, view.end);
      const half = context.measureText(text).width / 2;
      if (mark && Math.abs(x - mark.centre) < half + mark.half) continue;
      context.fillStyle = colors.muted;
      context.fillText(text, clamp(x, gutter - 8 + half, width - half - 4), height / 2 - 2);
    }
    if (mark) {
      context.font = font(11, 600);
      context.fillStyle = mark.color;
      context.fillText(mark.text, mark.centre, height / 2 - 2);
      context.fillRect(Math.round(mark.x) - 0.5, height - 6, 1.5, 6);
    }
  });
  canvas.dataset.span = `${view.begin} ${view.end}`;
}

// Where the named mark is written on the axis; null if it is out of sight.
function markLabel(context, width) {
  const mark = sharedMark();
  const x = mark === null ? -1 : xOf(mark.time, width);
  if (x < gutter || x > width - margin + 1) return null;
  const text = `${mark.name} ${timeText(mark.time)}`;
  context.font = font(11, 600);
  const half = context.measureText(text).width / 2 + 8;
  return {x, text, half, color: mark.color(), centre: clamp(x, gutter + half, width - half)};
}

// The mark with a name that all lanes agree on.
function sharedMark() {
  const named = lanes.flatMap((lane) => lane.plan.marks.filter((mark) => mark.name));
  return new Set(named.map((mark) => mark.time)).size === 1 ? named[0] : null;
}
