// The curves of the runs: every step against its prediction, and what the metrics hold.

// One run has a colour per curve; of several each has its own, and the second curve is dashed. More
// than two of each would not be told apart.
const curveColors = ['bar', 'bound', 'good', 'optimizer', 'other', 'bad'];
const runColors = ['bound', 'bar', 'good', 'optimizer', 'bad', 'other'];

// Curves of every run that has them; `wanted` are [name on the page, run => curve, its colour].
function seriesOf(wanted) {
  const few = runs.length > 1 ? wanted.slice(0, 2) : wanted;
  const series = runs.flatMap((run, r) => few.map(([name, find, color], i) => {
    const curve = find(run);
    if (!curve || !curve.values.some((value) => value !== null)) return null;
    const several = runs.length > 1;
    return {
      ...curve,
      name: !several       ? name :
          few.length === 1 ? run.name :
                             `${run.name}: ${name}`,
      color: several ? runColors[r % runColors.length] : color || curveColors[i],
      isDashed: several && i > 0
    };
  }));
  return series.filter((each) => each !== null);
}

const metric = (name, label = name) => [label, (run) => metricOf(run, name)];
const figureCurve = (name, label, color) => [label, (run) => curveOf(run, name), color];
const shortText = (value) => value.toLocaleString('en-US', {maximumSignificantDigits: 5});
const rateText = (value) =>
    (Math.abs(value) < 1e-3 && value !== 0 ? value.toExponential(3) : shortText(value));

const charts = [
  {title: 'Loss', wanted: [metric('train/loss', 'training'), metric('val/loss', 'validation')]},
  {
    title: 'Tokens per second',
    wanted: [metric('perf/tokens_per_s', 'tokens per second')],
    floor: 0,
    text: integerText
  },
  {
    title: 'Imbalance',
    caption: 'Busiest rank over mean; before: the input order dealt',
    wanted: [
      figureCurve('measured_imbalance', 'measured', 'bar'),
      figureCurve('planned_imbalance', 'planned', 'good'),
      figureCurve('naive_imbalance', 'before', 'bound'),
      figureCurve('verl_imbalance', 'verl 0.9.1', 'optimizer')
    ],
    floor: 1
  },
  {title: 'Learning rate', wanted: [metric('train/lr', 'learning rate')], floor: 0},
  {title: 'Gradient norm', wanted: [metric('train/grad_norm', 'norm before clipping')], floor: 0},
  {
    title: 'Tokens per rank',
    caption: 'Longest and shortest share, in input order and balanced',
    wanted: [
      metric('global_seqlen/balanced_max', 'most, balanced'),
      metric('global_seqlen/max', 'most'),
      metric('global_seqlen/mean', 'mean'),
      metric('global_seqlen/balanced_min', 'least, balanced'),
      metric('global_seqlen/min', 'least'),
    ],
    text: integerText,
    floor: 0
  },
  {title: 'Model FLOPs utilisation', wanted: [metric('train/mfu', 'MFU')], floor: 0},
  {
    title: 'Memory',
    caption: 'GB allocated at most',
    wanted: [metric('perf/max_memory_allocated_gb', 'allocated')],
    floor: 0
  },
];
const placed = new Set([
  'train/loss', 'val/loss', 'perf/tokens_per_s', 'train/lr', 'train/grad_norm', 'train/mfu',
  'perf/max_memory_allocated_gb', 'global_seqlen/balanced_max', 'global_seqlen/max',
  'global_seqlen/mean', 'global_seqlen/balanced_min', 'global_seqlen/min'
]);

function curveFigure({title, caption, wanted, floor, text = rateText}) {
  const series = seriesOf(wanted);
  if (series.length === 0) return [];
  return [lineFigure(title, caption, {
    series,
    range: valueRange(series, floor),
    ticksOf: plainTicks,
    text,
    label: `${title} over the steps.`
  })];
}

function drawCurves() {
  const shown = charts.flatMap(curveFigure);
  const names = new Set(runs.flatMap((run) => run.metrics.map((curve) => curve.name)));
  const others = [...names].filter((name) => !placed.has(name)).sort();
  const otherFigures = others.flatMap((name) => curveFigure({title: name, wanted: [metric(name)]}));
  fillWith(byId('curves'), ...shown);
  fillWith(byId('other-curves'), ...otherFigures);
  byId('other-curves-summary').textContent = plural(otherFigures.length, 'other metric');
  byId('other-curves-section').hidden = otherFigures.length === 0;
  byId('curves-section').hidden = shown.length + otherFigures.length === 0;
}

// Measured against predicted, one chart per run on the same axes.
function everyStep(run) {
  const scale = isScaled && run.figures.scale > 0 ? run.figures.scale : 1;
  const predicted = curveOf(run, 'predicted_ns');
  const series = [
    {...curveOf(run, 'step_ns'), name: 'whole step', color: 'other', width: 1},
    {
      ...curveOf(run, 'compute_ns'),
      name: 'forward and backward, measured',
      color: 'bar',
      isFilled: true
    },
    {
      ...predicted,
      values: predicted.values.map((time) => time * scale),
      name: scale === 1 ? 'predicted' : `predicted × ${factorNumber(scale)}`,
      color: 'bound',
      isDashed: true
    },
  ];
  return series.filter((each) => each.steps.length > 0);
}

function drawEveryStep() {
  const drawn =
      runs.map((run) => ({run, series: everyStep(run)})).filter(({series}) => series.length > 0);
  byId('every-step-section').hidden = drawn.length === 0;
  if (drawn.length === 0) return;
  const range = valueRange(drawn.flatMap(({series}) => series), 0);
  const caption = ({figures}) =>
      (figures.prediction_error === null ?
           '' :
           `Measured is ${factorText(figures.scale)} the prediction, and ±${
               percentText(figures.prediction_error)} around that`);
  fillWith(
      byId('every-step'),
      ...drawn.map(({run, series}) => lineFigure(run.name, caption(run), {
                     series,
                     range,
                     ticksOf: timeTicks,
                     text: timeText,
                     label: `Time of every step of ${run.name}. ${caption(run)}.`,
                     choices: steps.map((each) => each.step),
                     chosen: () => shownStep,
                     choose: showStep,
                   })));
  for (const figure of byId('every-step').children) figure.classList.add('tall');
  byId('shown-steps').textContent = shownText();
}

// Which steps are here in full.
function shownText() {
  if (steps.length === 0) return 'No step has a plan or a trace.';
  const special = steps.filter((each) => each.why !== '')
                      .map((each) => `${integerText(each.step)} (${each.why})`);
  const known =
      Math.max(...runs.map((run) => Math.max(run.figures.num_plans, run.figures.num_traced)));
  const part = known > steps.length ?
      `${integerText(steps.length)} of ${integerText(known)} steps are here in full: ${
          special.join(', ')} and an even spread of the others.` :
      `${plural(steps.length, 'step')} can be looked at: ${special.join(', ')}.`;
  return `${
      part} Click a curve, or use the arrow keys on it; p and n choose the previous and next.`;
}

function drawCharts() {
  redrawCharts = [];
  drawEveryStep();
  drawCurves();
  for (const draw of redrawCharts) draw();
}
