// Runs the page in a browser against a real server, by the contract that tests may hold on
// to: roles, names and data attributes. ONLY=text runs the tests whose names have it;
// PICTURES=directory also takes a picture of every screen, to be looked at.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { tests as acceptance } from './acceptance.mjs';
import { tests as contract } from './contract.mjs';
import { tests as data } from './data.mjs';
import { prepare, tests as hooks } from './hooks.mjs';
import { tests as hostile } from './hostile.mjs';
import { tests as past } from './past.mjs';
import { tests as rules } from './rules.mjs';
import { tests as safety } from './safety.mjs';
import { screens, tests as others } from './screens.mjs';
import { tests as table } from './table.mjs';
import { tests as tasks } from './tasks.mjs';
import { serious, startBrowser, startServer } from './world.mjs';

const only = process.env.ONLY ?? '';
const world = {};

before(async () => {
  world.server = await startServer('--dev', '--hook-allow', '127.0.0.1');
  world.receiver = await prepare(world.server);
  world.browser = await startBrowser();
});
after(async () => {
  await world.browser?.close();
  await world.server?.stop();
  world.receiver?.stop();
});

for (const [name, run] of Object.entries({ ...data, ...table, ...past, ...rules, ...safety, ...others, ...hooks, ...tasks, ...contract, ...hostile, ...acceptance })) {
  if (name.includes(only)) test(name, { timeout: 180_000 }, () => run(world));
}

for (const theme of ['light', 'dark']) {
  if (!'axe'.includes(only)) continue;
  test(`axe finds nothing serious in the theme ${theme}, nor on a phone`, { timeout: 300_000 }, async () => {
    const page = await world.browser.open(world.server, '/console/db/default/data', { colorScheme: theme, bypassCSP: true });
    const found = [];
    for (const path of screens) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(world.server.base + path);
      await page.waitForSelector('html[data-ready]');
      for (const width of [1280, 375]) {
        await page.setViewportSize({ width, height: 800 });
        for (const one of await serious(page)) found.push(`${path} at ${width}: ${one}`);
        if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) found.push(`${path} at ${width} scrolls sideways`);
        if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `${theme}-${width}${path.replace(/\?at=/, '-past').split('?')[0].replaceAll('/', '-')}.png`) });
      }
    }
    await page.context().close();
    assert.deepEqual(found, []);
  });
}

test('no page complained, broke its policy or asked another origin', () => assert.deepEqual(world.browser.sins, []));
