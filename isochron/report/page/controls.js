// The controls that every page has: step, colours, zoom.

// A step for each label; `show` is called with the index of the chosen one.
function addStepChooser(labels, show) {
  const choice = byId('step-choice');
  labels.forEach((label, i) => choice.append(element('option', {value: String(i)}, label)));
  byId('steps').hidden = labels.length < 2;
  choice.addEventListener('change', () => show(Number(choice.value)));
  byId('previous-step').addEventListener('click', () => show(Number(choice.value) - 1));
  byId('next-step').addEventListener('click', () => show(Number(choice.value) + 1));
}

function markChosenStep(index, count) {
  byId('step-choice').value = String(index);
  byId('previous-step').disabled = index <= 0;
  byId('next-step').disabled = index >= count - 1;
}

function addViewControls() {
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
    pending = requestAnimationFrame(() => {
      redraw();
      markScrolling();
    });
  });
}
