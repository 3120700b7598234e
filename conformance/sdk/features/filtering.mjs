// Queries: what they select, and how their windows move.

import assert from 'node:assert/strict';

import { until } from '../../browser/until.mjs';
import { select } from './model.mjs';
import { events, listening, window } from './watching.mjs';

const records = {
  1: { n: 3, p: { q: 'b' } },
  2: { n: 1, p: { q: 'a' } },
  10: { n: 'text' },
  a: { n: true, p: { q: 'b' } },
  b: { n: false, p: { q: 2 } },
  c: { x: 1 },
  d: { n: 3, p: { q: 10 } },
  e: { n: { o: 1 } },
  f: { n: -0.5, p: { q: 'ä' } },
};
const leaves = { 1: 3, 2: 'b', 10: true, a: 3, b: -7, c: 'a', d: false, e: 1e20, f: '' };
const ordered = Object.fromEntries(Object.entries({ 1: 3, 2: 'b', 10: null, a: 3, b: -7, c: 'a', d: 'b', e: null, f: 0 })
  .map(([key, p]) => [key, p === null ? 1 : { '.value': 1, '.priority': p }]));

const orders = {
  $key: [records, [['2'], ['c'], ['bb']]],
  $value: [leaves, [[3], ['a'], [false], [3, 'a'], [100]]],
  $priority: [ordered, [[3], ['b'], [3, 'a'], ['aa']]],
  n: [records, [[3], [true], [null], [3, 'd'], ['a']]],
  'p/q': [records, [['b'], [2], ['b', 'a']]],
};

// bounds are the bounds of one order: none, each alone, and two.
function bounds(values) {
  const all = [{}];
  for (const name of ['startAt', 'startAfter', 'endAt', 'endBefore', 'equalTo']) {
    all.push(...values.map((v) => ({ [name]: v })));
  }
  const [low, high] = values;
  all.push({ startAt: low, endAt: high }, { startAfter: low, endBefore: high }, { startAt: high, endBefore: low });
  return all;
}

function queries(order, values) {
  const limits = [{}, { limitToFirst: [2] }, { limitToLast: [3] }];
  return bounds(values).flatMap((bound) => limits.map((limit) => ({ orderBy: [order], ...bound, ...limit })));
}

// A check for each order: every bound with every limit, by get of one agent and
// by a listen of another. The agents are new, so that nothing is known to them.
const selecting = Object.fromEntries(Object.entries(orders).map(([order, [children, values]]) => [
  `queries by ${order}: all bounds and limits`,
  async ({ a, at, agent }) => {
    await a.set(at, children);
    const [reader, listener] = [await agent(), await agent()];
    const all = queries(order, values);
    const [got, heard] = await Promise.all([reader.getAll(at, all), listener.firstAll(at, all)]);
    all.forEach((query, n) => {
      const want = select(children, query);
      assert.deepEqual(got[n], want, `get ${JSON.stringify(query)}`);
      assert.deepEqual(heard[n], want, `listen ${JSON.stringify(query)}`);
    });
  },
]));

export const filtering = {
  ...selecting,

  async 'window of the first moves'({ a, b, at }) {
    await a.set(at, { a: { n: 1 }, b: { n: 2 }, c: { n: 3 }, d: { n: 4 } });
    await listening(b, 'l', at, { orderBy: ['n'], limitToFirst: [2] });
    await window(b, 'l', ['a', 'b']);
    await a.set(`${at}/e`, { n: 0 });
    await window(b, 'l', ['e', 'a']);
    await a.remove(`${at}/a`);
    await window(b, 'l', ['e', 'b']);
    await a.update(at, { 'e/n': 9, 'c/n': 1 });
    await window(b, 'l', ['c', 'b']);
    await a.set(`${at}/c/deep`, { x: 1 });
    await until('a deep change', async () => (await b.record('l')).at(-1).value.c?.deep?.x === 1);
  },

  async 'window of the last moves, with child events'({ a, b, at }) {
    await a.set(at, { a: 1, b: 2, c: 3 });
    await b.listen('l', at, { orderBy: ['$value'], limitToLast: [2] }, ['child_added', 'child_removed', 'child_moved']);
    await events(b, 'l', 2);
    await a.set(`${at}/d`, 4);
    await events(b, 'l', 4);
    await a.remove(`${at}/d`);
    assert.deepEqual(await events(b, 'l', 6), [
      'child_added b null', 'child_added c b', 'child_removed b null', 'child_added d c',
      'child_removed d null', 'child_added b null',
    ]);
  },

  async 'window by priority follows priorities'({ a, b, at }) {
    await a.set(at, ordered);
    await listening(b, 'l', at, { orderBy: ['$priority'], startAt: [0], endAt: [5] });
    await window(b, 'l', ['f', '1', 'a']);
    await a.setPriority(`${at}/e`, 4);
    await window(b, 'l', ['f', '1', 'a', 'e']);
    await a.setPriority(`${at}/1`, 'out');
    await window(b, 'l', ['f', 'a', 'e']);
  },

  async 'window of keys'({ a, b, at }) {
    await listening(b, 'l', at, { orderBy: ['$key'], startAfter: ['b'], endAt: ['d'] });
    await a.set(at, { a: 1, b: 1, c: 1, d: 1, e: 1 });
    await window(b, 'l', ['c', 'd']);
    await a.remove(at);
    await window(b, 'l', []);
    await a.set(at, 'leaf');
    await a.set(`${at}/cc`, 1);
    await window(b, 'l', ['cc']);
  },

  async 'two windows of one place'({ a, b, at }) {
    await a.set(at, { a: 1, b: 2, c: 3 });
    await listening(b, 'low', at, { orderBy: ['$value'], limitToFirst: [1] });
    await listening(b, 'high', at, { orderBy: ['$value'], limitToLast: [1] });
    await a.update(at, { z: 0, y: 4 });
    await window(b, 'low', ['z']);
    await window(b, 'high', ['y']);
    await b.unlisten('low');
    await a.set(`${at}/x`, 5);
    await window(b, 'high', ['x']);
    await listening(b, 'all', at);
    await window(b, 'all', ['a', 'b', 'c', 'x', 'y', 'z']);
  },

  async 'without an index: a listen is answered, get is refused'({ a, at, agent }) {
    await a.set(at, { a: { unindexed: 2 }, b: { unindexed: 1 }, c: 3 });
    const query = { orderBy: ['unindexed'], startAt: [1], limitToFirst: [1] };
    const fresh = await agent();
    await assert.rejects(fresh.get(at, query), /index not defined/i);
    await listening(fresh, 'l', at, query);
    await window(fresh, 'l', ['b']);
    await a.remove(`${at}/b`);
    await window(fresh, 'l', ['a']);
  },
};
