// What a block holds: beside the pointer, and below its timeline once it is chosen. The page says
// what it is: blockTitle(block, plan), blockFacts(block, plan) as pairs, blockWords(block, plan).

function factsList(facts) {
  const list = element('dl', {class: 'facts-list'});
  for (const [name, value] of facts) list.append(element('dt', {}, name), element('dd', {}, value));
  return list;
}

const lengthOf = (step, id) =>
    (id < step.lengths.length ? step.lengths[id] : 2);  // padding rows have 2

function sequenceTable(block, plan, most) {
  const {group} = block;
  if (!group || group.sequences.length === 0) return [];
  const hasPrompts = plan.prompt_groups.length > 0;
  const ids = [...group.sequences]
                  .sort((a, b) => lengthOf(plan, b) - lengthOf(plan, a) || a - b)
                  .slice(0, most);
  const head = element(
      'tr', {},
      ...['Sequence', 'Length', ...(hasPrompts ? ['Prompt'] : [])].map(
          (name) => element('th', {scope: 'col'}, name)));
  const rows = ids.map((id) => {
    const isPadding = id >= plan.lengths.length;
    const row = element(
        'tr', {}, element('td', {}, isPadding ? `#${id} padding row` : `#${id}`),
        element('td', {}, integerText(lengthOf(plan, id))));
    if (hasPrompts)
      row.append(element(
          'td', {class: 'prompt'}, isPadding ? '' : plan.prompt_names[plan.prompt_groups[id]]));
    return row;
  });
  const parts = [element(
      'table', {class: 'sequences'}, element('thead', {}, head), element('tbody', {}, ...rows))];
  if (group.sequences.length > most) {
    parts.push(element(
        'p', {class: 'more'},
        `and ${integerText(group.sequences.length - most)} shorter; click for all`));
  }
  return parts;
}

function showTip(x, y, ...content) {
  const tip = byId('tip');
  fillWith(tip, ...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left =
      `${x + 16 + box.width > window.innerWidth ? Math.max(4, x - 16 - box.width) : x + 16}px`;
  tip.style.top = `${clamp(y + 14, 4, Math.max(4, window.innerHeight - box.height - 4))}px`;
}
const hideTip = () => {
  byId('tip').hidden = true;
};

const showBlockTip = (lane, block, x, y) => showTip(
    x, y, element('h3', {}, blockTitle(block, lane.plan)), factsList(blockFacts(block, lane.plan)),
    ...sequenceTable(block, lane.plan, 8));

const prefersStillness = window.matchMedia('(prefers-reduced-motion: reduce)');

// Under the lane of the block, so that both can be seen.
function openDetail(lane, block) {
  const detail = byId('detail');
  const close = element('button', {type: 'button', onclick: closeDetail}, 'Close');
  fillWith(
      detail,
      element(
          'header', {}, element('h3', {}, `${lane.plan.name}: ${blockTitle(block, lane.plan)}`),
          close),
      factsList(blockFacts(block, lane.plan)),
      element(
          'div', {class: 'list', tabIndex: 0, 'aria-label': 'Sequences'},
          ...sequenceTable(block, lane.plan, Infinity)));
  lane.node.append(detail);
  detail.hidden = false;
  detail.scrollIntoView({block: 'nearest', behavior: prefersStillness.matches ? 'auto' : 'smooth'});
}
function closeDetail() {
  byId('detail').hidden = true;
  for (const lane of lanes) lane.selected = null;
  lanes.forEach(drawOutlines);
}
