import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, bytes, count, cut, millis, several } from '../../web/lib/format.js';

test('numbers read as people say them', () => {
  assert.deepEqual([0, 999, 1000, 1234, 86_666_666].map(bytes), ['0 B', '999 B', '1.0 kB', '1.2 kB', '86.7 MB']);
  assert.deepEqual([0.42, 3.14, 42.4, 1500].map(millis), ['0.42 ms', '3.1 ms', '42 ms', '1.5 s']);
  assert.deepEqual([1, 80, 100, 7200, 200_000].map(ago), ['1 second ago', '80 seconds ago', '2 minutes ago', '2 hours ago', '2 days ago']);
  assert.equal(count(1_204_331), '1,204,331');
  assert.equal(several(1, 'child', 'children'), '1 child');
  assert.equal(cut('abcdef', 4), 'abc…');
});
