// The numbers of the runs: heading, verdict, notes, and what is measured of each.

const factorNumber = (factor) =>
    (factor >= 0.1 && factor < 100 ? factor.toFixed(2) : String(Number(factor.toPrecision(3))));
const factorText = (factor) => `${factorNumber(factor)}×`;
const lossText = (loss) => loss.toLocaleString('en-US', {maximumSignificantDigits: 5});
const imbalanceText = (value) => (value === null ? '–' : value.toFixed(2));
const figureOf = (name) => (run) => run.figures[name];

const metrics = [
  {
    name: 'Speed-up',
    note: 'tokens per second against the first run',
    value: (run) => (run === runs[0] ? null : speedUp(run, runs[0])),
    text: factorText,
    aside: () => `in tokens/s over ${runs[0].name}`,
    key: true
  },
  {
    name: 'Steps',
    value: figureOf('num_steps'),
    text: integerText,
    aside: ({figures}) =>
        `${integerText(figures.num_plans)} with a plan, ${integerText(figures.num_traced)} traced`,
    key: true
  },
  {
    name: 'Tokens per second',
    note: 'all tokens over all time',
    value: figureOf('mean_tokens_per_s'),
    text: integerText,
    aside: ({figures}) => `median ${integerText(figures.median_tokens_per_s)}`,
    delta: 'relative',
    higher: true,
    key: true
  },
  {
    name: 'Median tokens per second',
    value: figureOf('median_tokens_per_s'),
    text: integerText,
    delta: 'relative',
    higher: true
  },
  {
    name: 'Mean step time',
    value: figureOf('mean_step_ns'),
    text: timeText,
    delta: 'relative',
  },
  {
    name: 'Final loss',
    value: figureOf('final_loss'),
    text: lossText,
    aside: ({figures}) => `from ${lossText(figures.first_loss ?? NaN)}` +
        (figures.final_val_loss === null ? '' : `, validation ${lossText(figures.final_val_loss)}`),
    key: true
  },
  {name: 'Final validation loss', value: figureOf('final_val_loss'), text: lossText},
  {
    name: 'Imbalance before → after',
    note: 'busiest rank over mean: input order dealt to the ranks, then the plans; predicted',
    value: ({figures}) => (figures.planned_imbalance === null ? null : figures),
    text: (figures) =>
        `${imbalanceText(figures.naive_imbalance)} → ${imbalanceText(figures.planned_imbalance)}`,
    aside: ({figures}) => `measured ${imbalanceText(figures.measured_imbalance)}`,
    key: true
  },
  {
    name: 'Imbalance, verl 0.9.1',
    note: 'busiest rank over mean, of verl\'s balancing of the same batches; predicted',
    value: figureOf('verl_imbalance'),
    text: (value) => value.toFixed(3)
  },
  {
    name: 'Imbalance, measured',
    note: 'busiest rank over mean',
    value: figureOf('measured_imbalance'),
    text: (value) => value.toFixed(3)
  },
  {
    name: 'Predicted gain over input order',
    note: 'time of all planned steps',
    value: figureOf('naive_gain'),
    text: factorText
  },
  {
    name: 'Predicted gain over verl 0.9.1',
    note: 'time of all planned steps',
    value: figureOf('verl_gain'),
    text: factorText
  },
  {
    name: 'Waiting for the last rank',
    note: 'share of the ranks\' time until the last backward ends, measured',
    value: figureOf('straggler_share'),
    text: idleText,
    aside: () => 'measured, of the ranks\' time',
    key: true
  },
  {
    name: 'Prediction error',
    note: 'mean over the steps, after the factor of the run',
    value: figureOf('prediction_error'),
    text: (error) => `±${percentText(error)}`,
    aside: ({figures}) => `after a factor of ${factorText(figures.scale)}`,
    key: true
  },
  {
    name: 'Measured over predicted',
    note: 'median factor of forward and backward',
    value: figureOf('scale'),
    text: factorText
  },
].filter((metric) => runs.length > 1 || metric.name !== 'Speed-up');

// Tokens per second of a run over those of another; of step times where a run has no tokens.
function speedUp(run, other) {
  const ratio = (a, b) => (a > 0 && b > 0 ? a / b : null);
  return ratio(run.figures.mean_tokens_per_s, other.figures.mean_tokens_per_s) ??
      ratio(other.figures.mean_step_ns, run.figures.mean_step_ns);
}

// The fastest run against the slowest, and what lies between them, in whichever order they were
// given.
function drawVerdict() {
  const factorOf = (run) => speedUp(run, runs[0]);
  const isKnown = runs.length > 1 && runs.every((run) => factorOf(run) !== null);
  byId('verdict').hidden = !isKnown;
  if (!isKnown) return;
  const ranking = [...runs].sort((a, b) => factorOf(b) - factorOf(a));
  const [faster, slower] = [ranking[0], ranking[ranking.length - 1]];
  const between = ranking.slice(1, -1).flatMap((run) => [
    '; ', element('b', {}, run.name), ' ', element('b', {}, factorText(speedUp(run, slower)))
  ]);
  fillWith(
      byId('verdict'), element('b', {}, faster.name), ' is ',
      element('b', {}, factorText(speedUp(faster, slower))), ' as fast as ',
      element('b', {}, slower.name),
      faster.figures.mean_tokens_per_s && slower.figures.mean_tokens_per_s ?
          `: ${integerText(faster.figures.mean_tokens_per_s)} against ${
              integerText(slower.figures.mean_tokens_per_s)} tokens per second` :
          ', by the time of a step',
      ...between, '.');
}

function drawHeading() {
  const title = titleOf(runs.map((run) => run.name));
  byId('title').textContent = title;
  document.title = `${title} · isochron`;
  const {figures} = runs[runs.length - 1];
  const facts = [runs.length > 1 ? 'training runs' : 'training run'];
  if (figures.num_steps > 0)
    facts.push(`steps ${integerText(figures.first_step)} to ${integerText(figures.last_step)}`);
  if (figures.ranks > 0) facts.push(plural(figures.ranks, 'rank'));
  const costs = new Set(runs.flatMap(
      (run) => run.shown.filter((step) => step && step.planned).map((step) => step.planned.cost)));
  if (costs.size > 0) facts.push(`cost ${[...costs].join(', ')}`);
  byId('subtitle').textContent = facts.join('  ·  ');
  byId('provenance').textContent =
      'Predictions are of forward and backward alone: gradient reduction and the optimizer are not ' +
      'in them. Before: the input order dealt to the ranks, by the same cost model.';
}

function drawBanners() {
  fillWith(byId('banners'), ...runs.flatMap((run) => {
    if (run.notes.length === 0) return [];
    const list = element('ul', {}, ...run.notes.map((note) => element('li', {}, note)));
    return [banner('quiet', run.name, list)];
  }));
}

function drawConfigs() {
  const given = runs.filter((run) => run.config !== '');
  byId('config-section').hidden = given.length === 0;
  fillWith(
      byId('configs'),
      ...given.map(
          (run) => element(
              'details', {}, element('summary', {}, run.name),
              element(
                  'pre', {tabIndex: 0},
                  run.config + (run.is_config_cut ? '\n… the rest is in config.yaml' : '')))));
}
