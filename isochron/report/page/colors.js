// Colours of the theme, for canvases: cost from cheap to dear, the hatch of what is invalid.

function channels(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

const mixed = (from, to, share) => from.map((value, i) => value + (to[i] - value) * share);

// Relative luminance as WCAG has it.
function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
// Black or white, whichever can be read better: the contrast is at least 4.58.
const inkOn = (rgb) => (luminance(rgb) > 0.179 ? '#000000' : '#ffffff');

// A colour to fill with, and one for text on it.
const shadeOf = (rgb) => ({fill: `rgb(${rgb.map(Math.round).join(',')})`, ink: inkOn(rgb)});

// 64 colours from cheap to dear, each plain, as the forward part of a block, and as forward alone.
function costRamp(style) {
  const surface = channels(style.getPropertyValue('--surface').trim());
  const stops = [0, 1, 2, 3, 4].map((i) => channels(style.getPropertyValue(`--ramp-${i}`).trim()));
  return Array.from({length: 64}, (_, i) => {
    const place = (i / 63) * (stops.length - 1);
    const left = Math.min(stops.length - 2, Math.floor(place));
    const color = mixed(stops[left], stops[left + 1], place - left);
    return {
      plain: shadeOf(color),
      seam: shadeOf(mixed(color, surface, 0.13)),
      forward: shadeOf(mixed(color, surface, 0.36))
    };
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

const paleShare = 0.5;  // of the colour of what is planned but was not measured, over the lane

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  colors = {ramp: costRamp(style), hatch: hatchPattern(value('hatch'))};
  for (const name
           of ['surface', 'text', 'muted', 'faint', 'rule', 'accent', 'bar', 'idle', 'bound', 'bad',
               'good', 'forward', 'backward', 'reduce', 'optimizer', 'other', 'sans']) {
    colors[name] = value(name);
  }
  for (const kind of ['forward', 'backward', 'reduce', 'optimizer', 'other']) {
    const color = channels(colors[kind]);
    colors[`${kind}-ink`] = inkOn(color);
    colors[`${kind}-pale-ink`] = inkOn(mixed(channels(colors.idle), color, paleShare));
  }
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
