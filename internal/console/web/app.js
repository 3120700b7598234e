/**
 * The console: who is signed in, which screen is shown, where links lead.
 *
 * Nothing is global but the session, the theme and the route; each screen is a module
 * of its own, loaded when it is first shown, with a function show(app, main, route).
 * A screen makes its effects before it first waits for the server, so that they end
 * with it.
 */

import { complain, forgive, messages, say } from './core/dialog.js';
import { fill, h } from './core/dom.js';
import { scope, signal } from './core/signal.js';
import { Api, ApiError } from './lib/api.js';
import { address, join, parseAddress } from './lib/route.js';
import { SessionKeeper, codeOf, labelOf } from './lib/session.js';
import { applyTheme, help, shell } from './shell.js';

/** @typedef {import('./lib/route.js').Route} Route */

// The one-time code leaves the address before anything else is done.
const code = codeOf(location.hash);
if (code) history.replaceState(history.state, '', location.pathname + location.search);

/** @type {Record<string, () => Promise<{show(app: App, main: HTMLElement, route: Route): unknown}>>} */
const screens = {
  data: () => import('./tree/screen.js'),
  past: () => import('./past/screen.js'), // the screen Data at a moment
  query: () => import('./query/screen.js'),
  rules: () => import('./rules/screen.js'),
  live: () => import('./live/screen.js'),
  access: () => import('./access/screen.js'),
  hooks: () => import('./hooks/screen.js'),
  health: () => import('./health/screen.js'),
  databases: () => import('./databases/screen.js'),
  backups: () => import('./databases/backups.js'),
  settings: () => import('./settings/screen.js'),
  docs: () => import('./docs/screen.js'),
};

/** @type {Promise<unknown> | undefined} */
let sheet;

/** Fetches the style sheet of the screens beside Data, once. */
function styled() {
  return (sheet ??= new Promise((resolve, reject) => {
    const link = h('link', { rel: 'stylesheet', to: new URL('screens.css', import.meta.url).pathname, on: { load: resolve, error: () => ((sheet = undefined), link.remove(), reject(new Error('The server cannot be reached.'))) } });
    document.head.append(link);
  }));
}

export class App {
  constructor() {
    this.keeper = new SessionKeeper(sessionStorage, new BroadcastChannel('livetree-console'), () => this.start());
    this.api = new Api(() => this.keeper.current?.session ?? '', () => this.ended());
    /** @type {import('./core/signal.js').Signal<Route | null>} */
    this.route = signal(/** @type {Route | null} */ (null));
    this.editing = signal(false);
    /** @type {import('./core/signal.js').Signal<string[]>} */
    this.databases = signal(/** @type {string[]} */ ([]));
    /** What /v1/status says. @type {import('./core/signal.js').Signal<any>} */
    this.status = signal(/** @type {any} */ ({}));
    this.focusTree = false;
    this.endScreen = () => {};
    this.endShell = () => {};
    this.turn = 0;
    addEventListener('popstate', () => this.keeper.current && this.shown && this.show());
    document.addEventListener('click', (event) => this.click(event));
    document.addEventListener('keydown', (event) => this.key(event));
  }

  shown = false; // whether the shell is in the page

  get operator() {
    return this.keeper.current?.scope === 'operator';
  }

  /** Signs in by code, by a sister tab or by what the tab has; else asks. */
  async start(once = '') {
    const refusal = once ? await this.exchange({ code: once }) : '';
    if (!this.keeper.current) await this.keeper.askSisters();
    if (this.keeper.current) return this.enter();
    this.leave();
    const { signIn } = await import('./signin.js');
    if (this.keeper.current) return;
    document.body.replaceChildren(signIn(this, refusal), messages);
    document.title = 'Sign in – Livetree';
    this.ready('signed-out');
  }

