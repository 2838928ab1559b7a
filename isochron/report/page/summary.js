// The numbers of the plans: heading, banners, figures, and the table that compares them.

const metrics = [
  {
    name: 'Step time',
    value: (p) => p.step_ns,
    text: timeText,
    parts: timeParts,
    delta: 'relative',
    key: true
  },
  {name: 'Lower bound', value: (p) => p.bound_ns || null, text: timeText},
  {
    name: 'Gap to the bound',
    value: (p) => (p.bound_ns > 0 ? p.step_ns / p.bound_ns - 1 : null),
    text: (gap) => percentText(gap, gap > 0 && gap < 0.0005 ? 4 : 2),
    key: true
  },
  {
    name: 'Imbalance',
    note: 'busiest rank over mean',
    value: (p) => p.imbalance,
    text: (x) => x.toFixed(3),
    key: true
  },
  {
    name: 'Idle',
    note: 'of all ranks, until the last one ends',
    value: (p) => p.bubble,
    text: idleText
  },
  {name: 'Micro-batches', value: (p) => p.filled.length, text: integerText, key: true},
  {name: 'Slots', value: (p) => p.num_slots, text: integerText},
  {name: 'Widest group', value: (p) => p.widest, text: (c) => plural(c, 'rank')},
  {
    name: 'Token fill',
    note: 'padded tokens of the capacity',
    key: true,
    value: (p) => (p.tokenCounts.room > 0 ? p.tokenCounts.padded / p.tokenCounts.room : null),
    text: percentText
  },
  {
    name: 'Padding',
    note: 'added so that groups divide',
    value: (p) => p.tokenCounts.padded - p.tokenCounts.real,
    text: (tokens) => plural(tokens, 'token')
  },
  {
    name: 'Peak memory',
    note: 'activations of the fullest rank',
    value: (p) => p.peak || null,
    text: bytesText,
    parts: byteParts,
    delta: 'relative',
    key: true
  },
];

function deltaOf(metric, plan, before) {
  if (!before || before === plan || metric.delta !== 'relative' || !isSound(plan)) return null;
  const from = metric.value(before);
  const to = metric.value(plan);
  if (!from || to === null) return null;
  const change = to / from - 1;
  const text = Math.abs(change) < 0.0005 ?
      '±0 %' :
      `${change < 0 ? '−' : '+'}${percentText(Math.abs(change))}`;
  return {text, kind: Math.abs(change) < 0.01 ? '' : change < 0 ? 'better' : 'worse'};
}

function statusPill(plan) {
  const status = plan.isInvalid ? 'invalid' : plan.status;
  return element('span', {class: `pill ${status}`}, status);
}

function drawFigures(after, before) {
  fillWith(
      byId('figures'),
      ...metrics.filter((metric) => metric.key && after && after.hasTimeline).flatMap((metric) => {
        const value = metric.value(after);
        if (value === null) return [];
        const [number, unit] = metric.parts ? metric.parts(value) : [metric.text(value), ''];
        const shown = element('div', {class: 'value'}, number);
        if (unit) shown.append(element('small', {}, ` ${unit}`));
        const delta = element('div', {class: 'delta'});
        const change = deltaOf(metric, after, before);
        if (change)
          delta.append(
              element('span', {class: change.kind}, change.text), ` against ${before.name}`);
        else if (before && metric.value(before) !== null)
          delta.append(`${metric.text(metric.value(before))} in ${before.name}`);
        return [element(
            'div', {class: 'figure'}, element('div', {class: 'name'}, metric.name), shown, delta)];
      }));
}

// A row of the table: a value of each plan and, beside it, its change.
const comparisonRow = (name, note, cells) =>
    element('tr', {}, element('th', {scope: 'row', title: note}, name), ...cells.flat());
const plainCells = (content) => plans.map(
    (plan) => [element('td', {class: 'value'}, content(plan)), element('td', {class: 'change'})]);

function metricCells(metric, before) {
  return plans.map((plan) => {
    const value = plan.hasTimeline ? metric.value(plan) : null;
    const change = value === null ? null : deltaOf(metric, plan, before);
    return [
      element(
          'td', {class: value === null || plan.isInvalid ? 'value void' : 'value'},
          value === null ? '–' : metric.text(value)),
      element('td', {class: `change ${change ? change.kind : ''}`}, change ? change.text : '')
    ];
  });
}

function drawComparison(before) {
  byId('comparison-heading').textContent = plans.length > 1 ? 'Side by side' : 'In numbers';
  const head = element(
      'tr', {},
      element('th', {scope: 'col'}, element('span', {class: 'visually-hidden'}, 'Quantity')),
      ...plans.flatMap(
          (plan) => [element('th', {scope: 'col'}, plan.name), element('td', {class: 'change'})]));
  fillWith(
      byId('comparison'), element('caption', {class: 'visually-hidden'}, 'The plans side by side'),
      element('thead', {}, head),
      element(
          'tbody', {}, comparisonRow('Status', '', plainCells(statusPill)),
          comparisonRow(
              'Context', 'ranks that share a sequence', plainCells((plan) => plan.context)),
          ...metrics.map(
              (metric) =>
                  comparisonRow(metric.name, metric.note || '', metricCells(metric, before)))));
}

function drawBanners() {
  const banner = (kind, title, text) => element(
      'div', {class: `banner ${kind}`, role: kind ? 'note' : 'alert'}, element('strong', {}, title),
      element('span', {}, text));
  const banners = plans.flatMap((plan) => {
    if (plan.isInvalid) return [banner('', `${plan.name} is invalid`, plan.violation)];
    if (plan.status === 'infeasible')
      return [banner('', `${plan.name}: no plan exists`, plan.reason)];
    if (!plan.hasTimeline) return [banner('quiet', `${plan.name}: no plan`, plan.reason)];
    const notes = [];
    if (plan.oversized.length > 0)
      notes.push(`${plural(plan.oversized.length, 'sequence')} over the capacity, each alone`);
    if (plan.dropped.length > 0) notes.push(`${plural(plan.dropped.length, 'sequence')} dropped`);
    return notes.length > 0 ? [banner('quiet', plan.name, notes.join('; '))] : [];
  });
  fillWith(byId('banners'), ...banners);
}

function drawHeading() {
  const plan = plans[plans.length - 1];
  const names = plans.map((each) => each.name);
  const title = names.length === 1 ? names[0] :
      names.length <= 3 ? `${names[names.length - 1]} against ${names.slice(0, -1).join(' and ')}` :
                          `${names.length} plans side by side`;
  byId('title').textContent = title;
  document.title = `${title} · isochron`;
  const facts = [
    plural(plan.lengths.length, 'sequence'),
    plural(sum(plan.lengths), 'token'),
    plan.stages > 1 ? `${plural(plan.ranks, 'rank')} × ${plural(plan.stages, 'stage')}` :
                      plural(plan.ranks, 'rank'),
    `capacity ${integerText(plan.capacity)} tokens`,
    `context ${plan.context}`,
    `sync ${plan.sync}`,
    `cost ${plan.cost}`,
  ];
  if (plan.pass === 'forward') facts.push('forward only');
  if (plan.first_sequence > 0) facts.push(`from sequence ${integerText(plan.first_sequence)}`);
  byId('subtitle').textContent = facts.join('  ·  ');
  byId('provenance').textContent = hasClock() ?
      `Times are predicted by the cost model ${
          plan.cost}; gradient reduction and the optimizer are not in them.` :
      'The cost model verl counts workload (24576 s + s²), not time.';
}
