/** What is around every screen: the name of the server, the navigation, the switches. */

import { ask } from './core/dialog.js';
import { h, fill, icon } from './core/dom.js';
import { effect, signal } from './core/signal.js';
import { address } from './lib/route.js';
import { labelOf } from './lib/session.js';

/** @typedef {import('./app.js').App} App */

const themeName = 'livetree.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
const theme = signal('light');

/** Sets the theme that was chosen or, if none was, that of the system. */
export function applyTheme() {
  const chosen = localStorage.getItem(themeName);
  theme.value = chosen === 'light' || chosen === 'dark' ? chosen : dark.matches ? 'dark' : 'light';
  document.documentElement.dataset.theme = theme.value;
}
dark.addEventListener('change', applyTheme);

/** The button that changes the theme. */
export function themeButton() {
  return h('button', { type: 'button', class: 'quiet icon-button', 'aria-label': 'Theme', title: 'Light or dark', on: { click: () => {
    localStorage.setItem(themeName, document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
    applyTheme();
  } } }, icon('M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11z'));
}

/** The sign of Livetree: a small tree. */
export function sign() {
  return icon('M8 14V6.5M8 12 4.6 9.4M8 10.5l3.4-2.3M8 2.5a2 2 0 1 1-.01 0M3.5 6.6a1.6 1.6 0 1 1-.01 0M12.5 5.4a1.6 1.6 0 1 1-.01 0');
}

const databaseLinks = [['Data', 'data'], ['Query', 'query'], ['Rules', 'rules'], ['Live', 'live'], ['Access', 'access'], ['Hooks', 'hooks']];
const serverLinks = [['Health', 'health'], ['Databases', 'databases'], ['Backups', 'backups'], ['Settings', 'settings']];

/**
 * @param {App} app
 * @returns {{all: HTMLElement[], main: HTMLElement}}
 */
export function shell(app) {
  const main = h('main', { id: 'main', tabIndex: -1 });
  const database = () => app.route.value?.database || app.keeper.current?.database || lastDatabase(app);
  const link = (/** @type {string} */ name, /** @type {string} */ screen, /** @type {boolean} */ ofDatabase) => h('a', {
    to: () => address(ofDatabase ? { screen, database: database(), path: kept(app, screen) } : { screen }),
    'aria-current': () => (app.route.value?.screen === screen ? 'page' : null),
  }, name);
  const server = serverLinks.filter(([, screen]) => app.operator || screen === 'settings');
  const header = h('header', { class: 'header' },
    h('a', { to: '/console/', class: 'brand', 'aria-label': 'Livetree' }, sign(), h('span', null, 'Livetree')), label(app), picker(app, database),
    h('nav', { 'aria-label': 'Main' },
      ...databaseLinks.filter(([, screen]) => app.operator || screen !== 'hooks').map(([name = '', screen = '']) => link(name, screen, true)), h('span', { class: 'divider', 'aria-hidden': 'true' }),
      ...server.map(([name = '', screen = '']) => link(name, screen, false))),
    h('div', { class: 'header-end' }, editingSwitch(app),
      h('a', { to: '/console/docs', class: 'icon-link docs-link', 'aria-label': 'Docs', title: 'The manual' }, icon('M8 3.5C6.5 2.5 4 2.5 2.5 3v9.5c1.5-.5 4-.5 5.5.5 1.5-1 4-1 5.5-.5V3C12 2.5 9.5 2.5 8 3.5zM8 3.5V13')),
      themeButton(),
      h('button', { type: 'button', class: 'quiet icon-button', 'aria-label': 'Sign out', title: 'Sign out', on: { click: () => app.signOut() } }, icon('M6.5 2.5h-3v11h3M6.5 8h7M10.5 5l3 3-3 3'))));
  return { all: [h('a', { to: '/console/#main', class: 'skip', on: { click: (/** @type {Event} */ event) => (event.preventDefault(), event.stopPropagation(), main.focus()) } }, 'Skip to the content'), header, main], main };
}

/** @type {string} */
let last = '';

/** The database that was looked at last, for links on screens of the server. @param {App} app */
export function lastDatabase(app) {
  return app.keeper.current?.database || last || app.databases.value[0] || 'default';
}

/**
 * Screens that are about a path keep it when one goes from one to the other.
 * @param {App} app
 * @param {string} screen
 */
function kept(app, screen) {
  const route = app.route.value;
  return route && ['data', 'query', 'live'].includes(screen) && ['data', 'query', 'live'].includes(route.screen) ? route.path : [];
}

/** @param {App} app */
function label(app) {
  const element = h('span', { class: 'label' });
  effect(() => {
    const { text, color } = labelOf(app.status.value.label);
    fill(element, text);
    element.hidden = text === '';
    element.dataset.color = color;
    document.documentElement.dataset.label = text ? color : '';
    favicon(text ? color : '');
  });
  return element;
}

const colors = new Map([['red', '%23c62828'], ['orange', '%23c2570c'], ['yellow', '%23a16207'], ['green', '%2315803d'], ['blue', '%231d4ed8'], ['purple', '%237e22ce'], ['grey', '%2357606a']]);

/** @param {string} color */
function favicon(color) {
  const fill = colors.get(color) ?? '%230f766e';
  const image = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='${fill}'/%3E%3Cpath d='M8 13.5V6.5M8 12 5 9.5M8 10.5l3-2.3M8 3a1.8 1.8 0 1 1-.01 0M4 6.5a1.5 1.5 0 1 1-.01 0M12 5.5a1.5 1.5 0 1 1-.01 0' stroke='white' fill='none'/%3E%3C/svg%3E`;
  document.querySelector('link[rel=icon]')?.setAttribute('href', image); // lint: constant colours only
}

/**
 * @param {App} app
 * @param {() => string} database
 */
function picker(app, database) {
  const select = h('select', { 'aria-label': 'Database', class: 'picker' });
  effect(() => {
    const names = app.databases.value;
    const now = database();
    if (app.route.value?.database) last = app.route.value.database;
    fill(select, ...[...new Set([now, ...names])].sort().map((name) => h('option', { value: name }, name)));
    select.value = now;
  });
  select.addEventListener('change', () => {
    const screen = app.route.peek()?.database ? (app.route.peek()?.screen ?? 'data') : 'data';
    app.go(address({ screen, database: select.value }));
  });
  return h('label', { class: 'picker-label' }, h('span', { class: 'muted', 'aria-hidden': 'true' }, 'db'), select);
}

/** @param {App} app */
function editingSwitch(app) {
  return h('button', {
    type: 'button', role: 'switch', class: 'switch', 'aria-checked': () => String(app.editing.value), 'aria-label': 'Editing',
    title: 'While this is off, nothing here changes anything', on: { click: () => app.setEditing(!app.editing.peek()) },
  }, h('span', { class: 'switch-text', 'aria-hidden': 'true' }, 'Editing'), h('span', { class: 'switch-track', 'aria-hidden': 'true' }));
}

const keys = [
  ['Arrows, Home, End, Page Up, Page Down', 'move'], ['Shift with arrows', 'select a range'], ['Right, Left', 'open, close'], ['Enter', 'edit a value, open or close an object'],
  ['F2', 'rename'], ['Insert', 'add a child'], ['Delete', 'delete'], ['Ctrl+Z', 'take the last change back'], ['Ctrl+C', 'copy as JSON'],
  ['/', 'find a key'], ['g', 'go to a path'], ['.', 'pause'], ['?', 'this help'],
];

/** Shows what the keys do. */
export function help() {
  ask({ label: 'Keys', buttons: ['Close'], body: [h('table', { class: 'keys-table' }, h('tbody', null, ...keys.map(([key, does]) => h('tr', null, h('th', { scope: 'row' }, h('kbd', null, key)), h('td', null, does)))))] });
}
