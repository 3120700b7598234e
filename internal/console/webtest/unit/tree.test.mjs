import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare, comparePositions } from '../../web/lib/keys.js';
import { isRun } from '../../web/tree/model.js';
import { Tree } from '../../web/tree/tree.js';

/** A node on a server: keys with numbers, pages of them, and positions. */
class Server {
  constructor(random) {
    this.random = random;
    this.values = new Map();
    this.position = 1;
  }

  get keys() {
    return [...this.values.keys()].sort(compare);
  }

  row(key) {
    const value = this.values.get(key);
    if (value === undefined) return { key, type: 'none' };
    return value === 'object' ? { key, type: 'object', children: 2 } : { key, type: 'number', value: String(value) };
  }

  /** A page as the server makes it: startAt and endAt hide what is beyond, a page may end early. */
  page(gap, fromEnd, limit) {
    const [low, high] = [gap.from ?? gap.after, gap.to ?? gap.before];
    const inside = this.keys.filter((key) => (low === undefined || (gap.strict && gap.after !== undefined ? compare(key, low) > 0 : compare(key, low) >= 0)) && (high === undefined || (gap.strict && gap.before !== undefined ? compare(key, high) < 0 : compare(key, high) <= 0)));
    const count = 1 + this.random(limit);
    const keys = fromEnd ? inside.slice(-count) : inside.slice(0, count);
    const strict = gap.strict;
    const before = fromEnd ? inside.length > keys.length || Boolean(strict && gap.after !== undefined) : Boolean(strict && gap.after !== undefined);
    const after = !fromEnd ? inside.length > keys.length || Boolean(strict && gap.before !== undefined) : Boolean(strict && gap.before !== undefined);
    return { at: `e-${this.position}`, type: this.values.size ? 'object' : 'none', before, after, rows: keys.map((key) => this.row(key)) };
  }
}

function check(tree, server, where) {
  const seen = new Set();
  const place = tree.root;
  for (const segment of place.segments) if (isRun(segment)) {
    assert.ok(segment.rows.length > 0, `${where}: an empty run`);
    for (const row of segment.rows) {
      assert.ok(!seen.has(row.key), `${where}: ${row.key} twice`);
      seen.add(row.key);
      if (row.flash === 'removed') continue;
      const truth = server.row(row.key);
      assert.equal(row.type, truth.type, `${where}: type of ${row.key}`);
      assert.equal(row.value, truth.value, `${where}: value of ${row.key}`);
    }
  }
  const order = place.segments.flatMap((segment) => (isRun(segment) ? segment.rows.map((row) => row.key) : []));
  assert.deepEqual(order, [...order].sort(compare), `${where}: rows are not in order`);
  for (const key of server.keys) {
    const gaps = place.segments.filter((gap) => !isRun(gap) && (gap.from === undefined || compare(key, gap.from) >= 0) && (gap.after === undefined || compare(key, gap.after) > 0) && (gap.to === undefined || compare(key, gap.to) <= 0) && (gap.before === undefined || compare(key, gap.before) < 0)).length;
    assert.ok(seen.has(key) || gaps >= 1, `${where}: ${key} is neither shown nor in a gap`);
    assert.ok(gaps <= 1, `${where}: ${key} is in ${gaps} gaps`);
  }
  for (let i = 0; i < tree.count; i++) {
    const item = tree.item(i);
    assert.ok(item, `${where}: nothing at ${i} of ${tree.count}`);
    if (item.kind === 'row') assert.equal(tree.find(item.id), i, `${where}: ${item.id} is not found at ${i}`);
  }
}

