import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takeTurn } from '../../web/core/turns.js';

/** Locks as browsers have them, for one process. */
class Locks {
  held = new Map();

  async request(name, options, body) {
    if (options.ifAvailable && this.held.has(name)) return body(null);
    while (this.held.has(name)) {
      await this.held.get(name);
      if (options.signal?.aborted) throw new Error('aborted');
    }
    const run = Promise.resolve(body({ name })).finally(() => this.held.delete(name));
    this.held.set(name, run.catch(() => {}));
    return run;
  }
}

test('of many tabs few have a stream at a time, and all of them get one', async () => {
  const locks = new Locks();
  const ends = Array.from({ length: 8 }, () => new AbortController());
  const opened = ends.map(() => 0);
  let open = 0;
  let most = 0;
  const tabs = ends.map(async (end, i) => {
    const stream = (signal) => new Promise((resolve, reject) => {
      opened[i]++;
      most = Math.max(most, ++open);
      signal.addEventListener('abort', () => (open--, reject(new Error('aborted'))));
    });
    while (await takeTurn(end.signal, stream, locks).catch(() => false));
  });
  await new Promise((resolve) => setTimeout(resolve, 3200));
  assert.equal(most, 4);
  assert.ok(opened.every((count) => count > 0), opened.join());
  ends[0].abort(); // its place goes to one of those that take turns
  await new Promise((resolve) => setTimeout(resolve, 3000));
  assert.equal(open, 4);
  for (const end of ends) end.abort();
  await Promise.all(tabs);
  assert.equal(open, 0);
});

test('without locks every tab has its stream, and failures are told', async () => {
  assert.equal(await takeTurn(new AbortController().signal, async () => {}, undefined), false);
  await assert.rejects(takeTurn(new AbortController().signal, async () => { throw new Error('lost'); }, new Locks()), /lost/);
});
