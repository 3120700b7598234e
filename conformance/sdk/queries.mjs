// What the JavaScript SDK selects for random queries over random trees.
//
//   npm ci && node queries.mjs [seed] > ../../internal/query/testdata/sdk-vectors.json
//
// The SDK is taken offline: a tree that was set is complete in its memory, so
// that it answers queries from there, by the comparators and filters that it
// uses to keep views of a server's data. Each query is written as the REST
// parameters that mean the same, with the keys that the SDK selected, in order.
//
// Left out, because the SDK is at fault or cannot say it:
// - integers beyond 2^53, which JavaScript rounds;
// - the keys -0 and 00 together, which the SDK takes for one key;
// - limitToLast with two kinds of upper bounds (see faulty).

import { initializeApp } from '@firebase/app';
import {
  endAt, endBefore, equalTo, getDatabase, goOffline, limitToFirst, limitToLast, onValue, orderByChild,
  orderByKey, orderByPriority, orderByValue, query, ref, set, startAfter, startAt,
} from '@firebase/database';

const TREES = 110;
const QUERIES = 30;

const seed = Number(process.argv[2] ?? 1);

// random is mulberry32: 32 bits of state, the same on every machine.
let state = seed >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const pick = (choices) => choices[below(choices.length)];
const chance = (p) => random() < p;

const NUMBERS = [0, 1, 2, 7, 10, -1, -10, 1.5, -1.5, 0.1, 5e-324, 1e21, -1e21, 1.7976931348623157e308,
  2147483648, 9007199254740991, -9007199254740991];
const STRINGS = ['', ' ', '0', '7', '07', '10', '9', 'A', 'B', 'a', 'a\u0000', 'aa', 'ab', 'b', 'true', 'null',
  '\u007f', '\u00e9', '\ud7ff', '\u{1f600}', '\u{1f600}a', '\u{10ffff}', '\ue000', '\uf8ff', '\uffee', 'a\uf8ff',
  'a\u{1f600}', 'a\uffee', 'quote" , \\'];
const KEYS = ['0', '-0', '000', '1', '7', '07', '007', '8', '9', '10', '-1', '-7', '-07', '2147483647', '2147483648',
  '-2147483648', '-2147483649', '02147483647', '99999999999', '1a', '+1', '-', '-a', ' ', 'A', 'B', 'a', 'aa', 'a-b',
  'b', 'c', 'z', '_', '~', '\u00e9', '\ud7ff', '\u{1f600}', '\u{1f600}a', '\u{10ffff}', '\ue000', '\uffee',
  '-Nx0', '-Nx1', '-Nx_'];
// Bounds of the order by key need not be valid keys.
const KEY_BOUNDS = ['', '\u0001', '5', '5a', '-', 'a\uf8ff', 'a\u0000', 'a/b', 'a.b', '.', '[', '\uffff',
  '3', '0007', '-0000', '2147483649'];

function leaf() {
  switch (below(6)) {
    case 0: return false;
    case 1: return true;
    case 2: case 3: return pick(NUMBERS);
    default: return pick(STRINGS);
  }
}

// value is a leaf, an object or nothing.
function value() {
  const n = below(12);
  if (n === 0) return null;
  if (n === 1) return { x: leaf() };
  return leaf();
}

// record is a child with something to order by; some share few values.
function record(few) {
  const own = () => (few ? pick(few) : value());
  const r = { id: 1 };
  if (chance(0.8)) r.n = own();
  if (chance(0.6)) r.p = chance(0.15) ? leaf() : { q: own(), r: 0 };
  return r;
}

const priority = () => (chance(0.5) ? pick(NUMBERS) : pick(STRINGS));

// tree is one to fourteen children: leaves, records or both, with or without
// priorities, with many or few values.
function tree() {
  const few = chance(0.4) ? [leaf(), leaf(), null] : null;
  const records = pick([0, 0.5, 1]);
  const priorities = pick([0, 0.2, 0.8]);
  const fewPriorities = chance(0.5) ? [priority(), priority()] : null;
  const children = {};
  for (let n = 1 + below(14); n > 0; n--) {
    let child = chance(records) ? record(few) : (few ? pick(few) : value()) ?? leaf();
    if (chance(priorities)) {
      const p = fewPriorities ? pick(fewPriorities) : priority();
      child = typeof child === 'object' ? { ...child, '.priority': p } : { '.value': child, '.priority': p };
    }
    children[pick(KEYS)] = child;
  }
  return children;
}

const PATHS = ['n', 'n', 'p/q', 'p/q', 'p', 'n/x', 'absent'];
const ORDERS = {
  $key: orderByKey, $value: orderByValue, $priority: orderByPriority,
};

