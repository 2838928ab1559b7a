// The charts of a step: load, tokens and memory, and where the room goes.

function busyOfRanks(plan) {
  return Array.from(
      {length: plan.ranks},
      (_, rank) => largest(plan.busy_ns.slice(rank * plan.stages, (rank + 1) * plan.stages)));
}

// With stages the step waits for the busiest one of a rank.
const busyWords = (shown) => (shown.some((plan) => plan.stages > 1) ? 'busiest stage' : 'busy');

function loadChart(plan, most) {
  const busy = busyOfRanks(plan);
  const slowest = busy.indexOf(largest(busy));
  const caption = `Busiest is rank ${slowest} with ${timeText(busy[slowest])}; mean ${
      timeText(sum(busy) / busy.length)}`;
  return figure(plan, caption, barChart({
                  ...timeAxis(most),
                  values: busy,
                  soft: busy.map(() => plan.step_ns),
                  first: 'rank 0',
                  last: `${plan.ranks - 1}`,
                  color: () => colors.bar,
                  softColor: () => colors.idle,
                  lines: plan.bound_ns > 0 ?
                      [{value: plan.bound_ns, color: () => colors.bound, dash: [4, 3]}] :
                      [],
                  tip: (rank) =>
                      [`Rank ${rank}`, `${busyWords([plan])} ${timeText(busy[rank])}`,
                       `idle ${percentText(1 - busy[rank] / Math.max(1, plan.step_ns))} of ${
                           timeText(plan.step_ns)}`],
                  label: `Busy time of each rank of ${plan.name}. ${caption}.`,
                }));
}

function fillChart(plan) {
  const groups = [...plan.filled].sort((a, b) => b.tokens / b.size - a.tokens / a.size);
  const padded = groups.map((group) => group.tokens / group.size);
  const real = groups.map((group) => realTokens(plan, group) / group.size);
  const most = Math.max(plan.capacity, largest(padded)) * 1.04;
  const over = padded.filter((tokens) => tokens > plan.capacity).length;
  const {padded: taken, room} = plan.tokenCounts;  // as the token fill: wide groups count as wide
  const caption =
      `Fullest first; together ${percentText(taken / Math.max(1, room))} of the capacity` +
      (over > 0 ? `, ${integerText(over)} over it` : '');
  return figure(plan, caption, barChart({
                  ...valueAxis(most, plainScales),
                  values: real,
                  soft: padded,
                  first: 'micro-batch 1',
                  last: integerText(groups.length),
                  color: () => colors.bar,
                  softColor: () => colors.bound,
                  lines: [{value: plan.capacity, color: () => colors.text, dash: []}],
                  tip: (i) =>
                      [`Slot ${groups[i].slot}, ${rangeText(groups[i].first, groups[i].size)}`,
                       `${integerText(padded[i])} of ${integerText(plan.capacity)} tokens per rank`,
                       `${plural(groups[i].sequences.length, 'sequence')}, padding ${
                           integerText(groups[i].tokens - real[i] * groups[i].size)}`],
                  label: `Tokens per rank of each micro-batch of ${plan.name}. ${caption}.`,
                }));
}

function memoryChart(plan, most) {
  const fullest = plan.peak_bytes.indexOf(plan.peak);
  const caption = `Fullest is rank ${fullest} with ${bytesText(plan.peak)}` +
      (plan.memory_limit > 0 ? `; limit ${bytesText(plan.memory_limit)}` : '');
  return figure(
      plan, caption, barChart({
        ...valueAxis(most, byteScales),
        values: plan.peak_bytes,
        first: 'rank 0',
        last: `${plan.ranks - 1}`,
        color: () => colors.bar,
        lines: plan.memory_limit > 0 ?
            [{value: plan.memory_limit, color: () => colors.bad, dash: []}] :
            [],
        tip: (
            rank) => [`Rank ${rank}`, `${bytesText(plan.peak_bytes[rank])} of activations at most`],
        label: `Peak activation memory of each rank of ${plan.name}. ${caption}.`,
      }));
}

function drawCharts() {
  redrawCharts = [];
  const drawn = plans.filter((plan) => plan.hasTimeline);
  const longest =
      1.04 * Math.max(1, largest(drawn.map((plan) => Math.max(plan.step_ns, plan.bound_ns))));
  fillWith(byId('load'), ...drawn.map((plan) => loadChart(plan, longest)));
  fillWith(byId('fill'), ...drawn.map(fillChart));
  const measured = drawn.filter((plan) => plan.peak > 0);
  const heaviest =
      1.04 * Math.max(1, largest(measured.map((plan) => Math.max(plan.peak, plan.memory_limit))));
  fillWith(byId('memory'), ...measured.map((plan) => memoryChart(plan, heaviest)));
  drawRoom(drawn);
  drawChartLegends(drawn);
  for (const [id, shown] of [
           ['load', drawn], ['fill', drawn], ['memory', measured], ['padding', drawn]]) {
    byId(id).closest('section').hidden = shown.length === 0;
  }
  drawHistory();
  for (const draw of redrawCharts) draw();
}

// What the colours and lines of the charts are, where there are any.
function drawChartLegends(drawn) {
  const swatch = (kind, text) => element('span', {}, element('i', {class: `swatch ${kind}`}), text);
  const line = (kind, text) => element('span', {}, element('i', {class: `key ${kind}`}), text);
  const hasBound = drawn.some((plan) => plan.bound_ns > 0);
  const hasLimit = drawn.some((plan) => plan.memory_limit > 0);
  const hasPadding = drawn.some((plan) => plan.tokenCounts.padded > plan.tokenCounts.real);
  fillWith(
      byId('load-legend'), swatch('real', busyWords(drawn)), swatch('unused', 'idle'),
      ...(hasBound ? [line('dashed bound', 'lower bound')] : []));
  fillWith(
      byId('fill-legend'), swatch('real', 'tokens per rank'),
      ...(hasPadding ? [swatch('pad', 'padding')] : []), line('text', 'capacity'));
  fillWith(byId('memory-legend'), ...(hasLimit ? [line('bad', 'limit')] : []));
}

function drawRoom(drawn) {
  const item = (kind, text) => element('span', {}, element('i', {class: `swatch ${kind}`}), text);
  const legend = element(
      'div', {class: 'room-legend'}, item('real', 'tokens of sequences'), item('pad', 'padding'),
      item('unused', 'unused'));
  const most = largest(drawn.map(({tokenCounts: {padded, unused}}) => padded + unused));
  const cells = drawn.flatMap((plan) => {
    const {real, padded, room, unused} = plan.tokenCounts;
    const whole = padded + unused;
    const over = whole - room;
    const part = (kind, tokens) => {
      const made = element('i', {class: kind});
      made.style.width = `${(100 * tokens) / Math.max(1, whole)}%`;
      return made;
    };
    const track = element('div', {class: 'track'}, part('real', real), part('pad', padded - real));
    track.style.width = `${(100 * whole) / Math.max(1, most)}%`;
    const note = `${integerText(real)} tokens, ${integerText(padded - real)} padding, ${
        integerText(unused)} unused of ${integerText(room)}${
        over > 0 ? `, ${integerText(over)} over the capacity` : ''}`;
    return [
      element('span', {class: 'label'}, plan.name), element('div', {}, track),
      element('span', {class: 'note'}, note)
    ];
  });
  fillWith(byId('padding'), legend, element('div', {class: 'room'}, ...cells));
}
