/**
 * Moments, as addresses and people write them: nothing stands for now. And commits, as the
 * history of a node tells them.
 */

import { parse, print } from '../lib/json.js';

/** The spans that the slider has, with their names. @type {[string, number][]} */
export const spans = [['Last 10 minutes', 600_000], ['Last hour', 3_600_000], ['Last day', 86_400_000], ['Last week', 604_800_000], ['Last 30 days', 2_592_000_000]];

/** How many steps the slider has. */
export const steps = 1000;

/**
 * Reads the moment of an address: a time of RFC 3339, or milliseconds since 1970. It is 0 for
 * now, and NaN for what is no time.
 * @param {string} text
 */
export function read(text) {
  if (text === '') return 0;
  const time = /^[0-9]+$/.test(text) ? Number(text) : /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(text) : NaN;
  return time > 0 && time <= 8.64e15 ? time : NaN;
}

/**
 * Writes a moment for an address.
 * @param {number} time
 */
export function write(time) {
  return time === 0 ? '' : new Date(time).toISOString();
}

/**
 * The moment as a field for the local time takes it.
 * @param {number} time
 */
export function local(time) {
  const date = new Date(time);
  const two = (/** @type {number} */ value, length = 2) => String(value).padStart(length, '0');
  return `${two(date.getFullYear(), 4)}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}

/**
 * The shortest span that reaches back to a moment.
 * @param {number} time
 * @param {number} now
 */
export function spanOf(time, now) {
  return spans.find(([, length]) => time >= now - length)?.[1] ?? Math.max(spans.at(-1)?.[1] ?? 0, now - time);
}

/**
 * Where a moment is on a slider that ends now.
 * @param {number} time 0 for now
 * @param {number} now
 * @param {number} span
 */
export function stepOf(time, now, span) {
  if (time === 0) return steps;
  return Math.max(0, Math.min(steps, Math.round(steps * (1 - (now - time) / span))));
}

/**
 * The moment at a step of a slider that ends now.
 * @param {number} step
 * @param {number} now
 * @param {number} span
 */
export function timeOf(step, now, span) {
  return step >= steps ? 0 : Math.round(now - span * (1 - step / steps));
}

/**
 * Who has made a commit, for people.
 * @param {{by: string, uid?: string} | undefined} who
 */
export function author(who) {
  if (!who) return 'not known';
  const words = /** @type {Record<string, string>} */ ({ secret: 'app secret', ondisconnect: 'on disconnect', uid: 'user' });
  return `${words[who.by] ?? who.by}${who.uid ? ' ' + who.uid : ''}`;
}

/** The text of a node in export form, which may be cut. @typedef {{value: string, cut?: boolean}} Seen */

/**
 * What a text of a node says of a place below it. What cannot be told apart stays as it is.
 * @param {Seen | undefined} seen
 * @param {string[]} keys
 * @returns {Seen | undefined}
 */
export function below(seen, keys) {
  if (!seen || seen.cut || keys.length === 0) return seen;
  try {
    let value = parse(seen.value);
    for (const key of keys) {
      const child = 'children' in value ? value.children.find(([name]) => name === key)?.[1] : undefined;
      if (!child) return { value: 'null' };
      value = child;
    }
    return { value: print(value) };
  } catch {
    return seen;
  }
}
