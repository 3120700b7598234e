// The screen Data by its contract.

import assert from 'node:assert/strict';
import { expand, reading, row, select, stored } from './world.mjs';

const hostile = ['<img src=x onerror=alert(1)>', '__proto__', 'a\u202eb', "it's", '50%', 'a b', '😀', '{{7*7}}'];

export const tests = {
  async 'the printed link shows the tree, and leaves no code in the address'({ server, browser }) {
    await server.rest('PUT', '/shown', '{"10":"ten","9":"nine","-5":9007199254740993,"007":true,"o":{"a":1}}');
    const page = await browser.open(server, '/console/db/default/data/shown');
    assert.equal(await page.evaluate(() => location.hash), '');
    assert.equal(await page.locator('html').getAttribute('data-ready'), 'signed-in');
    const keys = await page.locator('[role=treeitem][aria-level="2"] [data-part=key]').allTextContents();
    assert.deepEqual(keys, ['-5', '007', '9', '10', 'o']);
    assert.equal(await row(page, '/shown/-5').locator('[data-part=value]').textContent(), '9007199254740993');
    assert.match(await page.title(), /\/shown.*default/);
    assert.equal(await page.evaluate(() => document.cookie + Object.keys(localStorage).filter((name) => /session/.test(name)).join()), '');
    await page.context().close();
  },

  async 'a change elsewhere shows, flashes and takes its place'({ server, browser }) {
    await server.rest('PUT', '/flash', '{"a":1,"c":3}');
    const page = await browser.open(server, '/console/db/default/data/flash');
    await page.waitForSelector('.live[data-state=live]');
    await server.rest('PUT', '/flash/b', '2');
    await page.waitForSelector('[data-path="/flash/b"][data-flash=added]');
    await server.rest('PUT', '/flash/a', '"new"');
    await page.waitForSelector('[data-path="/flash/a"][data-flash=changed]');
    assert.deepEqual(await page.locator('[aria-level="2"] [data-part=key]').allTextContents(), ['a', 'b', 'c']);
    await server.rest('DELETE', '/flash');
    await page.getByText('No data', { exact: true }).waitFor();
    await server.rest('PUT', '/flash', '{"again":true}');
    await row(page, '/flash/again').waitFor();
    await server.rest('PUT', '/flash', '"leaf"');
    await page.waitForSelector('[data-path="/flash"][data-type=string]');
    await page.context().close();
  },

  async 'a value is edited, and the edit taken back'({ server, browser }) {
    await server.rest('PUT', '/edit', '{"n":{".value":41,".priority":3},"s":"x"}');
    const before = await server.rest('GET', '/edit', undefined, '?format=export');
    const page = await browser.open(server, '/console/db/default/data/edit');
    await select(page, '/edit/n');
    await page.keyboard.press('Enter');
    const form = page.getByRole('form', { name: 'Edit value' });
    assert.equal(await form.getByLabel('Type').inputValue(), 'number');
    await form.getByLabel('Value').fill('abc');
    await page.keyboard.press('Enter');
    await form.getByRole('alert').filter({ hasText: 'number' }).waitFor();
    assert.equal(await form.getByLabel('Value').inputValue(), 'abc');
    await form.getByLabel('Type').selectOption('string');
    await form.getByLabel('Value').fill('42');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    assert.equal(await server.rest('GET', '/edit/n', undefined, '?format=export'), '{".value":"42",".priority":3}');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('status').filter({ hasText: 'Undone' }).waitFor();
    assert.equal(await server.rest('GET', '/edit', undefined, '?format=export'), before);
    await page.context().close();
  },

  async 'a value that changed under an open form is not overwritten unasked'({ server, browser }) {
    await server.rest('PUT', '/conflict', '{"a":"old"}');
    const page = await browser.open(server, '/console/db/default/data/conflict');
    await select(page, '/conflict/a');
    await reading(page, '/conflict/a', () => page.keyboard.press('Enter'));
    const form = page.getByRole('form', { name: 'Edit value' });
    await form.getByLabel('Value').fill('mine');
    await server.rest('PUT', '/conflict/a', '"theirs"');
    await form.getByText('changed meanwhile').waitFor();
    assert.equal(await form.getByLabel('Value').inputValue(), 'mine');
    await form.getByRole('button', { name: 'Save' }).click();
    const dialog = page.getByRole('alertdialog', { name: 'Changed meanwhile' });
    await dialog.getByText('"theirs"').waitFor();
    await dialog.getByText('"mine"').waitFor();
    assert.equal(await server.rest('GET', '/conflict/a'), '"theirs"');
    await dialog.getByRole('button', { name: 'Keep mine' }).click();
    await form.waitFor({ state: 'detached' });
    assert.equal(await server.rest('GET', '/conflict/a'), '"mine"');
    await server.rest('PUT', '/conflict/a', '"later"');
    await page.getByRole('button', { name: 'Undo' }).click();
    await dialog.getByRole('button', { name: 'Leave it' }).click();
    assert.equal(await server.rest('GET', '/conflict/a'), '"later"');
    await page.context().close();
  },

  async 'children are added, renamed, copied and deleted, and all of it taken back'({ server, browser }) {
    await server.rest('PUT', '/drafts', '{"a":{"x":1,"y":{".value":2,".priority":"p"}},"leaf":1}');
    const before = await server.rest('GET', '/drafts', undefined, '?format=export');
    const page = await browser.open(server, '/console/db/default/data/drafts');
    await select(page, '/drafts');
    await page.getByRole('toolbar', { name: 'Node' }).getByRole('button', { name: 'Add child' }).click();
    const add = page.getByRole('form', { name: 'Add child' });
    await add.getByLabel('Key').fill('leaf');
    await add.getByLabel('Value').fill('42');
    await add.getByRole('button', { name: 'Add' }).click();
    await add.getByRole('alert').filter({ hasText: 'already exists' }).waitFor();
    await add.getByLabel('Key').fill('bad/key');
    await add.getByRole('button', { name: 'Add' }).click();
    await add.getByRole('alert').filter({ hasText: 'cannot contain' }).waitFor();
    await add.getByLabel('Key').fill('new');
    await add.getByRole('button', { name: 'Add' }).click();
    await row(page, '/drafts/new').waitFor();
    assert.equal(await server.rest('GET', '/drafts/new'), '"42"');
    await select(page, '/drafts/a');
    await page.keyboard.press('F2');
    const rename = page.getByRole('form', { name: 'Rename' });
    await rename.getByLabel('Key').fill('leaf');
    await rename.getByRole('button', { name: 'Rename' }).click();
    await rename.getByRole('alert').filter({ hasText: 'already exists' }).waitFor();
    await rename.getByLabel('Key').fill('b');
    await rename.getByRole('button', { name: 'Rename' }).click();
    await row(page, '/drafts/b').waitFor();
    await select(page, '/drafts/b');
    await page.getByRole('button', { name: 'Duplicate' }).click();
    const copy = page.getByRole('form', { name: 'Duplicate' });
    await copy.getByLabel('Key').fill('c');
    await copy.getByRole('button', { name: 'Duplicate' }).click();
    await row(page, '/drafts/c').waitFor();
    assert.equal(await server.rest('GET', '/drafts/c', undefined, '?format=export'), '{"x":1,"y":{".value":2,".priority":"p"}}');
    await select(page, '/drafts/c');
    await page.keyboard.press('Delete');
    const sure = page.getByRole('alertdialog');
    await sure.getByText('/drafts/c').waitFor();
    await sure.getByRole('button', { name: 'Cancel' }).click();
    await page.keyboard.press('Delete');
    await sure.getByRole('button', { name: 'Delete' }).click();
    await row(page, '/drafts/c').waitFor({ state: 'detached' });
    await select(page, '/drafts/leaf');
    await page.keyboard.press('Delete');
    await row(page, '/drafts/leaf').waitFor({ state: 'detached' });
    for (let i = 0; i < 5; i++) await page.getByRole('button', { name: 'Undo' }).click(); // each after the one before it
    await stored(server, '/drafts', before);
    await page.context().close();
  },

  async 'Escape closes a form and gives the focus back to the row'({ server, browser }) {
    await server.rest('PUT', '/escape', '{"a":1}');
    const page = await browser.open(server, '/console/db/default/data/escape');
    await select(page, '/escape/a');
    for (const key of ['Enter', 'F2', 'Insert']) {
      await page.keyboard.press(key);
      await page.locator('form.in-row').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('form.in-row').waitFor({ state: 'detached' });
      const focused = await page.evaluate(() => {
        const tree = document.activeElement;
        return tree?.getAttribute('role') === 'tree' && document.getElementById(tree.getAttribute('aria-activedescendant') ?? '')?.dataset.path;
      });
      assert.equal(focused, '/escape/a', key);
    }
    await page.context().close();
  },

  async 'hostile keys and values are shown as they are, and run nothing'({ server, browser }) {
    const value = Object.fromEntries(hostile.map((key) => [key, key]));
    await server.rest('PUT', '/hostile', JSON.stringify({ ...value, ['__proto__']: '__proto__' }));
    const page = await browser.open(server, '/console/db/default/data/hostile');
    const shown = await page.locator('[aria-level="2"] [data-part=key]').allTextContents();
    assert.deepEqual(new Set(shown), new Set(Object.keys(JSON.parse(await server.rest('GET', '/hostile')))));
    await page.locator('.odd[data-code="U+202E"]').first().waitFor();
    for (const key of shown) {
      await page.getByRole('textbox', { name: 'Path' }).fill('/hostile/' + key);
      await page.keyboard.press('Enter');
      await page.waitForFunction((want) => document.querySelector('[role=treeitem][aria-level="1"]')?.getAttribute('data-path') === want, '/hostile/' + key);
      await page.goBack();
      await page.waitForSelector('[data-path="/hostile"]');
    }
    assert.equal(await page.locator('img').count(), 0);
    await page.context().close();
  },

  async 'thousands of children: few rows in the page, the end and any prefix at once'({ server, browser }) {
    const many = {};
    for (let i = 0; i < 30_000; i++) many['k' + String(i).padStart(5, '0')] = i;
    await server.rest('PUT', '/many', JSON.stringify(many), '?print=silent');
    const page = await browser.open(server, '/console/db/default/data/many');
    await row(page, '/many/k00000').waitFor();
    await page.getByText('30,000 children').first().waitFor();
    await select(page, '/many/k00000');
    await page.keyboard.press('End');
    await row(page, '/many/k29999').waitFor();
    await page.evaluate(() => { document.querySelector('[data-testid=tree-scroll]').scrollTop = 15_000 * 24; });
    await page.waitForFunction(() => [...document.querySelectorAll('[role=treeitem]')].some((one) => /k1[45]\d\d\d/.test(one.dataset.path ?? '')));
    assert.ok((await page.getByRole('treeitem').count()) <= 400);
    await page.keyboard.press('Home');
    await select(page, '/many');
    await page.getByRole('searchbox', { name: 'Find key' }).fill('k2345');
    await page.keyboard.press('Enter');
    await row(page, '/many/k23456').waitFor();
    assert.equal(await page.locator('[role=treeitem][aria-level="2"]').count(), 10);
    await page.getByRole('searchbox', { name: 'Find key' }).fill('');
    await page.keyboard.press('Enter');
    await row(page, '/many/k00000').waitFor();
    await page.getByText('30,000 children').first().waitFor();
    await page.context().close();
  },

  async 'with Editing off nothing changes anything'({ server, browser }) {
    await server.rest('PUT', '/off', '{"a":1}');
    const page = await browser.open(server, '/console/db/default/data/off');
    const toggle = page.getByRole('switch', { name: 'Editing' });
    assert.equal(await toggle.getAttribute('aria-checked'), 'true');
    await toggle.click();
    await select(page, '/off/a');
    for (const name of ['Edit', 'Add child', 'Rename', 'Duplicate', 'Delete', 'Import']) assert.ok(await page.getByRole('toolbar', { name: 'Node' }).getByRole('button', { name, exact: true }).isDisabled(), name);
    assert.ok(await page.getByRole('button', { name: 'Export' }).isEnabled());
    await select(page, '/off/a');
    for (const key of ['Enter', 'F2', 'Delete', 'Insert', 'Control+z']) await page.keyboard.press(key);
    await page.waitForTimeout(300);
    assert.equal(await page.locator('form.in-row, dialog').count(), 0);
    assert.equal(await server.rest('GET', '/off'), '{"a":1}');
    await page.context().close();
  },

  async 'an export that is imported gives back the same'({ server, browser }) {
    await server.rest('PUT', '/io', '{"a":{".value":9007199254740993,".priority":1},"b":{"c":"é"}}');
    const page = await browser.open(server, '/console/db/default/data/io');
    await select(page, '/io');
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export' }).click();
    const file = await (await saving).path();
    const before = await server.rest('GET', '/io', undefined, '?format=export');
    await server.rest('PUT', '/io', '{"z":1}');
    await page.getByRole('button', { name: 'Import' }).click();
    const form = page.getByRole('form', { name: 'Import' });
    await form.getByLabel('File').setInputFiles(file);
    await form.getByLabel('Replace').check();
    await form.getByRole('button', { name: 'Import' }).click();
    await form.waitFor({ state: 'detached' });
    assert.equal(await server.rest('GET', '/io', undefined, '?format=export'), before);
    await page.context().close();
  },

  async 'open nodes follow, and the list can be opened by keys'({ server, browser }) {
    await server.rest('PUT', '/deep', '{"a":{"b":{"c":1}}}');
    const page = await browser.open(server, '/console/db/default/data/deep');
    await expand(page, '/deep/a');
    await row(page, '/deep/a/b').waitFor();
    await expand(page, '/deep/a/b');
    await server.rest('PUT', '/deep/a/b/d', '"x"');
    await row(page, '/deep/a/b/d').waitFor();
    assert.equal(await row(page, '/deep/a/b/d').getAttribute('aria-level'), '4');
    await page.keyboard.press('ArrowLeft');
    await row(page, '/deep/a/b/d').waitFor({ state: 'detached' });
    await page.context().close();
  },

  async 'the server is killed under an open tree, which goes on'({ server, browser }) {
    await server.rest('PUT', '/killed', '{"a":1,"b":2}');
    const page = await browser.open(server, '/console/db/default/data/killed');
    await page.waitForSelector('.live[data-state=live]');
    await server.restart('SIGKILL', async () => {
      await page.getByText('The server does not answer').waitFor();
      assert.equal(await row(page, '/killed/a').locator('[data-part=value]').textContent(), '1');
    });
    await server.rest('PUT', '/killed/c', '3');
    await row(page, '/killed/c').waitFor();
    await page.waitForSelector('.live[data-state=live]');
    await page.reload();
    await row(page, '/killed/c').waitFor();
    await page.context().close();
  },

  async 'eight tabs are open, and all of them work'({ server, browser }) {
    await server.rest('PUT', '/tabs', '{"n":0}');
    const first = await browser.open(server, '/console/db/default/data/tabs');
    const pages = [first];
    while (pages.length < 8) pages.push(await browser.sister(first, server, '/console/db/default/data/tabs'));
    await server.rest('PUT', '/tabs/n', '8');
    for (const page of pages) await row(page, '/tabs/n').locator('[data-part=value]').filter({ hasText: '8' }).waitFor();
    const eighth = pages[7];
    await select(eighth, '/tabs/n');
    await eighth.keyboard.press('Enter');
    await eighth.getByRole('form', { name: 'Edit value' }).getByLabel('Value').fill('9');
    await eighth.keyboard.press('Enter');
    for (const page of pages) await row(page, '/tabs/n').locator('[data-part=value]').filter({ hasText: '9' }).waitFor();
    await first.context().close();
  },
};
