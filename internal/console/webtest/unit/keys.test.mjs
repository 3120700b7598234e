import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare, prefixRanges, wrong } from '../../web/lib/keys.js';

test('keys are in the order of the server', () => {
  // As internal/tree orders them: integers of 32 bits by value, then the others by UTF-16.
  const order = ['-2147483648', '-5', '-0', '0', '00', '7', '007', '9', '10', '2147483647', '-', '-2147483649', '-Nx', '2147483648', '3000000000', 'A', 'a', 'aa', 'b', '\u00e9', '\ud83d\ude00', '\uf8ff'];
  const want = [...order].sort(compare);
  assert.deepEqual([...order].reverse().sort(compare), want);
  assert.deepEqual(['10', '9', '-5', '007'].sort(compare), ['-5', '007', '9', '10']);
  assert.ok(compare('\ud83d\ude00', '\uf8ff') < 0, 'beyond the BMP comes before U+F8FF');
});

test('the ranges of a prefix hold every key with it, in order', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e6);
  let state = seed;
  const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), state % n);
  const letters = '-0123456789ab😀';
  const word = (most) => Array.from({ length: 1 + random(most) }, () => [...letters][random([...letters].length)]).join('');
  for (let i = 0; i < 3000; i++) {
    const prefix = random(3) ? word(3) : String(random(50) - 25);
    const key = random(2) ? prefix + (random(3) ? word(4) : '') : word(6);
    const ranges = prefixRanges(prefix);
    const inside = ranges.filter(({ from, to }) => (from === undefined || compare(key, from) >= 0) && (to === undefined || compare(key, to) <= 0)).length;
    if (key.startsWith(prefix)) assert.equal(inside, 1, `seed ${seed}: ${key} with prefix ${prefix} is in ${inside} of ${JSON.stringify(ranges)}`);
    assert.ok(inside <= 1, `seed ${seed}: ${key} is in several ranges of ${prefix}`);
    for (let j = 1; j < ranges.length; j++) assert.ok(compare(ranges[j - 1].to, ranges[j].from) < 0, `seed ${seed}: ranges of ${prefix} are not in order`);
  }
});

test('keys that the server refuses are named', () => {
  for (const key of ['', 'a.b', 'a/b', '$a', '#', '[', ']', 'a\u0001', 'a\u007f', 'é'.repeat(385)]) assert.notEqual(wrong(key), '', JSON.stringify(key));
  for (const key of ['a', '-', 'a b', '__proto__', '<b>', "'", '%2e', '\u202e', 'é'.repeat(384)]) assert.equal(wrong(key), '', JSON.stringify(key));
});
