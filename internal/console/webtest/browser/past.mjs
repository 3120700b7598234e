// The past: the slider, the difference to now, the history of a path, and bringing a part back.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, row, serious, startServer } from './world.mjs';

/** Runs with a server that has an archive. */
async function archived(act) {
  const place = mkdtempSync(join(tmpdir(), 'livetree-archive-'));
  const server = await startServer('--dev', '--archive', 'file://' + place);
  try {
    await act(server);
  } finally {
    await server.stop();
    rmSync(place, { recursive: true, force: true });
  }
}

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

/** A moment between two commits. */
async function between() {
  await pause(20);
  const at = Date.now();
  await pause(20);
  return at;
}

const difference = (page) => page.getByRole('region', { name: 'Difference', exact: true });
const history = (page) => page.getByRole('list', { name: 'History', exact: true });
const address = (path, at) => `/console/db/default/data${path}?at=${at ? new Date(at).toISOString() : ''}`;

/** Writes a small history, and returns a moment in the middle of it. */
async function write(server) {
  await pause(1500); // until the first base is there
  await server.rest('PUT', '/users', '{"ada":{"name":"Ada","age":{".value":36,".priority":2}},"bob":{"name":"Bob"},"eve":{"name":"Eve"}}');
  const at = await between();
  await server.rest('DELETE', '/users/bob');
  await server.rest('PUT', '/users/ada/name', '"Countess"');
  await server.rest('PUT', '/users/<i>new', '{"n":1}');
  return at;
}

