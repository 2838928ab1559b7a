// A micro-batch of a plan as a block: as dark as it costs, its forward part faded
// where a backward follows.

let dearest = 1;
const colorOf = (cost) => colors.ramp[Math.round(63 * clamp(cost / dearest, 0, 1))];

// Block rectangles in pixels: one over all rows of a group, or one per rank where stages lie
// between them.
function* rectanglesOf(block, plan, width, height) {
  const left = xOf(block.begin, width);
  const right = xOf(block.end, width);
  const rowHeight = yOf(1, plan.rows, height) - yOf(0, plan.rows, height);
  const pieces = plan.stages === 1 ? 1 : block.group.size;
  for (let i = 0; i < pieces; ++i) {
    const row = block.row + i * plan.stages;
    const rows = block.rowSpan;
    const exactTop = yOf(row, plan.rows, height);
    // Of the rows that share a pixel the first is drawn.
    const isShadowed =
        rows * rowHeight < 1 && Math.floor(exactTop) === Math.floor(exactTop - rows * rowHeight);
    const top = rowHeight < 1 ? Math.floor(exactTop) : Math.round(exactTop);
    const bottom = Math.max(top + 1, Math.round(yOf(row + rows, plan.rows, height)));
    const gapX = right - left > 4 ? 1 : 0;
    const gapY = bottom - top > 6 ? 1 : 0;
    yield {
      x: left,
      y: top,
      w: Math.max(right - left - gapX, 0.4),
      h: bottom - top - gapY,
      isShadowed
    };
  }
}

function drawBlock(context, block, plan, width, height, clip) {
  for (const rect of rectanglesOf(block, plan, width, height)) {
    if (rect.isShadowed || rect.x > clip.right || rect.x + rect.w < clip.left || rect.y > height ||
        rect.y + rect.h < 0)
      continue;
    const left = Math.max(rect.x, clip.left);
    const w = Math.min(rect.x + rect.w, clip.right) - left;
    if (block.group.sequences.length === 0) {
      context.strokeStyle = colors.faint;
      context.lineWidth = 1;
      context.setLineDash([2, 2]);
      if (rect.h > 3)
        context.strokeRect(left + 0.5, rect.y + 0.5, Math.max(w - 1, 0.5), rect.h - 1);
      context.setLineDash([]);
      continue;
    }
    const parts = shadedParts(block, plan, rect, left, w, width);
    context.globalAlpha = plan.isInvalid ? 0.4 : 1;
    for (const part of parts) {
      context.fillStyle = part.shade.fill;
      context.fillRect(part.x, rect.y, part.w, rect.h);
    }
    context.globalAlpha = 1;
    if (plan.isInvalid) {
      context.fillStyle = colors.hatch;
      context.fillRect(left, rect.y, w, rect.h);
    } else {
      drawLabel(context, block, plan, {x: left, y: rect.y, w, h: rect.h}, parts);
    }
  }
}

// What is seen of a block between `left` and `left + w`: one colour, or two with a seam.
function shadedParts(block, plan, rect, left, w, width) {
  const shades = colorOf(block.group.cost_ns);
  const whole = (shade) => [{x: left, w, shade}];
  if (block.direction === 0 && plan.pass !== 'forward') return whole(shades.forward);
  if (block.direction !== -1 || rect.w < 6) return whole(shades.plain);
  // On a whole pixel: nothing shows through between the two.
  const seam = clamp(Math.round(xOf(block.seam, width)), left, left + w);
  return [
    {x: left, w: seam - left, shade: shades.seam},
    {x: seam, w: left + w - seam, shade: shades.plain}
  ].filter((part) => part.w > 0);
}

// In one ink: over the whole block, or the larger part where the parts need different ones.
function drawLabel(context, block, plan, rect, parts) {
  const isOneInk = parts.every((part) => part.shade.ink === parts[0].shade.ink);
  const place = isOneInk ? {x: rect.x, w: rect.w, shade: parts[0].shade} :
                           parts.reduce((widest, part) => (part.w > widest.w ? part : widest));
  if (rect.h < 10.5 || place.w < 16) return;
  const size = `×${block.group.size}`;
  const slot = plan.stages > 1 ? `${block.group.slot}${block.direction === 0 ? 'F' : 'B'}` : '';
  const candidates = plan.stages > 1 ? [`${slot} ${size}`, slot] : [
    `${size}  ${plural(block.group.sequences.length, 'sequence')}  ${
        timeText(block.group.cost_ns)}`,
    `${size}  ${timeText(block.group.cost_ns)}`, size
  ];
  context.font = font(Math.min(12, rect.h > 15 ? 11.5 : 9.5), 560);
  const text = candidates.find((each) => context.measureText(each).width + 10 <= place.w);
  if (!text) return;
  context.fillStyle = place.shade.ink;
  context.textAlign = 'left';
  context.fillText(text, place.x + 5, rect.y + rect.h / 2 + 0.5);
}
