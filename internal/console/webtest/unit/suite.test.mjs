import assert from 'node:assert/strict';
import { test } from 'node:test';
import { added, maxCases, notes, reach } from '../../web/rules/suite.js';

test('cases are added as blocks, and not without end', () => {
  assert.equal(added('', 'read /\n----\ndenied\n'), 'read /\n----\ndenied\n');
  assert.equal(added('one\n\n\n', '\ntwo\n'), 'one\n\ntwo\n');
  assert.equal(added('x'.repeat(maxCases), 'y'), null);
});

test('a line is reached as far as the least of its rules', () => {
  const rule = (line, yes, no) => ({ path: '/', kind: '.read', line, column: 1, true: yes, false: no, failed: 0 });
  assert.deepEqual([rule(1, 0, 0), rule(1, 2, 0), rule(1, 0, 1), rule(1, 1, 1)].map(reach), ['none', 'part', 'part', 'all']);
  const found = notes([rule(2, 41, 9), rule(3, 1, 0), rule(3, 0, 0), rule(4, 0, 5)]);
  assert.deepEqual([...found], [
    [2, { text: '41× true 9× false', reach: 'all' }],
    [3, { text: '1× true 0× false · not reached', reach: 'none' }],
    [4, { text: '0× true 5× false', reach: 'part' }],
  ]);
});
