// onDisconnect: agents of their own register, and are killed.

import assert from 'node:assert/strict';

import { increment, timestamp } from '../agent.mjs';
import { until } from '../../browser/until.mjs';
import { listening, value } from './watching.mjs';

export const presence = {
  async 'onDisconnect: set, when the process is killed'({ a, agent, at }) {
    await listening(a, 'l', at);
    const leaving = await agent();
    await leaving.set(at, 'online');
    await leaving.onDisconnect(at, 'set', 'offline');
    await value(a, 'l', 'online');
    await leaving.kill();
    await value(a, 'l', 'offline');
  },

  async 'onDisconnect: update, remove, priorities and server values'({ a, agent, at }) {
    await a.set(at, { stays: 1, goes: 2, count: 5 });
    await listening(a, 'l', at);
    const leaving = await agent();
    await leaving.onDisconnect(at, 'update', { seen: timestamp, count: increment(2), 'deep/x': true });
    await leaving.onDisconnect(`${at}/goes`, 'remove');
    await leaving.onDisconnect(`${at}/ranked`, 'setWithPriority', 'r', 3);
    assert.deepEqual((await a.get(at)).value, { stays: 1, goes: 2, count: 5 });
    const before = Date.now();
    await leaving.kill();
    const left = await until('the end', async () => {
      const now = (await a.record('l')).at(-1).value;
      return now.seen && now.ranked && !now.goes && now;
    });
    assert.ok(Math.abs(left.seen - before) < 60_000);
    assert.deepEqual({ ...left, seen: 0 }, {
      stays: 1, count: 7, seen: 0, deep: { x: true }, ranked: { '.value': 'r', '.priority': 3 },
    });
  },

  async 'onDisconnect: cancel, also inside of a value'({ a, agent, at }) {
    await a.set(at, { x: { kept: 1 }, y: 1 });
    await listening(a, 'l', at);
    const leaving = await agent();
    await leaving.onDisconnect(`${at}/y`, 'set', 2);
    await leaving.onDisconnect(`${at}/x`, 'set', { parent: true, child: 1 });
    await leaving.onDisconnect(`${at}/x/child`, 'set', 2);
    await leaving.onDisconnect(`${at}/x/child`, 'cancel');
    await leaving.onDisconnect(`${at}/y`, 'cancel');
    await leaving.onDisconnect(`${at}/end`, 'set', true);
    await leaving.kill();
    await value(a, 'l', { x: { kept: 1, parent: true }, y: 1, end: true });
  },

  async 'onDisconnect: when it goes offline, and not again'({ a, agent, at }) {
    await listening(a, 'l', at);
    const leaving = await agent();
    await leaving.onDisconnect(at, 'set', 'offline');
    await leaving.goOffline();
    await value(a, 'l', 'offline');
    await leaving.goOnline();
    await leaving.set(at, 'online');
    await leaving.kill();
    // If something was left to run, it would have run before this is answered.
    const other = await agent();
    await other.set(`${at}-other`, 1);
    await until('nothing else', async () => (await a.get(`${at}-other`)).value === 1);
    await value(a, 'l', 'online');
  },

  async 'onDisconnect: when the server is killed'({ a, agent, at, server }) {
    await listening(a, 'l', at);
    const leaving = await agent();
    await leaving.set(at, 'online');
    await leaving.onDisconnect(at, 'set', 'offline');
    await server.kill();
    await leaving.kill();
    await server.start();
    await value(a, 'l', 'offline');
  },
};
