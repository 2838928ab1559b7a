// Curves over steps.

// The place in ascending `steps` that is nearest to `step`.
function nearest(steps, step) {
  let low = 0;
  let high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && step - steps[low - 1] <= steps[low] - step ? low - 1 : low;
}

// Round ticks with as many digits as they need; tiny numbers as powers of ten.
function plainTicks(low, high, height) {
  const most = Math.max(Math.abs(low), Math.abs(high));
  const [unit, name] = plainScales.find(([size]) => most >= size && size > 1) || [1, ''];
  const {step, found} = ticks(low / unit, high / unit, height, 31);
  const digits = clamp(Math.ceil(-Math.log10(step) - 1e-9), 0, 9);
  const text = (value) =>
      (value === 0     ? '0' :
           most < 1e-3 ? value.toExponential(1) :
                         join([value.toFixed(digits), name]));
  return found.map((value) => ({value: value * unit, text: text(value)}));
}

function timeTicks(low, high, height) {
  const [unit, name] = clockScales.find(([size]) => high >= size) || [1, 'ns'];
  const {step, found} = ticks(low / unit, high / unit, height, 31);
  const digits = clamp(Math.ceil(-Math.log10(step) - 1e-9), 0, 3);
  return found.map((value) => ({value: value * unit, text: `${value.toFixed(digits)} ${name}`}));
}

// From the smallest to the largest value, or from `floor`, with a little room.
function valueRange(series, floor) {
  const values = series.flatMap((each) => each.values.filter((value) => value !== null));
  let low = values.reduce((least, value) => Math.min(least, value), Infinity);
  let high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  if (floor !== undefined) low = Math.min(low, floor);
  const room = high > low ? 0.05 * (high - low) : Math.abs(high) * 0.05 || 1;
  return [floor !== undefined && low === floor ? floor : low - room, high + room];
}

const seriesColor = (series) => colors[series.color];

// Gaps where a run wrote no number; points where there are few of them, a pale band where there are
// many.
function drawSeries(context, series, x, y) {
  const isBand = series.steps.length > 1000;
  context.strokeStyle = context.fillStyle = seriesColor(series);
  context.lineWidth = isBand ? 1 : series.width || 1.5;
  context.lineJoin = 'round';
  context.globalAlpha = isBand ? 0.6 : 1;
  context.setLineDash(series.isDashed && !isBand ? [5, 3] : []);
  context.beginPath();
  let isDown = false;
  series.steps.forEach((step, i) => {
    const value = series.values[i];
    if (value === null) {
      isDown = false;
    } else {
      if (isDown)
        context.lineTo(x(step), y(value));
      else
        context.moveTo(x(step), y(value));
      isDown = true;
    }
  });
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
  if (series.isFilled && !series.values.includes(null)) {
    context.lineTo(x(series.steps[series.steps.length - 1]), y(0));
    context.lineTo(x(series.steps[0]), y(0));
    context.globalAlpha = 0.14;
    context.fill();
    context.globalAlpha = 1;
  }
  if (series.steps.length > 24) return;
  series.steps.forEach((step, i) => {
    if (series.values[i] === null) return;
    context.beginPath();
    context.arc(x(step), y(series.values[i]), 2.2, 0, 2 * Math.PI);
    context.fill();
  });
}

// chart: {series: [{name, steps, values, color, isDashed, isFilled, width}], range, ticksOf, text,
// label}; of a chart on which steps can be chosen also {choices, chosen(), choose(index)}.
function lineChart(chart) {
  const canvas = element('canvas', {role: 'img', 'aria-label': chart.label});
  const left = 58;
  const right = 10;
  const top = 8;
  const bottom = 20;
  const all = chart.series.flatMap((each) => [each.steps[0], each.steps[each.steps.length - 1]]);
  const first = Math.min(...all);
  const last = Math.max(...all, first + 1);
  const [low, high] = chart.range;
  let pointed = null;  // the step under the pointer
  const draw = () => paint(canvas, (context, width, height) => {
    const plot = height - top - bottom;
    const x = (step) => left + ((step - first) / (last - first)) * (width - left - right);
    const y = (value) => top + plot * (1 - (value - low) / (high - low));
    context.font = font(10.5);
    for (const {value, text} of chart.ticksOf(low, high, plot)) {
      context.fillStyle = colors.rule;
      context.fillRect(left, Math.round(y(value)), width - left - right, 1);
      context.fillStyle = colors.muted;
      context.textAlign = 'right';
      context.fillText(text, left - 8, y(value));
    }
    drawStepAxis(context, first, last, width, height, x);
    context.save();
    context.beginPath();
    context.rect(left - 3, 0, width - left + 3, height - bottom + 3);
    context.clip();
    for (const series of chart.series) drawSeries(context, series, x, y);
    context.restore();
    if (chart.choices) drawChoices(context, chart, x, top + plot);
    if (pointed !== null) {
      context.fillStyle = colors.faint;
      context.fillRect(Math.round(x(pointed)), top, 1, plot);
    }
  });
  const stepAt = (offset) => first +
      clamp((offset - left) / Math.max(1, canvas.clientWidth - left - right), 0, 1) *
          (last - first);
  followCurve(canvas, chart, stepAt, left, (step) => {
    pointed = step;
    draw();
  });
  if (chart.choices) addChoices(canvas, chart, stepAt, left);
  redrawCharts.push(draw);
  return canvas;
}

