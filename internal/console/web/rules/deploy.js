/**
 * Reviewing and deploying rules: the difference to what is deployed now, the indexes
 * that come and go, and a write that is only for the document that was compared.
 */

import { ask, say } from '../core/dialog.js';
import { diff } from '../core/diff.js';
import { h } from '../core/dom.js';
import { ApiError } from '../lib/api.js';
import { several } from '../lib/format.js';
import { encodeKey } from '../lib/route.js';

/** @typedef {import('../app.js').App} App */

/** @param {string} database */
export function rulesRoute(database) {
  return `/v1/databases/${encodeKey(database)}/data/.settings/rules.json`;
}

/**
 * The document that is deployed, with its ETag.
 * @param {App} app
 * @param {string} database
 */
export async function deployed(app, database) {
  const answer = await app.api.send(rulesRoute(database), { headers: { 'X-Firebase-ETag': 'true' } });
  return { text: await answer.text(), etag: answer.headers.get('ETag') ?? '' };
}

/** @typedef {{problems: {line: number, column: number, message: string}[], warnings?: any[], indexes?: {added?: any[], dropped?: any[]}, expiring?: any[], open?: boolean}} Check */

/**
 * @param {App} app
 * @param {string} database
 * @param {string} text
 * @param {AbortSignal} [signal]
 * @returns {Promise<Check>}
 */
export async function check(app, database, text, signal) {
  return JSON.parse(await app.api.text(`/v1/databases/${encodeKey(database)}/rules/check`, { method: 'POST', body: text, signal }));
}

/**
 * Shows the difference and deploys the document, if that is wanted.
 * @param {App} app
 * @param {string} database
 * @param {string} text
 * @returns {Promise<boolean>} whether it was deployed
 */
export async function review(app, database, text) {
  const [now, found] = await Promise.all([deployed(app, database), check(app, database, text)]);
  const problems = found.problems.map((problem) => `${problem.line}:${problem.column} ${problem.message}`);
  const stop = now.text === text || problems.length > 0 || !app.editing.peek();
  const answer = await ask({
    label: 'Deploy rules', buttons: ['Cancel', 'Deploy'], wide: true, ready: () => !stop && app.editing.peek(),
    body: [...remarks(found, now.text === text, problems, app.editing.peek()), lines(now.text, text)],
  });
  if (answer !== 'Deploy') return false;
  try {
    await app.api.send(rulesRoute(database), { method: 'PUT', body: text, headers: now.etag ? { 'if-match': now.etag } : {} });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) throw error;
    const next = await ask({
      label: 'Changed meanwhile', role: 'alertdialog', buttons: ['Cancel', 'Review again'],
      body: [h('p', null, 'Somebody else has deployed rules since you opened the review. Nothing was deployed.')],
    });
    return next === 'Review again' ? review(app, database, text) : false;
  }
  say(`The rules of ${database} were deployed.`);
  return true;
}

/**
 * @param {Check} found
 * @param {boolean} same
 * @param {string[]} problems
 * @param {boolean} editing
 * @returns {HTMLElement[]}
 */
function remarks(found, same, problems, editing) {
  const { added = [], dropped = [] } = found.indexes ?? {};
  const list = (/** @type {any[]} */ indexes) => indexes.map((one) => `${one.index} at ${one.path}`).join(', ');
  const lines = [];
  if (!editing) lines.push(h('p', { class: 'warning' }, '⚠ Editing is off: nothing can be deployed.'));
  if (same) lines.push(h('p', null, 'This is what is deployed already.'));
  for (const problem of problems) lines.push(h('p', { class: 'form-error' }, problem));
  if (found.open) lines.push(h('p', { class: 'warning' }, '⚠ With these rules everybody can read or write everything.'));
  if (added.length > 0) lines.push(h('p', null, `${several(added.length, 'index', 'indexes')} will be built: ${list(added)}.`));
  if (dropped.length > 0) lines.push(h('p', { class: 'warning' }, `⚠ ${several(dropped.length, 'index', 'indexes')} will be dropped: ${list(dropped)}.`));
  for (const { index, path } of found.expiring ?? []) {
    lines.push(h('p', { class: 'warning' }, `⚠ Children at ${path} whose time in ${index} is past will be deleted at once, others when it comes.`));
  }
  return lines;
}

const context = 3; // lines shown around a difference

/**
 * @param {string} before
 * @param {string} after
 */
function lines(before, after) {
  const all = diff(before, after);
  const near = all.map((_, i) => all.slice(Math.max(0, i - context), i + context + 1).some((line) => line.kind !== 'same'));
  const box = h('div', { class: 'diff code', tabIndex: 0, role: 'group', 'aria-label': 'Difference' });
  let gap = false;
  for (const [i, line] of all.entries()) {
    if (!near[i]) {
      if (!gap) box.append(h('div', { class: 'diff-gap', 'aria-hidden': 'true' }, '⋯'));
      gap = true;
      continue;
    }
    gap = false;
    box.append(h('div', { data: line.kind === 'same' ? {} : { diff: line.kind } }, h('span', { class: 'diff-number', 'aria-hidden': 'true' }, String(line.after || line.before)), h('span', { class: 'diff-sign' }, { add: '+', remove: '−', same: ' ' }[line.kind]), h('span', { class: 'diff-text' }, line.text)));
  }
  return box;
}
