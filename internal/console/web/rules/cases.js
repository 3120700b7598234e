/**
 * Saved cases: simulations as `livetree rules test` reads them, run all at once against the
 * rules in the editor. Lines of the rules that no case reaches are marked. The cases are a
 * draft of this tab; a file keeps them.
 */

import { complain, say } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { marked } from '../core/marks.js';
import { signal } from '../core/signal.js';
import { cut } from '../lib/format.js';
import { encodeKey } from '../lib/route.js';
import { added, maxCases, notes, reach } from './suite.js';

const maxListed = 200;

export class Cases {
  /**
   * @param {import('../app.js').App} app
   * @param {string} database
   * @param {{rules: () => string, note: (notes: Map<number, import('./suite.js').Note>) => void, go: import('./simulate.js').Go}} on
   */
  constructor(app, database, on) {
    this.app = app;
    this.database = database;
    this.on = on;
    this.draft = `livetree.draft.cases.${database}`;
    this.running = signal(false);
    this.text = h('textarea', { 'aria-label': 'Cases', class: 'code', rows: '6', spellcheck: 'false', autocapitalize: 'off', wrap: 'off', value: sessionStorage.getItem(this.draft) ?? '', on: { input: () => this.keep() } });
    this.empty = signal(this.text.value.trim() === '');
    this.result = h('div', { class: 'cases-result', 'aria-live': 'polite' });
    const file = h('input', { type: 'file', 'aria-label': 'File of cases', class: 'sr-only', tabIndex: -1, on: { change: () => this.open(file) } });
    this.element = h('div', null,
      h('p', { class: 'hint', hidden: () => !this.empty.value }, 'Simulate a request and save it as a case, or open a file of livetree rules test.'),
      this.text,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', class: 'quiet', on: { click: () => file.click() } }, 'Open file'), file,
        h('button', { type: 'button', class: 'quiet', disabled: () => this.empty.value, on: { click: () => this.download() } }, 'Download'),
        h('button', { type: 'button', class: 'primary', disabled: () => this.empty.value || this.running.value, on: { click: () => this.run() } }, 'Run all')),
      this.result);
  }

  keep() {
    this.empty.value = this.text.value.trim() === '';
    if (this.empty.peek()) sessionStorage.removeItem(this.draft);
    else if (this.text.value.length <= maxCases) sessionStorage.setItem(this.draft, this.text.value);
  }

  /** @param {string} one */
  add(one) {
    const text = added(this.text.value, one);
    if (text === null) return complain('The cases would be too long: download them, and begin again.');
    this.text.value = text;
    this.text.scrollTop = this.text.scrollHeight;
    this.keep();
    say('Saved as a case.');
  }

  /** @param {HTMLInputElement} input */
  async open(input) {
    const chosen = input.files?.[0];
    input.value = '';
    if (!chosen) return;
    if (chosen.size > maxCases) return complain('The file is too large to be one of cases.');
    this.text.value = await chosen.text();
    this.keep();
  }

  download() {
    const url = URL.createObjectURL(new Blob([this.text.value], { type: 'text/plain' }));
    const link = h('a', { download: `${this.database}.cases` });
    link.href = url; // lint: a blob of our own, not data
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  async run() {
    this.running.value = true;
    fill(this.result);
    try {
      this.show(await this.app.api.json(`/v1/databases/${encodeKey(this.database)}/rules/test`, { body: { rules: this.on.rules(), cases: this.text.value } }));
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    } finally {
      this.running.value = false;
    }
  }

  /** @param {any} answer */
  show(answer) {
    const { problems, passed, failed, results, coverage, summary } = answer;
    if (problems.length > 0) {
      this.on.note(new Map());
      fill(this.result, h('ul', { 'aria-label': 'Problems of cases', class: 'case-list' }, ...problems.slice(0, maxListed).map((/** @type {any} */ one) =>
        h('li', null, h('span', { class: 'code' }, `${one.in} ${one.line}:${one.column}`), ' ', marked(one.message)))));
      return;
    }
    this.on.note(notes(coverage));
    const missed = coverage.filter((/** @type {any} */ rule) => reach(rule) === 'none');
    fill(this.result,
      h('p', { data: { testid: 'cases', failed: String(failed) }, class: 'cases-line' }, h('strong', null, `${passed} passed${failed > 0 ? `, ${failed} failed` : ''}`), `, ${summary}`),
      failed > 0 ? h('ul', { 'aria-label': 'Failed cases', class: 'case-list' }, ...results.filter((/** @type {any} */ one) => !one.passed).slice(0, maxListed).map((/** @type {any} */ one) => this.failed(one))) : null,
      missed.length > 0 ? h('ul', { 'aria-label': 'Rules that no case reaches', class: 'case-list' }, ...missed.slice(0, maxListed).map((/** @type {any} */ rule) => h('li', { data: { line: String(rule.line) } },
        h('button', { type: 'button', class: 'quiet', on: { click: () => this.on.go(rule.line, rule.column) } }, h('span', { class: 'code' }, `${rule.line}:${rule.column}`), ' ', marked(`${rule.path} ${rule.kind}`, 'code'), ' is not reached')))) : null);
  }

  /** @param {any} one */
  failed(one) {
    return h('li', { data: { line: String(one.line) } },
      h('button', { type: 'button', class: 'quiet', on: { click: () => this.goTo(one.line) } }, h('span', { class: 'code' }, String(one.line)), ' ', marked(cut(one.name, 160))),
      h('p', null, 'is ', marked(one.got, 'code'), ', should be ', marked(one.want, 'code')));
  }

  /** @param {number} line of the cases, from 1 */
  goTo(line) {
    const lines = this.text.value.split('\n');
    const at = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.text.focus();
    this.text.setSelectionRange(at, at + (lines[line - 1]?.length ?? 0));
  }
}
