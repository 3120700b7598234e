// Simulations, saved cases and denied requests on the screen Rules.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';

const document = `{"rules": {
  "rooms": {"$room": {
    ".read": "data.child('members').hasChild(auth.uid)",
    ".write": "auth.uid === 'ann'",
    "text": {".validate": "newData.isString()"}
  }},
  "never": {".read": "auth.level > 3"}
}}
`;

async function deploy(server, text) {
  const before = await server.rest('GET', '/.settings/rules');
  await server.rest('PUT', '/.settings/rules', text);
  return () => server.rest('PUT', '/.settings/rules', before);
}

/** A request at the port of the data, as a user; returns its status. */
async function as(server, uid, method, path, body) {
  const { data_urls: urls } = await (await server.call('GET', '/v1/status')).json();
  const made = await (await server.call('POST', '/v1/databases/default/tokens', JSON.stringify({ uid }))).json();
  const target = new URL(urls[0]);
  target.pathname = path + '.json';
  target.searchParams.set('auth', made.token);
  return new Promise((resolve, reject) => {
    const asked = request(target, { method, ca: readFileSync(join(server.data, 'tls', 'ca.pem')) }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

export const tests = {
  async 'a request that is denied is listed, simulated and saved as a case'({ server, browser }) {
    const undo = await deploy(server, document);
    await server.rest('PUT', '/rooms', '{"blue":{"members":{"bob":true}}}');
    const page = await browser.open(server, '/console/db/default/rules');
    await page.waitForSelector('.live[data-state=live]');
    assert.equal(await as(server, 'bob', 'GET', '/rooms/blue'), 200);
    assert.equal(await as(server, 'eve<b>', 'GET', '/rooms/blue'), 403);
    const denials = page.getByRole('list', { name: 'Denials' });
    const first = denials.locator('[data-path="/rooms/blue"][data-verb=read]');
    await first.waitFor();
    assert.match(await first.textContent(), /eve<b>.*no rule allows it/);
    await first.getByText('One rule was asked').click();
    await first.locator('[data-line="3"][data-outcome=false]').waitFor();
    await first.getByRole('button', { name: 'Simulate this' }).click();
    await page.getByTestId('verdict').filter({ hasText: 'denied' }).waitFor();
    const form = page.getByRole('form', { name: 'Simulate' });
    assert.equal(await form.getByLabel('Path').inputValue(), '/rooms/blue');
    assert.match(await form.getByLabel('Auth').inputValue(), /"uid":"eve<b>"/);
    await page.getByRole('button', { name: 'Save as case' }).click();
    assert.equal(await as(server, 'ann', 'PUT', '/rooms/blue/text', '7'), 403);
    const second = denials.locator('[data-verb=put]');
    await second.getByRole('button', { name: 'Simulate this' }).click();
    await page.locator('.verdict-line').filter({ hasText: /denied by \/rooms\/blue\/text .validate 5:/ }).waitFor(); // not that of the first
    await page.getByRole('button', { name: 'Save as case' }).click();
    await page.getByRole('button', { name: 'Run all' }).click();
    await page.getByTestId('cases').filter({ hasText: '2 passed' }).waitFor();
    await undo();
    await page.context().close();
  },

  async 'cases are run against the draft, and lines that none reaches are marked'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/rules');
    const editor = page.getByRole('textbox', { name: 'Rules document' });
    await editor.fill(document);
    const cases = page.getByRole('textbox', { name: 'Cases', exact: true });
    assert.ok(await page.getByRole('button', { name: 'Run all' }).isDisabled());
    await cases.fill('data\n{"rooms":{"blue":{"members":{"bob":true}}}}\n\nread /rooms/blue as={"uid":"bob"}\n----\nallowed\n\n# who is no member\nread /rooms/blue as={"uid":"eve"}\n----\nallowed\n');
    await page.getByRole('button', { name: 'Run all' }).click();
    await page.getByTestId('cases').filter({ hasText: '1 passed, 1 failed' }).waitFor();
    assert.match(await page.getByRole('list', { name: 'Failed cases' }).textContent(), /who is no memberis denied.*should be allowed/);
    assert.equal(await page.locator('.editor-lines > div').nth(2).getAttribute('data-reach'), 'all');
    assert.equal(await page.locator('.editor-lines > div').nth(6).getAttribute('data-reach'), 'none');
    assert.equal(await page.locator('.editor-lines > div').nth(6).textContent(), document.split('\n')[6], 'a note is no text');
    const missed = page.getByRole('list', { name: 'Rules that no case reaches' });
    await missed.locator('[data-line="7"]').getByRole('button').click();
    assert.equal(await editor.evaluate((box) => box.value.slice(0, box.selectionStart).split('\n').length), 7);
    await page.keyboard.type(' ');
    assert.equal(await page.locator('[data-note]').count(), 0, 'notes are of the text that was run');
    await page.reload();
    await page.waitForSelector('html[data-ready=signed-in]');
    assert.match(await cases.inputValue(), /who is no member/, 'cases survive a reload');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    assert.equal((await saved).suggestedFilename(), 'default.cases');
    await cases.fill('read\n');
    await page.getByRole('button', { name: 'Run all' }).click();
    await page.getByRole('list', { name: 'Problems of cases' }).getByText('cases 1:1').first().waitFor();
    await page.getByLabel('File of cases').setInputFiles({ name: 'a.cases', mimeType: 'text/plain', buffer: Buffer.from('read /never\n----\ndenied\n') });
    await page.waitForFunction(() => document.querySelector('textarea[aria-label=Cases]').value.startsWith('read /never'));
    await page.getByRole('button', { name: 'Discard draft' }).click();
    await page.context().close();
  },

  async 'the rules editor undoes, keeps margins and is one text for screen readers'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/rules');
    const editor = page.getByRole('textbox', { name: 'Rules document' });
    const before = await editor.inputValue();
    await editor.focus();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('{');
    await page.keyboard.press('Enter');
    await page.keyboard.type('x');
    assert.equal(await editor.inputValue(), before + '{\n  x');
    for (let i = 0; i < 3; i++) await page.keyboard.press('Control+z');
    assert.equal(await editor.inputValue(), before, 'the undo of the browser knows the margin, too');
    assert.equal(await page.locator('.editor-lines').getAttribute('aria-hidden'), 'true');
    assert.ok(await page.evaluate(() => [...document.querySelectorAll('.editor-lines > div')].every((line) => line.childNodes.length <= 1)), 'one text node for each line');
    await page.context().close();
  },
};