  /**
   * Exchanges a credential or code for a session. Returns what to tell the user if it
   * was refused.
   * @param {{code: string} | {credential: string, database?: string}} proof
   * @returns {Promise<string>}
   */
  async exchange(proof) {
    try {
      const session = await this.api.json('/v1/sessions', { body: proof });
      this.keeper.keep(session);
      sessionStorage.setItem('livetree.editing', String(Boolean(session.dev)));
      return '';
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 0) return 'The server cannot be reached.';
      if (status === 429) return 'Too many wrong credentials are being tried, so this one was refused. Try again in a moment.';
      if ('code' in proof) return 'The link was refused: it works once, for 10 minutes. Run livetree console for a new one, or sign in here.';
      return status === 401 ? 'The credential was refused.' : `Refused: ${error instanceof Error ? error.message : ''}`;
    }
  }

  /** Shows the shell and the screen of the address. */
  async enter() {
    const { label, dev } = this.keeper.current ?? {};
    this.editing.value = (sessionStorage.getItem('livetree.editing') ?? String(Boolean(dev))) === 'true';
    this.status.value = { label };
    this.leave();
    forgive();
    const [elements, end] = scope(() => shell(this));
    this.endShell = end;
    this.main = elements.main;
    document.body.replaceChildren(...elements.all, messages);
    this.shown = true;
    this.stale = true;
    await this.show();
  }

  leave() {
    this.endScreen();
    this.endScreen = () => {};
    this.endShell();
    this.endShell = () => {};
    this.shown = false;
  }

  /** @type {HTMLElement | undefined} */
  main;

  stale = false; // whether the status is still to be asked for

  async refreshStatus() {
    this.stale = false;
    try {
      const [status, list] = await Promise.all([this.api.json('/v1/status'), this.operator ? this.api.json('/v1/databases') : null]);
      this.status.value = { ...this.status.peek(), ...status };
      const mine = this.keeper.current?.database;
      this.databases.value = list ? list.databases.map((/** @type {{name: string}} */ one) => one.name) : mine ? [mine] : [];
    } catch {
      // The page works without; health and databases say what is wrong.
    }
  }

  /** The address to go to when none is given. */
  async home() {
    const session = this.keeper.current;
    if (session?.scope === 'database') return address({ screen: 'data', database: session.database ?? '' });
    const { databases } = await this.api.json('/v1/databases');
    const names = databases.map((/** @type {{name: string}} */ one) => one.name);
    this.databases.value = names;
    const first = names.includes('default') ? 'default' : names[0];
    return first ? address({ screen: 'data', database: first }) : address({ screen: 'databases' });
  }

  async show() {
    const main = this.main;
    if (!main) return;
    const turn = ++this.turn;
    this.endScreen();
    this.endScreen = () => {};
    try {
      if (!parseAddress(location.pathname, location.search)) history.replaceState(null, '', await this.home());
      const route = parseAddress(location.pathname, location.search);
      const name = route?.screen === 'data' && route.params.has('at') ? 'past' : (route?.screen ?? '');
      const load = screens[name];
      if (!route || !load || turn !== this.turn) return;
      this.route.value = route;
      queueMicrotask(() => document.querySelector('.header [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }));
      document.title = this.title(route);
      const [module] = await Promise.all([load(), name === 'data' || styled()]);
      if (turn !== this.turn) return;
      fill(main);
      main.dataset.screen = name;
      const [done, end] = scope(() => module.show(this, main, route));
      this.endScreen = end;
      if (this.stale) this.refreshStatus(); // what the screen shows is asked for first
      await done;
    } catch (error) {
      if (turn !== this.turn || !this.keeper.current) return;
      fill(main, h('div', { role: 'alert', class: 'failure' }, h('h1', null, 'This screen cannot be shown'), h('p', null, error instanceof Error ? error.message : String(error)),
        h('button', { type: 'button', on: { click: () => this.show() } }, 'Try again')));
    }
    if (turn === this.turn && this.keeper.current) this.ready('signed-in');
  }

  /** @param {Route} route */
  title(route) {
    const label = labelOf(this.status.peek().label).text;
    const name = route.screen[0]?.toUpperCase() + route.screen.slice(1);
    const where = route.database ? `${route.screen === 'data' ? '' : name + ' '}${join(route.path)} – ${route.database}` : name;
    return `${where} – ${label ? label + ' ' : ''}Livetree`;
  }

  /** @param {'signed-in' | 'signed-out'} state */
  ready(state) {
    document.documentElement.dataset.ready = state;
    if (performance.getEntriesByName('console-ready').length === 0) performance.mark('console-ready');
  }

  /**
   * Goes to an address of the console.
   * @param {string} to
   * @param {{replace?: boolean, quiet?: boolean}} [how] quiet: the screen already shows it
   */
  go(to, how = {}) {
    if (how.replace) history.replaceState(null, '', to);
    else if (to !== location.pathname + location.search) history.pushState(null, '', to);
    if (how.quiet) {
      const route = parseAddress(location.pathname, location.search);
      if (route) document.title = this.title(route);
    } else this.show();
  }

  /** @param {MouseEvent} event */
  click(event) {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || link.hasAttribute('download')) return;
    const to = link.getAttribute('href') ?? '';
    if (!to.startsWith('/console/') || !this.shown) return;
    event.preventDefault();
    this.go(to);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const typing = event.target instanceof HTMLElement && event.target.closest('input, textarea, select, [contenteditable]');
    if (event.key === '?' && !typing && this.shown) help();
  }

  /** The session has ended: asks for a new one and comes back to this address. */
  ended() {
    if (!this.keeper.current) return;
    this.keeper.end();
    this.start().then(() => complain('Your session has ended. Sign in again.'));
  }

  async signOut() {
    await this.api.json('/v1/sessions/current', { method: 'DELETE' }).catch(() => {});
    this.keeper.end();
    sessionStorage.removeItem('livetree.editing');
    this.start();
  }

  /** @param {boolean} on */
  setEditing(on) {
    this.editing.value = on;
    sessionStorage.setItem('livetree.editing', String(on));
  }

  /**
   * Puts a text on the clipboard.
   * @param {string} text
   */
  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      say('Copied.');
    } catch {
      complain('The browser does not allow copying.');
    }
  }

  /**
   * What a snippet is for.
   * @param {string} database
   * @param {string[]} path
   * @param {[string, string][]} [params]
   * @returns {import('./lib/snippet.js').Target}
   */
  target(database, path, params = []) {
    const { data_urls: urls, ca_file: ca, default_database: first = 'default' } = this.status.peek();
    return { base: urls?.[0] ?? 'https://127.0.0.1:9000', database, named: database !== first, path, params, ca };
  }
}

applyTheme();
new App().start(code);
