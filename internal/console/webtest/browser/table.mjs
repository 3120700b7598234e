// The table of a node, its cells, priorities, ranges of rows, and what is typed and not saved.

import assert from 'node:assert/strict';
import { eventually, reading, row, select, stored } from './world.mjs';

const cellOf = (page, key, column) => page.getByRole('table', { name: 'Result' }).locator(`tr[data-key="${key}"] td[data-column="${column}"]`);

export const tests = {
  async 'a node is shown as a table, its cells are edited and taken back'({ server, browser }) {
    await server.rest('PUT', '/people', '{"ann":{"age":{".value":41,".priority":7},"name":"Ann"},"ben":{"age":30,"tags":{"x":true}},"leaf":5}');
    const before = await server.rest('GET', '/people', undefined, '?format=export');
    const page = await browser.open(server, '/console/db/default/data/people');
    await page.getByRole('complementary', { name: 'Details' }).getByRole('link', { name: 'Table' }).click();
    const table = page.getByRole('table', { name: 'Result' });
    await table.locator('tr[data-key=ann]').waitFor();
    assert.deepEqual(await table.getByRole('columnheader').allTextContents(), ['Key', 'Value', 'age', 'name', 'tags']);
    await cellOf(page, 'ann', 'age').click();
    await page.keyboard.press('Enter');
    const form = page.getByRole('form', { name: 'Edit value' });
    assert.equal(await form.getByLabel('Type').inputValue(), 'number');
    await form.getByLabel('Value').fill('42');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.tagName === 'TD' && document.activeElement.textContent === '42');
    assert.equal(await server.rest('GET', '/people/ann/age', undefined, '?format=export'), '{".value":42,".priority":7}');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter'); // a cell without a value
    await form.getByLabel('Value').fill('Ben');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.tagName === 'TD' && document.activeElement.textContent === '"Ben"');
    await cellOf(page, 'ben', 'tags').dblclick();
    await page.getByRole('dialog', { name: 'Edit value' }).waitFor();
    await page.keyboard.press('Escape');
    await cellOf(page, 'leaf', 'age').dblclick(); // a leaf has no children
    await page.waitForTimeout(200);
    assert.equal(await page.getByRole('form', { name: 'Edit value' }).count(), 0);
    for (let i = 0; i < 2; i++) await page.getByRole('button', { name: 'Undo' }).click();
    await stored(server, '/people', before);
    await cellOf(page, 'ann', 'age').filter({ hasText: '41' }).waitFor(); // the result is read again
    await page.getByRole('switch', { name: 'Editing' }).click();
    await cellOf(page, 'ann', 'age').dblclick();
    await page.waitForTimeout(200);
    assert.equal(await page.getByRole('form', { name: 'Edit value' }).count(), 0);
    await page.context().close();
  },

  async 'a cell that changed meanwhile is not overwritten'({ server, browser }) {
    await server.rest('PUT', '/cells', '{"a":{"v":"old"}}');
    const page = await browser.open(server, '/console/db/default/query/cells?orderBy=%22$key%22&limitToFirst=10');
    await reading(page, '/cells/a/v', () => cellOf(page, 'a', 'v').dblclick());
    const form = page.getByRole('form', { name: 'Edit value' });
    await form.getByLabel('Value').fill('mine');
    await server.rest('PUT', '/cells/a/v', '"theirs"');
    await form.getByRole('button', { name: 'Save' }).click();
    const dialog = page.getByRole('alertdialog', { name: 'Changed meanwhile' });
    await dialog.getByRole('button', { name: 'Take theirs' }).click();
    await cellOf(page, 'a', 'v').filter({ hasText: 'theirs' }).waitFor();
    assert.equal(await server.rest('GET', '/cells/a/v'), '"theirs"');
    await page.context().close();
  },

  async 'a column sorts, and More goes on after the last row'({ server, browser }) {
    const rows = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${String(i).padStart(2, '0')}`, i]));
    await server.rest('PUT', '/sorted', JSON.stringify(rows));
    const page = await browser.open(server, '/console/db/default/query/sorted?orderBy=%22$key%22&limitToFirst=20');
    const table = page.getByRole('table', { name: 'Result' });
    await table.locator('tr[data-key=k19]').waitFor();
    assert.equal(await table.locator('th[aria-sort]').textContent(), 'Key');
    await page.getByRole('button', { name: 'More' }).click();
    await table.locator('tr[data-key=k29]').waitFor();
    assert.match(page.url(), /limitToFirst=40/);
    assert.equal(await page.getByRole('button', { name: 'More' }).count(), 0);
    await table.getByRole('link', { name: 'Value', exact: true }).click();
    await page.waitForURL(/orderBy=%22%24value%22/);
    await eventually('the form of the other order', async () => (await page.getByRole('form', { name: 'Query' }).getByLabel('Order by').inputValue()) === '$value');
    await page.context().close();
  },

  async 'a priority is set, refused when it is none, and taken back'({ server, browser }) {
    await server.rest('PUT', '/prio', '{"leaf":1,"o":{"a":1}}');
    const page = await browser.open(server, '/console/db/default/data/prio');
    for (const [path, text, want] of [['/prio/leaf', '"high"', '{".value":1,".priority":"high"}'], ['/prio/o', '7', '{".priority":7,"a":1}']]) {
      await select(page, path);
      await page.getByRole('button', { name: 'Set priority' }).click();
      const form = page.getByRole('form', { name: 'Set priority' });
      await form.getByLabel('Priority').fill('high');
      await page.keyboard.press('Enter');
      await form.getByRole('alert').filter({ hasText: 'double quotes' }).waitFor();
      await form.getByLabel('Priority').fill(text);
      await page.keyboard.press('Enter');
      await form.waitFor({ state: 'detached' });
      assert.equal(await server.rest('GET', path, undefined, '?format=export'), want);
      await row(page, path).getByText(`priority ${text}`).waitFor();
    }
    for (let i = 0; i < 2; i++) await page.getByRole('button', { name: 'Undo' }).click();
    await stored(server, '/prio', '{"leaf":1,"o":{"a":1}}');
    await select(page, '/prio/leaf');
    await reading(page, '/prio/leaf/.priority', () => page.getByRole('button', { name: 'Set priority' }).click());
    await page.getByRole('form', { name: 'Set priority' }).getByLabel('Priority').fill('1');
    await server.rest('PUT', '/prio/leaf/.priority', '2');
    await page.keyboard.press('Enter');
    await page.getByRole('form', { name: 'Set priority' }).getByRole('alert').filter({ hasText: 'somebody else' }).waitFor();
    assert.equal(await server.rest('GET', '/prio/leaf', undefined, '?format=export'), '{".value":1,".priority":2}');

    // A priority that is written when the form has opened, but before it has asked which state that was.
    await page.keyboard.press('Escape');
    await row(page, '/prio/leaf').getByText('priority 2').waitFor();
    const asking = (url) => decodeURIComponent(url.pathname).endsWith('/data/prio/leaf/.priority.json');
    const late = async (route) => {
      await server.rest('PUT', '/prio/leaf/.priority', '3');
      await route.continue();
    };
    await page.route(asking, late, { times: 1 });
    await reading(page, '/prio/leaf/.priority', () => page.getByRole('button', { name: 'Set priority' }).click());
    await page.getByRole('form', { name: 'Set priority' }).getByLabel('Priority').fill('1');
    await page.keyboard.press('Enter');
    await page.getByRole('form', { name: 'Set priority' }).getByRole('alert').filter({ hasText: 'somebody else' }).waitFor();
    assert.equal(await server.rest('GET', '/prio/leaf', undefined, '?format=export'), '{".value":1,".priority":3}');

    await page.keyboard.press('Escape');
    await row(page, '/prio/leaf').getByText('priority 3').waitFor();
    await page.getByRole('button', { name: 'Set priority' }).click();
    await page.getByRole('form', { name: 'Set priority' }).getByLabel('Priority').fill('4.5');
    await page.keyboard.press('Enter');
    await row(page, '/prio/leaf').getByText('priority 4.5').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await stored(server, '/prio/leaf', '{".value":1,".priority":3}');
    await page.context().close();
  },

  async 'a range of rows is deleted together, and comes back'({ server, browser }) {
    await server.rest('PUT', '/range', '{"a":1,"b":{"x":{".value":1,".priority":2}},"c":3,"d":4}');
    const before = await server.rest('GET', '/range', undefined, '?format=export');
    const page = await browser.open(server, '/console/db/default/data/range');
    await select(page, '/range/a');
    for (let i = 0; i < 2; i++) await page.keyboard.press('Shift+ArrowDown');
    await page.getByText('3 rows selected').waitFor();
    assert.equal(await page.locator('[role=treeitem][aria-selected=true]').count(), 3);
    await page.keyboard.press('Delete');
    const sure = page.getByRole('alertdialog');
    await sure.getByText('3 nodes').waitFor();
    await sure.getByRole('button', { name: 'Delete' }).click();
    await row(page, '/range/b').waitFor({ state: 'detached' });
    assert.equal(await server.rest('GET', '/range'), '{"d":4}');
    await page.getByRole('button', { name: 'Undo' }).click();
    await row(page, '/range/c').waitFor();
    await stored(server, '/range', before);
    await page.context().close();
  },

  async 'a range that is too long is refused, not cut'({ server, browser }) {
    await server.rest('PUT', '/long', JSON.stringify(Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`k${String(i).padStart(4, '0')}`, i]))));
    const page = await browser.open(server, '/console/db/default/data/long');
    await select(page, '/long/k0000');
    await page.keyboard.press('Shift+End');
    await page.waitForSelector('[data-path="/long/k1499"][aria-selected=true]');
    await page.getByText('1,500 rows selected').waitFor();
    await page.keyboard.press('Delete');
    await page.getByRole('alert').filter({ hasText: 'At most 1,000 rows' }).waitFor();
    assert.equal(Object.keys(JSON.parse(await server.rest('GET', '/long'))).length, 1500);
    await page.context().close();
  },

  async 'what was typed outlives a reload and the end of a session'({ server, browser }) {
    await server.rest('PUT', '/typed', '{"a":"old"}');
    const page = await browser.open(server, '/console/db/default/query/typed');
    const form = page.getByRole('form', { name: 'Query' });
    await form.getByLabel('Order by').fill('$value');
    await form.getByLabel('Equal to').fill('"unfinish');
    await page.reload();
    await page.waitForSelector('html[data-ready=signed-in]');
    assert.deepEqual([await form.getByLabel('Order by').inputValue(), await form.getByLabel('Equal to').inputValue()], ['$value', '"unfinish']);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Data', exact: true }).click();
    await select(page, '/typed/a');
    await page.keyboard.press('Enter');
    await page.getByRole('form', { name: 'Edit value' }).getByLabel('Value').fill('a long thought');
    await page.evaluate(() => fetch('/v1/sessions/current', { method: 'DELETE', headers: { Authorization: 'Bearer ' + JSON.parse(sessionStorage.getItem('livetree.session')).session } }));
    const signIn = page.getByRole('form', { name: 'Sign in' });
    await signIn.getByLabel('Credential').fill(server.token);
    await signIn.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForSelector('html[data-ready=signed-in]');
    await select(page, '/typed/a');
    await page.keyboard.press('Enter');
    const edit = page.getByRole('form', { name: 'Edit value' });
    assert.equal(await edit.getByLabel('Value').inputValue(), 'a long thought');
    await edit.getByText('what you had typed before').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Enter');
    assert.equal(await edit.getByLabel('Value').inputValue(), 'old');
    await page.keyboard.press('Escape');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Query' }).click();
    assert.equal(await form.getByLabel('Equal to').inputValue(), '"unfinish');
    await page.context().close();
  },

  async 'settings name the version, the dialect and the authority; curl trusts it'({ server, browser }) {
    const page = await browser.open(server, '/console/settings');
    const facts = page.locator('dl.facts');
    await facts.getByText('Dialect of default').waitFor();
    const text = await facts.textContent();
    assert.match(text, /Version(?!unknown)\S/);
    assert.match(text, /Dialect of defaultspec/);
    assert.match(text, /Certificate authority\/.*ca\.pem/);
    await page.goto(server.base + '/console/db/default/query/items?orderBy=%22$key%22');
    assert.match(await page.getByTestId('snippet-curl').textContent(), /^curl .* --cacert \/[^ ]*ca\.pem$/);
    await page.context().close();
  },

  async 'a node is shown as JSON'({ server, browser }) {
    await server.rest('PUT', '/shownjson', '{"a":{".value":9007199254740993,".priority":1}}');
    const page = await browser.open(server, '/console/db/default/data/shownjson');
    await page.getByRole('complementary', { name: 'Details' }).getByRole('button', { name: 'JSON' }).click();
    const dialog = page.getByRole('dialog', { name: 'JSON of /shownjson' });
    await dialog.getByText('9007199254740993').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.context().close();
  },
};
