// The charts of a step: load, tokens and memory, where the room goes, and all steps.

function busyOfRanks(plan) {
  return Array.from(
      {length: plan.ranks},
      (_, rank) => largest(plan.busy_ns.slice(rank * plan.stages, (rank + 1) * plan.stages)));
}

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
                      [`Rank ${rank}`, `busy ${timeText(busy[rank])}`,
                       `idle ${percentText(1 - busy[rank] / Math.max(1, plan.step_ns))} of ${
                           timeText(plan.step_ns)}`],
                  label: `Busy time of each rank of ${plan.name}. ${caption}.`,
                }));
}

function fillChart(plan) {
  const groups = [...plan.filled].sort((a, b) => b.tokens / b.size - a.tokens / a.size);
  const padded = groups.map((group) => group.tokens / group.size);
  const real =
      groups.map((group) => sum(group.sequences.map((id) => lengthOf(plan, id))) / group.size);
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
  for (const [id, shown] of [
           ['load', drawn], ['fill', drawn], ['memory', measured], ['padding', drawn]]) {
    byId(id).closest('section').hidden = shown.length === 0;
  }
  drawHistory();
  for (const draw of redrawCharts) draw();
}

function drawRoom(drawn) {
  const item = (kind, text) => element('span', {}, element('i', {class: `swatch ${kind}`}), text);
  const legend = element(
      'div', {class: 'room-legend'}, item('real', 'tokens of sequences'), item('pad', 'padding'),
      item('unused', 'unused'));
  const most = largest(drawn.map((plan) => plan.tokenCounts.room));
  const cells = drawn.flatMap((plan) => {
    const {real, padded, room, rows} = plan.tokenCounts;
    const part = (kind, tokens) => {
      const made = element('i', {class: kind});
      made.style.width = `${(100 * tokens) / Math.max(1, room)}%`;
      return made;
    };
    const track = element(
        'div', {class: 'track'}, part('real', real - rows), part('pad', padded - real + rows));
    track.style.width = `${(100 * room) / Math.max(1, most)}%`;
    const note =
        `${integerText(real - rows)} tokens, ${integerText(padded - real + rows)} padding, ${
            integerText(Math.max(0, room - padded))} unused of ${integerText(room)}`;
    return [
      element('span', {class: 'label'}, plan.name), element('div', {}, track),
      element('span', {class: 'note'}, note)
    ];
  });
  fillWith(byId('padding'), legend, element('div', {class: 'room'}, ...cells));
}

// The time of every step, one chart per entry.
function drawHistory() {
  byId('history-section').hidden = numSteps < 2;
  if (numSteps < 2) return;
  const most = 1.04 *
      Math.max(1, largest(entries.flatMap((entry) => entry.steps.map((step) => step.step_ns))));
  const timesOf = (entry) => entry.steps.map((step) => (step.violation ? 0 : step.step_ns));
  const shared = entries.map(timesOf).filter((times) => times.some((time) => time > 0));
  const isShared = (i) => shared.every((times) => times[i] > 0);
  fillWith(byId('history'), ...entries.map((entry) => {
    const times = timesOf(entry);
    const played = times.filter((time) => time > 0);
    const compared = times.filter((time, i) => isShared(i));
    const together = compared.length === times.length ?
        `together ${timeText(sum(compared))}` :
        `the ${integerText(compared.length)} that all have take ${timeText(sum(compared))}`;
    const caption = `${plural(entry.steps.length, 'step')}, ${
                        played.length === 0 ? 'none valid' : together}` +
        (played.length < times.length ?
             `; ${integerText(times.length - played.length)} without a valid plan` :
             '');
    return figure(entry, caption, barChart({
                    ...timeAxis(most),
                    values: times,
                    first: 'step 1',
                    last: integerText(times.length),
                    color: () => colors.bar,
                    lines: [],
                    marked: shownStep,
                    pick: showStep,
                    tip: (i) =>
                        [`Step ${i + 1}`,
                         times[i] > 0 ? timeText(times[i]) :
                                        entry.steps[i].violation || entry.steps[i].reason],
                    label: `Time of each step of ${entry.name}. ${caption}.`,
                  }));
  }));
}
