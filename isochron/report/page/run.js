// The runs of the page, and a step of one of them as it is drawn.
//
// Each rank has two lines: what was planned, and below it what was measured. A plan starts where
// the first forward of the step was measured. In it times are as predicted, or stretched so that it
// ends where the last backward was measured: a cost model that is off by a factor balances as well.

const runs = withOwnNames(reportData.runs);
const {steps} = reportData;  // those that are here in full
let shownStep = 0;
let isScaled = true;

const hasClock = () => true;
const hasFigures = () => true;
const isSound = () => true;
const isComparable = () => true;
const metricOf = (run, name) => run.metrics.find((curve) => curve.name === name) || null;
const curveOf = (run, name) => run.curves.find((curve) => curve.name === name);
// The time of a plan is multiplied by this.
const scaleOf = ({compute_ns, predicted_ns}) =>
    (isScaled && compute_ns > 0 && predicted_ns > 0 ? compute_ns / predicted_ns : 1);

const kinds = ['forward', 'backward', 'reduce', 'optimizer'];
const kindOf = (name) => (kinds.includes(name) ? name : 'other');
const isCompute = (kind) => kind === 'forward' || kind === 'backward';

function measuredBlocks(run, step) {
  const blocks = [];
  step.scopes.forEach((list, rank) => {
    for (let i = 0; i < list.length; i += 4) {
      const [name, slot, begin, duration] = list.slice(i, i + 4);
      const text = run.scope_names[name];
      blocks.push({
        rank,
        row: 2 * rank + 1,
        rowSpan: 1,
        slot,
        name: text,
        kind: kindOf(text),
        begin,
        end: begin + duration,
        isPlanned: false,
        isBeside: false
      });
    }
  });
  return blocks;
}

function plannedBlocks(planned, begin, scale) {
  return planned.bars.flatMap(([index, stage, , direction, from, to]) => {
    const group = planned.groups[index];
    return Array.from({length: group.size}, (_, i) => {
      const rank = (group.first + i) * planned.stages + stage;
      const name = direction === 0 ? 'forward' : 'backward';
      return {
        rank,
        row: 2 * rank,
        rowSpan: 1,
        slot: group.slot,
        name,
        kind: name,
        begin: begin + scale * from,
        end: begin + scale * to,
        isPlanned: true,
        isBeside: false
      };
    });
  });
}

// Gives every block of a slot its group of the plan, and what was planned and measured of the same
// rank, slot and direction.
function pairBlocks(blocks, planned) {
  const groups = new Map();
  for (const group of planned ? planned.groups : []) {
    for (let i = 0; i < group.size * planned.stages; ++i)
      groups.set(`${group.first * planned.stages + i} ${group.slot}`, group);
  }
  const pairs = new Map();
  for (const block of blocks) {
    block.group = groups.get(`${block.rank} ${block.slot}`) || null;
    block.pair = {planned: [], measured: []};
    if (block.slot < 0 || !isCompute(block.kind)) {
      block.pair.measured.push(block);
      continue;
    }
    const key = `${block.rank} ${block.slot} ${block.kind}`;
    if (!pairs.has(key)) pairs.set(key, block.pair);
    block.pair = pairs.get(key);
    block.pair[block.isPlanned ? 'planned' : 'measured'].push(block);
  }
}

// What runs while a forward or backward does, but does not hold it, is drawn beside it.
function markOverlaps(row) {
  const compute = row.filter((block) => isCompute(block.kind));
  let from = 0;  // what ended before it ended before all that begin later
  for (const block of row) {
    if (isCompute(block.kind)) continue;
    const slack = 0.02 * (block.end - block.begin);  // clocks are rounded
    while (from < compute.length && compute[from].end <= block.begin) ++from;
    for (let i = from; i < compute.length && compute[i].begin < block.end - slack; ++i) {
      const {begin, end} = compute[i];
      if (end > block.begin + slack) block.isBeside = true;
      if (block.begin > begin || block.end < end) continue;
      block.isBeside = false;
      break;
    }
  }
}

function preparedStep(run, index) {
  const step = run.shown[index];
  if (!step) return null;
  const planned = step.planned && step.planned.groups.length > 0 ? step.planned : null;
  const measured = measuredBlocks(run, step);
  const compute = measured.filter((block) => isCompute(block.kind));
  const begin = compute.reduce((first, block) => Math.min(first, block.begin), Infinity);
  const start = compute.length > 0 ? begin : 0;
  const scale = scaleOf(step);
  const blocks = [...(planned ? plannedBlocks(planned, start, scale) : []), ...measured];
  pairBlocks(blocks, planned);
  const ranks = Math.max(step.scopes.length, planned ? planned.ranks * planned.stages : 0);
  const blocksOfRow = Array.from({length: 2 * ranks}, () => []);
  for (const block of blocks) blocksOfRow[block.row].push(block);
  for (const row of blocksOfRow) row.sort((a, b) => a.begin - b.begin || b.end - a.end);
  blocksOfRow.forEach(markOverlaps);
  const plannedEnd = planned ? start + scale * planned.step_ns : 0;
  const end = largest(measured.map((block) => block.end));
  return {
    ...(planned || {prompt_groups: [], lengths: []}),
    figures: step,
    name: run.name,
    blocks: blocksOfRow.flat(),
    blocksOfRow,
    ranks,
    rows: 2 * ranks,
    lines: ['plan', 'run'],
    isPlanned: planned !== null,
    isMeasured: measured.length > 0,
    hasTimeline: blocks.length > 0,
    step_ns: Math.max(end, plannedEnd),
    marks: [
      ...(measured.length > 0 ? [{time: end, color: () => colors.text, dash: []}] : []),
      ...(planned ? [{
        time: plannedEnd,
        color: () => colors.bound,
        dash: [4, 3],
        name: isScaled && scale !== 1 ? 'planned, scaled' : 'planned'
      }] :
                    [])
    ],
  };
}
