// The chosen step: for each run the plan over what was measured, on one axis.

// "groups 14 × 1, 2 × 4 ranks"; nothing where every rank works alone.
function groupsText(groups) {
  const count = new Map();
  for (const {size, sequences} of groups)
    if (sequences.length > 0) count.set(size, (count.get(size) || 0) + 1);
  const sizes = [...count.keys()].sort((a, b) => a - b);
  if (sizes.length === 0 || sizes[sizes.length - 1] === 1) return '';
  return `groups ${sizes.map((size) => `${count.get(size)} × ${size}`).join(', ')} ranks`;
}

function stepFacts(plan) {
  const {figures} = plan;
  const facts = element('span', {class: 'facts'});
  const parts = [];
  const known = (value) => value !== null;
  if (known(figures.step_ns)) parts.push(`step ${timeText(figures.step_ns)}`);
  if (known(figures.compute_ns)) parts.push(`forward and backward ${timeText(figures.compute_ns)}`);
  if (known(figures.predicted_ns)) parts.push(`predicted ${timeText(figures.predicted_ns)}`);
  if (known(figures.compute_ns) && figures.predicted_ns > 0)
    parts.push(`measured / predicted ${factorText(figures.compute_ns / figures.predicted_ns)}`);
  const imbalances = [
    ['dealt', figures.naive_imbalance], ['planned', figures.planned_imbalance],
    ['measured', figures.measured_imbalance]
  ].filter(([, value]) => known(value));
  if (imbalances.length > 0)
    parts.push(
        `imbalance ${imbalances.map(([name, value]) => `${name} ${value.toFixed(3)}`).join(', ')}`);
  if (known(figures.straggler_share)) parts.push(`waiting ${idleText(figures.straggler_share)}`);
  if (plan.isPlanned && groupsText(plan.groups)) parts.push(groupsText(plan.groups));
  facts.append(parts.join('  ·  '));
  return facts;
}

function laneOf(run, plan) {
  const head = element(
      'div', {class: 'lane-head'}, element('h3', {}, run.name), plan ? stepFacts(plan) : '');
  const lane = {plan, hovered: null, selected: null, node: element('div', {class: 'lane'}, head)};
  if (!plan || !plan.hasTimeline) {
    lane.node.append(
        element('p', {class: 'empty'}, 'The run has neither a plan nor a trace of this step.'));
    return lane;
  }
  const notes = [];
  if (!plan.isPlanned) notes.push('The run has no plan of this step.');
  if (!plan.isMeasured) notes.push('The run has no trace of this step.');
  if (!plan.figures.has_common_clock)
    notes.push('The clocks of the ranks differ: each is drawn from its own start.');
  if (notes.length > 0) lane.node.append(element('p', {class: 'empty'}, notes.join(' ')));
  addPlot(lane, runs.length);
  return lane;
}

function drawLegend() {
  const present = new Set(lanes.flatMap((lane) => lane.plan.blocks.map((block) => block.kind)));
  const item = (kind, text) => element('span', {}, element('i', {class: `swatch ${kind}`}), text);
  fillWith(
      byId('legend'),
      ...[...kinds, 'other'].filter((kind) => present.has(kind)).map((kind) => item(kind, kind)),
      element('span', {}, 'pale, above: planned'), element('span', {}, 'full, below: measured'));
}

function buildLanes() {
  const prepared = runs.map((run) => preparedStep(run, shownStep));
  const shown = prepared.filter((plan) => plan !== null);
  showLanes(
      runs.map((run, i) => laneOf(run, prepared[i])), largest(shown.map((plan) => plan.step_ns)));
  const {step, why} = steps[shownStep];
  byId('timeline-heading').textContent = `Step ${integerText(step)}${why ? `: ${why}` : ''}`;
}
