/**
 * The screen Access: tokens to try an app with, the secrets of the database, and service
 * accounts. Secrets are shown on request only, for half a minute.
 */

import { ask, complain, say } from '../core/dialog.js';
import { fill, h } from '../core/dom.js';
import { form } from '../core/form.js';
import { moment } from '../lib/format.js';
import { encodeKey } from '../lib/route.js';

/** @typedef {import('../app.js').App} App */

const showMillis = 30_000;

/**
 * @param {App} app
 * @param {HTMLElement} main
 * @param {import('../lib/route.js').Route} route
 */
export async function show(app, main, route) {
  const base = `/v1/databases/${encodeKey(route.database)}`;
  const secrets = h('ul', { 'aria-label': 'Secrets', class: 'plain-list' });
  const accounts = h('ul', { 'aria-label': 'Service accounts', class: 'plain-list' });
  main.append(h('div', { class: 'screen' }, h('header', null, h('h1', null, 'Access'), h('span', { class: 'muted' }, `to ${route.database}`)), h('div', { class: 'columns' },
    tokens(app, base),
    app.operator ? secretsCard(app, base, secrets) : h('section', { class: 'card' }, h('h2', null, 'Secrets'), h('p', { class: 'hint' }, 'Secrets and service accounts need the operator’s credential.')),
    app.operator ? accountsCard(app, base, accounts, route.database) : null)));
  if (!app.operator) return;
  await Promise.all([listSecrets(app, base, secrets), listAccounts(app, base, accounts)]);
}

/**
 * @param {App} app
 * @param {string} base
 */
function tokens(app, base) {
  const output = h('textarea', { 'aria-label': 'Token', class: 'code', readOnly: true, rows: '4' });
  const expires = h('p', { class: 'hint' });
  const made = form({
    label: 'Make a token', submit: 'Make token',
    fields: [
      { label: 'uid', code: true }, { label: 'Claims', code: true, kind: 'area', hint: 'JSON, such as {"admin": true}. May be empty.' },
      { label: 'Hours', kind: 'number', value: '1', hint: 'How long it is good: at most 24.' },
      { label: 'Debug', kind: 'checkbox', hint: 'Denied requests are explained to its holder.' },
    ],
    done: async (texts) => {
      const claims = (texts.Claims ?? '').trim();
      const hours = Number(texts.Hours);
      if (!(hours > 0 && hours <= 24)) throw new Error('Hours must be a number up to 24.');
      const body = { uid: texts.uid, expires: Math.round(hours * 3600), ...(claims ? { claims: object(claims) } : {}), ...(texts.Debug === 'true' ? { debug: true } : {}) };
      const answer = await app.api.json(base + '/tokens', { body });
      output.value = answer.token;
      fill(expires, answer.expires ? `Good until ${moment(answer.expires)}. ` : '', 'Anybody who has it is that user.');
    },
  });
  return h('section', { class: 'card' }, h('h2', null, 'Make a token'), h('p', { class: 'hint' }, 'A token for trying things as a user: in auth= or with an SDK.'), made.element,
    h('div', { class: 'token' }, h('span', { class: 'field-label', 'aria-hidden': 'true' }, 'Token'), output, h('button', { type: 'button', on: { click: () => output.value && app.copy(output.value) } }, 'Copy token'), expires));
}

