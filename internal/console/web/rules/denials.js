/**
 * Requests that the rules deny, as they happen: who asked for what, which rules were asked,
 * and a button that simulates the same request with the rules in the editor. The server
 * notes them only while somebody looks.
 */

import { fill, h } from '../core/dom.js';
import { Follower } from '../core/follow.js';
import { marked } from '../core/marks.js';
import { signal } from '../core/signal.js';
import { clock, count, cut } from '../lib/format.js';
import { encodeKey } from '../lib/route.js';
import { steps } from './simulate.js';

const maxEntries = 200;

export class Denials {
  /**
   * @param {import('../app.js').App} app
   * @param {string} database
   * @param {{simulate: (request: import('./simulate.js').Request) => void, go: import('./simulate.js').Go}} on
   */
  constructor(app, database, on) {
    this.on = on;
    this.seen = signal(0);
    this.skipped = signal(0);
    this.stream = new Follower((since, signal, take, opened) =>
      app.api.events(`/v1/databases/${encodeKey(database)}/denials${since ? `?since=${encodeURIComponent(since)}` : ''}`, { signal }, take, opened),
    (event) => this.take(event));
    this.list = h('ol', { 'aria-label': 'Denials', class: 'denials' });
    const words = /** @type {Record<string, string>} */ ({ live: 'live', connecting: 'connecting', lost: 'not connected', asleep: 'asleep' });
    this.element = h('div', null,
      h('div', { class: 'card-head' }, h('h2', null, 'Denials'),
        h('span', { class: 'live', data: { state: () => this.stream.state.value } }, h('span', { class: 'dot', 'aria-hidden': 'true' }), () => words[this.stream.state.value] ?? ''),
        h('span', { class: 'fill' }),
        h('button', { type: 'button', class: 'quiet', hidden: () => this.seen.value === 0, on: { click: () => this.clear() } }, 'Clear denials')),
      h('p', { class: 'hint', hidden: () => this.seen.value > 0 }, 'Requests that the deployed rules deny show here while this screen is open.'),
      h('p', { class: 'hint', hidden: () => this.skipped.value === 0 }, () => `${count(this.skipped.value)} more were denied, too many to list.`),
      this.list);
  }

  clear() {
    fill(this.list);
    this.seen.value = 0;
    this.skipped.value = 0;
  }

  /** @param {import('../core/follow.js').StreamEvent} event */
  take(event) {
    const data = JSON.parse(event.data);
    if (event.type === 'skipped') this.skipped.value += data.requests;
    if (event.type !== 'denial') return;
    this.list.prepend(this.entry(data));
    while (this.list.childElementCount > maxEntries) this.list.lastElementChild?.remove();
    this.seen.value = this.list.childElementCount;
  }

  /** @param {any} one */
  entry(one) {
    const by = one.by;
    // What was cut cannot be simulated: it would be another request.
    const simulate = one.cut || one.verb === 'write' ? h('span', { class: 'hint' }, one.cut ? 'Too long to be simulated.' : 'Denied before its data was read.')
      : h('button', { type: 'button', on: { click: () => this.on.simulate(request(one)) } }, 'Simulate this');
    const asked = steps(one.trace, this.on.go);
    const why = asked.length > 0 ? h('details', null, h('summary', null, asked.length === 1 ? 'One rule was asked' : `${asked.length} rules were asked`), h('ol', { class: 'trace' }, ...asked)) : null;
    return h('li', { data: { path: one.path, verb: one.verb } },
      h('p', null, h('time', null, clock(one.time)), ' ', h('strong', null, one.verb), ' ', marked(cut(one.path, 160), 'code')),
      h('p', { class: 'muted' }, 'as ', marked(cut(one.auth || '(too long)', 160), 'code'),
        by ? [' · by ', marked(`${by.path} ${by.kind}`, 'code'), ` ${by.line}:${by.column}`] : ' · no rule allows it'),
      why, simulate);
  }
}

/**
 * The request of a denial, as the form has it.
 * @param {any} one
 * @returns {import('./simulate.js').Request}
 */
export function request(one) {
  return { Operation: one.verb, Path: one.path, Auth: one.auth === 'null' ? '' : one.auth, Data: one.data ?? '', ...(one.query ? { query: one.query } : {}) };
}
