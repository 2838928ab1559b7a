// Colours of the theme, for canvases: cost from cheap to dear, the hatch of what is invalid.

function channels(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

// 64 colours from cheap to dear, each with a colour for text on it.
function costRamp(style) {
  const stops = [0, 1, 2, 3, 4].map((i) => channels(style.getPropertyValue(`--ramp-${i}`).trim()));
  return Array.from({length: 64}, (_, i) => {
    const place = (i / 63) * (stops.length - 1);
    const left = Math.min(stops.length - 2, Math.floor(place));
    const mix = stops[left].map((from, k) => from + (stops[left + 1][k] - from) * (place - left));
    const isLight = 0.299 * mix[0] + 0.587 * mix[1] + 0.114 * mix[2] > 138;
    return {fill: `rgb(${mix.map(Math.round).join(',')})`, ink: isLight ? '#0c1a2b' : '#ffffff'};
  });
}

function hatchPattern(color) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const context = tile.getContext('2d');
  context.strokeStyle = color;
  context.lineWidth = 1.6;
  for (const shift of [-8, 0, 8]) {
    context.beginPath();
    context.moveTo(shift - 1, 9);
    context.lineTo(shift + 9, -1);
    context.stroke();
  }
  return context.createPattern(tile, 'repeat');
}

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  colors = {ramp: costRamp(style), hatch: hatchPattern(value('hatch'))};
  for (const name
           of ['surface', 'text', 'muted', 'faint', 'rule', 'accent', 'bar', 'idle', 'bound', 'bad',
               'good', 'forward', 'backward', 'reduce', 'optimizer', 'other', 'sans']) {
    colors[name] = value(name);
  }
  for (const kind of ['forward', 'backward', 'reduce', 'optimizer', 'other'])
    colors[`${kind}-ink`] = value(`${kind}-ink`);
  colors.ruleStrong = value('rule-strong');
  colors.barSoft = value('bar-soft');
}

const systemIsDark = window.matchMedia('(prefers-color-scheme: dark)');
let themeChoice = 'auto';
function applyTheme() {
  const isDark = themeChoice === 'dark' || (themeChoice === 'auto' && systemIsDark.matches);
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  for (const button of byId('themes').children) {
    button.setAttribute('aria-pressed', String(button.dataset.themeChoice === themeChoice));
  }
  readColors();
  redraw();
}
