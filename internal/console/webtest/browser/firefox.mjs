// The page in Firefox, which playwright-core drives in a build of its own only: so it is driven
// over Marionette, the protocol that every Firefox speaks. Loads the page, signs in, looks at the
// tree, edits a value, takes it back, and opens every screen. FIREFOX and LIVETREE name the
// programs; PICTURES=directory takes pictures.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { prepare } from './hooks.mjs';
import { screens } from './screens.mjs';
import { eventually, startServer } from './world.mjs';

/** Starts Firefox and returns how commands are sent to it. */
async function startFirefox() {
  const profile = mkdtempSync(join(tmpdir(), 'livetree-firefox-'));
  const settings = { 'marionette.port': 0, 'app.update.disabledForTesting': true, 'browser.shell.checkDefaultBrowser': false, 'datareporting.policy.dataSubmissionEnabled': false, 'toolkit.telemetry.enabled': false, 'network.captive-portal-service.enabled': false, 'network.connectivity-service.enabled': false, 'services.settings.server': 'data:,', 'browser.newtabpage.enabled': false };
  writeFileSync(join(profile, 'user.js'), Object.entries(settings).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''));
  const child = spawn(process.env.FIREFOX, ['--headless', '--marionette', '--no-remote', '--profile', profile], { stdio: 'ignore', env: { ...process.env, HOME: profile, MOZ_HEADLESS_WIDTH: '1280', MOZ_HEADLESS_HEIGHT: '800' } });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const file = join(profile, 'MarionetteActivePort');
  await eventually('Firefox listens', () => existsSync(file) && readFileSync(file, 'utf8') !== '', 120_000);
  const socket = connect(Number(readFileSync(file, 'utf8')), '127.0.0.1');
  const waiting = new Map();
  let rest = Buffer.alloc(0);
  socket.on('data', (part) => {
    rest = Buffer.concat([rest, part]);
    for (let colon = rest.indexOf(':'); colon >= 0; colon = rest.indexOf(':')) {
      const length = Number(rest.subarray(0, colon).toString());
      if (rest.length < colon + 1 + length) return;
      const message = JSON.parse(rest.subarray(colon + 1, colon + 1 + length).toString());
      rest = rest.subarray(colon + 1 + length);
      if (!Array.isArray(message)) continue; // its greeting
      const [, id, error, result] = message;
      const [resolve, reject] = waiting.get(id) ?? [];
      if (error) reject?.(new Error(`${error.error}: ${error.message}`));
      else resolve?.(result);
    }
  });
  let sent = 0;
  const send = (command, parameters = {}) => new Promise((resolve, reject) => {
    const text = JSON.stringify([0, ++sent, command, parameters]);
    waiting.set(sent, [resolve, reject]);
    socket.write(`${Buffer.byteLength(text)}:${text}`);
  });
  await send('WebDriver:NewSession', { capabilities: { alwaysMatch: {} } });
  return {
    send,
    /** Runs a function in the page. */
    run: async (act, ...args) => (await send('WebDriver:ExecuteScript', { script: `return (${act}).apply(null, arguments)`, args })).value,
    async close() {
      await send('Marionette:Quit', { flags: ['eForceQuit'] }).catch(() => {});
      socket.destroy();
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 10_000))]);
      child.kill('SIGKILL');
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** What a test does with a page. */
class Page {
  constructor(firefox, server) {
    Object.assign(this, { firefox, server });
  }

  go(path) {
    return this.firefox.send('WebDriver:Navigate', { url: this.server.base + path });
  }

  /** Waits for an element, and returns it as Marionette names it. */
  async find(selector) {
    let found;
    await eventually(selector, async () => {
      found = (await this.firefox.send('WebDriver:FindElements', { using: 'css selector', value: selector }))[0];
      return found;
    });
    return Object.values(found)[0];
  }

  async click(selector) {
    await this.firefox.send('WebDriver:ElementClick', { id: await this.find(selector) });
  }

  async type(selector, text) {
    const id = await this.find(selector);
    await this.firefox.send('WebDriver:ElementClear', { id });
    await this.firefox.send('WebDriver:ElementSendKeys', { id, text });
  }

  text(selector) {
    return this.firefox.run((what) => document.querySelector(what)?.textContent ?? '', selector);
  }

  async picture(name) {
    if (!process.env.PICTURES) return;
    const { value } = await this.firefox.send('WebDriver:TakeScreenshot', { full: false });
    writeFileSync(join(process.env.PICTURES, `firefox-${name}.png`), Buffer.from(value, 'base64'));
  }
}

test('Firefox signs in, shows the tree, edits a value and takes it back, and opens every screen', { timeout: 600_000 }, async () => {
  const server = await startServer('--dev', '--hook-allow', '127.0.0.1');
  let firefox, receiver;
  try {
    receiver = await prepare(server);
    firefox = await startFirefox();
    await server.rest('PUT', '/fox', '{"n":9007199254740993,"o":{"a":"x"}}');
    await server.rest('PUT', '/items', '{"a":{"n":3},"b":{"n":1}}');
    const page = new Page(firefox, server);
    await page.go('/console/db/default/data/fox' + (await server.code()));
    await page.find('html[data-ready=signed-in]');
    await page.find('[data-path="/fox/n"]');
    assert.equal(await page.text('[data-path="/fox/n"] [data-part=value]'), '9007199254740993');
    await page.find('.live[data-state=live]');
    await server.rest('PUT', '/fox/new', 'true');
    await page.find('[data-path="/fox/new"][data-type=boolean]');
    await page.picture('data');

    await page.click('[data-path="/fox/o"] .twist');
    await page.find('[data-path="/fox/o/a"]');
    await page.click('[data-path="/fox/o/a"] [data-part=key]');
    await page.click('[role=toolbar] button[title^=Edit]');
    await page.type('form[aria-label="Edit value"] textarea', 'of Firefox');
    await page.click('form[aria-label="Edit value"] button[type=submit]');
    await eventually('it is written', async () => (await server.rest('GET', '/fox/o/a')) === '"of Firefox"');
    await page.click('.bar button[title^="Take the last"]');
    await eventually('it is taken back', async () => (await server.rest('GET', '/fox/o/a')) === '"x"');

    for (const path of screens) {
      await page.go(path);
      await page.find('html[data-ready=signed-in]');
      await eventually(`${path} shows`, () => firefox.run(() => Boolean(document.querySelector('main')?.childElementCount)));
      assert.equal(await page.text('.failure'), '', path);
      await page.picture(path.replace(/\?at=/, '-past').split('?')[0].replaceAll('/', '-'));
    }
    await page.go('/console/db/default/rules');
    await page.find('[aria-label="Rules document"]');
    assert.equal(await firefox.run(() => document.cookie), '');
  } finally {
    await firefox?.close();
    await server.stop();
    receiver?.stop();
  }
});
