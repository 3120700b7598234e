/** The screen Settings: what the server runs with, read only, and who changed what. */

import { fill, h } from '../core/dom.js';
import { marked } from '../core/marks.js';
import { moment } from '../lib/format.js';
import { encodeKey } from '../lib/route.js';
import { lastDatabase } from '../shell.js';

/**
 * @param {import('../app.js').App} app
 * @param {HTMLElement} main
 */
export async function show(app, main) {
  const facts = h('dl', { class: 'facts' });
  const settings = h('div', { class: 'table-scroll', tabIndex: 0, role: 'group', 'aria-label': 'Settings' });
  const audit = h('div', { class: 'table-scroll', tabIndex: 0, role: 'group', 'aria-label': 'Audit list' });
  main.append(h('div', { class: 'screen' }, h('header', null, h('h1', null, 'Settings')), h('section', { class: 'card narrow' }, h('h2', null, 'This server'), facts),
    app.operator ? [h('h2', null, 'Settings and where they come from'), settings, h('h2', null, 'Audit list'), audit] : null));
  const database = lastDatabase(app);
  const [status, dialect] = await Promise.all([app.api.json('/v1/status'), app.api.json(`/v1/databases/${encodeKey(database)}/data/.settings/dialect.json`).catch(() => null)]);
  const session = app.keeper.current;
  fill(facts, ...[['Version', status.version], ['Address', (status.data_urls ?? []).join(', ')], ['Certificate authority', status.ca_file], [`Dialect of ${database}`, dialect], ['Mode', (status.dev ?? session?.dev) ? 'development: open to this machine' : 'normal'], ['Signed in as', session?.scope === 'database' ? `database ${session.database}` : 'operator'], ['Session until', moment(session?.expires ?? '')]]
    .filter(([, text]) => text).flatMap(([name, text]) => [h('dt', null, name), h('dd', null, marked(String(text)))]));
  if (!app.operator) return;
  const [config, log] = await Promise.all([app.api.json('/v1/config').catch(failed), app.api.json('/v1/audit').catch(failed)]);
  fill(settings, table('Settings', ['Setting', 'Value', 'Origin'], settingRows(config)));
  fill(audit, table('Audit list', ['Time', 'What', 'Details'], auditRows(log)));
}

/** @param {Error} error */
function failed(error) {
  return { failed: error.message };
}

/** @param {any} config @returns {string[][]} */
function settingRows(config) {
  if (config.failed) return [['', config.failed, '']];
  const list = Array.isArray(config) ? config : Array.isArray(config.settings) ? config.settings : Object.entries(config).map(([name, one]) => (one && typeof one === 'object' ? { name, ...one } : { name, value: one }));
  return list.map((/** @type {any} */ one) => [one.name ?? one.key ?? '', plain(one.value), one.origin ?? one.from ?? '']);
}

/** @param {any} log @returns {string[][]} */
function auditRows(log) {
  if (log.failed) return [['', log.failed, '']];
  const list = Array.isArray(log) ? log : (log.audit ?? log.entries ?? []);
  return list.slice(0, 500).map((/** @type {any} */ { time, what, action, event, ...rest }) => [moment(time), what ?? action ?? event ?? '', Object.entries(rest).map(([name, value]) => `${name} ${plain(value)}`).join(' · ')]);
}

/** @param {unknown} value */
function plain(value) {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '');
}

/**
 * @param {string} label
 * @param {string[]} head
 * @param {string[][]} rows
 */
function table(label, head, rows) {
  return h('table', { 'aria-label': label, class: 'table' }, h('thead', null, h('tr', null, ...head.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, ...rows.map(([first = '', ...others]) => h('tr', null, h('th', { scope: 'row', class: 'nowrap' }, marked(first)), ...others.map((text) => h('td', { class: 'code' }, marked(text)))))));
}
