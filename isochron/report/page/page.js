// Puts the page together for one step, and reacts to its controls.

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
  byId('step-choice').value = String(index);
  byId('previous-step').disabled = index === 0;
  byId('next-step').disabled = index === numSteps - 1;
  const after = plans[plans.length - 1];
  const before = plans.slice(0, -1).find(isSound) || null;
  drawHeading();
  drawBanners();
  drawFigures(after, before);
  drawComparison(before);
  buildLanes(before);
  drawLegend();
  redrawTimeline();
  drawCharts();
}

function addControls() {
  const choice = byId('step-choice');
  for (let i = 0; i < numSteps; ++i)
    choice.append(element('option', {value: String(i)}, `${i + 1} of ${numSteps}`));
  byId('steps').hidden = numSteps < 2;
  choice.addEventListener('change', () => showStep(Number(choice.value)));
  byId('previous-step').addEventListener('click', () => showStep(Number(choice.value) - 1));
  byId('next-step').addEventListener('click', () => showStep(Number(choice.value) + 1));
  for (const button of byId('themes').children) {
    button.addEventListener('click', () => {
      themeChoice = button.dataset.themeChoice;
      applyTheme();
    });
  }
  systemIsDark.addEventListener('change', applyTheme);
  byId('zoom-in').addEventListener('click', () => zoomTimes(0.6));
  byId('zoom-out').addEventListener('click', () => zoomTimes(1 / 0.6));
  byId('rows-in').addEventListener('click', () => zoomRows(0.5));
  byId('rows-out').addEventListener('click', () => zoomRows(2));
  byId('zoom-fit').addEventListener('click', fitView);
  let pending = 0;
  window.addEventListener('resize', () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redraw);
  });
}

addControls();
applyTheme();
showStep(0);
