/**
 * The screen Query: an order, bounds and a limit over the children of a node, the result
 * as a table, the plan, and the same query for elsewhere. The address holds it all.
 */

import { complain } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { marked } from '../core/marks.js';
import { effect, onEnd, signal } from '../core/signal.js';
import { millis } from '../lib/format.js';
import { children, firstTexts, toFields, toParams } from '../lib/query.js';
import { address, dataRoute, join, pasted, split } from '../lib/route.js';
import { curl, go, javascript, python, restURL } from '../lib/snippet.js';
import { ResultTable } from './table.js';

/** @typedef {import('../app.js').App} App */
/** @typedef {import('../lib/route.js').Route} Route */

const maxText = 8_000_000; // a longer result is not shown
const maxLimit = 10_000; // "More" asks for no more rows than these

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
    this.stop = new AbortController(); // of the query that was run last
    onEnd(() => {
      this.left = true;
      this.stop.abort();
    });
    this.draft = `livetree.draft.query.${route.database}`;
    const first = firstTexts(route, location.pathname + location.search, this.kept());
    const bound = (/** @type {'Start at' | 'Start after' | 'End at' | 'End before' | 'Equal to'} */ label) => ({ label, value: first[label], code: true });
    this.form = form({
      label: 'Query', submit: 'Run', class: 'query-form',
      fields: [
        { label: 'Path', value: first.Path, code: true },
        { label: 'Order by', value: first['Order by'], code: true, suggestions: ['$key', '$value', '$priority'] },
        bound('Start at'), ...(first['Start after'] ? [bound('Start after')] : []), bound('End at'), ...(first['End before'] ? [bound('End before')] : []), bound('Equal to'),
        { label: 'Limit', kind: 'select', options: ['none', 'first', 'last'], value: first.Limit }, { label: 'Count', kind: 'number', value: first.Count },
      ],
      done: (texts) => this.submit(texts),
    });
    this.form.element.addEventListener('input', () => sessionStorage.setItem(this.draft, JSON.stringify({ at: location.pathname + location.search, texts: this.form.texts() })));
    this.table = new ResultTable(app, route.database, () => this.again());
    this.problem = h('div', { role: 'alert', class: 'query-problem' });
    this.plan = h('section', { 'aria-label': 'Plan', class: 'plan' });
    this.snippets = h('div', { class: 'snippets' });
    this.element = h('div', { class: 'screen query-screen' }, h('h1', { class: 'sr-only' }, 'Query'), h('div', { class: 'card' }, this.form.element), this.problem, this.plan, this.table.element, this.snippets);
    effect(() => this.copies(this.last.value, app.status.value)); // which says where the data is served
    if (route.params.size === 0) this.table.say('Bounds are JSON: "ann", 42, true. Order by $key, $value, $priority or a child path such as owner/name.');
  }

  /** What was typed here before and not run. @returns {import('../lib/query.js').Draft | null} */
  kept() {
    try {
      const found = JSON.parse(sessionStorage.getItem(this.draft) ?? 'null');
      return found && typeof found.at === 'string' && found.texts && typeof found.texts === 'object' ? found : null;
    } catch {
      return null;
    }
  }

  left = false; // whether another screen is shown by now

  /** The query that was run last. @type {import('../core/signal.js').Signal<{path: string[], params: [string, string][]} | null>} */
  last = signal(/** @type {any} */ (null));

  /** Runs it again, after something was written. */
  async again() {
    const last = this.last.peek();
    if (last) await this.run(last.path, last.params);
  }

  /** Asks for twice as many rows. */
  more() {
    const control = this.form.controls.Count;
    if (!control) return;
    control.value = String(Math.min(maxLimit, 2 * Number(control.value)));
    this.form.element.requestSubmit();
  }

  /** @param {Record<string, string>} texts */
  async submit(texts) {
    const params = toParams(/** @type {any} */ (texts));
    const typed = texts.Path ?? '/';
    const path = /^https?:|\.json|^\/console\//.test(typed) ? pasted(typed, { screen: 'query', database: this.database, path: [], params: new URLSearchParams() }).path : split(typed);
    sessionStorage.removeItem(this.draft);
    this.app.go(address({ screen: 'query', database: this.database, path, params: new URLSearchParams(params) }), { quiet: true });
    await this.run(path, params);
  }

  /**
   * @param {string[]} path
   * @param {[string, string][]} params
   */
  async run(path, params) {
    if (this.left) return;
    this.stop.abort(); // the answer to an older query must not come after that to this one
    const { signal } = (this.stop = new AbortController());
    fill(this.problem);
    this.last.value = { path, params };
    const url = dataRoute(this.database, path);
    const search = new URLSearchParams(params);
    try {
      const plan = await this.app.api.json(`${url}?${search}&explain=true`, { signal });
      this.showPlan(plan, null);
      if (plan.state === 'missing') return this.missing(path, params, plan);
      if (plan.state === 'building') return this.building(path, params);
      const began = performance.now();
      const text = await this.read(`${url}?${search}&format=export`, signal);
      this.showPlan(plan, performance.now() - began);
      if (text === null) return fill(this.problem, 'The result is larger than 8 MB. Set a limit, or tighter bounds.');
      this.show(path, params, text);
    } catch (error) {
      if (signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      if (/index not defined/i.test(message)) return this.missing(path, params, { index: toFields(search)['Order by'], path: join(path) }, message);
      fill(this.problem, message);
      this.table.say('');
    }
  }

  /** @param {string} url @param {AbortSignal} signal @returns {Promise<string | null>} */
  async read(url, signal) {
    const answer = await this.app.api.send(url, { signal });
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
    this.table.say('');
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
   * @param {[string, string][]} params
   * @param {string} text
   */
  show(path, params, text) {
    const { 'Order by': order, Limit, Count } = toFields(new URLSearchParams(params));
    const rows = children(text, order);
    const limit = params.filter(([name]) => name.startsWith('limitTo'));
    this.table.show({
      path, rows, order,
      sort: (column) => address({ screen: 'query', database: this.database, path, params: new URLSearchParams([['orderBy', JSON.stringify(column)], ...limit]) }),
      more: Limit !== 'none' && rows.length === Number(Count) && rows.length < maxLimit ? () => this.more() : null,
    });
  }

  /**
   * @param {{path: string[], params: [string, string][]} | null} asked
   * @param {any} status
   */
  copies(asked, status) {
    if (!asked || !status.data_urls) return fill(this.snippets);
    const { path, params } = asked;
    const target = this.app.target(this.database, path, params);
    const line = curl(target);
    /** @type {[string, string][]} */
    const forms = [['curl', line], ['JS', javascript(target)], ['Go', go(target)], ['Python', python(target)], ['REST URL', restURL(target)], ['link', location.origin + address({ screen: 'query', database: this.database, path, params: new URLSearchParams(params) })]];
    fill(this.snippets, h('div', { class: 'copy-as' }, h('span', { class: 'muted' }, 'Copy as'), ...forms.map(([name, text]) => h('button', { type: 'button', class: 'quiet', on: { click: () => this.app.copy(text) } }, name))),
      h('pre', { class: 'code snippet', data: { testid: 'snippet-curl' }, tabIndex: 0, 'aria-label': 'curl' }, line));
  }
}
