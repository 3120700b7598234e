import assert from 'node:assert/strict';
import { test } from 'node:test';
import { author, below, local, read, spanOf, spans, stepOf, steps, timeOf, write } from '../../web/past/moment.js';

test('a moment is read as it was written, and what is no time is told', () => {
  for (const time of [1, 1763337600123, 1763337600000]) assert.equal(read(write(time)), time);
  assert.equal(read(''), 0);
  assert.equal(write(0), '');
  assert.equal(read('1763337600123'), 1763337600123);
  assert.equal(read('2026-11-15T14:05:00+02:00'), Date.UTC(2026, 10, 15, 12, 5));
  for (const text of ['x', '0', '-5', '99999999999999999999', 'yesterday']) assert.ok(Number.isNaN(read(text)), text);
  assert.equal(new Date(local(1763337600123)).getTime(), 1763337600123);
});

test('a step of the slider is a moment, and back', () => {
  const now = 1763337600123;
  for (const [, span] of spans) {
    assert.equal(timeOf(steps, now, span), 0);
    assert.equal(timeOf(0, now, span), now - span);
    for (let step = 0; step <= steps; step++) assert.equal(stepOf(timeOf(step, now, span), now, span), step);
    assert.equal(spanOf(now - span, now), span);
    assert.equal(stepOf(now - 2 * span, now, span), 0);
  }
  const [, longest] = spans.at(-1);
  assert.equal(spanOf(now - 3 * longest, now), 3 * longest);
});

test('who it was is said in words', () => {
  assert.deepEqual([author(undefined), author({ by: 'uid', uid: 'ada' }), author({ by: 'secret' }), author({ by: 'ondisconnect', uid: 'bob' }), author({ by: 'operator' })],
    ['not known', 'user ada', 'app secret', 'on disconnect bob', 'operator']);
});

test('a text of a node is narrowed to a place below it, numbers as they are', () => {
  const seen = { value: '{"a":{".priority":2,"b":9007199254740993},"10":"x"}' };
  assert.deepEqual(below(seen, ['a', 'b']), { value: '9007199254740993' });
  assert.deepEqual(below(seen, ['a']), { value: '{".priority":2,"b":9007199254740993}' });
  assert.deepEqual(below(seen, ['gone', 'b']), { value: 'null' });
  assert.deepEqual(below(seen, []), seen);
  assert.deepEqual(below({ value: '{"a":', cut: true }, ['a']), { value: '{"a":', cut: true });
  assert.equal(below(undefined, ['a']), undefined);
});
