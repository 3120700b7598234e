// The twelve tasks that people come with, each by its shortest path.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deploy, row, select } from './world.mjs';

export const tests = {
  async 'task 1: look at what my app just wrote'({ server, browser }) {
    await server.rest('PUT', '/app1', '{"a":1}');
    const page = await browser.open(server, '/console/db/default/data/app1');
    await page.waitForSelector('.live[data-state=live]');
    await server.rest('PUT', '/app1/b', '"just now"');
    await page.waitForSelector('[data-path="/app1/b"][data-flash=added]');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Live' }).click();
    await page.waitForSelector('.live-screen .live[data-state=live]'); // not that of the screen that is left
    await server.rest('PUT', '/app1/c', '2');
    await page.getByRole('log').locator('[data-path="/app1/c"]').waitFor();
    await page.context().close();
  },

  async 'task 2: find one record among many'({ server, browser }) {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`user-${String(i * 7919 % 5000).padStart(4, '0')}`, { n: i }]));
    await server.rest('PUT', '/users2', JSON.stringify(many), '?print=silent');
    const page = await browser.open(server, '/console/db/default/data/users2');
    await select(page, '/users2');
    await page.keyboard.press('/');
    await page.keyboard.type('user-4321');
    await page.keyboard.press('Enter');
    await row(page, '/users2/user-4321').waitFor();
    await select(page, '/users2/user-4321');
    await page.keyboard.press('g');
    await page.keyboard.type('https://127.0.0.1:9000/users2/user-0042/n.json?ns=default');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[role=treeitem][aria-level="1"][data-path="/users2/user-0042/n"]');
    await page.context().close();
  },

  async 'task 3 and 4: correct one value, and take a mistake back'({ server, browser }) {
    await server.rest('PUT', '/fix3', '{"name":{".value":"anne",".priority":2}}');
    const before = await server.rest('GET', '/fix3', undefined, '?format=export');
    const page = await browser.open(server, '/console/db/default/data/fix3');
    await select(page, '/fix3/name');
    await page.keyboard.press('Enter');
    await page.keyboard.type('true');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'saved' }).waitFor();
    assert.equal(await server.rest('GET', '/fix3', undefined, '?format=export'), '{"name":{".value":"true",".priority":2}}');
    await page.keyboard.press('Control+z');
    await page.getByRole('status').filter({ hasText: 'Undone' }).waitFor();
    assert.equal(await server.rest('GET', '/fix3', undefined, '?format=export'), before);
    await page.context().close();
  },

  async 'task 5 and 6: a query whose index is missing'({ server, browser }) {
    await server.rest('PUT', '/items5', JSON.stringify(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`i${i}`, { owner: { name: `o${i % 5}` }, n: i }]))));
    const page = await browser.open(server, '/console/db/default/query/items5');
    const form = page.getByRole('form', { name: 'Query' });
    await form.getByLabel('Order by').fill('owner/name');
    await form.getByLabel('Equal to').fill('"o3"');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Add index' }).click();
    await page.getByRole('button', { name: 'Deploy' }).click();
    const table = page.getByRole('table', { name: 'Result' });
    await table.locator('tr[data-key=i3]').waitFor();
    assert.equal(await table.locator('tr[data-key]').count(), 6);
    assert.match(await page.getByTestId('snippet-curl').textContent(), /^curl .*equalTo=%22o3%22.*LIVETREE_SECRET/);
    await page.context().close();
  },

  async 'task 7 and 8: change rules safely, and see why a user is denied'({ server, browser }) {
    const old = await server.rest('GET', '/.settings/rules');
    const page = await browser.open(server, '/console/db/default/rules');
    const editor = page.getByRole('textbox', { name: 'Rules document' });
    await editor.fill('{"rules": {\n  "rooms": {\n    "$room": {\n      ".read": "auth.uid == \'ann\'"\n    }\n  }\n}}\n');
    const form = page.getByRole('form', { name: 'Simulate' });
    await form.getByLabel('Path').fill('/rooms/blue');
    await form.getByLabel('Auth').fill('{"uid":"eve"}');
    await form.getByRole('button', { name: 'Simulate' }).click();
    await page.getByTestId('verdict').filter({ hasText: 'denied' }).waitFor();
    await page.getByRole('list', { name: 'Trace' }).locator('[data-line="4"][data-outcome=false]').waitFor();
    await page.waitForFunction(() => !document.querySelector('.rules-left button.primary').disabled);
    await deploy(page);
    await page.getByRole('list', { name: 'History' }).getByRole('button', { name: 'Restore' }).nth(1).click();
    await page.waitForFunction((text) => document.querySelector('textarea.editor-input').value === text, old);
    await deploy(page);
    assert.equal(await server.rest('GET', '/.settings/rules'), old);
    await page.context().close();
  },

  async 'task 9: get data out and in'({ server, browser }) {
    await server.rest('PUT', '/io9', '{"a":{".value":9007199254740993,".priority":"p"},"b":[1,2]}');
    const before = await server.rest('GET', '/io9', undefined, '?format=export');
    const page = await browser.open(server, '/console/db/default/data/io9');
    await select(page, '/io9');
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export' }).click();
    const file = await (await saving).path();
    await server.rest('DELETE', '/io9');
    await page.getByText('No data', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Import' }).click();
    const form = page.getByRole('form', { name: 'Import' });
    await form.getByLabel('File').setInputFiles(file);
    await form.getByRole('button', { name: 'Import' }).click();
    await form.waitFor({ state: 'detached' });
    assert.equal(await server.rest('GET', '/io9', undefined, '?format=export'), before);
    await page.context().close();
  },

  async 'task 10: what is the server busy with'({ server, browser }) {
    const page = await browser.open(server, '/console/health');
    const url = (await (await server.call('GET', '/v1/status')).json()).data_urls[0];
    const busiest = page.getByRole('table', { name: 'Busiest paths' });
    let busy = true;
    const load = (async () => {
      while (busy) {
        await server.dataRequest(url, '/busy10/x.json');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    await busiest.locator('tr', { hasText: '/busy10' }).waitFor({ timeout: 60_000 });
    busy = false;
    await load;
    await busiest.getByRole('link', { name: /busy10/ }).click();
    await page.waitForURL(/\/console\/db\/default\/data\/busy10/);
    await page.context().close();
  },

  async 'task 11: give somebody access'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/access');
    const form = page.getByRole('form', { name: 'Make a token' });
    await form.getByLabel('uid').fill('ann');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('textarea[aria-label=Token]').value.split('.').length === 3);
    const token = await page.getByRole('textbox', { name: 'Token' }).inputValue();
    assert.equal(JSON.parse(Buffer.from(token.split('.')[1], 'base64url')).d?.uid ?? JSON.parse(Buffer.from(token.split('.')[1], 'base64url')).uid, 'ann');
    await page.getByRole('form', { name: 'New service account' }).getByLabel('Name').fill('sdk11');
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Make key file' }).click();
    assert.match(readFileSync(await (await saving).path(), 'utf8'), /PRIVATE KEY/);
    await page.context().close();
  },

  async 'task 12: a database for a test, and a backup'({ server, browser }) {
    const page = await browser.open(server, '/console/databases');
    const form = page.getByRole('form', { name: 'New database' });
    await form.getByLabel('Name').fill('try12');
    await page.keyboard.press('Enter');
    await page.getByRole('table', { name: 'Databases' }).locator('tr', { hasText: 'try12' }).waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Backups' }).click();
    const directory = mkdtempSync(join(tmpdir(), 'livetree-backup-'));
    await page.getByLabel('Directory').fill(join(directory, 'one'));
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'backup was made' }).waitFor();
    rmSync(directory, { recursive: true, force: true });
    await page.context().close();
  },
};