test('whatever happens, every row is right, in order, and none is lost', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e6);
  let state = seed;
  const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), (state >> 8) % n);
  for (let round = 0; round < 60; round++) {
    const server = new Server(random);
    const key = () => (random(3) ? 'k' + random(60) : String(random(40) - 20));
    for (let i = 0; i < 40; i++) server.values.set(key(), i);
    let now = 0;
    const tree = new Tree([], () => now);
    tree.describe(tree.root, { at: 'e-1', type: 'object' });
    tree.root.segments = [{ size: 5 }];
    tree.root.touch();
    for (let step = 0; step < 120; step++) {
      const where = `seed ${seed}, round ${round}, step ${step}`;
      now += 500;
      switch (random(6)) {
        case 0: case 1: {
          const gaps = tree.root.segments.filter((segment) => !isRun(segment));
          if (gaps.length === 0) break;
          const [gap, fromEnd] = [gaps[random(gaps.length)], random(2) === 0];
          tree.root.fill(gap, server.page(gap, fromEnd, 12), fromEnd);
          break;
        }
        case 2: { // a run far away is forgotten
          const runs = tree.root.segments.filter(isRun);
          if (runs.length === 0) break;
          const run = runs[random(runs.length)];
          tree.root.segments.splice(tree.root.segments.indexOf(run), 1, { from: run.rows[0].key, to: run.rows.at(-1).key, size: run.rows.length });
          tree.root.tidy();
          break;
        }
        case 3: { // an outline
          const keys = server.keys;
          tree.root.cut({ count: keys.length, exact: true, every: 5, marks: keys.filter((_, i) => i % 5 === 0) }, 10);
          break;
        }
        default: { // a commit, of which only what is watched is told
          const changed = Array.from({ length: 1 + random(3) }, key);
          server.position++;
          for (const one of changed) if (random(3)) server.values.set(one, random(5) ? server.position : 'object'); else server.values.delete(one);
          const told = [...new Set(changed)].filter((one) => tree.root.spans.some(({ from, to }) => (from === undefined || compare(one, from) >= 0) && (to === undefined || compare(one, to) <= 0)));
          tree.take('/', told.map((one) => server.row(one)), `e-${server.position}`);
        }
      }
      tree.settle();
      check(tree, server, where);
    }
  }
});

test('a row is replaced only by a newer one', () => {
  assert.ok(comparePositions('a-9', 'a-10') < 0);
  assert.ok(comparePositions('a-10', 'a-9') > 0);
  assert.equal(comparePositions('a-9', 'a-9'), 0);
  assert.ok(comparePositions('a-10', 'b-9') < 0, 'another epoch is newer');
  const tree = new Tree([], () => 0);
  tree.root.segments = [{ rows: [{ key: 'a', type: 'number', value: '2', at: 'e-5' }] }];
  assert.equal(tree.root.put({ key: 'a', type: 'number', value: '1', at: 'e-4' }), 'same');
  assert.equal(tree.root.row('a').value, '2');
  assert.equal(tree.root.put({ key: 'a', type: 'number', value: '3', at: 'e-6' }), 'changed');
});

test('changes flash, own ones do not, removed rows stay for a moment', () => {
  let now = 1000;
  const tree = new Tree(['rooms'], () => now);
  tree.describe(tree.root, { at: 'e-1', type: 'object' });
  tree.root.segments = [{ rows: ['a', 'b', 'c'].map((key) => ({ key, type: 'number', value: '1', at: 'e-1' })) }];
  tree.root.touch();
  tree.own.set('/rooms/b', 9999);
  tree.take('/rooms', [{ key: 'a', type: 'number', value: '2' }, { key: 'b', type: 'number', value: '2' }, { key: 'c', type: 'none' }, { key: 'd', type: 'string', value: '"x"' }], 'e-2');
  const flashes = () => [1, 2, 3, 4].map((i) => tree.item(i)?.row?.flash);
  assert.deepEqual(flashes(), ['changed', undefined, 'removed', 'added']);
  now += 1600;
  assert.equal(tree.settle(), 0);
  assert.deepEqual(flashes(), [undefined, undefined, undefined, undefined]);
  assert.equal(tree.count, 4);
});

