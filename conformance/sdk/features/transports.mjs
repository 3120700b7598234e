// Which transport a page uses. The checks run last: all others used it as well.

import assert from 'node:assert/strict';

import { until } from '../../browser/until.mjs';
import { listening, value } from './watching.mjs';

export const websocket = {
  async 'by websocket alone'({ a, b }) {
    for (const { traffic } of [a, b]) {
      assert.ok(traffic.sockets > 0);
      assert.equal(traffic.polls, 0);
    }
  },
};

export const polling = {
  async 'by polls alone'({ a, b }) {
    for (const { traffic } of [a, b]) {
      assert.equal(traffic.sockets, 0);
      assert.ok(traffic.polls > 0);
    }
  },
};

export const takeover = {
  async 'a websocket takes over from polls'({ a, agent, at }) {
    const page = await agent();
    await listening(page, 'l', at);
    assert.ok(page.traffic.polls > 0);
    // What is written while it moves comes once and in order.
    let n = 0;
    await until('a websocket that has taken over', async () => {
      await a.set(at, ++n);
      await page.set(`${at}-own`, n);
      return page.traffic.sockets > 0 && await page.isQuiet();
    });
    await value(page, 'l', n);
    const seen = (await page.record('l')).map((e) => e.value ?? 0);
    assert.deepEqual(seen, [...seen].sort((x, y) => x - y));
  },

  async 'onDisconnect after a take-over'({ a, agent, at }) {
    const page = await agent();
    await page.onDisconnect(at, 'set', 'gone');
    await until('a websocket that has taken over', async () => {
      await page.set(`${at}-own`, 1);
      return page.traffic.sockets > 0 && await page.isQuiet();
    });
    await listening(a, 'l', at);
    await value(a, 'l', null);
    await page.kill();
    await value(a, 'l', 'gone');
  },
};
