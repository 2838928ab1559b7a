// Pointer and keys on a timeline.

function select(lane, block) {
  for (const each of lanes) each.selected = each === lane ? block : null;
  lanes.forEach(drawOutlines);
}

function followPointer(lane) {
  const {canvas} = lane;
  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    if (!event.isPrimary || event.button !== 0) return;
    drag = {x: event.clientX, y: event.clientY, ...view, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointerup', (event) => {
    if (!event.isPrimary) return;
    const wasClick = drag && !drag.moved;
    drag = null;
    canvas.classList.remove('dragging');
    if (!wasClick) return;
    const block = blockAt(lane, event.offsetX, event.offsetY);
    if (!block) return closeDetail();
    select(lane, block);
    openDetail(lane, block);
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
    canvas.classList.remove('dragging');
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!event.isPrimary) return;
    if (drag) return dragTo(event);
    const block = blockAt(lane, event.offsetX, event.offsetY);
    canvas.classList.toggle('over', block !== null);
    if (block !== lane.hovered) {
      lane.hovered = block;
      drawOutlines(lane);
    }
    if (block)
      showBlockTip(lane, block, event.clientX, event.clientY);
    else
      hideTip();
  });
  function dragTo(event) {
    const dx = event.clientX - drag.x;
    const dy = event.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) < 4 && !drag.moved) return;
    drag.moved = true;
    canvas.classList.add('dragging');
    hideTip();
    const times = (-dx / plotWidth(canvas.clientWidth)) * (drag.end - drag.begin);
    const rows = (-dy / canvas.clientHeight) * (drag.bottom - drag.top);
    setTimes(drag.begin + times, drag.end + times);
    setRows(drag.top + rows, drag.bottom + rows);
  }
  canvas.addEventListener('pointerleave', () => {
    lane.hovered = null;
    hideTip();
    drawOutlines(lane);
  });
  canvas.addEventListener('dblclick', (event) => {
    const block = blockAt(lane, event.offsetX, event.offsetY);
    if (block)
      setTimes(
          block.begin - (block.end - block.begin) / 4, block.end + (block.end - block.begin) / 4);
  });
  canvas.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey) {
      zoomTimes(
          Math.exp(clamp(event.deltaY, -200, 200) / 250),
          timeAt(event.offsetX, canvas.clientWidth));
    } else if (event.altKey) {
      const share = event.offsetY / canvas.clientHeight;
      zoomRows(
          Math.exp(clamp(event.deltaY, -200, 200) / 250),
          view.top + share * (view.bottom - view.top));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      panBy((event.deltaX || event.deltaY) / plotWidth(canvas.clientWidth), 0);
    } else {
      return;  // the page scrolls
    }
    event.preventDefault();
  }, {passive: false});
}

// The neighbour of a block: the next one in time on its first row, or what runs beside it.
function neighbour(lane, block, key) {
  const {plan} = lane;
  if (!block) return plan.blocks[0] || null;
  const {row} = block;
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const others = plan.blocksOfRow[row];
    return others[others.indexOf(block) + (key === 'ArrowRight' ? 1 : -1)] || block;
  }
  const others = plan.blocksOfRow[key === 'ArrowDown' ? row + block.rowSpan : row - 1];
  if (!others || others.length === 0) return block;
  const middle = (block.begin + block.end) / 2;
  return others.find((each) => each.end > middle) || others[others.length - 1];
}

function bringIntoView(block, plan) {
  const span = view.end - view.begin;
  if (block.begin < view.begin || block.end > view.end)
    setTimes(block.begin - span / 8, block.begin + (7 * span) / 8);
  const row = block.row / plan.rows;
  const tall = view.bottom - view.top;
  if (row < view.top || row + 1 / plan.rows > view.bottom) setRows(row - tall / 2, row + tall / 2);
}

function followKeys(lane) {
  lane.canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      '+': () => zoomTimes(0.6),
      '=': () => zoomTimes(0.6),
      '-': () => zoomTimes(1 / 0.6),
      0: fitView,
      Home: fitView,
      Escape: () => {
        hideTip();
        closeDetail();
      },
      Enter: () => lane.selected && openDetail(lane, lane.selected)
    };
    const pans =
        {ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, -0.2], ArrowDown: [0, 0.2]};
    if (event.key in pans && event.shiftKey)
      panBy(...pans[event.key]);
    else if (event.key in pans)
      walk(event.key);
    else if (event.key in actions)
      actions[event.key]();
    else
      return;
    event.preventDefault();
  });
  lane.canvas.addEventListener('blur', hideTip);
  function walk(key) {
    const block = neighbour(lane, lane.selected, key);
    if (!block) return;
    select(lane, block);
    bringIntoView(block, lane.plan);
    const box = lane.canvas.getBoundingClientRect();
    showBlockTip(
        lane, block, box.left + clamp(xOf(block.begin, box.width), gutter, box.width),
        box.top + yOf(block.row + 1, lane.plan.rows, box.height));
    lane.announce.textContent = blockWords(block, lane.plan);
  }
}
