/**
 * Keys and their order, as the server has it: keys that are written like integers of
 * 32 bits come first, by value, then the others by their UTF-16 units. And the order of
 * positions in the log.
 */

const integer = /^-?[0-9]+$/;

/**
 * The number that a key is ordered by, or null if it is ordered as text.
 * @param {string} key
 * @returns {number | null}
 */
export function integerOf(key) {
  if (!integer.test(key)) return null;
  const value = Number(key);
  return value >= -2147483648 && value <= 2147483647 ? value : null;
}

/**
 * Compares two keys: negative if the first comes first.
 * @param {string} a
 * @param {string} b
 * @returns {number}
 */
export function compare(a, b) {
  const [x, y] = [integerOf(a), integerOf(b)];
  if (x !== null && y !== null) return x - y || a.length - b.length || order(a, b);
  if (x !== null) return -1;
  if (y !== null) return 1;
  return order(a, b);
}

/** @param {string} a @param {string} b */
function order(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Says what is wrong with a key, or returns an empty text.
 * @param {string} key
 * @returns {string}
 */
export function wrong(key) {
  if (key === '') return 'A key cannot be empty.';
  if (/[.$#[\]/\u0000-\u001f\u007f]/.test(key)) return 'A key cannot contain . $ # [ ] / or control characters.';
  if (new TextEncoder().encode(key).length > 768) return 'A key has at most 768 bytes.';
  return '';
}

/** A range of keys, both ends included; undefined is open. @typedef {{from?: string, to?: string}} Range */

/**
 * The ranges that hold all keys with a prefix, in order. They may hold others as
 * well, because integers are ordered by value.
 * @param {string} prefix
 * @returns {Range[]}
 */
export function prefixRanges(prefix) {
  if (prefix === '') return [{}];
  const text = { from: integer.test(prefix) && integerOf(prefix) !== null ? prefix + ' ' : prefix, to: prefix + '\uffff' };
  if (!/^-?[0-9]*$/.test(prefix)) return [text];
  return [...integerRanges(prefix), text];
}

/** @param {string} prefix @returns {Range[]} */
function integerRanges(prefix) {
  const sign = prefix.startsWith('-') ? -1 : 1;
  const digits = prefix.replace('-', '');
  if (digits === '' || digits.startsWith('0')) {
    return [sign < 0 ? { from: '-2147483648', to: '-0' } : { from: '0', to: '2147483647' }];
  }
  /** @type {Range[]} */
  const ranges = [];
  const limit = sign < 0 ? 2147483648 : 2147483647;
  for (let low = Number(digits), high = low; low <= limit; low = low * 10, high = high * 10 + 9) {
    const near = String(sign * low);
    const far = String(sign * Math.min(high, limit));
    // Leading zeros make a key longer, and later among those of one value.
    ranges.push(sign < 0 ? { from: far, to: near } : { from: near, to: far });
  }
  return sign < 0 ? ranges.reverse() : ranges;
}

/**
 * Compares two positions such as 5c1e-1812. Those of different epochs cannot be
 * compared: the second counts as newer.
 * @param {string | undefined} a
 * @param {string | undefined} b
 */
export function comparePositions(a, b) {
  if (!a || !b) return -1;
  const [i, j] = [a.lastIndexOf('-'), b.lastIndexOf('-')];
  if (a.slice(0, i) !== b.slice(0, j)) return -1;
  const [x, y] = [BigInt('0' + a.slice(i + 1)), BigInt('0' + b.slice(j + 1))];
  return x < y ? -1 : x > y ? 1 : 0;
}
