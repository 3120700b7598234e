/**
 * Simulations: what the rules in the editor would say to a request. Nothing is stored. What
 * was simulated can be kept as a case.
 */

import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { marked } from '../core/marks.js';
import { signal } from '../core/signal.js';
import { cut } from '../lib/format.js';
import { parse } from '../lib/json.js';
import { encodeKey } from '../lib/route.js';

/** @typedef {(line: number, column: number) => void} Go shows a place of the rules */
/** @typedef {{Operation: string, Path: string, Auth: string, Data: string, query?: Record<string, string>}} Request as the fields have it */

const maxSteps = 200;

export class Simulator {
  /**
   * @param {import('../app.js').App} app
   * @param {string} database
   * @param {{rules: () => string, go: Go, keep: (text: string) => void}} on keep is given a case to be kept
   */
  constructor(app, database, on) {
    this.app = app;
    this.path = `/v1/databases/${encodeKey(database)}/rules/simulate`;
    this.on = on;
    this.draft = `livetree.draft.simulate.${database}`;
    const kept = this.kept();
    /** The query of a read that was denied. @type {import('../core/signal.js').Signal<Record<string, string> | undefined>} */
    this.query = signal(/** @type {any} */ (kept.query));
    this.result = h('div', { class: 'simulation', 'aria-live': 'polite' });
    this.form = form({
      label: 'Simulate', submit: 'Simulate', class: 'simulate-form',
      fields: [
        { label: 'Operation', kind: 'select', options: ['read', 'put', 'patch', 'post', 'delete'], value: kept.Operation ?? 'read' },
        { label: 'Path', code: true, value: kept.Path ?? '/' },
        { label: 'Auth', code: true, kind: 'area', value: kept.Auth ?? '', hint: 'JSON such as {"uid": "ann"}; empty for nobody.' },
        { label: 'Data', code: true, kind: 'area', value: kept.Data ?? '', hint: 'JSON, for writes.' },
      ],
      done: (texts) => this.run(texts),
    });
    for (const name of ['Auth', 'Data']) /** @type {HTMLTextAreaElement} */ (this.form.controls[name]).rows = 2;
    const query = h('p', { class: 'hint', hidden: () => !this.query.value }, 'Query ',
      () => marked(Object.entries(this.query.value ?? {}).map(([name, value]) => `${name}=${value}`).join(' '), 'code'),
      ' ', h('button', { type: 'button', class: 'quiet', on: { click: () => (this.query.value = undefined) } }, 'Without it'));
    this.element = h('div', null, query, this.form.element, this.result);
  }

  /** @returns {Partial<Request>} */
  kept() {
    try {
      return JSON.parse(sessionStorage.getItem(this.draft) ?? '{}');
    } catch {
      return {}; // a draft that cannot be read is none
    }
  }

  /**
   * Fills the form with a request and simulates it.
   * @param {Request} request
   */
  simulate(request) {
    for (const name of /** @type {const} */ (['Operation', 'Path', 'Auth', 'Data'])) {
      const control = this.form.controls[name];
      if (control) control.value = request[name];
    }
    this.query.value = request.query;
    this.form.element.requestSubmit();
  }

  /** @param {Record<string, string>} texts */
  async run(texts) {
    const query = texts.Operation === 'read' ? this.query.peek() : undefined;
    sessionStorage.setItem(this.draft, JSON.stringify({ ...texts, ...(query ? { query } : {}) }));
    fill(this.result);
    const auth = json(texts.Auth ?? '', 'Auth');
    const data = json(texts.Data ?? '', 'Data');
    // Auth is put in as it is: numbers that are read and printed again may become others.
    const rest = JSON.stringify({ rules: this.on.rules(), operation: texts.Operation, path: texts.Path || '/', ...(data === null ? {} : { data }), ...(query ? { query } : {}) });
    const answer = JSON.parse(await this.app.api.text(this.path, { method: 'POST', body: `${rest.slice(0, -1)},"auth":${auth ?? 'null'}}` }));
    this.show(answer);
  }

  /** @param {any} answer */
  show(answer) {
    const by = answer.by;
    const keep = answer.case
      ? h('button', { type: 'button', on: { click: () => this.on.keep(answer.case) } }, 'Save as case')
      : h('p', { class: 'hint' }, 'The rules read too much data for this to be saved as a case.');
    fill(this.result, h('p', { class: 'verdict-line' }, h('strong', { data: { testid: 'verdict', verdict: answer.allowed ? 'allowed' : 'denied' } }, answer.allowed ? 'allowed' : 'denied'),
      by ? [' by ', marked(`${by.path} ${by.kind}`, 'code'), ` ${by.line}:${by.column}`] : null),
    answer.index ? h('p', { class: 'warning' }, marked(typeof answer.index === 'string' ? answer.index : JSON.stringify(answer.index))) : null,
    h('ol', { 'aria-label': 'Trace', class: 'trace' }, ...steps(answer.trace, this.on.go)), keep);
  }
}

/**
 * Lists the rules that were asked.
 * @param {any[] | undefined} trace
 * @param {Go} go
 */
export function steps(trace, go) {
  return (trace ?? []).slice(0, maxSteps).map((step) => h('li', { data: { line: String(step.line), outcome: String(step.outcome) } },
    h('button', { type: 'button', class: 'quiet', on: { click: () => go(step.line, step.column) } },
      h('span', { class: 'outcome' }, String(step.outcome)), h('span', { class: 'code' }, `${step.line}:${step.column}`), ' ', marked(`${step.path} ${step.kind}`, 'code'),
      step.text ? marked(cut(step.text, 200), 'code muted trace-text') : null, step.error ? marked(step.error, 'form-error') : null)));
}

/**
 * @param {string} text
 * @param {string} name
 */
function json(text, name) {
  if (text.trim() === '') return null;
  try {
    parse(text);
  } catch (error) {
    throw new Error(`${name} must be JSON. ${error instanceof Error ? error.message : ''}`);
  }
  return text.trim();
}
