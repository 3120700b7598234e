/**
 * The screen Live: commits at and below a path as they happen, from the change log.
 * Pausing keeps the position; going on fills in what happened meanwhile.
 */

import { fill, h } from '../core/dom.js';
import { marked } from '../core/marks.js';
import { onEnd, signal } from '../core/signal.js';
import { bytes, clock, count, cut } from '../lib/format.js';
import { address, encodeKey, join, pasted, split } from '../lib/route.js';
import { takeTurn } from '../lib/turns.js';

/** @typedef {import('../app.js').App} App */

const maxEntries = 1000;
const hiddenMillis = 5000;

/**
 * @param {App} app
 * @param {HTMLElement} main
 * @param {import('../lib/route.js').Route} route
 */
export function show(app, main, route) {
  const screen = new Live(app, route);
  main.append(screen.element);
  screen.connect();
}

class Live {
  /**
   * @param {App} app
   * @param {import('../lib/route.js').Route} route
   */
  constructor(app, route) {
    this.app = app;
    this.route = route;
    this.paused = signal(false);
    this.state = signal('connecting');
    this.seen = signal(0);
    this.since = '';
    this.retry = 0;
    /** @type {AbortController | null} */
    this.stream = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.log = h('div', { role: 'log', 'aria-label': 'Changes', class: 'changes', tabIndex: 0, data: { kind: 'all' } });
    this.box = h('div', { class: 'changes-scroll' }, this.log, h('p', { class: 'hint empty', hidden: () => this.seen.value > 0 }, 'Nothing has changed yet. Commits show here as they happen.'));
    this.element = h('div', { class: 'live-screen' }, this.bar(), this.box);
    const visible = () => this.visibility();
    document.addEventListener('visibilitychange', visible);
    onEnd(() => {
      document.removeEventListener('visibilitychange', visible);
      this.halt();
      this.over = true;
    });
  }

  over = false;

  bar() {
    const path = h('input', { 'aria-label': 'Path', class: 'code', value: join(this.route.path), autocomplete: 'off', spellcheck: 'false' });
    const kind = h('select', { 'aria-label': 'Kind', on: { change: () => (this.log.dataset.kind = kind.value) } }, ...['all', 'set', 'patch', 'delete'].map((name) => h('option', { value: name }, name)));
    const go = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.app.go(address({ screen: 'live', database: this.route.database, path: pasted(path.value, this.route).path }));
    };
    const words = /** @type {Record<string, string>} */ ({ live: 'live', connecting: 'connecting', lost: 'not connected', paused: 'asleep' });
    return h('div', { class: 'bar' }, h('h1', { class: 'sr-only' }, 'Live'), h('form', { 'aria-label': 'Go to path', class: 'path-form', on: { submit: go } }, path), kind,
      h('span', { class: 'live', data: { state: () => (this.paused.value ? 'paused' : this.state.value) } }, h('span', { class: 'dot', 'aria-hidden': 'true' }), () => (this.paused.value ? 'paused' : (words[this.state.value] ?? ''))),
      h('button', { type: 'button', on: { click: () => this.pause() } }, () => (this.paused.value ? 'Resume' : 'Pause')),
      h('button', { type: 'button', on: { click: () => (fill(this.log), (this.seen.value = 0)) } }, 'Clear'));
  }

  pause() {
    this.paused.value = !this.paused.peek();
    if (this.paused.peek()) this.halt();
    else this.connect();
  }

  halt() {
    clearTimeout(this.timer);
    this.stream?.abort();
    this.stream = null;
  }

  visibility() {
    clearTimeout(this.timer);
    if (document.hidden) this.timer = setTimeout(() => (this.halt(), (this.state.value = 'paused')), hiddenMillis);
    else if (!this.stream && !this.paused.peek()) this.connect();
  }

  async connect() {
    this.halt();
    if (this.over) return;
    const stream = (this.stream = new AbortController());
    let turned = false;
    try {
      turned = await takeTurn(stream.signal, (signal) => this.read(signal));
    } catch {
      // Tried again below.
    }
    if (stream.signal.aborted || this.over) return;
    this.stream = null;
    if (turned) {
      this.timer = setTimeout(() => this.connect(), 0);
      return;
    }
    this.state.value = 'lost';
    this.retry = Math.min(10_000, this.retry ? this.retry * 2 : 500);
    this.timer = setTimeout(() => this.connect(), this.retry);
  }

  /** @param {AbortSignal} signal */
  read(signal) {
    const params = new URLSearchParams({ under: join(this.route.path), ...(this.since ? { since: this.since } : {}) });
    return this.app.api.events(`/v1/databases/${encodeKey(this.route.database)}/changes?${params}`, { signal }, (event) => this.take(event), () => {
      this.retry = 0;
      this.state.value = 'live';
    });
  }

  /** @param {{type: string, data: string, id: string}} event */
  take(event) {
    if (event.id) this.since = event.id;
    if (!event.data || event.data === 'null') return;
    const data = JSON.parse(event.data);
    const bottom = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
    if (event.type === 'change') for (const one of data.set ?? []) this.log.append(this.entry(data, one));
    if (event.type === 'change' && data.more) this.log.append(h('p', { class: 'skipped' }, 'This commit has more assignments than are shown.'));
    if (event.type === 'skipped') this.log.append(h('p', { class: 'skipped' }, data.commits ? `${count(data.commits)} commits were skipped.` : 'Commits were skipped: the log does not reach back that far, or too much happens.'));
    while (this.log.childElementCount > maxEntries) this.log.firstElementChild?.remove();
    this.seen.value = this.log.childElementCount;
    if (bottom) this.box.scrollTop = this.box.scrollHeight;
  }

  /**
   * @param {any} change
   * @param {{path: string, value?: string, cut?: boolean, bytes?: number}} one
   */
  entry(change, one) {
    const kind = one.value === 'null' ? 'delete' : change.patch ? 'patch' : 'set';
    return h('div', { class: 'change', data: { path: one.path, kind } }, h('time', null, clock(change.time)), h('span', { class: 'kind' }, kind),
      h('a', { to: address({ screen: 'data', database: this.route.database, path: split(one.path) }) }, marked(one.path, 'code')),
      marked(kind === 'delete' ? '' : one.value ? cut(one.value, 160) : '(too large for the log)', 'code change-value'), h('span', { class: 'muted number' }, one.bytes ? bytes(one.bytes) : ''));
  }
}
