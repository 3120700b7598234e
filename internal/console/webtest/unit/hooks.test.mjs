import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Keyed } from '../../web/core/keyed.js';
import { attempt, lag, outcome, repeatable, request, stateOf, waiting } from '../../web/hooks/words.js';
import { colour } from '../../web/rules/words.js';

const stat = { delivered: 1, failed: 0, retried: 0, skipped: 0, pending: 0, bytes: 0, lag: 0, failing: false };
const hook = { name: 'orders', path: '/orders/$id', url: 'u', events: [], created: '', secrets: 1, stat };

test('a hook is paused before it is anything else, and says why', () => {
  const words = (more) => Object.values(stateOf({ ...hook, ...more })).join(': ');
  assert.equal(words({}), 'running: ');
  assert.equal(words({ stat: undefined }), 'running: ');
  assert.equal(words({ paused: 'operator', secrets: 0 }), 'paused: by an operator');
  assert.equal(words({ paused: 'gone' }), 'paused: its receiver answered 410');
  assert.equal(words({ paused: 'some new reason' }), 'paused: some new reason');
  assert.equal(words({ secrets: 0, stat: { ...stat, failing: true } }), 'no secret: nothing is sent until it has a new one');
  assert.equal(words({ stat: { ...stat, failing: true } }), 'failing: the last deliveries have failed');
});

test('lag is short, whatever it is', () => {
  assert.deepEqual([0, 0.04, 0.05, 1.26, 9.94, 59, 119, 120, 7199, 7200, 172_799, 172_800, 9e6].map(lag), ['–', '–', '0.1 s', '1.3 s', '9.9 s', '59 s', '119 s', '2 min', '120 min', '2 h', '48 h', '2 d', '104 d']);
  assert.equal(waiting(stat), 'nothing');
  assert.equal(waiting({ ...stat, pending: 1 }), '1 delivery or more');
  assert.equal(waiting({ ...stat, pending: 1024 }), '1,024 deliveries or more');
});

test('only 2xx is a success, and only what has a change is made again', () => {
  const one = { id: 'msg_5f-1-42-0', at: 't', try: 1, ms: 1 };
  assert.deepEqual([undefined, 0, 199, 200, 299, 302, 410].map((status) => outcome({ ...one, status })).map(({ good, words }) => `${words} ${good}`), ['no answer false', 'no answer false', '199 false', '200 true', '299 true', '302 false', '410 false']);
  assert.ok(repeatable(one) && !repeatable({ ...one, id: 'gap' }));
  assert.notEqual(attempt(one), attempt({ ...one, at: 'u' }));
});

test('a form asks for what it says, or says what is missing', () => {
  const full = { Name: ' orders ', Path: '/orders/$id', URL: 'u', create: 'true', update: 'false', delete: 'true' };
  assert.deepEqual(request(full), { name: 'orders', path: '/orders/$id', url: 'u', events: ['create', 'delete'] });
  for (const [field, word] of [['Name', /name/], ['Path', /path/], ['URL', /URL/]]) assert.throws(() => request({ ...full, [field]: '  ' }), word);
  assert.throws(() => request({ ...full, create: 'false', delete: 'false' }), /event/);
});

test('the elements of a list stay while their keys do', () => {
  let moved = 0;
  class Element {
    children = [];
    get firstElementChild() {
      return this.children[0] ?? null;
    }
    insertBefore(child, next) {
      moved++;
      child.remove();
      this.children.splice(next ? this.children.indexOf(next) : this.children.length, 0, child);
      child.parent = this;
    }
    remove() {
      if (this.parent) this.parent.children.splice(this.parent.children.indexOf(this), 1);
    }
    get nextElementSibling() {
      return this.parent.children[this.parent.children.indexOf(this) + 1] ?? null;
    }
  }
  const parent = new Element();
  const list = new Keyed(/** @type {any} */ (parent), (item) => item.key, (item) => {
    const element = Object.assign(new Element(), { key: item.key, text: '' });
    return { element, draw: (now) => (element.text = now.text) };
  });
  const shown = (...keys) => {
    list.show(keys.map((key) => ({ key, text: key + keys.length })));
    return parent.children.map((child) => child.text).join(' ');
  };
  assert.equal(shown('c', 'b', 'a'), 'c3 b3 a3');
  const [c, b] = parent.children;
  moved = 0;
  assert.equal(shown('e', 'd', 'c', 'b'), 'e4 d4 c4 b4');
  assert.equal(moved, 2, 'only those that are new are put in');
  assert.deepEqual(parent.children.slice(2), [c, b]);
  assert.equal(shown('b', 'c', 'b'), 'b3 c3', 'of two with one key the first counts');
  assert.equal(shown(), '');
});

test('.expireOn is coloured as .indexOn is', () => {
  const names = (word) => colour(`"${word}": "expiresAt"`, false).tokens.map(({ name, start, end }) => `${name} ${start}-${end - word.length}`);
  assert.deepEqual(names('.expireOn'), names('.indexOn'));
  assert.match(names('.expireOn')[0] ?? '', /^rule-name/);
});
