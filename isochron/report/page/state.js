// What every page has: its data, JSON in #report-data, and what is drawn at the moment. Names and
// reasons come from files of others: text reaches the page through textContent and canvas text alone,
// never as markup.

const reportData = JSON.parse(byId('report-data').textContent);
let lanes = [];
let redrawCharts = [];
let colors = {};
