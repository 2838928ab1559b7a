// The numbers of the plans: heading, banners, and what is measured of each.

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

function statusPill(plan) {
  const status = plan.isInvalid ? 'invalid' : plan.status;
  return element('span', {class: `pill ${status}`}, status);
}

const planRows = () =>
    [comparisonRow('Status', '', plainCells(plans, statusPill)),
     comparisonRow(
         'Context', 'ranks that share a sequence', plainCells(plans, (plan) => plan.context))];

function drawBanners() {
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
  const after = plans[plans.length - 1];
  for (const plan of plans.filter((each) => !isComparable(each, after))) {
    banners.push(banner(
        'quiet', `${plan.name} is not compared with ${after.name}`,
        `They are about different things: ${differencesOf(plan, after).join(', ')}`));
  }
  fillWith(byId('banners'), ...banners);
}

function drawHeading() {
  const plan = plans[plans.length - 1];
  const title = titleOf(plans.map((each) => each.name));
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
