import assert from 'node:assert/strict';
import { test } from 'node:test';
import { children, columns, compareValues, firstTexts, partOf, toFields, toParams } from '../../web/lib/query.js';
import { parse, print } from '../../web/lib/json.js';
import { parseAddress } from '../../web/lib/route.js';
import { diff } from '../../web/core/diff.js';
import { addIndex } from '../../web/rules/text.js';
import { colour } from '../../web/rules/words.js';

const fields = (more) => ({ 'Order by': '$key', 'Start at': '', 'End at': '', 'Equal to': '', Limit: 'none', Count: '', ...more });

test('a form becomes REST parameters, and they fill the form again', () => {
  const given = fields({ 'Order by': 'owner/name', 'Start at': '"a"', 'End at': '9007199254740993', Limit: 'last', Count: '20' });
  const params = toParams(given);
  assert.deepEqual(params, [['orderBy', '"owner/name"'], ['startAt', '"a"'], ['endAt', '9007199254740993'], ['limitToLast', '20']]);
  assert.deepEqual(toFields(new URLSearchParams(params)), given);
  for (const more of [{ 'Equal to': 'ann' }, { 'Start at': '{}' }, { Limit: 'first', Count: '0' }, { Limit: 'first', Count: 'x' }]) assert.throws(() => toParams(fields(more)), Error, JSON.stringify(more));
});

test('values are in the order of queries', () => {
  const order = ['null', 'false', 'true', '-5', '0.5', '2', '10', '9007199254740992', '9007199254740993', '"10"', '"9"', '"a"', '{"a":1}'].map(parse);
  for (let i = 1; i < order.length; i++) assert.ok(compareValues(order[i - 1], order[i]) < 0, JSON.stringify([order[i - 1], order[i]]));
});

test('children are in the order of the query, ties by key', () => {
  const text = '{"b":{"n":2},"a":{"n":2},"10":{"n":1},"9":{"n":1},"z":{},"p":{".priority":3,".value":7}}';
  assert.deepEqual(children(text, 'n').map(({ key }) => key), ['p', 'z', '9', '10', 'a', 'b']);
  assert.deepEqual(children(text, '$key').map(({ key }) => key), ['9', '10', 'a', 'b', 'p', 'z']);
  assert.deepEqual(children(text, '$priority').map(({ key }) => key).at(-1), 'p');
  assert.deepEqual(children('null', 'n'), []);
  const rows = children('{"a":{"x":1,"y":2},"b":{"y":{".priority":1,".value":3}}}', '$key');
  assert.deepEqual(columns(rows), ['y', 'x']);
  assert.deepEqual(rows.map((row) => partOf(row.value, 'y')).map((part) => [print(part.value), part.priority && print(part.priority)]), [['2', null], ['3', '1']]);
  assert.deepEqual([partOf(rows[1].value, 'x'), partOf(parse('7'), 'x'), partOf(parse('[null,2]'), '0')], [null, null, null]);
});

test('bounds of an address that the form has no field for are kept', () => {
  const params = [['orderBy', '"$key"'], ['startAfter', '"a"'], ['endBefore', '"z"'], ['limitToFirst', '3']];
  assert.deepEqual(toParams(toFields(new URLSearchParams(params))), params);
});

test('a draft comes back where it was typed, and where no query is asked for', () => {
  const draft = { at: '/console/db/d/query/a', texts: { Path: '/b', 'Order by': 'n', Count: '7' } };
  const first = (at) => {
    const [pathname, search = ''] = at.split('?');
    const { Path, 'Order by': order, Count } = firstTexts(parseAddress(pathname, search), at, draft);
    return [Path, order, Count].join(' ');
  };
  assert.equal(first('/console/db/d/query/a'), '/b n 7');
  assert.equal(first('/console/db/d/query'), '/b n 7');
  assert.equal(first('/console/db/d/query/c'), '/c n 7');
  assert.equal(first('/console/db/d/query/a?orderBy=%22x%22&limitToFirst=2'), '/a x 2');
  assert.equal(firstTexts(parseAddress('/console/db/d/query/a', ''), '/console/db/d/query/a', null).Path, '/a');
});

test('a difference has the fewest lines, and gives the other text', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e6);
  let state = seed;
  const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), (state >> 8) % n);
  for (let round = 0; round < 300; round++) {
    const text = () => Array.from({ length: random(12) }, () => 'abcd'[random(4)]).join('\n');
    const [before, after] = [text(), text()];
    const lines = diff(before, after);
    assert.equal(lines.filter(({ kind }) => kind !== 'add').map((line) => line.text).join('\n'), before, `seed ${seed}`);
    assert.equal(lines.filter(({ kind }) => kind !== 'remove').map((line) => line.text).join('\n'), after, `seed ${seed}`);
    assert.equal(lines.filter(({ kind }) => kind === 'same').length, common(before.split('\n'), after.split('\n')), `seed ${seed}: ${JSON.stringify([before, after])}`);
  }
});

/** The length of the longest common part, the slow way. */
function common(a, b) {
  const table = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i++) for (let j = 1; j <= b.length; j++) table[i][j] = a[i - 1] === b[j - 1] ? table[i - 1][j - 1] + 1 : Math.max(table[i - 1][j], table[i][j - 1]);
  return table[a.length][b.length];
}

test('an index is added, and nothing else is touched', () => {
  const rules = '{\n  // comment {\n  "rules": {\n    ".read": true,\n    "items": {\n      ".indexOn": "n"\n    },\n    "rooms": {\n      "$room": { ".write": "auth != null" }\n    }\n  }\n}\n';
  const plain = (text) => JSON.parse(text.replace(/\/\/.*/g, ''));
  const cases = [
    [['items'], 'a', (want) => (want.rules.items['.indexOn'] = ['n', 'a'])],
    [['rooms', 'blue'], 'a', (want) => (want.rules.rooms.$room['.indexOn'] = 'a')],
    [['rooms', 'blue', 'x'], 'a', (want) => (want.rules.rooms.$room.x = { '.indexOn': 'a' })],
    [['new', 'deep'], 'a/b', (want) => (want.rules.new = { deep: { '.indexOn': 'a/b' } })],
    [[], '.value', (want) => (want.rules['.indexOn'] = '.value')],
  ];
  for (const [path, index, change] of cases) {
    const want = plain(rules);
    change(want);
    const got = addIndex(rules, path, index);
    assert.deepEqual(plain(got), want, got);
    assert.ok(got.includes('// comment {'));
    const removed = diff(rules, got).filter((line) => line.kind === 'remove');
    assert.ok(removed.length <= 1, got);
  }
  assert.deepEqual(plain(addIndex('{"rules":{}}', [], 'a')), { rules: { '.indexOn': 'a' } });
  assert.deepEqual(plain(addIndex('{"rules":{"a":{".indexOn":["x"]}}}', ['a'], 'y')), { rules: { a: { '.indexOn': ['x', 'y'] } } });
  assert.throws(() => addIndex('{"rules":', [], 'a'), Error);
});

test('words of rules are found, also in comments over lines', () => {
  const names = (line, inside) => colour(line, inside).tokens.map(({ name, start, end }) => `${name} ${line.slice(start, end)}`);
  assert.deepEqual(names('  ".read": "auth != null", // x', false), ['rule-name ".read"', 'rule-word auth', 'rule-word null', 'rule-comment // x']);
  assert.deepEqual(names('"a": /* b', false), ['rule-key "a"', 'rule-comment /* b']);
  assert.equal(colour('/* b', false).inside, true);
  assert.deepEqual(names('x */ "k": true', true), ['rule-comment x */', 'rule-key "k"', 'rule-word true']);
});
