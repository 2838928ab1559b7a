// Puts the page of runs together.

function redraw() {
  drawLegend();
  redrawTimeline();
  for (const draw of redrawCharts) draw();
}

function showStep(index) {
  if (index < 0 || index >= steps.length) return;
  shownStep = index;
  markChosenStep(index, steps.length);
  buildLanes();
  redraw();
}

function addScaleChoice() {
  const hasBoth = runs.some((run) => run.figures.scale !== null);
  byId('scales').parentElement.hidden = !hasBoth;
  for (const button of byId('scales').children) {
    button.addEventListener('click', () => {
      isScaled = button.dataset.scaleChoice === 'measured';
      for (const each of byId('scales').children)
        each.setAttribute('aria-pressed', String(each === button));
      if (steps.length > 0) showStep(shownStep);
      drawCharts();
    });
  }
}

// p and n choose the previous and the next step, wherever the focus is.
function followStepKeys() {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLSelectElement) return;
    if (event.key === 'p') showStep(shownStep - 1);
    if (event.key === 'n') showStep(shownStep + 1);
  });
}

document.body.classList.toggle('single', runs.length === 1);
document.body.classList.add('runs');
addStepChooser(steps.map(({step, why}) => integerText(step) + (why ? ` (${why})` : '')), showStep);
addViewControls();
addScaleChoice();
followStepKeys();
byId('other-curves-section').addEventListener('toggle', () => {
  for (const draw of redrawCharts) draw();
});
drawHeading();
drawVerdict();
drawBanners();
drawFigures(metrics, runs[runs.length - 1], runs.length > 1 ? runs[0] : null);
drawComparison(runs, metrics, runs.length > 1 ? runs[0] : null);
drawConfigs();
applyTheme();
drawCharts();
byId('timeline-section').hidden = steps.length === 0;
showStep(0);
