// The lanes of the plans under their common axis, with the legend of their colours.

function laneOf(plan, before) {
  const facts = element('span', {class: 'facts'});
  if (plan.hasTimeline) {
    const change = deltaOf(metrics[0], plan, before);
    facts.append(element('b', {}, timeText(plan.step_ns)));
    if (change) facts.append(' (', element('span', {class: change.kind}, change.text), ')');
    facts.append(` · idle ${idleText(plan.bubble)}`);
    facts.append(` · ${plural(plan.filled.length, 'micro-batch', 'micro-batches')}`);
    if (plan.widest > 1) facts.append(` · groups up to ${plural(plan.widest, 'rank')}`);
  }
  const head =
      element('div', {class: 'lane-head'}, element('h3', {}, plan.name), statusPill(plan), facts);
  const lane = {plan, hovered: null, selected: null, node: element('div', {class: 'lane'}, head)};
  if (!plan.hasTimeline) {
    lane.node.append(element(
        'p', {class: 'empty'}, plan.violation || plan.reason || 'There is nothing to draw.'));
    return lane;
  }
  addPlot(lane, plans.length);
  return lane;
}

function drawLegend() {
  const ramp = element('canvas', {'aria-hidden': 'true'});
  ramp.style.width = '96px';
  ramp.style.height = '10px';
  const line = (kind, text) => element('span', {}, element('i', {class: `key ${kind}`}), text);
  const isStaged = lanes.some((lane) => lane.plan.stages > 1);
  const wordsIf = (holds, words) =>
      (lanes.some((lane) => holds(lane.plan)) ? [element('span', {}, words)] : []);
  const texts = [
    element(
        'span', {}, `Cost ${isStaged ? 'of all stages' : 'per rank'}: 0`, ramp, timeText(dearest)),
    element('span', {}, '×c: group of c ranks'),
    ...wordsIf((plan) => plan.stages > 1, '2F: forward of slot 2'),
    ...wordsIf((plan) => plan.pass !== 'forward', 'faded: forward'),
    ...wordsIf((plan) => plan.filled.length < plan.groups.length, 'dotted: placeholder'),
    line('text', 'end of the step')
  ];
  if (lanes.some((lane) => lane.plan.bound_ns > 0)) texts.push(line('dashed bound', 'lower bound'));
  texts.push(...wordsIf((plan) => plan.isInvalid, 'hatched: invalid'));
  fillWith(byId('legend'), ...texts);
  paint(ramp, (context, width, height) => {
    for (let x = 0; x < width; ++x) {
      context.fillStyle = colors.ramp[Math.floor((63 * x) / (width - 1))].plain.fill;
      context.fillRect(x, 0, 1.5, height);
    }
  });
}

function buildLanes(before) {
  const all = plans.map((plan) => laneOf(plan, before));
  const drawn = plans.filter((plan) => plan.hasTimeline);
  dearest =
      Math.max(1, largest(drawn.map((plan) => largest(plan.filled.map((group) => group.cost_ns)))));
  showLanes(all, largest(drawn.map((plan) => Math.max(plan.step_ns, plan.bound_ns))));
}
