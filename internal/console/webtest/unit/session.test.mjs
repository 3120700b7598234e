import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Api, ApiError, EventParser } from '../../web/lib/api.js';
import { SessionKeeper, codeOf, labelOf } from '../../web/lib/session.js';

function tab(others) {
  const values = new Map();
  const store = { getItem: (name) => values.get(name) ?? null, setItem: (name, value) => values.set(name, value), removeItem: (name) => values.delete(name) };
  const channel = { onmessage: null, postMessage: (data) => queueMicrotask(() => others.forEach((other) => other !== channel && other.onmessage?.({ data }))) };
  others.push(channel);
  let changes = 0;
  const keeper = new SessionKeeper(store, channel, () => changes++);
  return { keeper, values, changes: () => changes };
}

test('a new tab gets the session of its sisters, and signs out with them', async () => {
  const channels = [];
  const first = tab(channels);
  const second = tab(channels);
  assert.equal(await first.keeper.askSisters(), false);
  first.keeper.keep({ session: 's', scope: 'operator' });
  assert.equal(await second.keeper.askSisters(), true);
  assert.equal(second.keeper.current.session, 's');
  first.keeper.end();
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(second.keeper.current, null);
  assert.equal(second.changes(), 1);
});

test('a sister that answers late still signs a tab in', async () => {
  const channels = [];
  const slow = { onmessage: null };
  channels.push(slow);
  const late = tab(channels);
  assert.equal(await late.keeper.askSisters(), false);
  channels[1].onmessage({ data: { offer: { session: 's', scope: 'operator' } } });
  assert.equal(late.keeper.current.session, 's');
  assert.equal(late.changes(), 1);
});

test('a session that cannot be read is none', () => {
  const { keeper, values } = tab([]);
  values.set('livetree.session', '{"session":');
  assert.equal(keeper.current, null);
  values.set('livetree.session', '[1]');
  assert.equal(keeper.current, null);
});

test('the code is read from the fragment', () => {
  assert.equal(codeOf('#code=6kZr-_'), '6kZr-_');
  assert.equal(codeOf('#x'), '');
  assert.deepEqual(labelOf('PRODUCTION,red'), { text: 'PRODUCTION', color: 'red' });
  assert.deepEqual(labelOf({ text: 'A', color: 'blue' }), { text: 'A', color: 'blue' });
  assert.deepEqual(labelOf(undefined), { text: '', color: 'grey' });
});

test('requests carry the session, and errors are sentences', async () => {
  let ended = 0;
  const answers = [new Response('{"ok":1}'), new Response('{"error": "no such key"}', { status: 400 }), new Response('<html>', { status: 502 }), new Response('{}', { status: 401 })];
  const seen = [];
  const api = new Api(() => 's1', () => ended++, async (path, options) => (seen.push(options.headers.Authorization), answers.shift()));
  assert.deepEqual(await api.json('/v1/x'), { ok: 1 });
  await assert.rejects(api.json('/v1/x'), (error) => error instanceof ApiError && error.status === 400 && error.message === 'no such key');
  await assert.rejects(api.json('/v1/x'), /answered 502/);
  await assert.rejects(api.json('/v1/x'), { status: 401 });
  assert.equal(ended, 1);
  assert.deepEqual(seen, ['Bearer s1', 'Bearer s1', 'Bearer s1', 'Bearer s1']);
  const gone = new Api(() => '', () => {}, async () => { throw new TypeError('x'); });
  await assert.rejects(gone.json('/v1/x'), { status: 0, message: 'The server cannot be reached.' });
});

test('events are the same however the text is cut', () => {
  const text = 'event: rows\nid: 5c-1\ndata: {"a":\ndata: 1}\n\n: comment\n\nevent: keep-alive\ndata: null\n\ndata: x\r\n\r\n';
  const want = [{ type: 'rows', data: '{"a":\n1}', id: '5c-1' }, { type: 'keep-alive', data: 'null', id: '5c-1' }, { type: 'message', data: 'x', id: '5c-1' }];
  for (let size = 1; size <= text.length; size++) {
    const got = [];
    const parser = new EventParser((event) => got.push(event));
    for (let i = 0; i < text.length; i += size) parser.push(text.slice(i, i + size));
    assert.deepEqual(got, want, `cut every ${size}`);
  }
});
