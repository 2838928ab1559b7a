// All steps of the plans: what they take together, how they spread, and the time of each.

const hasTime = (step) => step.step_ns > 0 && step.violation === '';

// What the steps of the last entry take, and how much less than those of each other entry: over
// the steps that both have.
function allStepsText() {
  const after = entries[entries.length - 1];
  const timed = after.steps.filter(hasTime);
  if (timed.length === 0) return '';
  const whole = `${plural(timed.length, 'step')} of ${shortName(after.name)} ${
      timed.length === 1 ? 'takes' : 'take'} ${timeText(sum(timed.map((step) => step.step_ns)))}`;
  const comparisons = entries.slice(0, -1).flatMap((entry) => {
    const pairs = after.steps.map((step, i) => [entry.steps[i], step])
                      .filter(
                          ([before, step]) => before && hasTime(before) && hasTime(step) &&
                              isComparable(before, step));
    if (pairs.length === 0) return [];
    const saved = 1 -
        sum(pairs.map(([, step]) => step.step_ns)) / sum(pairs.map(([before]) => before.step_ns));
    const where = pairs.length === timed.length ?
        '' :
        ` over the ${integerText(pairs.length)} that both have`;
    return [`${percentText(Math.abs(saved), 2)} ${saved >= 0 ? 'less' : 'more'} time than ${
        shortName(entry.name)}${where}`];
  });
  return `${[whole, ...comparisons].join(', ')}.`;
}

// The 95th percentile is the smallest value that at least 95 % do not exceed, as `plan --batch` has
// it.
function distributionOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const count = sorted.length;
  return [
    sorted[0], sum(sorted) / count,
    (sorted[Math.floor((count - 1) / 2)] + sorted[Math.floor(count / 2)]) / 2,
    sorted[Math.ceil((95 * count) / 100) - 1], sorted[count - 1]
  ];
}

// What does not change with the chosen step.
function drawAllSteps() {
  if (numSteps < 2) return;
  byId('all-steps').textContent = allStepsText();
  drawSpread();
}

function drawSpread() {
  const after = entries[entries.length - 1];
  const steps = after.steps.filter(hasTime);
  const paddingShare = (step) => {
    const {real, padded} = tokenCounts(step);
    return padded > 0 ? (padded - real) / padded : 0;
  };
  const gaps =
      steps.filter((step) => step.bound_ns > 0).map((step) => step.step_ns / step.bound_ns - 1);
  const rows = [
    ['Gap to the bound', gaps, (x) => percentText(x, largest(gaps) < 0.005 ? 4 : 2)],
    ['Imbalance', steps.map(imbalanceOf), (x) => x.toFixed(3)],
    ['Padding', steps.map(paddingShare), (x) => percentText(x, 2)],
  ].filter(([, values]) => values.length > 0);
  const heads = [shortName(after.name), 'min', 'mean', 'median', '95 %', 'max'].map(
      (text) => element('th', {scope: 'col'}, text));
  fillWith(
      byId('spread'), element('caption', {class: 'visually-hidden'}, `All steps of ${after.name}`),
      element('thead', {}, element('tr', {}, ...heads)),
      element(
          'tbody', {},
          ...rows.map(
              ([name, values, text]) => element(
                  'tr', {}, element('th', {scope: 'row'}, name),
                  ...distributionOf(values).map((value) => element('td', {}, text(value)))))));
}

// The time of every step, one chart per entry.
function drawHistory() {
  byId('history-section').hidden = numSteps < 2;
  if (numSteps < 2) return;
  const timesOf = (entry) => entry.steps.map((step) => (step.violation ? 0 : step.step_ns));
  const most = 1.04 * Math.max(1, largest(entries.flatMap(timesOf)));
  const shared = entries.map(timesOf).filter((times) => times.some((time) => time > 0));
  const isShared = (i) => shared.every((times) => times[i] > 0);
  fillWith(byId('history'), ...entries.map((entry) => {
    const times = timesOf(entry);
    const played = times.filter((time) => time > 0);
    const compared = times.filter((time, i) => isShared(i));
    const together = compared.length === times.length ?
        `together ${timeText(sum(compared))}` :
        compared.length === 0 ?
        'none that all have' :
        compared.length === 1 ?
        `the one that all have takes ${timeText(sum(compared))}` :
        `the ${integerText(compared.length)} that all have take ${timeText(sum(compared))}`;
    const caption =
        `${plural(entry.steps.length, 'step')}, ${played.length === 0 ? 'none valid' : together}` +
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
