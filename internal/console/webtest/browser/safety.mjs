// The safety rules of the console in a browser. Their numbers are those of docs/console.md.

import assert from 'node:assert/strict';

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
};
