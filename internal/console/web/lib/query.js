/**
 * Queries: the form, the REST parameters, and the order of the result.
 */

import { parse } from './json.js';
import { compare as compareKeys } from './keys.js';

/** @typedef {import('./json.js').Json} Json */
/** @typedef {Record<'Order by' | 'Start at' | 'End at' | 'Equal to' | 'Limit' | 'Count', string> & {'Start after'?: string, 'End before'?: string}} Fields */

/** The bounds of the form and their parameters. Those that are not in every form are there if an address has them. */
const bounds = /** @type {const} */ ([['Start at', 'startAt'], ['Start after', 'startAfter'], ['End at', 'endAt'], ['End before', 'endBefore'], ['Equal to', 'equalTo']]);

/**
 * The REST parameters for what a form says.
 * @param {Fields} fields
 * @returns {[string, string][]}
 */
export function toParams(fields) {
  /** @type {[string, string][]} */
  const params = [['orderBy', JSON.stringify(fields['Order by'].trim().replace(/^\/+|\/+$/g, '') || '$key')]];
  for (const [label, name] of bounds) {
    const text = (fields[label] ?? '').trim();
    if (text !== '') params.push([name, bound(text, label)]);
  }
  if (fields.Limit !== 'none') {
    const count = fields.Count.trim();
    if (!/^[1-9][0-9]{0,8}$/.test(count)) throw new Error('Count must be a whole number from 1 on.');
    params.push([fields.Limit === 'first' ? 'limitToFirst' : 'limitToLast', count]);
  }
  return params;
}

/**
 * @param {string} text
 * @param {string} label
 */
function bound(text, label) {
  let value;
  try {
    value = parse(text);
  } catch {
    throw new Error(`${label} must be JSON: a text needs double quotes, as in "ann".`);
  }
  if ('children' in value) throw new Error(`${label} must be a text, a number, a boolean or null.`);
  return value.text;
}

/**
 * What a form shows for the parameters of an address.
 * @param {URLSearchParams} params
 * @returns {Fields}
 */
export function toFields(params) {
  const order = params.get('orderBy');
  const [first, last] = [params.get('limitToFirst'), params.get('limitToLast')];
  let by = '$key';
  try {
    by = order ? JSON.parse(order) : by;
  } catch {
    by = order ?? by;
  }
  const some = params.size > 0;
  return {
    'Order by': String(by), 'Start at': params.get('startAt') ?? '', 'End at': params.get('endAt') ?? '', 'Equal to': params.get('equalTo') ?? '',
    ...(params.has('startAfter') ? { 'Start after': params.get('startAfter') ?? '' } : {}), ...(params.has('endBefore') ? { 'End before': params.get('endBefore') ?? '' } : {}),
    Limit: first ? 'first' : last ? 'last' : some ? 'none' : 'first', Count: first ?? last ?? '20',
  };
}

/**
 * What was typed into the form and not run yet, and at which address.
 * @typedef {{at: string, texts: Record<string, string>}} Draft
 */

/**
 * What the form shows at first: the query of its address, or the draft that was typed at that
 * address. An address without a query shows any draft, with its own path if it names one.
 * @param {import('./route.js').Route} route
 * @param {string} at the address
 * @param {Draft | null} draft
 * @returns {Fields & {Path: string}}
 */
export function firstTexts(route, at, draft) {
  const own = { Path: '/' + route.path.join('/'), ...toFields(route.params) };
  if (!draft || (draft.at !== at && route.params.size > 0)) return own;
  const texts = { ...own, ...draft.texts };
  return draft.at === at || route.path.length === 0 ? texts : { ...texts, Path: own.Path };
}

/** @typedef {{key: string, value: Json, priority: Json | null}} Child */

/**
 * Takes the export form apart: the value of a node and its priority.
 * @param {Json} json
 * @returns {{value: Json, priority: Json | null}}
 */
export function unwrap(json) {
  if (json.type !== 'object') return { value: json, priority: null };
  const priority = json.children.find(([key]) => key === '.priority')?.[1] ?? null;
  const value = json.children.find(([key]) => key === '.value')?.[1];
  if (value) return { value, priority };
  return { value: priority ? { type: 'object', children: json.children.filter(([key]) => key !== '.priority') } : json, priority };
}

/**
 * The children of a result in the order of its query.
 * @param {string} text the result in export form
 * @param {string} orderBy `$key`, `$value`, `$priority` or a child path
 * @returns {Child[]}
 */
export function children(text, orderBy) {
  const json = unwrap(parse(text)).value;
  if (!('children' in json)) return [];
  const found = json.children.filter(([, child]) => child.type !== 'null').map(([key, child]) => ({ key, ...unwrap(child) }));
  const keyed = found.map((child) => ({ child, by: sortedBy(child, orderBy) }));
  keyed.sort((a, b) => (orderBy === '$key' ? 0 : compareValues(a.by, b.by)) || compareKeys(a.child.key, b.child.key));
  return keyed.map(({ child }) => child);
}

/**
 * @param {Child} child
 * @param {string} orderBy
 * @returns {Json | null}
 */
function sortedBy(child, orderBy) {
  if (orderBy === '$value') return child.value;
  if (orderBy === '$priority') return child.priority;
  /** @type {Json | null} */
  let at = child.value;
  for (const key of orderBy.split('/')) at = at ? childOf(at, key) : null;
  return at;
}

/** @param {Json} json @param {string} key @returns {Json | null} */
function childOf(json, key) {
  return partOf(json, key)?.value ?? null;
}

/**
 * The value and the priority of a child, if there is one.
 * @param {Json} json
 * @param {string} key
 */
export function partOf(json, key) {
  if (!('children' in json)) return null;
  const child = json.children.find(([name]) => name === key)?.[1];
  return child && child.type !== 'null' ? unwrap(child) : null;
}

const ranks = { null: 0, boolean: 1, number: 2, string: 3, array: 4, object: 4 };

/**
 * Nothing, then false, true, numbers, texts, objects.
 * @param {Json | null} a
 * @param {Json | null} b
 */
export function compareValues(a, b) {
  const [x, y] = [a ? ranks[a.type] : 0, b ? ranks[b.type] : 0];
  if (x !== y || !a || !b || 'children' in a || 'children' in b) return x - y;
  if (a.type === 'number') return compareNumbers(a.text, b.text);
  if (a.type === 'boolean') return Number(a.text === 'true') - Number(b.text === 'true');
  const [s, t] = a.type === 'string' ? [JSON.parse(a.text), JSON.parse(b.text)] : ['', ''];
  return s < t ? -1 : s > t ? 1 : 0;
}

/** @param {string} a @param {string} b */
function compareNumbers(a, b) {
  const whole = /^-?[0-9]{1,19}$/;
  if (whole.test(a) && whole.test(b)) {
    const difference = BigInt(a) - BigInt(b);
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }
  return Number(a) - Number(b);
}

/**
 * The columns of a table of children: the union of their keys, the most frequent
 * first, at most 30.
 * @param {Child[]} rows
 */
export function columns(rows) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { value } of rows) if ('children' in value) for (const [key] of value.children) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || compareKeys(a[0], b[0])).slice(0, 30).map(([key]) => key);
}
