/**
 * The screen Rules: the document, its problems while one types, the review, earlier
 * versions; simulations of the text in the editor, cases, and requests that are denied.
 */

import { complain } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { Editor } from '../core/editor.js';
import { onEnd, signal } from '../core/signal.js';
import { bytes, moment } from '../lib/format.js';
import { encodeKey } from '../lib/route.js';
import { check, deployed, review } from './deploy.js';
import { Cases } from './cases.js';
import { Denials } from './denials.js';
import { Simulator } from './simulate.js';
import { colour, names } from './words.js';

/** @typedef {import('../app.js').App} App */

const lintMillis = 250;

/**
 * @param {App} app
 * @param {HTMLElement} main
 * @param {import('../lib/route.js').Route} route
 */
export async function show(app, main, route) {
  const screen = new Rules(app, route.database);
  main.append(screen.element);
  await screen.load();
}

class Rules {
  /**
   * @param {App} app
   * @param {string} database
   */
  constructor(app, database) {
    this.app = app;
    this.database = database;
    this.draft = `livetree.draft.rules.${database}`;
    this.base = signal('');
    this.text = signal('');
    /** null while the newest text was not checked. @type {import('../core/signal.js').Signal<import('./deploy.js').Check | null>} */
    this.found = signal(/** @type {any} */ (null));
    this.lint = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    onEnd(() => {
      clearTimeout(this.timer);
      this.lint.abort();
    });
    this.editor = new Editor({ label: 'Rules document', words: colour, names, changed: () => this.changed() });
    this.problems = h('ul', { 'aria-label': 'Problems', class: 'problems' });
    this.history = h('ul', { 'aria-label': 'History', class: 'versions' });
    const rules = () => this.editor.text;
    const go = (/** @type {number} */ line, /** @type {number} */ column) => this.editor.go(line, column);
    this.cases = new Cases(app, database, { rules, go, note: (notes) => this.editor.note(notes) });
    this.simulator = new Simulator(app, database, { rules, go, keep: (text) => this.cases.add(text) });
    this.denials = new Denials(app, database, { go, simulate: (request) => this.simulate(request) });
    this.element = h('div', { class: 'rules-screen' },
      h('div', { class: 'rules-left' }, this.head(), this.editor.element, this.problems),
      h('div', { class: 'rules-right' },
        this.simulation = h('section', { class: 'card' }, h('h2', null, 'Simulate'), this.simulator.element),
        h('section', { class: 'card' }, this.denials.element),
        h('section', { class: 'card' }, h('h2', null, 'Cases'), this.cases.element),
        h('section', { class: 'card' }, h('h2', null, 'History'), this.history)));
  }

  head() {
    const state = () => {
      const found = this.found.value;
      const draft = this.text.value !== this.base.value;
      if (!found) return 'Checking…';
      if (found.problems.length > 0) return `${found.problems.length === 1 ? 'One problem' : `${found.problems.length} problems`}`;
      return draft ? 'Draft, not deployed' : 'As deployed';
    };
    return h('div', { class: 'bar' }, h('h1', null, 'Rules'),
      h('span', { class: 'state', data: { state: () => (this.found.value?.problems.length ? 'bad' : this.text.value !== this.base.value ? 'draft' : 'good') } }, state),
      h('span', { class: 'fill' }),
      h('button', { type: 'button', class: 'quiet', hidden: () => this.text.value === this.base.value, on: { click: () => this.fill(this.base.peek()) } }, 'Discard draft'),
      h('button', { type: 'button', class: 'primary', disabled: () => !this.found.value || this.found.value.problems.length > 0, on: { click: () => this.review() } }, 'Review'));
  }

  async load() {
    const now = await deployed(this.app, this.database);
    this.base.value = now.text;
    this.fill(sessionStorage.getItem(this.draft) ?? now.text);
    this.versions();
    this.denials.stream.start();
    await this.check();
  }

  /** @param {import('./simulate.js').Request} request */
  simulate(request) {
    this.simulation.scrollIntoView({ block: 'start' });
    this.simulator.simulate(request);
  }

  /** @param {string} text */
  fill(text) {
    this.editor.text = text;
    this.changed();
  }

  changed() {
    this.text.value = this.editor.text;
    this.found.value = null;
    if (this.editor.text === this.base.peek()) sessionStorage.removeItem(this.draft);
    else sessionStorage.setItem(this.draft, this.editor.text);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), lintMillis);
  }

  async check() {
    this.lint.abort();
    const lint = (this.lint = new AbortController());
    const text = this.editor.text;
    try {
      const found = await check(this.app, this.database, text, lint.signal);
      if (lint.signal.aborted || text !== this.editor.text) return;
      this.found.value = found;
      this.editor.mark(found.problems);
      fill(this.problems, ...found.problems.slice(0, 100).map((problem) => h('li', { data: { line: String(problem.line), column: String(problem.column) } },
        h('button', { type: 'button', class: 'quiet', on: { click: () => this.editor.go(problem.line, problem.column) } }, h('span', { class: 'code' }, `${problem.line}:${problem.column}`), ' ', problem.message))));
    } catch (error) {
      if (lint.signal.aborted) return;
      complain(`The rules could not be checked: ${error instanceof Error ? error.message : error}`);
    }
  }

  async review() {
    try {
      if (!(await review(this.app, this.database, this.editor.text))) return;
      sessionStorage.removeItem(this.draft);
      this.base.value = this.editor.text;
      await this.versions();
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }

  async versions() {
    try {
      const { versions } = await this.app.api.json(`/v1/databases/${encodeKey(this.database)}/rules/history`);
      fill(this.history, ...versions.map((/** @type {any} */ one, /** @type {number} */ i) => h('li', { data: { version: String(one.id) } },
        h('span', null, h('time', null, one.time ? moment(one.time) : 'earlier'), ' ', h('span', { class: 'muted' }, `${i === 0 ? 'deployed · ' : ''}${one.by ? one.by + ' · ' : ''}${bytes(one.bytes ?? 0)}`)),
        h('button', { type: 'button', class: 'quiet', on: { click: () => this.restore(String(one.id)) } }, 'Restore'))));
      if (versions.length === 0) fill(this.history, h('li', { class: 'hint' }, 'No versions yet.'));
    } catch (error) {
      fill(this.history, h('li', { class: 'hint' }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** @param {string} id */
  async restore(id) {
    try {
      const version = await this.app.api.json(`/v1/databases/${encodeKey(this.database)}/rules/history/${encodeURIComponent(id)}`);
      this.fill(version.text);
      this.editor.input.focus();
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }
}
