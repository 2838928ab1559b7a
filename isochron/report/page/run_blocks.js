// A block of a run: coloured by what was done. The plan is a paler strip above what was measured.

// The line of a plan is as high as that of the run, but leaves room to the rank above.
const plannedShare = 0.62;

function* rectanglesOf(block, plan, width, height) {
  const left = xOf(block.begin, width);
  const right = xOf(block.end, width);
  const exactTop = yOf(block.row, plan.rows, height);
  const rowHeight = yOf(1, plan.rows, height) - yOf(0, plan.rows, height);
  const bottom = exactTop + rowHeight * (!block.isPlanned && rowHeight > 5 ? 0.94 : 1);
  const share = block.isPlanned && rowHeight > 5 ? plannedShare : block.isBeside ? 0.4 : 1;
  const top = bottom - share * (bottom - exactTop);
  // Of the rows that share a pixel the first is drawn.
  const isShadowed = rowHeight < 1 && Math.floor(exactTop) === Math.floor(exactTop - rowHeight);
  const y = rowHeight < 3 ? Math.floor(top) : Math.round(top);
  yield {
    x: left,
    y,
    w: Math.max(right - left - (right - left > 4 ? 1 : 0), 0.4),
    h: Math.max(1, Math.round(bottom) - y),
    isShadowed
  };
}

function drawBlock(context, block, plan, width, height, clip) {
  for (const rect of rectanglesOf(block, plan, width, height)) {
    if (rect.isShadowed || rect.x > clip.right || rect.x + rect.w < clip.left || rect.y > height ||
        rect.y + rect.h < 0)
      continue;
    const left = Math.max(rect.x, clip.left);
    const w = Math.min(rect.x + rect.w, clip.right) - left;
    context.globalAlpha = block.isPlanned ? paleShare : 1;
    context.fillStyle = colors[block.kind];
    context.fillRect(left, rect.y, w, rect.h);
    context.globalAlpha = 1;
    drawSlot(context, block, {x: left, y: rect.y, w, h: rect.h});
  }
}

function drawSlot(context, block, rect) {
  if (rect.h < 10 || rect.w < 14) return;
  const size = block.group && block.group.size > 1 ? ` ×${block.group.size}` : '';
  const candidates = block.slot >= 0 ?
      [`slot ${block.slot}${size}`, `${block.slot}${size}`, String(block.slot)] :
      [block.name];
  context.font = font(rect.h > 15 ? 11 : 9.5, 560);
  const text = candidates.find((each) => context.measureText(each).width + 8 <= rect.w);
  if (!text) return;
  context.fillStyle = colors[`${block.kind}${block.isPlanned ? '-pale' : ''}-ink`];
  context.textAlign = 'left';
  context.fillText(text, rect.x + 4, rect.y + rect.h / 2 + 0.5);
}

function blockTitle(block) {
  const what = block.slot >= 0 ? `Slot ${block.slot}, rank ${block.rank}` : `Rank ${block.rank}`;
  return `${what}, ${block.name}`;
}

// From the first to the last of what belongs together; null if there is none.
function spanOf(blocks) {
  if (blocks.length === 0) return null;
  return {
    begin: blocks.reduce((first, block) => Math.min(first, block.begin), Infinity),
    end: largest(blocks.map((block) => block.end)),
    busy: sum(blocks.map((block) => block.end - block.begin))
  };
}

function blockFacts(block, plan) {
  const planned = spanOf(block.pair.planned);
  const measured = spanOf(block.pair.measured);
  const text = (span) => `${timeText(span.busy)} (${timeText(span.begin)} – ${timeText(span.end)})`;
  const facts = [];
  const scale = scaleOf(plan.figures);
  const hasPlan = isCompute(block.kind) && block.slot >= 0;
  if (planned)
    facts.push([scale === 1 ? 'Planned' : 'Planned, scaled', text(planned)]);
  else
    facts.push(['Planned', hasPlan ? 'nothing' : 'not part of the prediction']);
  facts.push(['Measured', measured ? text(measured) : 'nothing']);
  if (planned && measured && planned.busy > 0)
    facts.push(['Measured / planned', `${(measured.busy / planned.busy).toFixed(3)}`]);
  const {group} = block;
  if (!group) return facts;
  if (group.size > 1) facts.push(['Group', `${rangeText(group.first, group.size)}`]);
  if (group.sequences.length === 0)
    facts.push(['Holds', 'nothing: a placeholder']);
  else
    facts.push([
      'Tokens per rank',
      `${integerText(group.tokens / group.size)} of ${integerText(plan.capacity)}`
    ]);
  return facts;
}

const blockWords = (block, plan) =>
    `${blockTitle(block)}, ${block.isPlanned ? 'planned' : 'measured'}: ${
        blockFacts(block, plan).map((fact) => fact.join(' ')).join(', ')}`;
