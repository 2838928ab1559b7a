// Figures of plans or runs: cards, and a table with a column each.
//
// A metric is {name, note, value(column), text(value), parts(value), aside(column), delta, higher,
// key}: `key` ones are cards, `delta: 'relative'` ones are compared, and more is better where it is
// `higher`. The page says which columns have figures (hasFigures) and can be measured against
// (isSound), and which of them are about the same (isComparable).

function deltaOf(metric, column, before) {
  if (!before || before === column || metric.delta !== 'relative' || !isSound(column)) return null;
  if (!isComparable(column, before)) return null;
  const from = metric.value(before);
  const to = metric.value(column);
  if (!from || to === null) return null;
  const change = to / from - 1;
  const text = Math.abs(change) < 0.0005 ?
      '±0 %' :
      `${change < 0 ? '−' : '+'}${percentText(Math.abs(change))}`;
  const isBetter = metric.higher ? change > 0 : change < 0;
  return {text, kind: Math.abs(change) < 0.01 ? '' : isBetter ? 'better' : 'worse'};
}

function drawFigures(metrics, after, before) {
  fillWith(
      byId('figures'),
      ...metrics.filter((metric) => metric.key && after && hasFigures(after)).flatMap((metric) => {
        const value = metric.value(after);
        if (value === null) return [];
        const [number, unit] = metric.parts ? metric.parts(value) : [metric.text(value), ''];
        const shown = element('div', {class: isSound(after) ? 'value' : 'value void'}, number);
        if (unit) shown.append(element('small', {}, ` ${unit}`));
        const delta = element('div', {class: 'delta'});
        const change = deltaOf(metric, after, before);
        if (change)
          delta.append(
              element('span', {class: change.kind}, change.text),
              ` against ${shortName(before.name)}`);
        else if (before && metric.value(before) !== null)
          delta.append(`${metric.text(metric.value(before))} in ${shortName(before.name)}`);
        else if (metric.aside)
          delta.append(metric.aside(after));
        return [element(
            'div', {class: 'figure'}, element('div', {class: 'name'}, metric.name), shown, delta)];
      }));
}

// A row of the table: a value of each column and, beside it, its change.
const comparisonRow = (name, note, cells) =>
    element('tr', {}, element('th', {scope: 'row', title: note}, name), ...cells.flat());
const plainCells = (columns, content) =>
    columns.map((column) => [element('td', {class: 'value'}, content(column)), element('td', {
                               class: 'change'
                             })]);

function metricCells(columns, metric, before) {
  return columns.map((column) => {
    const value = hasFigures(column) ? metric.value(column) : null;
    const change = value === null ? null : deltaOf(metric, column, before);
    return [
      element(
          'td', {class: value === null || !isSound(column) ? 'value void' : 'value'},
          value === null ? '–' : metric.text(value)),
      element('td', {class: `change ${change ? change.kind : ''}`}, change ? change.text : '')
    ];
  });
}

function drawComparison(columns, metrics, before, firstRows = []) {
  byId('comparison-heading').textContent = columns.length > 1 ? 'Side by side' : 'In numbers';
  const head = element(
      'tr', {},
      element('th', {scope: 'col'}, element('span', {class: 'visually-hidden'}, 'Quantity')),
      ...columns.flatMap((column) => [element('th', {scope: 'col'}, column.name), element('td', {
                                        class: 'change'
                                      })]));
  fillWith(
      byId('comparison'), element('caption', {class: 'visually-hidden'}, 'In numbers'),
      element('thead', {}, head),
      element(
          'tbody', {}, ...firstRows,
          ...metrics.map(
              (metric) => comparisonRow(
                  metric.name, metric.note || '', metricCells(columns, metric, before)))));
  markScrolling();
}

const banner = (kind, title, text) => element(
    'div', {class: `banner ${kind}`, role: kind ? 'note' : 'alert'}, element('strong', {}, title),
    element('span', {}, text));

// Columns of one name are numbered: the page tells them apart by their names alone.
function withOwnNames(columns) {
  const names = columns.map((column) => column.name);
  return columns.map((column, i) => {
    const isOnly = names.indexOf(column.name) === names.lastIndexOf(column.name);
    const number = names.slice(0, i + 1).filter((name) => name === column.name).length;
    return isOnly ? column : {...column, name: `${column.name} (${number})`};
  });
}

// Whether the table is wider than the screen, which a phone does not show.
function markScrolling() {
  const frame = byId('comparison').parentElement;
  const isWider = frame.scrollWidth > frame.clientWidth;
  byId('comparison-hint').hidden = !isWider;
  frame.tabIndex = isWider ? 0 : -1;
}

// What the columns are called together.
function titleOf(names) {
  return names.length === 1 ? names[0] :
      names.length <= 3 ? `${names[names.length - 1]} against ${names.slice(0, -1).join(' and ')}` :
                          `${names.length} side by side`;
}
