// Which transport a page uses. These checks run first: where a server was away, a
// page may use another.

import assert from 'node:assert/strict';

import { until } from '../../browser/until.mjs';
import { listening, value } from './watching.mjs';

export const websocket = {
  async 'by websocket alone'({ a, b, at }) {
    for (const agent of [a, b]) {
      await agent.set(at, 1);
      const { traffic } = agent;
      assert.ok(traffic.sockets > 0);
      assert.equal(traffic.polls, 0);
    }
  },
};

export const polling = {
  async 'by polls alone'({ a, b, at }) {
    for (const agent of [a, b]) {
      await agent.set(at, 1);
      const { traffic } = agent;
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
