/** One webhook: what it is for, how far it is, its last deliveries, and what can be done to it. */

import { ask, complain, say } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { Keyed } from '../core/keyed.js';
import { marked } from '../core/marks.js';
import { signal } from '../core/signal.js';
import { bytes, count, cut, millis, moment } from '../lib/format.js';
import { address, encodeKey, split } from '../lib/route.js';
import { drawState } from './screen.js';
import { showSecret } from './secret.js';
import { attempt, lag, outcome, repeatable, waiting } from './words.js';

/** @typedef {import('../app.js').App} App */
/** @typedef {import('./words.js').Hook} Hook */
/** @typedef {import('./words.js').Delivery} Delivery */
/** @typedef {{database: string, name: string, base: string, ended: AbortSignal}} Place */

const answerLength = 44; // characters of an answer that are shown until it is opened

/**
 * Draws the screen of a hook and returns what reads it.
 * @param {App} app
 * @param {HTMLElement} main
 * @param {Place} place
 */
export function one(app, main, place) {
  const screen = new One(app, place);
  main.append(screen.element);
  return () => screen.read();
}

class One {
  /**
   * @param {App} app
   * @param {Place} place
   */
  constructor(app, place) {
    this.app = app;
    this.place = place;
    this.base = `${place.base}/${encodeKey(place.name)}`;
    /** @type {Hook | null} */
    this.hook = null;
    this.paused = signal(false);
    this.two = signal(false); // whether there are two secrets
    this.state = h('span', { class: 'hook-line' });
    this.facts = h('dl', { class: 'facts' });
    this.done = h('dl', { class: 'facts' });
    this.result = h('p', { role: 'status', class: 'hook-result' });
    this.none = h('p', { class: 'hint empty', hidden: true }, 'None since the server was started.');
    const body = h('tbody');
    this.rows = new Keyed(body, attempt, (/** @type {Delivery} */ delivery) => ({ element: this.row(delivery) }));
    this.element = h('div', { class: 'screen' }, this.head(), h('div', { class: 'columns' },
      h('section', { class: 'card' }, h('h2', null, 'What is sent'), this.facts), h('section', { class: 'card' }, h('h2', null, 'Since the server was started'), this.done)),
    this.deliveries(body));
  }

  head() {
    const { database, name } = this.place;
    return h('header', null, h('a', { to: address({ screen: 'hooks', database }), class: 'hook-back' }, 'All hooks'), h('h1', null, name), this.state, this.buttons(), this.result);
  }

  buttons() {
    const button = (/** @type {string | (() => string)} */ name, /** @type {() => unknown} */ act, /** @type {import('../core/dom.js').Props} */ more = {}) =>
      h('button', { type: 'button', disabled: () => !this.app.editing.value, ...more, on: { click: () => this.guarded(act) } }, name);
    return h('div', { class: 'end buttons', role: 'toolbar', 'aria-label': 'Hook' },
      button('Test', () => this.test()), button(() => (this.paused.value ? 'Resume' : 'Pause'), () => this.pause()),
      button('Replace secret', () => this.rotate()), button('Drop old secret', () => this.dropOld(), { hidden: () => !this.two.value }), button('Remove', () => this.remove()));
  }

  /** @param {HTMLElement} body */
  deliveries(body) {
    const head = ['Time', 'Event', 'Path', 'Status', 'Taken', 'Answer', 'Id', 'Again'];
    return h('section', null, h('h2', null, 'Last deliveries'), h('div', { class: 'table-scroll', tabIndex: 0, role: 'group', 'aria-label': 'Deliveries' }, h('table', { 'aria-label': 'Deliveries', class: 'table deliveries-table' },
      h('thead', null, h('tr', null, ...head.map((name) => h('th', { scope: 'col', class: name === 'Taken' ? 'number' : '' }, name)))), body), this.none));
  }

  async read() {
    const [hook, { deliveries }] = await Promise.all([this.app.api.json(this.base, { signal: this.place.ended }), this.app.api.json(this.base + '/deliveries', { signal: this.place.ended })]);
    this.draw(hook);
    this.rows.show(deliveries);
    this.none.hidden = deliveries.length > 0;
  }

  /** @param {Hook} hook */
  draw(hook) {
    this.hook = hook;
    this.paused.value = Boolean(hook.paused);
    this.two.value = hook.secrets > 1;
    drawState(this.state, hook);
    const facts = (/** @type {[string, string, string?][]} */ list) => list.flatMap(([name, text, kind = '']) => [h('dt', null, name), h('dd', null, marked(text, kind))]);
    fill(this.facts, ...facts([['Path', hook.path, 'code'], ['Receiver', hook.url, 'code'], ['Events', hook.events.join(', ')], ['Added', moment(hook.created)],
      ['Secrets', hook.secrets === 2 ? '2: the old one is still good' : String(hook.secrets)]]));
    const { stat } = hook;
    if (stat) {
      fill(this.done, ...facts([['Delivered', count(stat.delivered)], ['Given up', count(stat.failed)], ['Tried again', count(stat.retried)], ['Commits skipped', count(stat.skipped)],
        ['Waiting', waiting(stat) + (stat.lag >= 0.05 ? `, the oldest for ${lag(stat.lag)}` : '')], ['On disk', `${bytes(stat.bytes)}, with what can be replayed`]]));
    }
  }

