// Connections that end and come back, and large messages.

import assert from 'node:assert/strict';

import { until } from '../../browser/until.mjs';
import { listening, value } from './watching.mjs';

// wide is a text of some units with characters of one to three bytes.
const wide = (units) => 'aé漢b'.repeat(units / 4);

export const connection = {
  async '.info tells of the connection'({ a, at }) {
    await a.get(at);
    await a.listen('connected', '.info/connected');
    await value(a, 'connected', true);
    await a.listen('offset', '.info/serverTimeOffset');
    const offset = await until('the offset', async () => (await a.record('offset')).at(-1));
    assert.ok(Math.abs(offset.value) < 10_000);
  },

  async 'goOffline, writes, goOnline'({ a, b, at }) {
    await a.set(at, { old: 1 });
    await listening(a, 'l', at);
    await listening(b, 'l', at);
    await a.goOffline();
    await b.set(`${at}/other`, 'b');
    await a.begin('set', 'set', `${at}/x`, 1);
    await a.begin('update', 'update', at, { y: 2, old: null });
    await value(a, 'l', { x: 1, y: 2 });
    assert.deepEqual((await b.record('l')).at(-1).value, { old: 1, other: 'b' });
    await a.goOnline();
    await a.finish('set');
    await a.finish('update');
    const all = { x: 1, y: 2, other: 'b' };
    await value(a, 'l', all);
    await value(b, 'l', all);
  },

  async 'large values, up and down'({ a, b, at, edition }) {
    // Polls carry less than 2 KB each to the server.
    const units = edition.transport === 'forceLongPolling' ? 1 << 15 : 1 << 20;
    const text = wide(units);
    await a.set(`${at}/text`, text);
    assert.ok((await b.get(`${at}/text`)).value === text, 'the text is another');
    const many = Object.fromEntries(Array.from({ length: units / 50 }, (_, n) => [`key${n}`, { n, t: `é${n}` }]));
    await a.set(`${at}/many`, many);
    await listening(b, 'l', `${at}/many`);
    assert.deepEqual((await b.record('l')).at(-1).value, many);
    await a.set(`${at}/many/key7/n`, 'changed');
    await until('the change', async () => (await b.last('l')).count === 2);
    // Every length near the size of a segment, and characters of two units at the
    // end of one: those only down, since the SDK itself breaks them up.
    for (let n = 16_384 - 80; n < 16_384 + 8; n += 8) {
      await a.set(`${at}/edge`, 'x'.repeat(n));
      assert.equal((await b.get(`${at}/edge`)).value.length, n);
    }
  },

  async 'large values with characters of two units, down'({ b, at, server }) {
    for (const start of ['', 'x']) {
      const text = start + '\u{1f600}'.repeat(50_000);
      await server.admin('PUT', `/${at}.json`, text);
      await listening(b, `l${start}`, at);
      await value(b, `l${start}`, text);
      await b.unlisten(`l${start}`);
    }
  },

  async 'the server restarts: listens go on, no data is sent again'({ a, b, at, server }) {
    const large = { text: wide(200_000), ranked: { '.value': 1.5, '.priority': 'p' }, list: [1, 2, 3] };
    await a.set(at, large);
    await listening(b, 'l', at);
    await a.set(`${at}-query`, { x: 1, y: 2, z: 3 });
    await listening(b, 'q', `${at}-query`, { orderBy: ['$value'], limitToLast: [2] });
    await listening(b, 'empty', `${at}-empty`);
    await b.pushed();
    for (const end of ['stop', 'kill']) {
      await server[end]();
      await server.start();
      await a.set(`${at}-query/${end}`, 9);
      await until(`a push after ${end}`, async () => (await b.record('q')).at(-1).keys.includes(end));
      const pushed = await b.pushed();
      assert.ok(pushed.length > 0 && pushed.every((p) => p.size < 1000), `it pushed ${JSON.stringify(pushed)}`);
    }
    assert.equal((await b.last('l')).count, 1);
    await a.set(`${at}/list/0`, 'new');
    await until('the change', async () => (await b.last('l')).count === 2);
  },

  async 'the server restarts: what was missed comes'({ a, b, at, server }) {
    await a.set(at, { x: 1 });
    await listening(b, 'l', at);
    await b.goOffline();
    await a.set(at, { y: 2 });
    await server.kill();
    await server.start();
    await b.goOnline();
    await value(b, 'l', { y: 2 });
  },

  async 'the server restarts: writes that wait are made'({ a, b, at, server }) {
    await a.set(at, { n: 0 });
    await server.kill();
    await a.begin('set', 'set', `${at}/n`, 1);
    await a.begin('update', 'update', at, { m: 2 });
    await server.start();
    await a.finish('set');
    await a.finish('update');
    assert.deepEqual((await b.get(at)).value, { n: 1, m: 2 });
  },
};
