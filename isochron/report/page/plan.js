// A plan as it is drawn: blocks on rows, and the sums that the summary shows.

const entries = reportData.entries;
const numSteps = Math.max(0, ...entries.map((entry) => entry.steps.length));
let plans = [];  // of the chosen step, one per entry
let shownStep = 0;

// The preset `verl` counts workload, not nanoseconds.
const hasClock = () => plans.some((plan) => plan.cost !== 'verl');

// What is drawn of a group: without stages forward and backward are one block with a seam.
function blocksOf(step) {
  const blocks = [];
  const open = new Map();
  for (const [group, stage, chunk, direction, begin, end] of step.bars) {
    const key = `${group} ${chunk}`;
    const before = open.get(key);
    if (step.stages === 1 && direction === 1 && before && before.end === begin) {
      before.seam = before.end;
      before.end = end;
      before.direction = -1;
      open.delete(key);
      continue;
    }
    const block = {group: step.groups[group], stage, chunk, direction, begin, end, seam: null};
    block.row = block.group.first * step.stages + stage;
    block.rowSpan = step.stages === 1 ? block.group.size : 1;
    blocks.push(block);
    if (direction === 0) open.set(key, block);
  }
  return blocks;
}

function blocksByRow(step, blocks) {
  const rows = Array.from({length: step.ranks * step.stages}, () => []);
  for (const block of blocks) {
    for (let i = 0; i < block.group.size; ++i) {
      rows[(block.group.first + i) * step.stages + block.stage].push(block);
    }
  }
  for (const row of rows) row.sort((a, b) => a.begin - b.begin);
  return rows;
}

function tokenCounts(step) {
  const counts = {real: 0, padded: 0, room: 0, rows: 2 * step.padding_rows};
  for (const group of step.groups) {
    if (group.sequences.length === 0) continue;
    counts.real += sum(group.sequences.map((id) => lengthOf(step, id)));
    counts.padded += group.tokens;
    counts.room += group.size * step.capacity;
  }
  return counts;
}

function preparedPlan(entry, index) {
  const step = entry.steps[index];
  if (!step) return null;
  const blocks = blocksOf(step);
  const filled = step.groups.filter((group) => group.sequences.length > 0);
  const rows = step.ranks * step.stages;
  return {
    ...step,
    name: entry.name,
    blocks,
    filled,
    rows,
    lines: step.stages === 1 ? [''] : Array.from({length: step.stages}, (_, i) => `s${i}`),
    marks: [
      {time: step.step_ns, color: () => colors.text, dash: []},
      ...(step.bound_ns > 0 ?
              [{time: step.bound_ns, color: () => colors.bound, dash: [4, 3], name: 'bound'}] :
              [])
    ],
    blocksOfRow: blocksByRow(step, blocks),
    hasTimeline: step.groups.length > 0,
    isInvalid: step.violation !== '',
    tokenCounts: tokenCounts(step),
    num_slots: step.groups.length === 0 ? 0 : 1 + largest(step.groups.map((group) => group.slot)),
    widest: largest(filled.map((group) => group.size)),
    bubble: step.step_ns > 0 ? 1 - sum(step.busy_ns) / (step.step_ns * rows) : 0,
    peak: largest(step.peak_bytes),
  };
}

const hasFigures = (plan) => plan.hasTimeline;
// An entry that others are measured against: it has a time, and nothing is wrong with it.
const isSound = (plan) => plan.hasTimeline && !plan.isInvalid;

// In what two plans are about different things, in words; only what is about the same is compared.
function differencesOf(plan, other) {
  const hasOtherLengths = plan.lengths.length !== other.lengths.length ||
      plan.lengths.some((length, i) => length !== other.lengths[i]);
  const difference = (name, a, b) => (a === b ? [] : [`${a} and ${b} ${name}`]);
  return [
    ...(hasOtherLengths ? ['other sequences'] : []),
    ...difference('ranks', other.ranks, plan.ranks),
    ...difference('stages', other.stages, plan.stages),
    ...difference('as costs', other.cost, plan.cost),
    ...difference('passes', other.pass, plan.pass),
  ];
}
const isComparable = (plan, other) => differencesOf(plan, other).length === 0;
