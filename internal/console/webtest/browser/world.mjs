// A server and a browser for the tests: starts both, signs in, and notes what no page may
// do: complain, break its policy, or ask another origin. CONSOLE_DIR takes the page from there
// instead of the program.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { chromium } from 'playwright-core';

/** Starts a program and waits until it listens. */
async function startProgram(data, addr, adminAddr, flags) {
  const child = spawn(process.env.LIVETREE, ['serve', '--data', data, '--addr', addr, '--admin-addr', adminAddr, ...(process.env.CONSOLE_DIR ? ['--console-dir', process.env.CONSOLE_DIR] : []), ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  const program = { child, log: '', ended: new Promise((resolve) => child.on('exit', resolve)) };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (program.log = (program.log + part).slice(-200_000)));
  for (let i = 0; !/listening on/.test(program.log); i++) {
    if (i > 600 || child.exitCode !== null) throw new Error(`the server does not start: ${program.log}`);
    await rest(100);
  }
  return program;
}

/** Starts a server on free ports and returns how to reach it. */
export async function startServer(...flags) {
  const data = mkdtempSync(join(tmpdir(), 'livetree-console-'));
  let program = await startProgram(data, '127.0.0.1:0', '127.0.0.1:0', flags);
  const read = (name) => readFileSync(join(data, 'admin', name), 'utf8').trim();
  const base = read('addr');
  let agent;
  const call = async (method, path, body, headers = {}) => fetch(base + path, { method, body, headers: { Authorization: `Bearer ${read('token')}`, ...headers } });
  return {
    base, data, call,
    get token() {
      return read('token');
    },
    /** What the server has logged. */
    get log() {
      return program.log;
    },
    /** A request to the tree, as the operator of the database. */
    async rest(method, path, body, params = '') {
      const answer = await call(method, `/v1/databases/default/data${path}.json${params}`, body);
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return text;
    },
    /** A GET at the port of the data, as a client makes it. Returns the status. */
    dataRequest: (url, path) => new Promise((resolve, reject) => {
      agent ??= new Agent({ keepAlive: true, ca: readFileSync(join(data, 'tls', 'ca.pem')) });
      request(url + path, { agent }, (answer) => answer.resume().on('end', () => resolve(answer.statusCode))).on('error', reject).end();
    }),
    async code() {
      const { url } = await (await call('POST', '/v1/codes')).json();
      return new URL(url).hash;
    },
    /** Ends the program by a signal, and starts it again on the same ports once between is through. */
    async restart(signal = 'SIGTERM', between = async () => {}) {
      const addr = new URL(/listening on (\S+)/.exec(program.log)[1]).host;
      const log = program.log;
      program.child.kill(signal);
      await program.ended;
      await between();
      program = await startProgram(data, addr, new URL(base).host, flags);
      program.log = log + program.log;
    },
    async stop() {
      agent?.destroy();
      program.child.kill('SIGTERM');
      await program.ended;
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** Opens a browser whose pages note their sins in `sins`. */
export async function startBrowser() {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
  const sins = [];
  return {
    sins,
    /** A page of the console, signed in unless hash is empty. */
    async open(server, path, { hash, ...options } = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
      const page = await context.newPage();
      watch(page, server.base, sins);
      await page.goto(server.base + path + (hash ?? (await server.code())));
      await page.waitForSelector('html[data-ready]', { timeout: 60_000 });
      return page;
    },
    /** Another tab beside a page, which gets its session. */
    async sister(page, server, path) {
      const tab = await page.context().newPage();
      watch(tab, server.base, sins);
      await tab.goto(server.base + path);
      await tab.waitForSelector('html[data-ready=signed-in]', { timeout: 60_000 });
      return tab;
    },
    close: () => browser.close(),
  };
}

function watch(page, base, sins) {
  page.setDefaultTimeout(30_000);
  page.on('console', (message) => {
    const text = message.text();
    // A refusal that a test asks for is logged by the browser as an error, too.
    if (message.type() === 'error' && !/Failed to load resource/.test(text)) sins.push(`console: ${text}`);
    if (/Content Security Policy|Trusted/i.test(text)) sins.push(`policy: ${text}`);
  });
  page.on('pageerror', (error) => sins.push(`error: ${error.stack}`));
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(base + '/')) sins.push(`foreign request: ${request.url()}`);
  });
}

/** The row with a path. */
export const row = (page, path) => page.locator(`[role=treeitem][data-path="${quoted(path)}"]`);

function quoted(text) {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
}

/** Selects the row with a path by its key. */
export async function select(page, path) {
  await row(page, path).locator('[data-part=key]').click();
}

/** Waits until something is so. Asks again and again; the time is for a machine that is busy. */
export async function eventually(what, check, most = 60_000) {
  for (const began = Date.now(); !(await check());) {
    if (Date.now() - began > most) throw new Error(`it never came: ${what}`);
    await rest(50);
  }
}

/** Waits until a node is stored so, in export form. */
export const stored = (server, path, want) => eventually(`${path} is ${want}`, async () => (await server.rest('GET', path, undefined, '?format=export')) === want);

/** Does something that makes the page read a node, and waits until that was read. */
export async function reading(page, path, act) {
  const read = page.waitForResponse((answer) => decodeURIComponent(new URL(answer.url()).pathname).endsWith(`/data${path}.json`) && answer.request().method() === 'GET');
  await act();
  await read;
}

/** Deploys the text in the rules editor, and waits until the list of versions has it. */
export async function deploy(page) {
  const newest = () => page.evaluate(() => document.querySelector('[aria-label=History] li')?.dataset.version ?? '');
  await page.locator('[aria-label=History] li').first().waitFor();
  const before = await newest();
  await page.getByRole('button', { name: 'Review', exact: true }).click();
  await page.getByRole('dialog', { name: 'Deploy rules', exact: true }).getByRole('button', { name: 'Deploy', exact: true }).click();
  await eventually('a new version', async () => (await newest()) !== before);
}

/** Opens a node. */
export async function expand(page, path) {
  await select(page, path);
  if ((await row(page, path).getAttribute('aria-expanded')) !== 'true') await page.keyboard.press('ArrowRight');
  await page.waitForSelector(`[role=treeitem][data-path="${quoted(path)}"][aria-expanded=true]`);
}

const axeText = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds serious in a page, which must have been opened with bypassCSP. */
export async function serious(page) {
  await page.evaluate(axeText);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  return violations.filter((one) => ['serious', 'critical'].includes(one.impact)).map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).slice(0, 3).join(' | ')}`);
}
