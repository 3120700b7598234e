// The other screens by their contract.

import assert from 'node:assert/strict';
import { deploy } from './world.mjs';

export const tests = {
  async 'a wrong credential is refused, and the right one keeps the address'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/rules', { hash: '' });
    assert.equal(await page.locator('html').getAttribute('data-ready'), 'signed-out');
    const form = page.getByRole('form', { name: 'Sign in' });
    await form.getByLabel('Credential').fill('wrong');
    await form.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').filter({ hasText: 'refused' }).waitFor();
    await form.getByLabel('Credential').fill(server.token);
    await form.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForSelector('html[data-ready=signed-in]');
    assert.match(page.url(), /\/console\/db\/default\/rules$/);
    const sister = await page.context().newPage();
    await sister.goto(server.base + '/console/db/default/data');
    await sister.waitForSelector('html[data-ready=signed-in]');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForSelector('html[data-ready=signed-out]');
    await sister.getByRole('form', { name: 'Sign in' }).waitFor();
    await page.context().close();
  },

  async 'a session that ended asks for a new one and comes back'({ server, browser }) {
    await server.rest('PUT', '/ended', '{"a":1}');
    const page = await browser.open(server, '/console/db/default/data/ended');
    await page.waitForSelector('.live[data-state=live]');
    await page.evaluate(() => fetch('/v1/sessions/current', { method: 'DELETE', headers: { Authorization: 'Bearer ' + JSON.parse(sessionStorage.getItem('livetree.session')).session } }));
    const form = page.getByRole('form', { name: 'Sign in' });
    await form.getByLabel('Credential').fill(server.token);
    await form.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForSelector('html[data-ready=signed-in]');
    await page.waitForSelector('[data-path="/ended/a"]');
    assert.match(page.url(), /\/data\/ended$/);
    await page.context().close();
  },

  async 'a query runs from its address, in order, and a missing index is added'({ server, browser }) {
    await server.rest('PUT', '/items', '{"a":{"n":3},"b":{"n":1},"c":{"n":2}}');
    const page = await browser.open(server, '/console/db/default/query/items?orderBy=%22n%22&limitToFirst=2');
    await page.getByRole('button', { name: 'Add index' }).click();
    const dialog = page.getByRole('dialog', { name: 'Deploy rules' });
    await dialog.locator('[data-diff=add]').first().waitFor();
    await dialog.getByRole('button', { name: 'Deploy' }).click();
    const table = page.getByRole('table', { name: 'Result' });
    await table.locator('tr[data-key=b]').waitFor();
    assert.deepEqual(await table.locator('tr[data-key]').evaluateAll((rows) => rows.map((one) => one.dataset.key)), ['b', 'c']);
    assert.match(await page.getByRole('region', { name: 'Plan' }).textContent(), /index/);
    assert.match(await page.getByTestId('snippet-curl').textContent(), /^curl .*\$LIVETREE_SECRET/);
    const form = page.getByRole('form', { name: 'Query' });
    await form.getByLabel('Limit').selectOption('last');
    await form.getByLabel('Count').fill('1');
    await form.getByRole('button', { name: 'Run' }).click();
    await table.locator('tr[data-key=a]').waitFor();
    assert.match(page.url(), /limitToLast=1/);
    await form.getByLabel('Equal to').fill('ann');
    await form.getByRole('button', { name: 'Run' }).click();
    await form.getByRole('alert').filter({ hasText: 'JSON' }).waitFor();
    await page.context().close();
  },

  async 'rules are checked while one types, simulated, deployed and restored'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/rules');
    const editor = page.getByRole('textbox', { name: 'Rules document' });
    const deployed = await editor.inputValue();
    await editor.fill('{"rules": {\n  ".read": "auth"\n}}');
    await page.getByRole('list', { name: 'Problems' }).locator('[data-line="2"]').waitFor();
    assert.ok(await page.getByRole('button', { name: 'Review' }).isDisabled());
    await editor.fill('{"rules": {\n  // mine\n  ".read": "auth != null",\n  ".write": true\n}}\n');
    await page.waitForFunction(() => !document.querySelector('.rules-left button.primary').disabled);
    const form = page.getByRole('form', { name: 'Simulate' });
    await form.getByRole('button', { name: 'Simulate' }).click();
    await page.getByTestId('verdict').filter({ hasText: 'denied' }).waitFor();
    await page.getByRole('list', { name: 'Trace' }).locator('[data-line="3"][data-outcome=false]').first().waitFor();
    await form.getByLabel('Auth').fill('{"uid":"ann"}');
    await form.getByRole('button', { name: 'Simulate' }).click();
    await page.getByTestId('verdict').filter({ hasText: 'allowed' }).waitFor();
    await page.reload();
    await page.waitForSelector('html[data-ready=signed-in]');
    assert.match(await editor.inputValue(), /mine/, 'a draft survives a reload');
    await page.getByRole('button', { name: 'Review' }).click();
    const dialog = page.getByRole('dialog', { name: 'Deploy rules' });
    await dialog.locator('[data-diff=add]').filter({ hasText: 'mine' }).waitFor();
    await page.keyboard.press('Escape');
    await deploy(page);
    await page.getByRole('status').filter({ hasText: 'deployed' }).waitFor();
    assert.equal(await server.rest('GET', '/.settings/rules'), '{"rules": {\n  // mine\n  ".read": "auth != null",\n  ".write": true\n}}\n');
    await page.getByRole('list', { name: 'History' }).getByRole('button', { name: 'Restore' }).nth(1).click();
    await page.waitForFunction((text) => document.querySelector('textarea.editor-input').value === text, deployed);
    await page.context().close();
  },

  async 'commits are listed once, in order, over a pause'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/live/lv');
    await page.waitForSelector('.live[data-state=live]');
    await server.rest('PUT', '/lv/a', '1');
    await page.locator('[data-path="/lv/a"]').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    for (const key of ['b', 'c']) await server.rest('PUT', '/lv/' + key, '1');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('[data-path="/lv/c"]').waitFor();
    assert.deepEqual(await page.getByRole('log', { name: 'Changes' }).locator('[data-path]').evaluateAll((rows) => rows.map((one) => one.dataset.path)), ['/lv/a', '/lv/b', '/lv/c']);
    await page.getByRole('button', { name: 'Clear' }).click();
    assert.equal(await page.locator('[data-path]').count(), 0);
    await page.context().close();
  },

  async 'health, access and databases do what they say'({ server, browser }) {
    const page = await browser.open(server, '/console/health');
    for (const name of ['Requests', 'Latency', 'Streams', 'Traffic', 'Disk', 'Memory']) {
      const latest = await page.getByRole('figure', { name, exact: true }).getAttribute('data-latest');
      assert.ok(Number.isFinite(Number(latest)), `${name} ${latest}`);
    }
    await page.getByRole('table', { name: 'Busiest paths' }).waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Access' }).click();
    const form = page.getByRole('form', { name: 'Make a token' });
    await form.getByLabel('uid').fill('ann');
    await form.getByLabel('Claims').fill('{"admin": true}');
    await form.getByRole('button', { name: 'Make token' }).click();
    await page.waitForFunction(() => document.querySelector('textarea[aria-label=Token]').value.split('.').length === 3);
    const secrets = page.getByRole('list', { name: 'Secrets' });
    await secrets.getByRole('listitem').first().waitFor();
    const count = await secrets.getByRole('listitem').count();
    await page.getByRole('button', { name: 'Add secret' }).click();
    await page.waitForFunction((n) => document.querySelectorAll('[aria-label=Secrets] li').length === n, count + 1);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Databases' }).click();
    const fresh = page.getByRole('form', { name: 'New database' });
    await fresh.getByLabel('Name').fill('fresh');
    await fresh.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('table', { name: 'Databases' }).locator('tr', { hasText: 'fresh' }).waitFor();
    await page.context().close();
  },

  async 'the theme is changed and remembered, and a phone does not scroll sideways'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/data', { viewport: { width: 375, height: 700 }, colorScheme: 'light' });
    assert.equal(await page.locator('html').getAttribute('data-theme'), 'light');
    await page.getByRole('button', { name: 'Theme' }).click();
    assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
    await page.reload();
    await page.waitForSelector('html[data-ready]');
    assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
    for (const path of screens) {
      await page.goto(server.base + path);
      await page.waitForSelector('html[data-ready]');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('main').scrollWidth <= innerWidth), `${path} scrolls sideways`);
    }
    await page.context().close();
  },
};

/** Every screen, for axe and for pictures. */
export const screens = ['/console/db/default/data', '/console/db/default/data?at=', '/console/db/default/query/items?orderBy=%22n%22&limitToFirst=2', '/console/db/default/rules', '/console/db/default/live', '/console/db/default/access', '/console/db/default/hooks', '/console/db/default/hooks/shown', '/console/health', '/console/databases', '/console/backups', '/console/settings', '/console/docs'];
