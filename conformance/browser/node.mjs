// The package eventsource, which uses the fetch of Node and thereby HTTP/1.1.

import assert from 'node:assert/strict';

import { EventSource } from 'eventsource';

import { until } from './until.mjs';

// record opens a stream and returns it with what comes.
function record(url) {
  const events = [];
  const source = new EventSource(url);
  for (const type of ['put', 'patch', 'keep-alive', 'cancel', 'auth_revoked']) {
    source.addEventListener(type, (e) => events.push({ type, data: JSON.parse(e.data), id: e.lastEventId }));
  }
  source.addEventListener('error', (e) => events.push({ type: 'error', code: e.code }));
  const changes = () => events.filter((e) => e.type === 'put' || e.type === 'patch').map((e) => [e.type, e.data]);
  return { source, events, changes };
}

export async function checkNode(server, say) {
  await server.send('PUT', '/node.json', { a: 1 });
  const stream = record(`${server.url}/node.json?resume=true`);
  await until('the first put', () => stream.changes().length === 1);
  assert.deepEqual(stream.changes()[0], ['put', { path: '/', data: { a: 1 } }]);
  say('node: the first put');

  await server.send('PUT', '/node/b.json', [1, 2]);
  await server.send('PATCH', '/node.json', { a: null, 'c/d': 'é\n' });
  await until('three changes', () => stream.changes().length === 4);
  assert.deepEqual(stream.changes().slice(1), [
    ['put', { path: '/b', data: [1, 2] }],
    ['patch', { path: '/c', data: { d: 'é\n' } }],
    ['patch', { path: '/', data: { a: null } }],
  ]);
  say('node: changes');

  await until('a keep-alive', () => stream.events.some((e) => e.type === 'keep-alive' && e.data === null));
  say('node: keep-alive');

  await server.kill();
  await until('an error', () => stream.events.some((e) => e.type === 'error'));
  await server.start();
  await server.send('PUT', '/node/e.json', 'missed');
  await until('what it missed', () => stream.changes().length === 5);
  assert.deepEqual(stream.changes()[4], ['put', { path: '/e', data: 'missed' }]);
  say('node: it comes back after a restart, and gets what it missed');
  await server.send('PUT', '/node/f.json', 'live');
  await until('what came then', () => stream.changes().length === 6);
  assert.deepEqual(stream.changes()[5], ['put', { path: '/f', data: 'live' }]);
  say('node: and what comes then');
  stream.source.close();
}