/** @param {string} text */
function object(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('Claims must be JSON, such as {"admin": true}.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('Claims must be an object, such as {"admin": true}.');
  return value;
}

/**
 * @param {App} app
 * @param {string} base
 * @param {HTMLElement} list
 */
function secretsCard(app, base, list) {
  const add = async () => {
    try {
      await app.api.json(base + '/secrets', { body: {} });
      say('A secret was added.');
      await listSecrets(app, base, list);
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  };
  return h('section', { class: 'card' }, h('h2', null, 'Secrets'), h('p', { class: 'hint' }, 'Whoever has a secret stands above the rules of this database.'), list,
    h('div', { class: 'buttons' }, h('button', { type: 'button', disabled: () => !app.editing.value, on: { click: add } }, 'Add secret')));
}

/**
 * @param {App} app
 * @param {string} base
 * @param {HTMLElement} list
 */
async function listSecrets(app, base, list) {
  const { secrets } = await app.api.json(base + '/secrets');
  fill(list, ...secrets.map((/** @type {{id: string}} */ one) => {
    const value = h('code', { class: 'secret-value' });
    const item = h('li', { data: { id: one.id } }, h('span', { class: 'code' }, one.id), value, h('span', { class: 'fill' }),
      h('button', { type: 'button', class: 'quiet', on: { click: () => reveal(app, base, one.id, value) } }, 'Show'),
      h('button', { type: 'button', class: 'quiet', on: { click: () => removeSecret(app, base, one.id, list) } }, 'Remove'));
    return item;
  }));
}

/**
 * @param {App} app
 * @param {string} base
 * @param {string} id
 * @param {HTMLElement} box
 */
async function reveal(app, base, id, box) {
  try {
    const { secrets } = await app.api.json(base + '/secrets?show=true');
    fill(box, secrets.find((/** @type {{id: string, value?: string}} */ one) => one.id === id)?.value ?? '');
    setTimeout(() => fill(box), showMillis);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {App} app
 * @param {string} base
 * @param {string} id
 * @param {HTMLElement} list
 */
async function removeSecret(app, base, id, list) {
  if (!app.editing.peek()) return complain('Editing is off. Switch it on to remove a secret.');
  const answer = await ask({ label: 'Remove secret', role: 'alertdialog', buttons: ['Cancel', 'Remove'], danger: true, body: [h('p', null, 'Programs and sessions that use the secret ', h('code', null, id), ' are refused from then on, and the tokens it signed.')] });
  if (answer !== 'Remove') return;
  try {
    await app.api.json(`${base}/secrets/${encodeURIComponent(id)}`, { method: 'DELETE' });
    say(`The secret ${id} was removed.`);
    await listSecrets(app, base, list);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {App} app
 * @param {string} base
 * @param {HTMLElement} list
 * @param {string} database
 */
function accountsCard(app, base, list, database) {
  const made = form({
    label: 'New service account', submit: 'Make key file', class: 'inline-form', fields: [{ label: 'Name', code: true, hint: 'The key is made in this browser and saved as a file. The server gets the public half.' }],
    done: async (texts) => {
      if (!app.editing.peek()) throw new Error('Editing is off.');
      const { makeKeyFile } = await import('./keyfile.js');
      const origin = app.status.peek().data_urls?.[0] ?? 'https://127.0.0.1:9000';
      const url = await makeKeyFile(app.api, base, database, texts.Name ?? '', origin);
      say(`The key file of ${texts.Name} was saved.`);
      url.click();
      await listAccounts(app, base, list);
    },
  });
  return h('section', { class: 'card' }, h('h2', null, 'Service accounts'), list, h('fieldset', { class: 'guard', disabled: () => !app.editing.value }, made.element));
}

/**
 * @param {App} app
 * @param {string} base
 * @param {HTMLElement} list
 */
async function listAccounts(app, base, list) {
  const { accounts } = await app.api.json(base + '/accounts');
  fill(list, ...(accounts.length === 0 ? [h('li', { class: 'hint' }, 'None yet.')] : accounts.map((/** @type {any} */ one) => h('li', null,
    h('span', null, one.name, h('span', { class: 'muted' }, ` key ${String(one.key_id).slice(0, 8)} · ${moment(one.created)}`)), h('span', { class: 'fill' }),
    h('button', { type: 'button', class: 'quiet', on: { click: () => revoke(app, base, one.key_id, list) } }, 'Revoke')))));
}

/**
 * @param {App} app
 * @param {string} base
 * @param {string} id
 * @param {HTMLElement} list
 */
async function revoke(app, base, id, list) {
  if (!app.editing.peek()) return complain('Editing is off. Switch it on to revoke a key.');
  const answer = await ask({ label: 'Revoke key', role: 'alertdialog', buttons: ['Cancel', 'Revoke'], danger: true, body: [h('p', null, 'Programs that use this key are refused from then on.')] });
  if (answer !== 'Revoke') return;
  try {
    await app.api.json(`${base}/accounts/${encodeURIComponent(id)}`, { method: 'DELETE' });
    await listAccounts(app, base, list);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}
