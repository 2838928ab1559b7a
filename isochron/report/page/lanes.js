// The timelines: one lane per plan, ranks (or stages of ranks) from top to bottom.

let dearest = 1;
const colorOf = (cost) => colors.ramp[Math.round(63 * clamp(cost / dearest, 0, 1))];

function laneHeight(plan) {
  const most = plans.length >= 3 ? 320 : plans.length === 2 ? 420 : 560;
  return Math.round(clamp(plan.rows * (plans.length >= 3 ? 26 : 34), 44, most));
}

// Block rectangles in pixels: one over all rows of a group, or one per rank where stages lie
// between them.
function* rectanglesOf(block, plan, width, height) {
  const left = xOf(block.begin, width);
  const right = xOf(block.end, width);
  const rowHeight = yOf(1, plan.rows, height) - yOf(0, plan.rows, height);
  const pieces = plan.stages === 1 ? 1 : block.group.size;
  for (let i = 0; i < pieces; ++i) {
    const row = (block.group.first + i) * plan.stages + block.stage;
    const rows = plan.stages === 1 ? block.group.size : 1;
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
    const color = colorOf(block.group.cost_ns);
    context.globalAlpha = plan.isInvalid ? 0.4 : 1;
    context.fillStyle = color.fill;
    context.fillRect(left, rect.y, w, rect.h);
    context.globalAlpha = 1;
    drawForwardShade(context, block, rect, left, w, width);
    if (plan.isInvalid) {
      context.fillStyle = colors.hatch;
      context.fillRect(left, rect.y, w, rect.h);
    } else {
      drawLabel(context, block, plan, {x: left, y: rect.y, w, h: rect.h}, color.ink);
    }
  }
}

function drawForwardShade(context, block, rect, left, w, width) {
  if (block.direction === 1) return;
  const end = block.seam === null ? left + w : Math.min(xOf(block.seam, width), left + w);
  if (end <= left) return;
  if (block.direction === -1 && rect.w < 6) return;
  context.globalAlpha = block.direction === -1 ? 0.13 : 0.36;
  context.fillStyle = colors.surface;
  context.fillRect(left, rect.y, end - left, rect.h);
  context.globalAlpha = 1;
}

function drawLabel(context, block, plan, rect, ink) {
  if (rect.h < 10.5 || rect.w < 16) return;
  const size = `×${block.group.size}`;
  const slot = plan.stages > 1 ? `${block.group.slot}${block.direction === 0 ? 'F' : 'B'}` : '';
  const candidates = plan.stages > 1 ? [`${slot} ${size}`, slot] : [
    `${size}  ${plural(block.group.sequences.length, 'sequence')}  ${
        timeText(block.group.cost_ns)}`,
    `${size}  ${timeText(block.group.cost_ns)}`, size
  ];
  context.font = font(Math.min(12, rect.h > 15 ? 11.5 : 9.5), 560);
  const text = candidates.find((each) => context.measureText(each).width + 10 <= rect.w);
  if (!text) return;
  context.fillStyle = ink;
  context.textAlign = 'left';
  context.fillText(text, rect.x + 5, rect.y + rect.h / 2 + 0.5);
}

function drawRankNumbers(context, plan, height) {
  const rankHeight = yOf(plan.stages, plan.rows, height) - yOf(0, plan.rows, height);
  let step = 1;
  while (step * rankHeight < 13) step *= 2;
  context.textAlign = 'right';
  for (let rank = 0; rank < plan.ranks; ++rank) {
    const top = yOf(rank * plan.stages, plan.rows, height);
    if (top > height || top + rankHeight < 0) continue;
    if (plan.stages > 1 && rank > 0 && rankHeight > 8) {
      context.fillStyle = colors.rule;
      context.fillRect(0, Math.round(top), 100000, 1);
    }
    const isNumbered = rank % step === 0;
    const middle =
        rankHeight >= 13 ? top + rankHeight / 2 : top + Math.min(6, (step * rankHeight) / 2);
    if (isNumbered && middle >= 5 && middle <= height - 4) {
      context.font = font(10.5);
      context.fillStyle = colors.muted;
      context.fillText(
          String(rank), gutter - (plan.stages > 1 && rankHeight / plan.stages >= 11 ? 26 : 9),
          middle);
    }
    if (plan.stages > 1 && rankHeight / plan.stages >= 11) {
      for (let stage = 0; stage < plan.stages; ++stage) {
        const y = yOf(rank * plan.stages + stage + 0.5, plan.rows, height);
        context.font = font(9.5);
        context.fillStyle = colors.faint;
        context.fillText(`s${stage}`, gutter - 6, y);
      }
    }
  }
}

function drawLane(lane) {
  const {plan, canvas} = lane;
  paint(canvas, (context, width, height) => {
    const clip = {left: gutter, right: width - margin + 1};
    const end = clamp(xOf(plan.step_ns, width), clip.left, clip.right);
    const begin = Math.max(xOf(0, width), clip.left);
    context.fillStyle = colors.idle;
    context.fillRect(begin, 0, Math.max(0, end - begin), height);
    context.fillStyle = colors.rule;
    for (const time of ticks(view.begin, view.end, plotWidth(width), 92).found) {
      context.fillRect(Math.round(xOf(time, width)), 0, 1, height);
    }
    drawRankNumbers(context, plan, height);
    for (const block of plan.blocks) {
      if (block.begin <= view.end && block.end >= view.begin)
        drawBlock(context, block, plan, width, height, clip);
    }
    drawMark(context, plan.step_ns, width, height, clip, colors.text, []);
    if (plan.bound_ns > 0)
      drawMark(context, plan.bound_ns, width, height, clip, colors.bound, [4, 3]);
  });
  drawOutlines(lane);
}

// On a canvas of their own: pointing at a block draws no other block again.
function drawOutlines(lane) {
  paint(lane.outlines, (context, width, height) => {
    const clip = {left: gutter, right: width - margin + 1};
    for (const block of [lane.hovered, lane.selected]) {
      if (block) outlineBlock(context, block, lane.plan, width, height, clip);
    }
  });
}

function drawMark(context, time, width, height, clip, color, dash) {
  const x = xOf(time, width);
  if (x < clip.left || x > clip.right + 1) return;
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.setLineDash([]);
}

function outlineBlock(context, block, plan, width, height, clip) {
  context.strokeStyle = colors.text;
  context.lineWidth = 2;
  for (const rect of rectanglesOf(block, plan, width, height)) {
    const left = Math.max(rect.x, clip.left);
    const right = Math.min(rect.x + rect.w, clip.right);
    if (right > left)
      context.strokeRect(left, rect.y, Math.max(right - left, 2), Math.max(rect.h, 2));
  }
}

function blockAt(lane, x, y) {
  const {plan, canvas} = lane;
  const width = canvas.clientWidth;
  if (x < gutter || x > width - margin + 1) return null;
  const row =
      Math.floor((view.top + (y / canvas.clientHeight) * (view.bottom - view.top)) * plan.rows);
  const slack = (1.5 / plotWidth(width)) * (view.end - view.begin);  // blocks thinner than a pixel
  const time = timeAt(x, width);
  let best = null;
  for (const block of plan.blocksOfRow[row] || []) {
    if (block.begin - slack > time) break;
    if (block.end + slack >= time) best = block;
    if (block.begin <= time && time < block.end) return block;
  }
  return best;
}
