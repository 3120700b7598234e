// The safety rules of the console in a browser. Their numbers are those of docs/console.md.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startServer } from './world.mjs';

/** All that a browser keeps of a page, by name; without the session, which is where it belongs. */
async function keptBy(page) {
  const kept = await page.evaluate(async () => ({
    address: location.href, name: window.name, state: JSON.stringify(history.state), cookie: document.cookie,
    local: JSON.stringify({ ...localStorage }), session: JSON.stringify({ ...sessionStorage, 'livetree.session': '' }),
    databases: JSON.stringify(await indexedDB.databases()), caches: JSON.stringify(await caches.keys()),
    requests: performance.getEntries().map((entry) => entry.name).join(), page: document.documentElement.outerHTML + [...document.querySelectorAll('input, textarea')].map((box) => box.value).join(),
  }));
  return { ...kept, cookies: JSON.stringify(await page.context().cookies()) };
}

export const tests = {
  async 'safety 1, 3: the page forgets the credential at once, and localStorage holds the theme only'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/data', { hash: '' });
    const form = page.getByRole('form', { name: 'Sign in' });
    await form.getByLabel('Credential').fill(server.token);
    await form.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForSelector('html[data-ready=signed-in]');
    const found = await page.evaluate((token) => ({
      page: document.documentElement.outerHTML.includes(token) || [...document.querySelectorAll('input, textarea')].some((box) => box.value.includes(token)),
      kept: [...Object.values(sessionStorage), ...Object.values(localStorage)].some((text) => text.includes(token)),
      address: location.href.includes(token), cookie: document.cookie,
    }), server.token);
    assert.deepEqual(found, { page: false, kept: false, address: false, cookie: '' });
    await page.getByRole('button', { name: 'Theme' }).click();
    for (const screen of ['query', 'rules', 'live', 'access']) {
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: screen[0].toUpperCase() + screen.slice(1) }).click();
      await page.waitForFunction((name) => location.pathname.includes(name), screen);
    }
    const names = await page.evaluate(() => Object.keys(localStorage));
    assert.ok(names.every((name) => /theme|layout/.test(name)), names.join());
    await page.context().close();
  },

  async 'safety 2: the code is gone from the address before anything is sent'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/data', { hash: '' });
    await page.addInitScript(() => {
      const seen = (window.seen = []);
      const real = window.fetch;
      window.fetch = (...args) => (seen.push(location.href), real(...args));
    });
    await page.goto('about:blank');
    await page.goto(server.base + '/console/db/default/data' + (await server.code()));
    await page.waitForSelector('html[data-ready=signed-in]');
    const seen = await page.evaluate(() => window.seen);
    assert.ok(seen.length > 0 && seen.every((address) => !address.includes('code=')), seen.join());
    await page.context().close();
  },

  async 'safety 7: marks of problems are highlights, and lines have no markup'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/rules');
    const editor = page.getByRole('textbox', { name: 'Rules document' });
    await editor.fill('{"rules": {\n  ".read": "<img src=x onerror=alert(1)>"\n}}');
    await page.getByRole('list', { name: 'Problems' }).locator('[data-line="2"]').waitFor();
    await page.waitForFunction(() => CSS.highlights.get('editor-problem')?.size === 1);
    assert.ok(await page.evaluate(() => [...document.querySelectorAll('.editor-lines > div')].every((line) => [...line.childNodes].every((node) => node.nodeType === Node.TEXT_NODE))));
    assert.equal(await page.locator('img').count(), 0);
    await page.getByRole('button', { name: 'Discard draft' }).click();
    await page.context().close();
  },

  async 'safety 8: odd characters in values are shown as marks, and the text stays as it is'({ server, browser }) {
    const odd = 'a\u202eb\u200bc\u0007d';
    await server.rest('PUT', '/odd', JSON.stringify({ v: odd, ['k\u200b']: 1 }));
    const page = await browser.open(server, '/console/db/default/data/odd');
    const value = page.locator('[data-path="/odd/v"] [data-part=value]');
    await value.waitFor();
    assert.equal(await value.textContent(), '"a\u202eb\u200bc\\u0007d"');
    for (const code of ['U+202E', 'U+200B']) assert.ok((await value.locator(`.odd[data-code="${code}"]`).count()) === 1, code);
    assert.equal(await page.locator('[data-path="/odd/k\u200b"] [data-part=key]').textContent(), 'k\u200b');
    await page.context().close();
  },

  async 'safety 10: rows, long values and entries of Live are bounded'({ server, browser }) {
    await server.rest('PUT', '/long', JSON.stringify({ text: 'x'.repeat(2_000_000) }));
    const page = await browser.open(server, '/console/db/default/data/long');
    const value = page.locator('[data-path="/long/text"] [data-part=value]');
    await value.waitFor();
    assert.ok((await value.textContent()).length <= 1000);
    await page.goto(server.base + '/console/db/default/live/many');
    await page.waitForSelector('.live[data-state=live]');
    for (let i = 0; i < 24; i++) {
      await server.rest('PATCH', '/many', JSON.stringify(Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, i]))));
      if (i !== 11) continue;
      await page.waitForFunction(() => document.querySelectorAll('[aria-label=Changes] [data-path]').length === 600);
      await page.waitForTimeout(1200); // more in a second would be skipped
    }
    await page.waitForFunction(() => document.querySelectorAll('[aria-label=Changes] [data-path]').length >= 990);
    assert.ok((await page.getByRole('log', { name: 'Changes' }).locator(':scope > *').count()) <= 1000);
    await page.context().close();
  },

  async 'safety 12: no credential is in an address, a store of the browser, a log, a metric or the audit list'({ browser }) {
    const server = await startServer('--dev', '--access-log', '--log-level', 'DEBUG');
    try {
      await server.rest('PUT', '/marked', '{"a":{"n":1}}');
      const seen = {}; // by name, where a credential must not be
      const sent = []; // addresses, and the headers that browsers add by themselves
      const watch = (page) => page.on('request', (request) => sent.push(request.url(), request.headers().referer ?? '', request.headers().cookie ?? ''));
      const markers = { token: server.token, code: (await server.code()).split('=')[1] };
      const page = await browser.open(server, '/console/', { hash: '' });
      watch(page);
      await page.goto('about:blank');
      await page.goto(`${server.base}/console/#code=${markers.code}`);
      await page.waitForSelector('html[data-ready=signed-in]');
      sent.splice(0, sent.length, ...sent.filter((text) => !text.endsWith('#code=' + markers.code))); // the link itself, whose fragment is not sent
      const session = () => page.evaluate(() => JSON.parse(sessionStorage.getItem('livetree.session')).session);
      markers.session = await session();

      // Everything that has to do with credentials, and every screen.
      await page.goto(server.base + '/console/db/default/access');
      const list = page.getByRole('list', { name: 'Secrets', exact: true });
      await page.getByRole('button', { name: 'Add secret', exact: true }).click();
      await list.locator('li').nth(1).waitFor();
      for (const index of [0, 1]) {
        await list.locator('li').nth(index).getByRole('button', { name: 'Show', exact: true }).click();
        await list.locator('li').nth(index).locator('.secret-value').filter({ hasText: /.{8}/ }).waitFor();
        markers['secret' + index] = await list.locator('li').nth(index).locator('.secret-value').textContent();
      }
      const form = page.getByRole('form', { name: 'Make a token', exact: true });
      await form.getByLabel('uid').fill('ann');
      await form.getByRole('button', { name: 'Make token', exact: true }).click();
      const token = page.getByRole('textbox', { name: 'Token', exact: true });
      await page.waitForFunction(() => document.querySelector('[aria-label=Token]').value !== '');
      markers.made = await token.inputValue();
      await page.getByRole('form', { name: 'New service account', exact: true }).getByLabel('Name').fill('robot');
      const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Make key file', exact: true }).click()]);
      markers.key = JSON.parse(readFileSync(await file.path(), 'utf8')).private_key.split('\n')[2];
      for (const path of ['db/default/data/marked', 'db/default/data/marked?at=', 'db/default/query/marked?orderBy=%22$key%22', 'db/default/rules', 'db/default/live', 'health', 'databases', 'backups', 'settings', 'docs', 'db/default/data/marked']) {
        await page.goto(`${server.base}/console/${path}`);
        await page.waitForSelector('html[data-ready=signed-in]');
        Object.assign(seen, Object.fromEntries(Object.entries(await keptBy(page)).map(([name, text]) => [`${name} of ${path}`, text])));
      }
      const [exported] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export', exact: true }).click()]);
      markers.download = new URL(exported.url()).pathname.split('/').at(-1) || new URL(exported.url()).search;
      await exported.path();

      // The holder of a secret, a wrong one, and clients of the data.
      await page.getByRole('button', { name: 'Sign out', exact: true }).click();
      const signIn = page.getByRole('form', { name: 'Sign in', exact: true });
      markers.wrong = 'wrong-credential-of-somebody';
      for (const [credential, ready] of [[markers.wrong, 'signed-out'], [markers.secret0, 'signed-in']]) {
        await signIn.getByLabel('Credential').fill(credential);
        await signIn.getByLabel('Database').fill('default');
        await signIn.getByRole('button', { name: 'Sign in', exact: true }).click();
        if (ready === 'signed-out') await signIn.getByRole('alert').filter({ hasText: 'refused' }).waitFor();
        else await page.waitForFunction(() => sessionStorage.getItem('livetree.session'));
      }
      markers.second = await session();
      await page.waitForSelector('[role=tree]');
      Object.assign(seen, await keptBy(page));
      const { data_urls: urls } = await (await server.call('GET', '/v1/status')).json();
      for (const credential of [markers.secret0, markers.made, markers.wrong]) await server.dataRequest(urls[0], `/marked.json?auth=${credential}`);

      for (const path of ['/metrics', '/v1/status', '/v1/config', '/v1/audit', '/v1/history', '/v1/operations?seconds=1', '/readyz']) seen[path] = await (await server.call('GET', path)).text();
      const admin = join(server.data, 'admin');
      for (const name of readdirSync(admin)) if (name.endsWith('.jsonl')) seen[name] = readFileSync(join(admin, name), 'utf8');
      seen.log = server.log;
      seen.requests = sent.filter((text) => !text.includes(markers.download)).join('\n');
      assert.match(seen['audit.jsonl'], /looked at a secret/);
      assert.ok(seen.log.includes('/marked') && seen.log.includes('looked at a secret') && seen.log.length < 200_000, 'the log has no requests, or not all of them');
      for (const [what, marker] of Object.entries(markers)) assert.ok(marker?.length >= 16, `${what} is no marker: ${marker}`);
      const found = Object.entries(markers).flatMap(([what, marker]) => Object.entries(seen).filter(([, text]) => text.includes(marker)).map(([where]) => `${what} is in ${where}`));
      assert.deepEqual(found, []);
      await page.context().close();
    } finally {
      await server.stop();
    }
  },
};
