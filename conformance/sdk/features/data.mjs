// Writing, reading and listening.

import assert from 'node:assert/strict';

import { increment, timestamp } from '../agent.mjs';
import { until } from '../../browser/until.mjs';
import { events, listening, value } from './watching.mjs';

export const data = {
  async 'set, get'({ a, b, at }) {
    const values = { text: 'é\u2028\u{1f600}"\\', number: -1.5e-9, large: 2 ** 53, yes: true, no: false, deep: { x: { y: { z: 1 } } } };
    await a.set(at, values);
    assert.deepEqual((await b.get(at)).value, values);
    assert.deepEqual((await b.get(`${at}/deep/x`)).value, { y: { z: 1 } });
    assert.equal((await b.get(`${at}/absent`)).value, null);
  },

  async 'lists'({ a, b, at }) {
    await a.set(at, ['x', 'y', 'z']);
    const got = await b.get(at);
    assert.deepEqual(got.value, { 0: 'x', 1: 'y', 2: 'z' });
    assert.deepEqual(got.keys, ['0', '1', '2']);
  },

  async 'keys of all kinds, in order'({ a, b, at }) {
    const keys = ['-5', '0', '7', '10', '2147483647', ' ', '!', '%2F', '+', '-a', '007', '2147483648', 'A', 'a b', 'a%', 'ä', '\u{1f600}', '\uffee'];
    await a.set(at, Object.fromEntries(keys.map((k) => [k, 1])));
    const got = (await b.get(at)).keys;
    assert.deepEqual(got.slice(0, 6), ['-5', '0', '7', '007', '10', '2147483647']);
    assert.deepEqual(new Set(got), new Set(keys));
    for (const key of keys) {
      assert.equal((await b.get(`${at}/${key}`)).value, 1, key);
    }
  },

  async 'update of several places'({ a, b, at }) {
    await a.set(at, { x: { y: 1, z: 2 }, w: 3 });
    await listening(b, 'l', at);
    await a.update(at, { 'x/y': 4, w: null, 'new/deep': 5 });
    await until('the update', async () => (await b.record('l')).length > 1);
    // One event: an app must not see half of an update.
    assert.deepEqual((await b.record('l')).slice(1).map((e) => e.value), [{ x: { y: 4, z: 2 }, new: { deep: 5 } }]);
  },

  async 'push'({ a, b, at }) {
    const keys = [];
    for (let n = 0; n < 5; n++) {
      keys.push(await a.push(at, { n }));
    }
    const got = await b.get(at);
    assert.deepEqual(got.keys, keys);
    assert.deepEqual(Object.values(got.value), [0, 1, 2, 3, 4].map((n) => ({ n })));
  },

  async 'remove'({ a, b, at }) {
    await a.set(at, { x: 1, y: { z: 2 } });
    await a.remove(`${at}/y/z`);
    assert.deepEqual((await b.get(at)).value, { x: 1 });
    await a.set(`${at}/x`, null);
    assert.equal((await b.get(at)).value, null);
  },

  async 'value events'({ a, b, at }) {
    await listening(b, 'l', at);
    await a.set(`${at}/x`, 1);
    await a.set(`${at}/y`, 2);
    await a.remove(`${at}/x`);
    await until('the removal', async () => (await b.record('l')).length >= 4);
    assert.deepEqual((await b.record('l')).map((e) => e.value), [null, { x: 1 }, { x: 1, y: 2 }, { y: 2 }]);
    await b.unlisten('l');
    await a.set(at, 'unheard');
    assert.equal((await b.get(at)).value, 'unheard');
    assert.equal((await b.record('l')).length, 4);
  },

  async 'a writer never sees its own value go back'({ a, at }) {
    await listening(a, 'l', at);
    for (let n = 1; n <= 30; n++) {
      await a.begin(`set${n}`, 'set', at, n);
    }
    for (let n = 1; n <= 30; n++) {
      await a.finish(`set${n}`);
    }
    const seen = (await a.record('l')).map((e) => e.value);
    assert.deepEqual(seen, [...seen].sort((x, y) => x - y));
    assert.equal(seen.at(-1), 30);
  },

  async 'child events'({ a, b, at }) {
    await a.set(at, { b: 1, d: 2 });
    await b.listen('l', at, null, ['child_added', 'child_changed', 'child_moved', 'child_removed']);
    await events(b, 'l', 2);
    await a.set(`${at}/c`, 3);
    await a.set(`${at}/d`, 4);
    await a.setPriority(`${at}/b`, 9);
    await a.remove(`${at}/c`);
    assert.deepEqual(await events(b, 'l', 7), [
      'child_added b null', 'child_added d b', 'child_added c b', 'child_changed d c',
      'child_moved b d', 'child_changed b d', 'child_removed c null',
    ]);
  },

  async 'listens that cover each other'({ a, b, at }) {
    await a.set(at, { x: { y: 1 }, z: 1 });
    await listening(b, 'inner', `${at}/x`);
    await listening(b, 'outer', at);
    await b.unlisten('inner');
    await listening(b, 'inner', `${at}/x`);
    await b.unlisten('outer');
    await a.set(`${at}/x/y`, 2);
    await value(b, 'inner', { y: 2 });
  },

  async 'priorities'({ a, b, at }) {
    await a.setWithPriority(`${at}/x`, 'leaf', 3);
    await a.setWithPriority(`${at}/y`, { z: 1 }, 'text');
    await a.set(`${at}/w`, { '.value': 1, '.priority': -2.5 });
    await a.set(`${at}/v`, 'none');
    const want = {
      x: { '.value': 'leaf', '.priority': 3 }, y: { z: 1, '.priority': 'text' }, w: { '.value': 1, '.priority': -2.5 }, v: 'none',
    };
    let got = await b.get(at);
    assert.deepEqual(got.value, want);
    assert.deepEqual(got.keys, ['v', 'w', 'x', 'y']);
    await listening(b, 'l', at);
    await a.setPriority(`${at}/x`, -9);
    await a.setPriority(`${at}/y`, null);
    await a.setPriority(at, 'own');
    await value(b, 'l', { ...want, x: { '.value': 'leaf', '.priority': -9 }, y: { z: 1 }, '.priority': 'own' });
    got = (await b.record('l')).at(-1);
    assert.deepEqual(got.keys, ['v', 'y', 'x', 'w']);
  },

  async 'server values'({ a, b, at }) {
    await listening(b, 'l', at);
    const before = Date.now();
    await a.set(at, { time: timestamp, count: increment(5) });
    await a.update(at, { count: increment(-2.5), 'deep/time': timestamp });
    await a.setWithPriority(`${at}/ordered`, 1, timestamp);
    await a.set(`${at}/count`, increment(1));
    // Only a, which has no listen here, asks the server: b would answer by what its listen was told
    // so far, and the last push may come to b after the answer has come to a.
    const got = (await a.get(at)).value;
    assert.equal(got.count, 3.5);
    for (const time of [got.time, got.deep.time, got.ordered['.priority']]) {
      assert.ok(Math.abs(time - before) < 60_000, `${time} is not the present`);
    }
    await value(b, 'l', got);
  },

  async 'increments from two processes'({ a, b, at }) {
    const all = (agent) => Promise.all(Array.from({ length: 25 }, () => agent.set(at, increment(1))));
    await Promise.all([all(a), all(b)]);
    assert.equal((await a.get(at)).value, 50);
  },

  async 'writes without waiting'({ a, b, at }) {
    const values = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, n]));
    await a.setMany(at, values);
    assert.deepEqual((await b.get(at)).value, values);
  },
};
