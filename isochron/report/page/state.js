// Draws the report from the JSON in #report-data. Names and reasons come from files of others: text
// reaches the page through textContent and canvas text alone, never as markup.

const byId = (id) => document.getElementById(id);
const entries = JSON.parse(byId('report-data').textContent).entries;
const numSteps = Math.max(0, ...entries.map((entry) => entry.steps.length));
let plans = [];  // of the chosen step, one per entry
let lanes = [];
let redrawCharts = [];
let colors = {};
let shownStep = 0;