const at = (node, path) => path.split('/').reduce((n, key) => n?.[key], node);

// orderingValues are what the children of a tree are ordered by.
function orderingValues(children, order) {
  return Object.values(children).map((child) => {
    const own = child['.value'] ?? child;
    switch (order) {
      case '$key': return null;
      case '$value': return own;
      case '$priority': return child['.priority'] ?? null;
      default: return at(own, order) ?? null;
    }
  });
}

// bound is a value near those of the tree, and perhaps a key.
function bound(children, order) {
  const keys = Object.keys(children);
  if (order === '$key') return { value: chance(0.5) ? pick(keys) : pick([...KEYS, ...KEY_BOUNDS]) };
  const existing = orderingValues(children, order).filter((v) => v === null || typeof v !== 'object');
  let v = existing.length > 0 && chance(0.7) ? pick(existing) : chance(0.15) ? null : leaf();
  if (order === '$priority' && typeof v === 'boolean') v = 1;
  if (!chance(0.4)) return { value: v };
  return { value: v, key: chance(0.8) ? pick(keys) : pick(KEYS) };
}

// makeQuery returns the parameters of a random query: name -> bound or limit.
function makeQuery(children) {
  const order = chance(0.5) ? pick(PATHS) : pick(Object.keys(ORDERS));
  const q = { order };
  if (chance(0.15)) {
    q.equalTo = bound(children, order);
  } else {
    if (chance(0.6)) q[pick(['startAt', 'startAfter'])] = bound(children, order);
    if (chance(0.6)) q[pick(['endAt', 'endBefore'])] = bound(children, order);
  }
  if (chance(0.6)) q[pick(['limitToFirst', 'limitToLast'])] = 1 + below(Object.keys(children).length + 1);
  return q;
}

const BOUNDS = { startAt, startAfter, endAt, endBefore, equalTo };
const LIMITS = { limitToFirst, limitToLast };

function constraints(q) {
  const list = [ORDERS[q.order]?.() ?? orderByChild(q.order)];
  for (const [name, constrain] of Object.entries(BOUNDS)) {
    if (q[name]) list.push('key' in q[name] ? constrain(q[name].value, q[name].key) : constrain(q[name].value));
  }
  for (const [name, constrain] of Object.entries(LIMITS)) {
    if (q[name]) list.push(constrain(q[name]));
  }
  return list;
}

// parameters returns a query as REST spells it.
function parameters(q) {
  const p = { orderBy: JSON.stringify(q.order) };
  for (const name of Object.keys(BOUNDS)) {
    if (!q[name]) continue;
    p[name] = JSON.stringify(q[name].value);
    if ('key' in q[name]) p[name] += ',' + JSON.stringify(q[name].key);
  }
  for (const name of Object.keys(LIMITS)) {
    if (q[name]) p[name] = String(q[name]);
  }
  return p;
}

// faulty says that the SDK is known to get q wrong. Counting from the end, it
// starts at the key of the upper bound
// - where no child has a priority, whatever the priority of the bound;
// - and if that key is empty, which only the order by key allows, at the wrong
//   end.
function faulty(children, q) {
  const upper = q.endBefore ?? q.endAt ?? q.equalTo;
  if (!q.limitToLast || !upper) return false;
  if (q.order === '$key') return upper.value === '';
  return q.order === '$priority' && (q.endBefore || 'key' in upper) &&
    orderingValues(children, q.order).every((priority) => priority === null);
}

function select(database, path, q) {
  let keys;
  const stop = onValue(query(ref(database, path), ...constraints(q)), (snapshot) => {
    keys = [];
    snapshot.forEach((child) => { keys.push(child.key); });
  });
  stop();
  if (!keys) throw new Error(`no answer to ${JSON.stringify(q)}`);
  return keys;
}

const database = getDatabase(initializeApp({ databaseURL: 'https://oracle.firebaseio.com' }));
goOffline(database);

const lines = [];
for (let n = 0; n < TREES; n++) {
  const children = tree();
  set(ref(database, `t${n}`), children).catch(() => {});
  const queries = [];
  while (queries.length < QUERIES) {
    const q = makeQuery(children);
    if (faulty(children, q)) continue;
    queries.push({ parameters: parameters(q), keys: select(database, `t${n}`, q) });
  }
  lines.push(`{"tree":${JSON.stringify(children)},"queries":[\n${queries.map((q) => JSON.stringify(q)).join(',\n')}\n]}`);
}
process.stdout.write(`[\n${lines.join(',\n')}\n]\n`);
