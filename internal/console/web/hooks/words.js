/** What a webhook and its deliveries are like, in words. Pure. */

import { several } from '../lib/format.js';

/**
 * @typedef {object} Stat
 * @property {number} delivered
 * @property {number} failed
 * @property {number} retried
 * @property {number} skipped
 * @property {number} pending
 * @property {number} bytes
 * @property {number} lag seconds
 * @property {boolean} failing
 */

/** @typedef {{name: string, path: string, url: string, events: string[], created: string, paused?: string, secrets: number, secret?: string, stat?: Stat}} Hook */
/** @typedef {{id: string, at: string, try: number, event?: string, path?: string, status?: number, problem?: string, answer?: string, ms: number, replay?: boolean}} Delivery */

export const events = ['create', 'update', 'delete'];

/** Why a hook is paused. */
const reasons = new Map([['operator', 'by an operator'], ['gone', 'its receiver answered 410']]);

/**
 * The state of a hook: a word, and why.
 * @param {Hook} hook
 * @returns {{state: 'running' | 'failing' | 'paused' | 'no secret', why: string}}
 */
export function stateOf(hook) {
  if (hook.paused) return { state: 'paused', why: reasons.get(hook.paused) ?? hook.paused };
  if (hook.secrets === 0) return { state: 'no secret', why: 'nothing is sent until it has a new one' };
  if (hook.stat?.failing) return { state: 'failing', why: 'the last deliveries have failed' };
  return { state: 'running', why: '' };
}

/**
 * How long the oldest delivery has been waiting.
 * @param {number} seconds
 */
export function lag(seconds) {
  if (seconds < 0.05) return '–';
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  /** @type {[number, string][]} */
  const units = [[86_400, 'd'], [3600, 'h'], [60, 'min']];
  const [size, word] = units.find(([size]) => seconds >= 2 * size) ?? [1, 's'];
  return `${Math.round(seconds / size)} ${word}`;
}

/** @param {Delivery} one */
export function outcome(one) {
  if (!one.status) return { good: false, words: 'no answer' };
  return { good: one.status >= 200 && one.status <= 299, words: String(one.status) };
}

/** What tells a delivery from others: the same is made again and again. @param {Delivery} one */
export function attempt(one) {
  return `${one.id} ${one.at} ${one.try}`;
}

/** Whether a delivery can be made again: one that has a change. @param {Delivery} one */
export function repeatable(one) {
  return one.id.startsWith('msg_');
}

/**
 * What a form asks for, or what is wrong with it.
 * @param {Record<string, string>} texts
 */
export function request(texts) {
  const chosen = events.filter((name) => texts[name] === 'true');
  const [name, path, url] = ['Name', 'Path', 'URL'].map((field) => (texts[field] ?? '').trim());
  if (!name) throw new Error('Give it a name.');
  if (!path) throw new Error('Which locations? Give a path, such as /orders/$id.');
  if (!url) throw new Error('Give the URL of the receiver.');
  if (chosen.length === 0) throw new Error('Choose at least one event.');
  return { name, path, url, events: chosen };
}

/** @param {Stat} stat */
export function waiting(stat) {
  return stat.pending === 0 ? 'nothing' : `${several(stat.pending, 'delivery', 'deliveries')} or more`;
}
