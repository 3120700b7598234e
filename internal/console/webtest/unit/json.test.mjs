import assert from 'node:assert/strict';
import { test } from 'node:test';
import { field, parse, pretty, print, typed } from '../../web/lib/json.js';

test('numbers and the order of keys stay as they were written', () => {
  for (const text of ['9007199254740993', '-0.10e+5', '1e400', '{"10":1,"9":2,"-5":3,"007":4}', '{"__proto__":1,"a":{"b":[1,{"c":null}]}}', '"\\u202e\\"x"', 'true', '[]', '{}']) {
    assert.equal(print(parse(text)), text);
  }
});

test('a text that is not JSON is refused with its place', () => {
  for (const [text, place] of [['{"a":}', 'line 1, column 6'], ['{\n "a" 1}', 'line 2, column 6'], ['01', 'line 1, column 2'], ['"a\nb"', 'line 1, column 1'], ['', 'line 1, column 1'], ['[1,]', 'line 1, column 4'], ["'a'", 'line 1, column 1'], ['{"a":1} x', 'line 1, column 9']]) {
    assert.throws(() => parse(text), (error) => error.message.includes(place), text);
  }
  assert.throws(() => parse('['.repeat(100_000)), /nested too deeply/);
});

test('random JSON is read as JSON.parse reads it', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e6);
  let state = seed;
  const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), state % n);
  const make = (depth) => {
    const kind = random(depth > 3 ? 4 : 6);
    if (kind === 0) return random(2) === 0;
    if (kind === 1) return random(1000) / 8 - 50;
    if (kind === 2) return String.fromCodePoint(random(0xd000)) + '"\\\n\u2028😀';
    if (kind === 3) return null;
    if (kind === 4) return Array.from({ length: random(4) }, () => make(depth + 1));
    return Object.fromEntries(Array.from({ length: random(4) }, (_, i) => ['k' + i + random(9), make(depth + 1)]));
  };
  for (let i = 0; i < 500; i++) {
    const text = JSON.stringify(make(0));
    assert.equal(print(parse(text)), text, `seed ${seed}`);
    assert.deepEqual(JSON.parse(pretty(text)), JSON.parse(text), `seed ${seed}`);
  }
});

test('the type of a field is chosen, not guessed', () => {
  assert.equal(typed('string', '42'), '"42"');
  assert.equal(typed('string', 'true'), '"true"');
  assert.equal(typed('number', ' 9007199254740993 '), '9007199254740993');
  assert.equal(typed('boolean', 'false'), 'false');
  assert.equal(typed('json', '{"a": [1, 2]}'), '{"a":[1,2]}');
  for (const [type, text] of [['number', 'abc'], ['number', '01'], ['number', ''], ['number', '1 2'], ['number', 'NaN'], ['boolean', 'yes'], ['json', '{']]) {
    assert.throws(() => typed(type, text), Error, `${type} ${text}`);
  }
  assert.deepEqual(field('"a\\nb"'), { type: 'string', text: 'a\nb' });
  assert.deepEqual(field('-1'), { type: 'number', text: '-1' });
});
