// Transactions.

import assert from 'node:assert/strict';

import { listening, value } from './watching.mjs';

export const transactions = {
  async 'transaction'({ a, b, at }) {
    assert.deepEqual(await a.transaction(at, 'add', 1), { committed: true, value: 1 });
    assert.deepEqual(await b.transaction(at, 'add', 2), { committed: true, value: 3 });
    assert.equal((await a.get(at)).value, 3);
  },

  async 'transaction that aborts, throws or removes'({ a, b, at }) {
    await a.set(at, 'kept');
    assert.deepEqual(await b.transaction(at, 'abort'), { committed: false, value: null });
    await assert.rejects(b.transaction(at, 'throw'), /the function throws/);
    assert.equal((await a.get(at)).value, 'kept');
    assert.deepEqual(await b.transaction(at, 'put', null), { committed: true, value: null });
    assert.equal((await a.get(at)).value, null);
  },

  async 'transactions of two processes at one place'({ a, b, at }) {
    await listening(a, 'l', at);
    const each = 20;
    await Promise.all([a.transactions(each, at, 'add', 1), b.transactions(each, at, 'add', 1)]);
    await value(a, 'l', 2 * each);
    assert.equal((await b.get(at)).value, 2 * each);
  },

  async 'transactions without waiting, while another process sets'({ a, b, at }) {
    await a.set(at, { count: 0 });
    const adding = Promise.all(Array.from({ length: 20 }, () => a.transaction(`${at}/count`, 'add', 1)));
    for (let n = 0; n < 10; n++) {
      await b.set(`${at}/other`, n);
    }
    await adding;
    assert.deepEqual((await b.get(at)).value, { count: 20, other: 9 });
  },

  async 'transaction that shows nothing before it is sure'({ a, b, at }) {
    await a.set(at, 1);
    await listening(b, 'l', at);
    await b.transaction(at, 'add', 1, false);
    await value(b, 'l', 2);
    assert.deepEqual((await b.record('l')).map((e) => e.value), [1, 2]);
  },

  // JavaScript computes another hash than others for some of these.
  async 'transactions on numbers of all kinds'({ a, b, at }) {
    const numbers = [0, -0.5, 63.99999999999999, 2 ** 53 - 1, -(2 ** 53 - 1), 2 ** 53, 1.7976931348623157e308, 5e-324, 0.1, 1e21, 255.99999999999997];
    for (const number of numbers) {
      await a.set(at, { number, more: { text: 'é' } });
      const { committed } = await b.transaction(at, 'put', 'taken');
      assert.ok(committed, `${number}`);
    }
  },

  async 'transaction on priorities, lists and deep data'({ a, b, at }) {
    await a.set(at, { list: ['x', 'y'], '.priority': 7, deep: { '.value': 1.5, '.priority': 'p' }, keys: { '-1': 1, 10: 1, 2: 1, a: { '.value': 1, '.priority': -1 } } });
    assert.deepEqual(await b.transaction(`${at}/list`, 'append', 'z'), { committed: true, value: { 0: 'x', 1: 'y', 2: 'z' } });
    assert.ok((await b.transaction(`${at}/deep`, 'add', 1)).committed);
    assert.ok((await b.transaction(at, 'put', 'all')).committed);
    assert.deepEqual((await a.get(at)).value, { '.value': 'all', '.priority': 7 });
  },
};