  /** @param {Delivery} delivery */
  row(delivery) {
    const { good, words } = outcome(delivery);
    const { path } = delivery;
    return h('tr', { data: { id: delivery.id } }, h('td', { class: 'hook-time' }, moment(delivery.at)), h('td', null, delivery.event ?? ''),
      h('td', null, !path || path.endsWith('…') ? marked(path ?? '', 'code') : h('a', { to: address({ screen: 'data', database: this.place.database, path: split(path) }) }, marked(path, 'code'))),
      h('td', null, h('span', { class: 'hook-outcome', data: { good: String(good) } }, words), more(delivery)), h('td', { class: 'number' }, millis(delivery.ms)),
      h('td', null, answer(delivery)), h('td', { class: 'code hook-id' }, delivery.id),
      h('td', null, repeatable(delivery) ? h('button', { type: 'button', class: 'quiet', 'aria-label': `Replay ${delivery.id}`, on: { click: () => this.guarded(() => this.replay(delivery.id)) } }, 'Replay') : null));
  }

  /** Does something if editing is on, and says why if it fails. @param {() => unknown} act */
  async guarded(act) {
    if (!this.app.editing.peek()) return complain('Editing is off. Switch it on first.');
    try {
      await act();
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }

  async test() {
    fill(this.result, 'A test is being sent…');
    try {
      const record = /** @type {Delivery} */ (await this.app.api.json(this.base + '/test', { body: {} }));
      const { good, words } = outcome(record);
      fill(this.result, h('span', { class: 'hook-outcome', data: { good: String(good) } }, `Test: ${words}`), ` after ${millis(record.ms)} `, marked(record.answer || record.problem || '', 'muted'));
    } catch (error) {
      fill(this.result);
      throw error;
    }
  }

  async pause() {
    const paused = !this.paused.peek();
    this.draw(await this.app.api.json(this.base, { method: 'PATCH', body: { paused } }));
    say(paused ? `The hook ${this.place.name} is paused. What it is to deliver waits.` : `The hook ${this.place.name} delivers again.`);
  }

  async rotate() {
    const answer = await ask({
      label: 'Replace secret', buttons: ['Cancel', 'Replace'],
      body: [h('p', null, 'A new secret is drawn and shown once. Deliveries are signed with it and with the one before it, until you drop the old one or replace it again.'),
        this.two.peek() ? h('p', null, 'There are two now: the older one is dropped.') : null],
    });
    if (answer !== 'Replace') return;
    const hook = await this.app.api.json(this.base + '/rotate', { body: {} });
    this.draw(hook);
    await showSecret(this.app, hook);
  }

  async dropOld() {
    const answer = await ask({ label: 'Drop old secret', role: 'alertdialog', buttons: ['Cancel', 'Drop'], danger: true, body: [h('p', null, 'Deliveries are signed with the newest secret alone from now on. A receiver that does not have it refuses them.')] });
    if (answer !== 'Drop') return;
    this.draw(await this.app.api.json(this.base + '/rotate', { body: { drop_old: true } }));
    say('The old secret was dropped.');
  }

  async remove() {
    const { name, database } = this.place;
    const input = h('input', { class: 'code', 'aria-label': `Type ${name} to confirm`, autocomplete: 'off' });
    const answer = await ask({
      label: 'Remove hook', role: 'alertdialog', buttons: ['Cancel', 'Remove'], danger: true, ready: () => input.value === name && this.app.editing.peek(),
      body: [h('p', null, 'What ', h('strong', null, name), ' has not delivered yet will not be delivered, and its secrets will be gone. There is no undo.'), h('label', { class: 'confirm' }, `Type ${name} to confirm`, input)],
    });
    if (answer !== 'Remove') return;
    await this.app.api.json(this.base, { method: 'DELETE' });
    say(`The hook ${name} was removed.`);
    this.app.go(address({ screen: 'hooks', database }));
  }

  /** @param {string} id */
  async replay(id) {
    await this.app.api.json(`${this.base}/deliveries/${encodeURIComponent(id)}/replay`, { body: {} });
    say('The delivery is made again.');
    setTimeout(() => this.place.ended.aborted || this.read().catch(() => {}), 500);
  }
}

/** What a receiver answered, or why there was no answer; a long one is opened by a click. @param {Delivery} delivery */
function answer(delivery) {
  const text = delivery.answer || delivery.problem || '';
  const kind = delivery.answer ? 'code' : 'muted';
  if (text.length <= answerLength) return marked(text, kind);
  return h('details', { class: 'hook-answer' }, h('summary', null, marked(cut(text, answerLength), kind)), marked(text, kind));
}

/** Which attempt it was, if not the first. @param {Delivery} delivery */
function more(delivery) {
  const words = [delivery.try > 1 ? `try ${count(delivery.try)}` : '', delivery.replay ? 'replay' : ''].filter(Boolean).join(', ');
  return words ? h('span', { class: 'hook-why' }, words) : null;
}
