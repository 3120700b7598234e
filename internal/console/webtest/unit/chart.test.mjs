import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labels, scale } from '../../web/core/chart.js';
import { bytes, count, millis } from '../../web/lib/format.js';

test('the top of a scale is round, its half too, and nothing is above it', () => {
  assert.deepEqual([0, 1, 1.1, 3, 5, 7, 9, 10, 42, 101].map(scale), [1, 1, 2, 4, 6, 8, 10, 10, 60, 200]);
  for (let value = 0.0007; value < 1e9; value *= 1.37) assert.ok(scale(value) >= value && scale(value) <= 10 * value, String(value));
});

test('an axis says nothing twice, however small its figures are', () => {
  const formats = [[count, 2], [bytes, 10], [millis, 0.1]];
  for (const [format, least] of formats) {
    for (const most of [0, 0.001, 0.5, 1, 2, 3, 5, 9, 1500, 1e6]) {
      const top = scale(Math.max(least, most));
      const shown = labels([0, 0.5, 1].map((part) => format(top * part)));
      assert.deepEqual(shown, [0, 0.5, 1].map((part) => format(top * part)), `${format.name} of ${most}: each figure has its own label`);
      assert.equal(new Set(shown).size, 3);
    }
  }
  assert.deepEqual(labels(['20:15', '20:15', '20:15']), ['20:15', '', '']);
  assert.deepEqual(labels(['0', '1', '1']), ['0', '', '1']);
});
