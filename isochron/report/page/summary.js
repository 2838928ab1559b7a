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
    note: 'added so that groups and rows divide',
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

// What a plan was asked for that is not the default, in words.
const askedTexts = ({options}) => Object.entries(options).map(
    ([name, value]) => (name === 'balance' ? 'dealt in order' : `${name} ${value}`));

function planRows() {
  const rows = [
    comparisonRow('Status', '', plainCells(plans, statusPill)),
    comparisonRow(
        'Context', 'ranks that share a sequence', plainCells(plans, (plan) => plan.context))
  ];
  for (const [name, note, textOf] of [
           [
             'Capacity', 'padded tokens of a micro-batch on one rank',
             (p) => integerText(p.capacity)
           ],
           ['Sync', 'when all ranks wait for each other', (p) => p.sync]]) {
    // The heading has what all have in common.
    if (new Set(plans.map(textOf)).size > 1)
      rows.push(comparisonRow(name, note, plainCells(plans, textOf)));
  }
  const asked = plans.map((plan) => askedTexts(plan));
  if (asked.some((texts) => texts.join() !== asked[0].join()))
    rows.push(comparisonRow(
        'Options', 'that are not the default', plainCells(plans, (plan) => {
          const texts = askedTexts(plan);
          return element(
              'span', {},
              ...(texts.length > 0 ? texts : ['–']).map((text) => element('div', {}, text)));
        })));
  return rows;
}

// What a reader cannot see of the machine and the question on the page.
function questionFacts(plan) {
  const facts = [];
  const speeds = plan.rank_speed;
  if (speeds.length > 0) {
    const slowest = speeds.reduce((least, speed) => Math.min(least, speed), Infinity);
    const others = speeds.filter((speed) => speed !== 1).length;
    facts.push(`rank speeds ${slowest} to ${largest(speeds)}, ${integerText(others)} of ${
        plural(plan.ranks, 'rank')} other than 1`);
  }
  if (plan.virtual > 1)
    facts.push(`${plan.virtual} virtual stages per stage, ${plan.chunk_group} slots at a time`);
  if (new Set(sharesOf(plan)).size > 1) facts.push('unequal shares of the stages');
  if (plan.transfer_ns > 0) facts.push(`${timeText(plan.transfer_ns)} between stages`);
  const dearer = plan.extra_cost_ns.filter((cost) => cost > 0).length;
  if (dearer > 0) facts.push(`extra costs of ${plural(dearer, 'sequence')}`);
  if (plan.memory_limit > 0) facts.push(`at most ${bytesText(plan.memory_limit)} of activations`);
  return [...facts, ...askedTexts(plan)];
}

// A banner for all plans that differ from the last one in the same.
function otherQuestions() {
  const after = plans[plans.length - 1];
  const namesOf = new Map();
  for (const plan of plans) {
    const differences = differencesOf(plan, after).join(', ');
    if (differences) namesOf.set(differences, [...(namesOf.get(differences) || []), plan.name]);
  }
  return Array.from(namesOf, ([differences, names]) => {
    const all = names.length === 1 ?
        `${names[0]} is` :
        `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]} are`;
    return banner(
        'quiet', `${all} not compared with ${after.name}`,
        `They are about different things: ${differences}`);
  });
}

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
  fillWith(byId('banners'), ...banners, ...otherQuestions());
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
  const line = (texts) => element('div', {}, texts.join('  ·  '));
  const more = questionFacts(plan);
  fillWith(byId('subtitle'), line(facts), ...(more.length > 0 ? [line(more)] : []));
  byId('provenance').textContent = hasClock() ?
      `Times are predicted by the cost model ${
          plan.cost}; gradient reduction and the optimizer are not in them.` :
      'The cost model verl counts workload (24576 s + s²), not time.';
}
