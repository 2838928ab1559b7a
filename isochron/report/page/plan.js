// A plan as it is drawn: blocks on rows, and the sums that the summary shows.

const entries = withOwnNames(reportData.entries);
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

// Rows that were added are padding, as what rounds lengths up.
const realTokens = (step, group) =>
    sum(group.sequences.map((id) => (id < step.lengths.length ? step.lengths[id] : 0)));

// What is over the capacity in one micro-batch uses no room of another.
function tokenCounts(step) {
  const counts = {real: 0, padded: 0, room: 0, unused: 0};
  for (const group of step.groups) {
    if (group.sequences.length === 0) continue;
    counts.real += realTokens(step, group);
    counts.padded += group.tokens;
    const room = group.size * step.capacity;
    counts.room += room;
    counts.unused += Math.max(0, room - group.tokens);
  }
  return counts;
}

// Busiest rank over mean, of all stages: worked out here, because a file may say anything.
function imbalanceOf(step) {
  const busy = Array.from(
      {length: step.ranks},
      (_, rank) => sum(step.busy_ns.slice(rank * step.stages, (rank + 1) * step.stages)));
  return sum(busy) > 0 ? (largest(busy) * step.ranks) / sum(busy) : 1;
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
    imbalance: imbalanceOf(step),
    num_slots: step.groups.length === 0 ? 0 : 1 + largest(step.groups.map((group) => group.slot)),
    widest: largest(filled.map((group) => group.size)),
    bubble: step.step_ns > 0 ? 1 - sum(step.busy_ns) / (step.step_ns * rows) : 0,
    peak: largest(step.peak_bytes),
  };
}

const hasFigures = (plan) => plan.hasTimeline;
// An entry that others are measured against: it has a time, and nothing is wrong with it.
const isSound = (plan) => plan.hasTimeline && !plan.isInvalid;

const keptGroups = (plan) => plan.options.keep_groups || 'none';
const devicesOfRank = (plan) => plan.options.tensor_parallel || 1;
// None given are as all equal.
const speedsOf = (plan) =>
    (plan.rank_speed.length > 0 ? plan.rank_speed : Array.from({length: plan.ranks}, () => 1));
const sharesOf = (plan) => {
  const chunks = plan.stages * plan.virtual;
  return (plan.shares.length > 0 ? plan.shares : Array.from({length: chunks}, () => 1 / chunks))
      .map((share) => share.toFixed(9));
};
const haveEqual = (plan, other, valueOf) =>
    JSON.stringify(valueOf(plan)) === JSON.stringify(valueOf(other));

// In what two plans are about different things, in words; only what is about the same is compared.
function differencesOf(plan, other) {
  const hasOtherLengths = plan.lengths.length !== other.lengths.length ||
      plan.lengths.some((length, i) => length !== other.lengths[i]);
  const difference = (name, a, b) => (a === b ? [] : [`${a} and ${b} ${name}`]);
  const otherIf = (isOther, words) => (isOther ? [words] : []);
  const isKept = keptGroups(plan) !== 'none' && keptGroups(other) !== 'none';
  return [
    ...otherIf(hasOtherLengths, 'other sequences'),
    ...otherIf(!haveEqual(plan, other, (step) => step.extra_cost_ns), 'other extra costs'),
    ...otherIf(
        isKept && !haveEqual(plan, other, (step) => step.prompt_groups), 'other prompt groups'),
    ...difference('ranks', other.ranks, plan.ranks),
    ...otherIf(
        plan.ranks === other.ranks && !haveEqual(plan, other, speedsOf), 'other rank speeds'),
    ...difference('devices of a rank', devicesOfRank(other), devicesOfRank(plan)),
    ...difference('stages', other.stages, plan.stages),
    ...difference('virtual stages per stage', other.virtual, plan.virtual),
    ...difference('slots at a time', other.chunk_group, plan.chunk_group),
    ...otherIf(
        sharesOf(plan).length === sharesOf(other).length && !haveEqual(plan, other, sharesOf),
        'other shares of the stages'),
    ...otherIf(plan.transfer_ns !== other.transfer_ns, 'other times between stages'),
    ...difference('as costs', other.cost, plan.cost),
    ...otherIf(
        plan.cost === other.cost && !haveEqual(plan, other, (step) => step.cost_model),
        `other numbers under the name ${plan.cost}`),
    ...difference('passes', other.pass, plan.pass),
    ...difference('as kept groups', keptGroups(other), keptGroups(plan)),
  ];
}
const isComparable = (plan, other) => differencesOf(plan, other).length === 0;
