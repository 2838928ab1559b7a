// Bars per rank, micro-batch or step.

// Bars from left to right, `soft` on top of `values`; more bars than pixels become their maxima.
// chart: {values, soft, color, softColor, most, unit, format, first, last, lines, tip(index),
// label}, and of a chart whose bars can be chosen {marked, pick(index)}
function barChart(chart) {
  const canvas = element('canvas', {role: 'img', 'aria-label': chart.label});
  const left = 58;
  const top = 8;
  const bottom = 18;
  const count = chart.values.length;
  const indexAt = (x) =>
      clamp(Math.floor(((x - left) / (canvas.clientWidth - left)) * count), 0, count - 1);
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
      const w =
          Math.round(left + ((column + 1) * (width - left)) / columns) - x - (barWidth > 5 ? 1 : 0);
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
  canvas.addEventListener('pointermove', (event) => {
    if (count === 0 || event.offsetX < left) return hideTip();
    showTip(
        event.clientX, event.clientY,
        ...chart.tip(indexAt(event.offsetX))
            .map((line, i) => element(i === 0 ? 'h3' : 'div', {}, line)));
  });
  canvas.addEventListener('pointerleave', hideTip);
  if (chart.pick) {
    canvas.classList.add('pickable');
    canvas.addEventListener(
        'click', (event) => event.offsetX >= left && chart.pick(indexAt(event.offsetX)));
  }
  redrawCharts.push(draw);
  return canvas;
}

function drawValueAxis(context, chart, width, left, y) {
  context.font = font(10.5);
  context.textAlign = 'right';
  for (const value of ticks(0, chart.most / chart.unit, 124, 24)
           .found.map((tick) => tick * chart.unit)) {
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
  context.textAlign = 'left';
  context.fillText(chart.first, left, height - 7);
  context.textAlign = 'right';
  if (count > 1) context.fillText(chart.last, width, height - 7);
}

function figure(plan, caption, canvas) {
  return element(
      'figure', {class: 'chart'},
      element('figcaption', {}, element('h3', {}, plan.name), element('p', {}, caption)), canvas);
}

// 0 to the largest, with the unit of the largest on every tick.
function valueAxis(most, scales) {
  const [unit, name] = scales.find(([size]) => most >= size) || scales[scales.length - 1];
  return {
    most,
    unit,
    format: (value) => join([
      (value / unit).toLocaleString('en-US', {maximumSignificantDigits: 3}), value === 0 ? '' : name
    ])
  };
}
const timeAxis = (most) => valueAxis(most, hasClock() ? clockScales : plainScales);