test('the root follows: no data, a leaf, an object', () => {
  const tree = new Tree(['a'], () => 0);
  tree.describe(tree.root, { at: 'e-1', type: 'none' });
  tree.root.segments = [];
  tree.root.touch();
  assert.equal(tree.count, 1);
  tree.take('/a', [{ key: 'x', type: 'number', value: '1' }], 'e-2');
  assert.equal(tree.row.type, 'object');
  assert.equal(tree.count, 2);
  tree.describe(tree.root, { at: 'e-3', type: 'string', value: '"x"' });
  assert.equal(tree.count, 1);
});

test('open nodes shift what is below them, and a million children are one gap', () => {
  const tree = new Tree([], () => 0);
  tree.describe(tree.root, { at: 'e-1', type: 'object' });
  tree.root.segments = [{ rows: [{ key: 'a', type: 'object', children: 2 }, { key: 'b', type: 'number', value: '1' }] }, { after: 'b', size: 1_000_000 }];
  tree.root.touch();
  const place = tree.expand('/a');
  place.fill(place.segments[0], { at: 'e-1', before: false, after: false, rows: [{ key: 'x', type: 'number', value: '1' }, { key: 'y', type: 'number', value: '2' }] }, false);
  assert.deepEqual([1, 2, 3, 4].map((i) => tree.item(i).id), ['/a', '/a/x', '/a/y', '/b']);
  assert.equal(tree.find('/b'), 4);
  assert.equal(tree.count, 1_000_005);
  tree.root.cut({ count: 1_000_002, exact: true, every: 1000, marks: Array.from({ length: 1000 }, (_, i) => 'c' + String(i).padStart(4, '0')) });
  assert.equal(tree.item(600_000).kind, 'gap');
  tree.collapse('/a');
  assert.equal(tree.find('/b'), 2);
});

test('an outline that comes while a gap is loaded leaves no gap busy', () => {
  const tree = new Tree([], () => 0);
  tree.root.segments = [{ rows: [{ key: 'a', type: 'number', value: '1' }] }, { after: 'a', size: 9, busy: true }];
  tree.root.cut({ count: 30, exact: true, every: 10, marks: ['a', 'k', 'u'] }, 10);
  assert.deepEqual(tree.root.segments.map((segment) => Boolean(segment.busy)), [false, false, false, false]);
  assert.deepEqual(tree.root.segments.map((segment) => segment.before), [undefined, 'k', 'u', undefined]);
});

test('an outline of few children makes gaps of a page, not of one row, and a second one costs no more', () => {
  const tree = new Tree([], () => 0);
  const marks = Array.from({ length: 2000 }, (_, i) => 'k' + String(i).padStart(4, '0'));
  tree.root.segments = [{ rows: [{ key: 'k0000', type: 'number', value: '1' }] }, { after: 'k0000', size: 500 }];
  for (let i = 0; i < 2; i++) tree.root.cut({ count: 2000, exact: true, every: 1, marks });
  assert.deepEqual(tree.root.segments.slice(1).map((gap) => gap.size), [197, ...Array.from({ length: 9 }, () => 198), 20]);
  assert.equal(tree.root.arrange() && tree.root.height, 2000);
});

test('far rows are dropped', () => {
  const tree = new Tree([], () => 0);
  tree.describe(tree.root, { at: 'e-1', type: 'object' });
  const rows = Array.from({ length: 30_000 }, (_, i) => ({ key: 'k' + String(i).padStart(6, '0'), type: 'number', value: '1', at: 'e-1' }));
  tree.root.segments = Array.from({ length: 150 }, (_, i) => ({ rows: rows.slice(i * 200, i * 200 + 200) }));
  tree.root.touch();
  tree.prune(20_000, 20_040);
  const kept = tree.root.segments.filter(isRun).reduce((sum, run) => sum + run.rows.length, 0);
  assert.ok(kept <= 11_000 && kept >= 10_000, `${kept} rows are kept`);
  assert.equal(tree.count, 30_001);
});
