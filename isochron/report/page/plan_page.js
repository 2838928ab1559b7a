// Puts the page of plans together for one step.

function redraw() {
  if (plans.length === 0) return;
  drawLegend();
  redrawTimeline();
  for (const draw of redrawCharts) draw();
}

function showStep(index) {
  plans = entries.map((entry) => preparedPlan(entry, index)).filter((plan) => plan !== null);
  if (plans.length === 0) return;
  shownStep = index;
  document.body.classList.toggle('single', plans.length === 1);
  markChosenStep(index, numSteps);
  const after = plans[plans.length - 1];
  const before =
      plans.slice(0, -1).find((plan) => isSound(plan) && isComparable(plan, after)) || null;
  drawHeading();
  drawBanners();
  drawFigures(metrics, after, before);
  drawComparison(plans, metrics, before, planRows());
  buildLanes(before);
  drawLegend();
  redrawTimeline();
  drawCharts();
}

addStepChooser(Array.from({length: numSteps}, (_, i) => `${i + 1} of ${numSteps}`), showStep);
addViewControls();
applyTheme();
showStep(0);
drawAllSteps();
