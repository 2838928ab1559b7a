// What a micro-batch of a plan is, in words.

function blockTitle(block, plan) {
  const {group} = block;
  const kind = block.direction === 0 ? ', forward' : block.direction === 1 ? ', backward' : '';
  const where = plan.stages > 1 ?
      `, stage ${block.stage}${plan.virtual > 1 ? `, chunk ${block.chunk}` : ''}` :
                                                  '';
  return `Slot ${group.slot}, ${rangeText(group.first, group.size)}${where}${kind}`;
}

function blockFacts(block, plan) {
  const {group} = block;
  const perRank = group.tokens / group.size;
  // To a thousandth of the block, however late it is.
  const moment = (time) => tickText(time, Math.max(1, block.end - block.begin) / 1000, block.end);
  const facts = [['Group size', `c = ${group.size}`]];
  if (group.exchange) facts.push(['Exchange', group.exchange]);
  facts.push([plan.stages > 1 ? 'Cost of all stages' : 'Cost per rank', timeText(group.cost_ns)]);
  facts.push(['Begin – end', `${moment(block.begin)} – ${moment(block.end)}`]);
  if (group.sequences.length === 0)
    facts.push(['Holds', 'nothing: a placeholder']);
  else
    facts.push([
      'Tokens per rank',
      `${integerText(perRank)} of ${integerText(plan.capacity)} (${
          percentText(perRank / plan.capacity)})`
    ]);
  return facts;
}

const blockWords = (block, plan) => `${blockTitle(block, plan)}, ${
    plural(block.group.sequences.length, 'sequence')}, ${timeText(block.group.cost_ns)}`;