function drawStepAxis(context, first, last, width, height, x) {
  const {step, found} = ticks(first, last, width - 68, 24 + 8 * integerText(last).length);
  context.font = font(10.5);
  context.fillStyle = colors.muted;
  for (const tick of found) {
    if (step < 1 && !Number.isInteger(tick)) continue;
    const text = integerText(tick);
    const half = context.measureText(text).width / 2;
    context.textAlign = 'center';
    context.fillText(text, clamp(x(tick), 58 + half, width - half - 1), height - 8);
  }
}

// Under the curves, where the steps are that can be chosen.
function drawChoices(context, chart, x, base) {
  chart.choices.forEach((step, i) => {
    const isChosen = i === chart.chosen();
    context.fillStyle = isChosen ? colors.text : colors.ruleStrong;
    context.fillRect(
        Math.round(x(step)) - (isChosen ? 1.5 : 0.5), base - (isChosen ? 7 : 4), isChosen ? 3 : 1,
        isChosen ? 7 : 4);
  });
}

function followCurve(canvas, chart, stepAt, left, point) {
  canvas.addEventListener('pointermove', (event) => {
    if (event.offsetX < left) {
      point(null);
      return hideTip();
    }
    const step = stepAt(event.offsetX);
    // The step of all curves that is nearest to the pointer.
    const found = chart.series.map((each) => each.steps[nearest(each.steps, step)])
                      .reduce((a, b) => (Math.abs(b - step) < Math.abs(a - step) ? b : a));
    point(found);
    const lines = chart.series.flatMap((each) => {
      const i = nearest(each.steps, found);
      if (each.steps[i] !== found && each.steps.length > 24) return [];
      const value = each.values[i] === null ? 'not a number' : chart.text(each.values[i]);
      const at = each.steps[i] === found ? '' : ` (step ${integerText(each.steps[i])})`;
      return [[each.name, value + at]];
    });
    showTip(
        event.clientX, event.clientY, element('h3', {}, `Step ${integerText(found)}`),
        factsList(lines));
  });
  canvas.addEventListener('pointerleave', () => {
    point(null);
    hideTip();
  });
}

function addChoices(canvas, chart, stepAt, left) {
  canvas.classList.add('pickable');
  canvas.tabIndex = 0;
  canvas.addEventListener('click', (event) => {
    if (event.offsetX >= left) chart.choose(nearest(chart.choices, stepAt(event.offsetX)));
  });
  canvas.addEventListener('keydown', (event) => {
    const last = chart.choices.length - 1;
    const target = {
      ArrowLeft: Math.max(0, chart.chosen() - 1),
      ArrowRight: Math.min(last, chart.chosen() + 1),
      Home: 0,
      End: last
    }[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    chart.choose(target);
  });
}

function lineFigure(title, caption, chart) {
  const named = chart.series.length > 1 ? chart.series : [];
  const key = element(
      'p', {class: 'legend'},
      ...named.map(
          (series) => element(
              'span', {},
              element('i', {class: `key ${series.color}${series.isDashed ? ' dashed' : ''}`}),
              series.name)));
  return element(
      'figure', {class: 'chart curve'},
      element(
          'figcaption', {}, element('h3', {}, title), caption ? element('p', {}, caption) : '',
          key),
      lineChart(chart));
}
