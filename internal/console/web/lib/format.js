/** Numbers, sizes and times as people read them. */

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** @param {number} value */
export function count(value) {
  return whole.format(value);
}

/**
 * @param {number} value
 * @param {string} word
 */
export function several(value, word, many = word + 's') {
  return `${count(value)} ${value === 1 ? word : many}`;
}

/** @param {number} value a number of bytes */
export function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** @param {number} value milliseconds */
export function millis(value) {
  if (value < 1) return `${value.toFixed(2)} ms`;
  return value < 1000 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : `${(value / 1000).toFixed(1)} s`;
}

/** @param {number | string | Date} time */
export function clock(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleTimeString('en-GB');
}

/** @param {number | string | Date} time */
export function moment(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  const day = date.toDateString() === new Date().toDateString() ? 'today' : date.toLocaleDateString('en-CA');
  return `${day} ${clock(date)}`;
}

/** @param {number} seconds */
export function ago(seconds) {
  /** @type {[number, string][]} */
  const units = [[86_400, 'day'], [3600, 'hour'], [60, 'minute']];
  const [size, word] = units.find(([size]) => seconds >= 1.5 * size) ?? [1, 'second'];
  return `${several(Math.round(seconds / size), word)} ago`;
}

/**
 * @param {string} text
 * @param {number} length
 */
export function cut(text, length) {
  return text.length > length ? text.slice(0, length - 1) + '…' : text;
}
