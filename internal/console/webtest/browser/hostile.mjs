// Keys and values that were stored to do harm: every screen shows them as they are, each opens
// by its own address, and a line that is copied and pasted into a shell reads its node and does
// nothing else.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { select } from './world.mjs';

const keys = [
  '<img src=x onerror=alert(1)>', '<script>alert(1)<', '__proto__', 'constructor', 'a\u202eb', 'z\u200bw', "it's", '50%', '%2F%27', 'a b', '😀', '{{7*7}}', '\\', '"quoted"',
  "'; touch owned; '", '`touch owned`', '"; touch owned; "', '& touch owned &', '| touch owned', '*', '~', '-o owned', '!!', '?x=1&auth=2', '+', 'k'.repeat(700),
];
const path = (key) => '/' + encodeURIComponent(key);

/** Runs a line as a shell does that it is pasted into, in an empty directory that it must leave empty. */
async function paste(line, secret) {
  const directory = mkdtempSync(join(tmpdir(), 'livetree-paste-'));
  try {
    const { stdout } = await promisify(execFile)('bash', ['-c', line], { cwd: directory, env: { PATH: process.env.PATH, LIVETREE_SECRET: secret } });
    assert.deepEqual(readdirSync(directory), [], `this line did more than reading: ${line}`);
    return stdout.trim();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** What must not have come out of stored text. */
const made = (page) => page.evaluate(() => document.querySelectorAll('img, main script, iframe, object, [onerror], [onclick]').length);

/** Stores all keys at a path, each with itself as value. */
async function store(server, at) {
  await server.rest('PUT', at, '{' + keys.map((key) => `${JSON.stringify(key)}:{"v":${JSON.stringify(key)},${JSON.stringify(key)}:true}`).join() + '}');
}

export const tests = {
  async 'hostile keys: a pasted curl line reads its node and runs nothing'({ server, browser }) {
    await store(server, '/pasted');
    const { secrets } = await (await server.call('GET', '/v1/databases/default/secrets?show=true')).json();
    const page = await browser.open(server, '/console/db/default/query');
    const form = page.getByRole('form', { name: 'Query', exact: true });
    const snippet = page.getByTestId('snippet-curl');
    let before = '';
    for (const key of keys) {
      await form.getByLabel('Path', { exact: true }).fill('/pasted/' + key);
      await form.getByLabel('Equal to', { exact: true }).fill(JSON.stringify(key)); // hostile as a parameter, too
      await form.getByLabel('Order by', { exact: true }).fill('$key');
      await form.getByRole('button', { name: 'Run', exact: true }).click();
      await page.waitForFunction((old) => ![null, undefined, '', old].includes(document.querySelector('[data-testid=snippet-curl]')?.textContent), before);
      before = await snippet.textContent();
      assert.deepEqual(JSON.parse(await paste(before, secrets[0].value)), JSON.parse(`{${JSON.stringify(key)}:true}`), before);
    }
    await page.context().close();
  },

  async 'hostile keys: every screen shows them as they are'({ server, browser }) {
    await store(server, '/shownon');
    const page = await browser.open(server, '/console/db/default/query/shownon?orderBy=%22$key%22');
    const table = page.getByRole('table', { name: 'Result' });
    await table.waitFor();
    assert.deepEqual(new Set(await table.locator('tr[data-key]').evaluateAll((rows) => rows.map((row) => row.dataset.key))), new Set(keys), 'rows of Query');
    assert.deepEqual(new Set(await table.locator('tr[data-key] th').allTextContents()), new Set(keys), 'keys of Query');
    const heads = new Set(await table.getByRole('columnheader').allTextContents());
    assert.ok([...heads].filter((name) => keys.includes(name)).length > 20, 'columns of Query');
    assert.equal(await made(page), 0, 'Query');

    await page.goto(server.base + '/console/db/default/live/shownon');
    await page.waitForSelector('.live-screen .live[data-state=live]');
    for (const key of keys) await server.rest('PUT', '/shownon' + path(key) + '/w', JSON.stringify(key));
    const log = page.getByRole('log', { name: 'Changes' });
    await page.waitForFunction((count) => document.querySelectorAll('[role=log] [data-path]').length >= count, keys.length);
    assert.deepEqual(await log.locator('[data-path]').evaluateAll((rows) => rows.map((row) => row.dataset.path)), keys.map((key) => `/shownon/${key}/w`), 'Live');
    assert.deepEqual(await log.locator('[data-path] a').allTextContents(), keys.map((key) => `/shownon/${key}/w`), 'links of Live');
    assert.equal(await made(page), 0, 'Live');

    for (const key of [keys[0], "it's", '50%', 'a\u202eb', keys.at(-1)]) {
      for (const [screen, box] of [['data', 'Path'], ['query', 'Path'], ['live', 'Path']]) {
        await page.goto(`${server.base}/console/db/default/${screen}/shownon${path(key)}`);
        await page.waitForSelector('html[data-ready=signed-in]');
        assert.equal(await page.getByRole('textbox', { name: box, exact: true }).inputValue(), '/shownon/' + key, `${screen} by its address`);
        assert.equal(await made(page), 0, screen);
      }
    }

    await page.goto(server.base + '/console/db/default/data/shownon');
    await page.getByRole('button', { name: 'Search below' }).click();
    const search = page.getByRole('form', { name: 'Search below' });
    await search.getByLabel('Text').fill('alert(1)');
    await search.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByRole('list', { name: 'Hits' }).getByText('<img src=x').first().waitFor();
    assert.equal(await made(page), 0, 'Search below');
    await page.keyboard.press('Escape');
    await select(page, '/shownon/' + keys[0]);
    assert.equal(await page.locator('.details-path').textContent(), '/shownon/' + keys[0], 'Details');
    await page.context().close();
  },

  async 'hostile keys: rules, health, access and denials show them as they are'({ server, browser }) {
    const [old, hostile] = [await server.rest('GET', '/.settings/rules'), keys[0]];
    const page = await browser.open(server, '/console/db/default/rules');
    await page.waitForSelector('.rules-screen .live[data-state=live]');
    const url = (await (await server.call('GET', '/v1/status')).json()).data_urls[0];
    await server.rest('PUT', '/.settings/rules', JSON.stringify({ rules: { [hostile]: { '.read': "'<b>' == auth.uid" } } }));
    assert.equal(await server.dataRequest(url, path(hostile) + '.json'), 403);
    const denial = page.getByRole('list', { name: 'Denials' }).locator('li').filter({ hasText: hostile }).first();
    await denial.getByRole('button', { name: 'Simulate this' }).click();
    const simulate = page.getByRole('form', { name: 'Simulate' });
    await page.getByTestId('verdict').filter({ hasText: /denied|allowed/ }).waitFor();
    assert.equal(await simulate.getByLabel('Path').inputValue(), '/' + hostile);
    await page.getByRole('textbox', { name: 'Rules document' }).fill(`{"rules": {\n"${hostile}": {".read": "${hostile}"}\n}}`);
    await page.getByRole('list', { name: 'Problems' }).locator('[data-line="2"]').first().waitFor();
    assert.equal(await made(page), 0, 'Rules');
    await page.getByRole('button', { name: 'Discard draft' }).click();

    await page.goto(server.base + '/console/health');
    let busy = true;
    const load = (async () => {
      for (; busy; await new Promise((resolve) => setTimeout(resolve, 50))) await server.dataRequest(url, path(hostile) + '.json');
    })();
    await page.getByRole('table', { name: 'Denied' }).locator('tr', { hasText: hostile }).waitFor();
    busy = false;
    await load;
    assert.equal(await made(page), 0, 'Health');
    await server.rest('PUT', '/.settings/rules', old);

    await page.goto(server.base + '/console/db/default/access');
    const form = page.getByRole('form', { name: 'Make a token' });
    await form.getByLabel('uid').fill(hostile);
    await form.getByLabel('Claims').fill(JSON.stringify({ note: hostile }));
    await form.getByRole('button', { name: 'Make token' }).click();
    await page.waitForFunction(() => document.querySelector('textarea[aria-label=Token]').value.split('.').length === 3);
    assert.equal(await made(page), 0, 'Access');
    await page.context().close();
  },
};
