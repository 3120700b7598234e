/**
 * The screen Query: an order, bounds and a limit over the children of a node, the result
 * as a table, the plan, and the same query for elsewhere. The address holds it all.
 */

import { complain } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { marked } from '../core/marks.js';
import { onEnd } from '../core/signal.js';
import { count, cut, millis, several } from '../lib/format.js';
import { cell, children, columns, toFields, toParams } from '../lib/query.js';
import { address, dataRoute, join, pasted, split } from '../lib/route.js';
import { curl, go, javascript, python, restURL } from '../lib/snippet.js';
import { print } from '../lib/json.js';

/** @typedef {import('../app.js').App} App */
/** @typedef {import('../lib/route.js').Route} Route */

const maxText = 8_000_000; // a longer result is not shown
const pageRows = 400;

/**
 * @param {App} app
 * @param {HTMLElement} main
 * @param {Route} route
 */
export async function show(app, main, route) {
  const screen = new Query(app, route);
  main.append(screen.element);
  if (route.params.size > 0) await screen.run(route.path, [...route.params]);
}

class Query {
  /**
   * @param {App} app
   * @param {Route} route
   */
  constructor(app, route) {
    this.app = app;
    this.database = route.database;
    this.stop = new AbortController();
    onEnd(() => this.stop.abort());
    const fields = toFields(route.params);
    this.form = form({
      label: 'Query', submit: 'Run', class: 'query-form',
      fields: [
        { label: 'Path', value: join(route.path), code: true },
        { label: 'Order by', value: fields['Order by'], code: true, suggestions: ['$key', '$value', '$priority'] },
        { label: 'Start at', value: fields['Start at'], code: true }, { label: 'End at', value: fields['End at'], code: true },
        { label: 'Equal to', value: fields['Equal to'], code: true },
        { label: 'Limit', kind: 'select', options: ['none', 'first', 'last'], value: fields.Limit }, { label: 'Count', kind: 'number', value: fields.Count },
      ],
      done: (texts) => this.submit(texts),
    });
    this.problem = h('div', { role: 'alert', class: 'query-problem' });
    this.plan = h('section', { 'aria-label': 'Plan', class: 'plan' });
    this.result = h('div', { class: 'table-scroll', tabIndex: 0, role: 'group', 'aria-label': 'Rows' });
    this.snippets = h('div', { class: 'snippets' });
    this.element = h('div', { class: 'screen query-screen' }, h('h1', { class: 'sr-only' }, 'Query'), h('div', { class: 'card' }, this.form.element), this.problem, this.plan, this.result, this.snippets);
    if (route.params.size === 0) fill(this.result, h('p', { class: 'hint empty' }, 'Bounds are JSON: "ann", 42, true. Order by $key, $value, $priority or a child path such as owner/name.'));
  }

  /** @param {Record<string, string>} texts */
  async submit(texts) {
    const params = toParams(/** @type {any} */ (texts));
    const typed = texts.Path ?? '/';
    const path = /^https?:|\.json|^\/console\//.test(typed) ? pasted(typed, { screen: 'query', database: this.database, path: [], params: new URLSearchParams() }).path : split(typed);
    this.app.go(address({ screen: 'query', database: this.database, path, params: new URLSearchParams(params) }), { quiet: true });
    await this.run(path, params);
  }

