// The timelines: one lane per plan or run, ranks from top to bottom, each of one or several lines.
//
// A lane draws {blocks, blocksOfRow, rows, ranks, lines, marks, step_ns, name}. How a block looks
// is the page's: rectanglesOf(block, plan, width, height) and drawBlock(..).

function laneHeight(plan, numLanes) {
  const most = (numLanes >= 3      ? 320 :
                    numLanes === 2 ? 420 :
                                     560) *
      (plan.lines.length > 1 ? 1.3 : 1);
  return Math.round(clamp(plan.rows * (numLanes >= 3 ? 26 : 34), 44, most));
}

// The canvas of a lane under its head, with pointer and keys.
function addPlot(lane, numLanes) {
  const {plan} = lane;
  const label =
      `Timeline of ${plan.name}: ${plural(plan.ranks, 'rank')}, ${timeText(plan.step_ns)}`;
  lane.canvas = element('canvas', {
    class: 'plot',
    tabIndex: 0,
    role: 'application',
    'aria-roledescription': 'timeline',
    'aria-label': label
  });
  lane.canvas.style.height = `${laneHeight(plan, numLanes)}px`;
  lane.announce = element('span', {class: 'visually-hidden', 'aria-live': 'polite'});
  lane.outlines = element('canvas', {class: 'outlines', 'aria-hidden': 'true'});
  lane.node.append(element('div', {class: 'plots'}, lane.canvas, lane.outlines), lane.announce);
  followPointer(lane);
  followKeys(lane);
}

// Puts lanes on the page, on one axis that ends at `last`. Those without a canvas have nothing to
// draw. What was zoomed to stays: the same share of the time and of the ranks.
function showLanes(all, last) {
  const detail = byId('detail');
  detail.hidden = true;
  byId('lanes').after(detail);  // out of a lane that goes
  fillWith(byId('lanes'), ...all.map((lane) => lane.node));
  lanes = all.filter((lane) => lane.canvas);
  byId('axis').hidden = lanes.length === 0;
  byId('timeline').closest('section').classList.toggle('bare', lanes.length === 0);
  const scale = Math.max(1, last) / lastTime;
  lastTime *= scale;
  Object.assign(view, {begin: view.begin * scale, end: view.end * scale});
}

// At most once a frame: wheels and pointers report more often.
let isRedrawPending = false;
function redrawTimeline() {
  if (isRedrawPending) return;
  isRedrawPending = true;
  requestAnimationFrame(() => {
    isRedrawPending = false;
    drawAxis();
    for (const lane of lanes) drawLane(lane);
  });
}

function drawRankNumbers(context, plan, height) {
  const lines = plan.lines.length;
  const rankHeight = yOf(lines, plan.rows, height) - yOf(0, plan.rows, height);
  const hasLineNames = lines > 1 && rankHeight / lines >= 11;
  let step = 1;
  while (step * rankHeight < 13) step *= 2;
  context.textAlign = 'right';
  for (let rank = 0; rank < plan.ranks; ++rank) {
    const top = yOf(rank * lines, plan.rows, height);
    if (top > height || top + rankHeight < 0) continue;
    if (lines > 1 && rank > 0 && rankHeight > 8) {
      context.fillStyle = colors.rule;
      context.fillRect(0, Math.round(top), 100000, 1);
    }
    const isNumbered = rank % step === 0;
    const middle =
        rankHeight >= 13 ? top + rankHeight / 2 : top + Math.min(6, (step * rankHeight) / 2);
    if (isNumbered && middle >= 5 && middle <= height - 4) {
      context.font = font(10.5);
      context.fillStyle = colors.muted;
      context.fillText(String(rank), gutter - (hasLineNames ? 26 : 9), middle);
    }
    if (hasLineNames) {
      plan.lines.forEach((name, line) => {
        context.font = font(9.5);
        context.fillStyle = colors.faint;
        context.fillText(name, gutter - 6, yOf(rank * lines + line + 0.5, plan.rows, height));
      });
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
    for (const mark of plan.marks) drawMark(context, mark, width, height, clip);
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

function drawMark(context, mark, width, height, clip) {
  const x = xOf(mark.time, width);
  if (x < clip.left || x > clip.right + 1) return;
  context.strokeStyle = mark.color();
  context.lineWidth = 1.5;
  context.setLineDash(mark.dash);
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

// What is drawn at a point; of blocks that lie in each other the inner one.
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
    const isInside = block.begin <= time && time < block.end;
    if (isInside || (best === null && block.end + slack >= time)) best = block;
  }
  return best;
}
