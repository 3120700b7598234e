/** Simulations: what the rules in the editor would say to a request. Nothing is stored. */

import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { marked } from '../core/marks.js';
import { cut } from '../lib/format.js';
import { parse } from '../lib/json.js';
import { encodeKey } from '../lib/route.js';

/**
 * @param {import('../app.js').App} app
 * @param {string} database
 * @param {() => string} rules
 * @param {(line: number, column: number) => void} go
 */
export function simulateForm(app, database, rules, go) {
  const key = `livetree.draft.simulate.${database}`;
  /** @type {Record<string, string>} */
  let kept = {};
  try {
    kept = JSON.parse(sessionStorage.getItem(key) ?? '{}');
  } catch {
    // A draft that cannot be read is none.
  }
  const result = h('div', { class: 'simulation', 'aria-live': 'polite' });
  const made = form({
    label: 'Simulate', submit: 'Simulate', class: 'simulate-form',
    fields: [
      { label: 'Operation', kind: 'select', options: ['read', 'put', 'patch', 'post', 'delete'], value: kept.Operation ?? 'read' },
      { label: 'Path', code: true, value: kept.Path ?? '/' },
      { label: 'Auth', code: true, kind: 'area', value: kept.Auth ?? '', hint: 'JSON such as {"uid": "ann"}; empty for nobody.' },
      { label: 'Data', code: true, kind: 'area', value: kept.Data ?? '', hint: 'JSON, for writes.' },
    ],
    done: async (texts) => {
      sessionStorage.setItem(key, JSON.stringify(texts));
      fill(result);
      const auth = json(texts.Auth ?? '', 'Auth');
      const data = json(texts.Data ?? '', 'Data');
      const answer = await app.api.json(`/v1/databases/${encodeKey(database)}/rules/simulate`, {
        body: { rules: rules(), operation: texts.Operation, path: texts.Path || '/', auth: auth === null ? null : JSON.parse(auth), ...(data === null ? {} : { data }) },
      });
      show(result, answer, go);
    },
  });
  for (const name of ['Auth', 'Data']) /** @type {HTMLTextAreaElement} */ (made.controls[name]).rows = 2;
  return h('div', null, made.element, result);
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

/**
 * @param {HTMLElement} box
 * @param {any} answer
 * @param {(line: number, column: number) => void} go
 */
function show(box, answer, go) {
  const by = answer.by;
  const trace = (answer.trace ?? []).slice(0, 200).map((/** @type {any} */ step) => h('li', { data: { line: String(step.line), outcome: String(step.outcome) } },
    h('button', { type: 'button', class: 'quiet', on: { click: () => go(step.line, step.column) } },
      h('span', { class: 'outcome' }, String(step.outcome)), h('span', { class: 'code' }, `${step.line}:${step.column}`), ' ', marked(`${step.path} ${step.kind}`, 'code'),
      step.text ? marked(cut(step.text, 200), 'code muted trace-text') : null, step.error ? marked(step.error, 'form-error') : null)));
  fill(box, h('p', { class: 'verdict-line' }, h('strong', { data: { testid: 'verdict', verdict: answer.allowed ? 'allowed' : 'denied' } }, answer.allowed ? 'allowed' : 'denied'),
    by ? [' by ', marked(`${by.path} ${by.kind}`, 'code'), ` ${by.line}:${by.column}`] : null),
  answer.index ? h('p', { class: 'warning' }, marked(typeof answer.index === 'string' ? answer.index : JSON.stringify(answer.index))) : null,
  h('ol', { 'aria-label': 'Trace', class: 'trace' }, ...trace));
}