export const tests = {
  async 'past: a node as it was, its difference to now, and brought back'({ browser }) {
    await archived(async (server) => {
      const at = await write(server);
      const then = await server.rest('GET', '/users', undefined, `?format=export&at=${at}`);
      const now = await server.rest('GET', '/users', undefined, '?format=export');
      const page = await browser.open(server, address('/users', at));
      await row(page, '/users/bob').waitFor();
      assert.equal(await row(page, '/users/<i>new').count(), 0);
      await difference(page).locator('li').nth(2).waitFor();
      assert.deepEqual(await difference(page).locator('li').evaluateAll((list) => list.map((one) => `${one.dataset.path} ${one.dataset.was}`).sort()), ['/users/<i>new new', '/users/ada/name changed', '/users/bob gone']);
      await difference(page).getByText('1 removed since').waitFor();
      await difference(page).locator('[data-path="/users/ada/name"] .past-before').filter({ hasText: '"Ada"' }).waitFor();
      await difference(page).locator('[data-path="/users/ada/name"] .past-after').filter({ hasText: '"Countess"' }).waitFor();

      // What was changed since is left alone unless it is asked for.
      const bring = page.getByRole('button', { name: 'Bring this back', exact: true });
      const editing = page.getByRole('switch', { name: 'Editing', exact: true });
      await editing.click();
      assert.ok(await bring.isDisabled());
      await editing.click();
      await bring.click();
      const dialog = page.getByRole('alertdialog', { name: 'Bring this back', exact: true });
      await dialog.getByText('1 to bring back, 2 left as they are').waitFor();
      assert.equal(await dialog.locator('[data-done=left]').count(), 2);
      await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
      assert.equal(await server.rest('GET', '/users', undefined, '?format=export'), now);
      await bring.click();
      await dialog.getByRole('button', { name: 'Bring back', exact: true }).click();
      await page.getByRole('status').filter({ hasText: '1 brought back, 2 left as they are' }).waitFor();
      assert.equal(JSON.parse(await server.rest('GET', '/users')).bob.name, 'Bob');
      assert.equal(await server.rest('GET', '/users/ada/name'), '"Countess"');
      await page.getByRole('button', { name: 'Undo', exact: true }).click();
      await page.getByRole('status').filter({ hasText: 'Undone' }).waitFor();
      assert.equal(await server.rest('GET', '/users', undefined, '?format=export'), now);

      // With it, the part is exactly as it was, priorities included.
      await bring.click();
      await dialog.getByRole('checkbox').check();
      await dialog.getByText('1 to bring back, 1 to replace, 1 to delete').waitFor();
      await dialog.getByRole('button', { name: 'Bring back', exact: true }).click();
      await difference(page).getByText('it is now as it was then').waitFor();
      assert.equal(await server.rest('GET', '/users', undefined, '?format=export'), then);
      await page.context().close();
    });
  },

  async 'past: the history names who and what, leads to a moment, and follows'({ browser }) {
    await archived(async (server) => {
      await write(server);
      const page = await browser.open(server, address('/users', 0));
      await row(page, '/users/ada').waitFor();
      await history(page).locator('li').nth(3).waitFor();
      const newest = history(page).locator('li').first();
      assert.match(await newest.textContent(), /operator/);
      assert.match(await newest.textContent(), /<i>new/);
      const deleted = history(page).locator('li').nth(2);
      assert.deepEqual(await deleted.locator('.past-value > :last-child').allTextContents(), ['{"name":"Bob"}', 'null']);
      await deleted.getByRole('button', { name: /^After/ }).click();
      await row(page, '/users/eve').waitFor();
      await row(page, '/users/bob').waitFor({ state: 'detached' });
      assert.match(page.url(), /at=2/);
      assert.equal(await deleted.getAttribute('aria-current'), 'time');
      await deleted.getByRole('button', { name: /^Before/ }).click();
      await row(page, '/users/bob').waitFor();
      const slider = page.getByRole('slider', { name: 'Moment', exact: true });
      assert.match(await slider.getAttribute('aria-valuetext'), /ago/);

      // The list goes on by itself, and the address leads to the same moment again.
      await server.rest('PUT', '/users/eve/name', '"Eva"');
      await history(page).locator('li').nth(4).waitFor();
      assert.match(await history(page).locator('li').first().textContent(), /\/users\/eve\/name/);
      await page.reload();
      await row(page, '/users/bob').waitFor();
      await page.getByRole('button', { name: 'Now', exact: true }).click();
      await row(page, '/users/<i>new').waitFor();
      assert.match(page.url(), /at=$/);
      await slider.focus();
      await page.keyboard.press('Home'); // an hour ago there was no server
      await page.getByRole('alert').filter({ hasText: /archive/ }).waitFor();
      await page.context().close();
    });
  },

  async 'past: axe finds nothing serious, in both themes and on a phone'({ browser }) {
    await archived(async (server) => {
      const at = await write(server);
      for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark', viewport: { width: 375, height: 720 } }]) {
        const page = await browser.open(server, address('/users', at), { ...options, bypassCSP: true });
        await difference(page).locator('li').nth(2).waitFor();
        await history(page).locator('li').nth(3).waitFor();
        assert.deepEqual(await serious(page), []);
        await page.getByRole('button', { name: 'Bring this back', exact: true }).click();
        await page.getByRole('alertdialog').getByText('1 to bring back').waitFor();
        assert.deepEqual(await serious(page), []);
        await page.context().close();
      }
    });
  },

  async 'past: a moment that cannot be shown is told in words'({ server, browser }) {
    await server.rest('PUT', '/told', '{"a":1}');
    await server.rest('PUT', '/told/a', '2');
    const page = await browser.open(server, '/console/db/default/data/told');
    await page.getByRole('complementary', { name: 'Details', exact: true }).getByRole('link', { name: 'Past', exact: true }).click();
    await history(page).locator('li').nth(1).waitFor(); // it needs no archive
    await history(page).locator('li').nth(1).getByRole('button', { name: /^After/ }).click();
    await page.getByRole('alert').filter({ hasText: 'livetree serve --archive file:' }).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Bring this back', exact: true }).isDisabled());
    await page.goto(server.base + '/console/db/default/data/told?at=yesterday');
    await page.getByRole('alert').filter({ hasText: 'no time that can be read' }).waitFor();
    await page.context().close();
  },

  async 'past: many places want the key typed, and the page is good on a phone'({ browser }) {
    await archived(async (server) => {
      await pause(1500);
      await server.rest('PUT', '/many', JSON.stringify(Object.fromEntries(Array.from({ length: 1100 }, (_, i) => [`k${i}`, { n: i }]))));
      const at = await between();
      await server.rest('PUT', '/many', '{"other":1}');
      const page = await browser.open(server, address('/many', at), { viewport: { width: 375, height: 720 } });
      await row(page, '/many/k0').waitFor();
      await difference(page).getByText('1,100 removed since').waitFor();
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it scrolls sideways');
      await page.getByRole('button', { name: 'Bring this back', exact: true }).click();
      const dialog = page.getByRole('alertdialog', { name: 'Bring this back', exact: true });
      await dialog.getByText('1,100 to bring back').waitFor();
      const write = dialog.getByRole('button', { name: 'Bring back', exact: true });
      assert.ok(await write.isDisabled());
      await dialog.getByRole('textbox', { name: 'Type many to confirm', exact: true }).fill('many');
      await write.click();
      await eventually('they are back', async () => Object.keys(JSON.parse(await server.rest('GET', '/many', undefined, '?shallow=true'))).length === 1101);
      await page.context().close();
    });
  },
};
