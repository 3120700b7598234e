// Agents in pages of Chromium.
//
// The SDK is what the package has for pages: the files that Google serves at
// gstatic.com, answered here from the package.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { chromium } from 'playwright-core';

import { remote } from './remote.mjs';

const here = (name) => new URL(name, import.meta.url);
const packageOf = (from, name) => readFileSync(here(`node_modules/${from}/${name}`));

const modular = (version) => `
import * as app from 'https://www.gstatic.com/firebasejs/${version}/firebase-app.js';
import * as database from 'https://www.gstatic.com/firebasejs/${version}/firebase-database.js';
import { Agent } from './agent.mjs';
import { Login } from './login.mjs';
import { makeModular } from './modular.mjs';
window.agent = new Agent(makeModular(app, database, new Login()));`;

const compat = `
import { Agent } from './agent.mjs';
import { makeCompat, openFirebase } from './compat.mjs';
import { Login } from './login.mjs';
const login = new Login();
window.agent = new Agent(makeCompat(firebase.database, openFirebase(firebase, login), login));`;

const gstatic = (version) => `https://www.gstatic.com/firebasejs/${version}/`;

// pageFor returns the page that holds an agent.
function pageFor(kind, version) {
  if (kind === 'modular') {
    return `<!doctype html><title>check</title><script type="module">${modular(version)}</script>`;
  }
  const scripts = ['app', 'database'].map((n) => `<script src="${gstatic(version)}firebase-${n}-compat.js"></script>`);
  return `<!doctype html><title>check</title>${scripts.join('')}<script type="module">${compat}</script>`;
}

// A Browser makes agents. key is that of the server's certificate, as Chromium
// takes it.
export class Browser {
  static async launch(executablePath, key) {
    const browser = new Browser();
    browser.pages = createServer((request, answer) => browser.answer(request, answer)).listen(0, '127.0.0.1');
    await once(browser.pages, 'listening');
    browser.chromium = await chromium.launch({
      executablePath, args: ['--no-sandbox', `--ignore-certificate-errors-spki-list=${key}`],
    });
    return browser;
  }

  answer(request, answer) {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    if (pathname === '/') {
      answer.setHeader('Content-Type', 'text/html; charset=utf-8');
      answer.end(pageFor(searchParams.get('kind'), searchParams.get('version')));
    } else if (/^\/[a-z]+\.mjs$/.test(pathname)) {
      answer.setHeader('Content-Type', 'text/javascript; charset=utf-8');
      answer.end(readFileSync(here(`.${pathname}`)));
    } else {
      answer.writeHead(404).end();
    }
  }

  // start opens a page, in a context of its own, with an SDK such as
  // modular:firebase. If failed, its storage says that the last websocket failed.
  async start(sdk, { failed = false } = {}) {
    const [kind, from] = sdk.split(':');
    const { version } = JSON.parse(packageOf(from, 'package.json'));
    const context = await this.chromium.newContext();
    const page = await context.newPage();
    const traffic = { sockets: 0, polls: 0 };
    page.on('websocket', () => { traffic.sockets++; });
    page.on('request', (r) => { traffic.polls += r.url().includes('/.lp?') ? 1 : 0; });
    page.on('pageerror', (e) => console.log(`page: ${e.message}`));
    if (process.env.SDK_VERBOSE) {
      page.on('console', (m) => console.log(`page: ${m.text()}`));
    }
    await context.route(`${gstatic(version)}*`, (route) => route.fulfill({
      contentType: 'text/javascript', headers: { 'Access-Control-Allow-Origin': '*' },
      body: packageOf(from, route.request().url().slice(gstatic(version).length)),
    }));
    if (failed) {
      await context.addInitScript(() => {
        if (location.protocol === 'http:') { // the frame of the polls has no storage
          localStorage.setItem('firebase:previous_websocket_failure', 'true');
        }
      });
    }
    await page.goto(`http://localhost:${this.pages.address().port}/?kind=${kind}&version=${version}`);
    await page.waitForFunction(() => window.agent);
    const send = (method, args) => page.evaluate(([method, args]) => window.agent.call(method, args), [method, args])
      .catch((e) => ({ error: { message: e.message } }));
    // A websocket ends with its page. By polls, a page that is left tells the server, which
    // it could not if the browser went with it.
    const kill = async () => { await page.goto('about:blank'); };
    const agent = remote(send, kill, () => context.close());
    // isQuiet reports whether no poll was made for two seconds.
    const isQuiet = async () => {
      const before = traffic.polls;
      await new Promise((resolve) => { setTimeout(resolve, 2000); });
      return traffic.polls === before;
    };
    return Object.assign(agent, { traffic, isQuiet });
  }

  get version() { return this.chromium.version(); }

  async close() {
    await this.chromium.close();
    this.pages.close();
  }
}
