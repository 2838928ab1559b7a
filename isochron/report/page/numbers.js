// Numbers as people read them.

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0);
const integerText = (value) => Math.round(value).toLocaleString('en-US');
const percentText = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const idleText = (share) => percentText(share, share < 0.01 ? 2 : 1);
const plural = (count, one, many = `${one}s`) =>
    `${integerText(count)} ${count === 1 ? one : many}`;

function scaledText(value, scales) {
  if (value === 0) return ['0', ''];
  const [factor, unit] =
      scales.find(([size]) => Math.abs(value) >= size) || scales[scales.length - 1];
  const scaled = value / factor;
  const size = Math.abs(scaled);
  const digits = size >= 1000 || (factor === 1 && Number.isInteger(value)) ? 0 :
      size >= 100                                                          ? 1 :
      size >= 10                                                           ? 2 :
                                                                             3;
  return [
    scaled.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits}),
    unit
  ];
}
const clockScales = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const plainScales = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];
const byteScales =
    [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];
// hasClock() of the page: whether its times are nanoseconds.
const timeParts = (ns) => scaledText(ns, hasClock() ? clockScales : plainScales);
const byteParts = (bytes) => scaledText(bytes, byteScales);
const join = ([number, unit]) => (unit ? `${number} ${unit}` : number);
const timeText = (ns) => join(timeParts(ns));
const bytesText = (bytes) => join(byteParts(bytes));
// Both ends of a long name: its folder and its ending.
const shortName = (name, most = 40) => {
  const half = Math.floor((most - 1) / 2);
  return name.length <= most ? name : `${name.slice(0, half)}…${name.slice(-half)}`;
};
const rangeText = (first, size) =>
    (size === 1 ? `rank ${first}` : `ranks ${first}–${first + size - 1}`);