  /**
   * @param {string[]} path
   * @param {[string, string][]} params
   */
  async run(path, params) {
    fill(this.problem);
    this.copies(path, params);
    const url = dataRoute(this.database, path);
    const search = new URLSearchParams(params);
    try {
      const plan = await this.app.api.json(`${url}?${search}&explain=true`, { signal: this.stop.signal });
      this.showPlan(plan, null);
      if (plan.state === 'missing') return this.missing(path, params, plan);
      if (plan.state === 'building') return this.building(path, params);
      const began = performance.now();
      const text = await this.read(`${url}?${search}&format=export`);
      this.showPlan(plan, performance.now() - began);
      if (text === null) return fill(this.problem, 'The result is larger than 8 MB. Set a limit, or tighter bounds.');
      const order = toFields(new URLSearchParams(params))['Order by'];
      this.table(path, children(text, order), 0);
    } catch (error) {
      if (this.stop.signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      if (/index not defined/i.test(message)) return this.missing(path, params, { index: toFields(search)['Order by'], path: join(path) }, message);
      fill(this.problem, message);
      fill(this.result);
    }
  }

  /** @param {string} url @returns {Promise<string | null>} */
  async read(url) {
    const answer = await this.app.api.send(url, { signal: this.stop.signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      text += part.value;
      if (text.length > maxText) {
        await reader?.cancel();
        return null;
      }
    }
    return text;
  }

  /**
   * @param {Record<string, unknown>} plan
   * @param {number | null} time
   */
  showPlan(plan, time) {
    const facts = Object.entries(plan).filter(([name]) => name !== 'add').map(([name, value]) => h('span', { class: 'plan-fact' }, h('span', { class: 'muted' }, name), ' ', marked(String(value), 'code')));
    fill(this.plan, h('h2', null, 'Plan'), ...facts, time === null ? null : h('span', { class: 'plan-fact muted' }, millis(time)));
  }

  /**
   * @param {string[]} path
   * @param {[string, string][]} params
   * @param {any} plan
   * @param {string} [message]
   */
  missing(path, params, plan, message) {
    fill(this.result);
    fill(this.problem, h('p', null, '⚠ ', marked(message ?? `Index not defined: ${plan.index} at ${plan.path}. Without it this query is refused.`)),
      h('button', { type: 'button', class: 'primary', on: { click: () => this.addIndex(path, params, plan) } }, 'Add index'));
  }

  /**
   * @param {string[]} path
   * @param {[string, string][]} params
   * @param {{index: string, path: string}} plan
   */
  async addIndex(path, params, plan) {
    try {
      const [{ addIndex }, { deployed, review }] = await Promise.all([import('../rules/text.js'), import('../rules/deploy.js')]);
      const now = await deployed(this.app, this.database);
      const text = addIndex(now.text, split(plan.path), plan.index.replace(/^\$value$/, '.value'));
      if (await review(this.app, this.database, text)) await this.run(path, params);
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * @param {string[]} path
   * @param {[string, string][]} params
   */
  building(path, params) {
    fill(this.problem, h('p', { role: 'status' }, 'The index is being built. The query runs when it is ready.'));
    const timer = setTimeout(() => this.run(path, params), 1000);
    this.stop.signal.addEventListener('abort', () => clearTimeout(timer));
  }

  /**
   * @param {string[]} path
   * @param {import('../lib/query.js').Child[]} rows
   * @param {number} from
   */
  table(path, rows, from) {
    const shown = rows.slice(from, from + pageRows);
    const names = columns(shown);
    const leaves = shown.some((row) => !('children' in row.value));
    const priorities = shown.some((row) => row.priority);
    const head = ['Key', ...(leaves ? ['Value'] : []), ...names, ...(priorities ? ['Priority'] : [])];
    const body = shown.map((row) => h('tr', { data: { key: row.key } },
      h('th', { scope: 'row' }, h('a', { to: address({ screen: 'data', database: this.database, path: [...path, row.key] }) }, marked(row.key, 'code'))),
      leaves ? this.cell('children' in row.value ? '' : row.value.text) : null, ...names.map((name) => this.cell(cell(row, name))), priorities ? this.cell(row.priority ? print(row.priority) : '') : null));
    fill(this.result, shown.length === 0 ? h('p', { class: 'hint empty', role: 'status' }, 'No data: the query selects no children.') : null,
      h('table', { 'aria-label': 'Result', class: 'table' }, h('thead', null, h('tr', null, ...head.map((name) => h('th', { scope: 'col' }, marked(name))))), h('tbody', null, ...body)),
      h('div', { class: 'table-foot' }, h('span', { class: 'hint' }, rows.length > pageRows ? `${count(from + 1)} to ${count(from + shown.length)} of ${several(rows.length, 'row')}` : several(rows.length, 'row')),
        from > 0 ? h('button', { type: 'button', on: { click: () => this.table(path, rows, from - pageRows) } }, 'Previous') : null,
        rows.length > from + pageRows ? h('button', { type: 'button', on: { click: () => this.table(path, rows, from + pageRows) } }, 'More') : null));
  }

  /** @param {string} text */
  cell(text) {
    const type = text.startsWith('"') ? 'string' : /^[tf]/.test(text) ? 'boolean' : /^[-0-9]/.test(text) ? 'number' : 'object';
    return h('td', { data: { type }, class: 'code' }, marked(cut(text, 120)));
  }

  /**
   * @param {string[]} path
   * @param {[string, string][]} params
   */
  copies(path, params) {
    const target = this.app.target(this.database, path, params);
    const line = curl(target);
    /** @type {[string, string][]} */
    const forms = [['curl', line], ['JS', javascript(target)], ['Go', go(target)], ['Python', python(target)], ['REST URL', restURL(target)], ['link', location.origin + address({ screen: 'query', database: this.database, path, params: new URLSearchParams(params) })]];
    fill(this.snippets, h('div', { class: 'copy-as' }, h('span', { class: 'muted' }, 'Copy as'), ...forms.map(([name, text]) => h('button', { type: 'button', class: 'quiet', on: { click: () => this.app.copy(text) } }, name))),
      h('pre', { class: 'code snippet', data: { testid: 'snippet-curl' }, tabIndex: 0, 'aria-label': 'curl' }, line));
  }
}
