// Safety rules of the console that need no browser. Their numbers are those of docs/console.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Writer } from '../../web/tree/write.js';

test('safety 10: undo has at most 50 writes and 16 MB', () => {
  const writer = new Writer(/** @type {any} */ ({}), 'default');
  for (let i = 0; i < 60; i++) writer.remember(`write ${i}`, [{ path: ['a'], text: 'x', etag: '' }]);
  assert.equal(writer.past.value.length, 50);
  assert.equal(writer.past.value.at(-1)?.name, 'write 59');
  for (let i = 0; i < 5; i++) writer.remember('large', [{ path: ['a'], text: 'x'.repeat(5_000_000), etag: '' }]);
  assert.ok(writer.past.value.reduce((sum, one) => sum + one.bytes, 0) <= 16_000_000);
});
