// What the console promises beyond single screens: figures that agree with others, queries
// against REST, versions to the byte, and streams that go on after the server was away.

import assert from 'node:assert/strict';
import { deploy, eventually, row, select, startServer } from './world.mjs';

/** Random numbers from 0 to 1 that are the same for the same seed. */
function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The keys of a query in its order, by REST alone: with a limit that is longer by one it has one key more. */
async function ordered(server, path, params) {
  const last = params.get('limitToLast');
  const all = Object.keys(JSON.parse(await server.rest('GET', path, undefined, '?' + params)) ?? {});
  const parts = await Promise.all(all.map((_, i) => {
    const asked = new URLSearchParams([...params].filter(([name]) => !name.startsWith('limitTo')));
    asked.set(last ? 'limitToLast' : 'limitToFirst', String(i + 1));
    return server.rest('GET', path, undefined, '?' + asked);
  }));
  const found = [];
  for (const part of parts) {
    const more = Object.keys(JSON.parse(part) ?? {}).filter((key) => !found.includes(key));
    assert.equal(more.length, 1, `${params}: ${part} has ${more} more`);
    found.push(more[0]);
  }
  return last ? found.reverse() : found;
}

export const tests = {
  async 'Editing is off at sign-in, unless the server is for development'({ browser }) {
    const server = await startServer();
    try {
      await server.rest('PUT', '/careful', '{"a":1}');
      const page = await browser.open(server, '/console/db/default/data/careful');
      const editing = page.getByRole('switch', { name: 'Editing', exact: true });
      assert.equal(await editing.getAttribute('aria-checked'), 'false');
      await select(page, '/careful/a');
      for (const name of ['Edit', 'Add child', 'Rename', 'Duplicate', 'Delete', 'Import']) assert.ok(await page.getByRole('toolbar', { name: 'Node' }).getByRole('button', { name, exact: true }).isDisabled(), name);
      await page.keyboard.press('Delete');
      await editing.click();
      await select(page, '/careful/a');
      await page.keyboard.press('Delete');
      await row(page, '/careful/a').waitFor({ state: 'detached' });
      assert.equal(await server.rest('GET', '/careful'), 'null');
      await page.context().close();
    } finally {
      await server.stop();
    }
  },

  async 'random queries give the children of the same REST query, in its order'({ server, browser }) {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
    const next = random(seed);
    const pick = (from) => from[Math.floor(next() * from.length)];
    const scalars = ['1', '2', '10', '-3', '0.5', '1e20', '9007199254740993', '"a"', '"b"', '"10"', '"é"', '"😀"', '""', 'true', 'false'];
    const rows = Array.from({ length: 24 }, (_, i) => {
      const key = pick(['k', 'K', '', '-', 'é']) + i;
      const part = next() < 0.2 ? scalars[i % scalars.length] : `{"n":${pick(scalars)},"o":{"p":${pick(scalars)}},"x":1}`;
      const priority = next() < 0.5 ? pick(['1', '2', '"p"', '"q"']) : '';
      if (!priority) return `"${key}":${part}`;
      return part.startsWith('{') ? `"${key}":{".priority":${priority},${part.slice(1)}` : `"${key}":{".value":${part},".priority":${priority}}`;
    });
    const rules = await server.rest('GET', '/.settings/rules');
    await server.rest('PUT', '/.settings/rules', '{"rules":{".read":true,".write":true,"asked":{".indexOn":["n","o/p",".value"]}}}');
    await server.rest('PUT', '/asked', `{${rows.join()}}`);
    const page = await browser.open(server, '/console/db/default/query/asked');
    const form = page.getByRole('form', { name: 'Query', exact: true });
    const field = (name) => form.getByLabel(name, { exact: true });
    for (let i = 0; i < 25; i++) {
      const order = pick(['$key', '$value', '$priority', 'n', 'o/p']);
      const bound = () => (order === '$key' ? JSON.stringify(pick(['k3', '5', '-', 'é', 'K'])) : pick(order === '$priority' ? scalars.slice(0, -2) : scalars)); // no priority is a boolean
      const texts = { 'Order by': order, 'Start at': '', 'End at': '', 'Equal to': '' };
      const kind = next();
      if (kind < 0.15) texts['Equal to'] = bound();
      else {
        if (next() < 0.5) texts['Start at'] = bound();
        if (next() < 0.5) texts['End at'] = bound();
      }
      const limit = pick(['none', 'first', 'last']);
      for (const [name, text] of Object.entries(texts)) await field(name).fill(text);
      await field('Limit').selectOption(limit);
      if (limit !== 'none') await field('Count').fill(String(1 + Math.floor(next() * 9)));
      await page.evaluate(() => document.querySelector('table[aria-label=Result]')?.remove()); // so that the next one is new
      await form.getByRole('button', { name: 'Run', exact: true }).click();
      await page.waitForSelector('table[aria-label=Result], .query-problem:not(:empty)', { state: 'attached' });
      const params = new URL(page.url()).searchParams;
      assert.equal(await page.locator('.query-problem').textContent(), '', `seed ${seed}, query ${i}: ${decodeURIComponent(params)}`);
      const want = await ordered(server, '/asked', params);
      const shown = () => page.getByRole('table', { name: 'Result' }).locator('tr[data-key]').evaluateAll((all) => all.map((one) => one.dataset.key));
      assert.deepEqual(await shown(), want, `seed ${seed}, query ${i}: ${decodeURIComponent(params)}`);
      if (i % 10 === 0) {
        await page.reload();
        await page.waitForSelector('html[data-ready=signed-in]');
        assert.deepEqual(await shown(), want, `seed ${seed}, query ${i}, after a reload`);
      }
    }
    await server.rest('PUT', '/.settings/rules', rules);
    await page.context().close();
  },

  async 'each of the last 50 versions of the rules comes back to the byte'({ server, browser }) {
    const before = await server.rest('GET', '/.settings/rules');
    const texts = Array.from({ length: 55 }, (_, i) => {
      const end = i % 7 === 3 ? '\r\n' : '\n';
      return [`{"rules": {${' '.repeat(i % 3)}`, `  // version ${i} é 😀\t`, `  ".read": true, ".write": ${i % 2 === 0}, "v${i}": {".indexOn": ["n"]}`, '}}', i % 5 === 0 ? '' : end].join(end);
    });
    for (const text of texts) await server.rest('PUT', '/.settings/rules', text);
    const page = await browser.open(server, '/console/db/default/rules');
    const buttons = page.getByRole('list', { name: 'History' }).getByRole('button', { name: 'Restore' });
    await buttons.nth(49).waitFor();
    assert.equal(await buttons.count(), 50);
    await page.getByText('As deployed', { exact: true }).waitFor();
    for (const [i, text] of texts.slice(-50).reverse().entries()) {
      await buttons.nth(i).click();
      // The draft is what Deploy would send; that which is deployed needs none.
      await page.waitForFunction((want) => (sessionStorage.getItem('livetree.draft.rules.default') ?? '') === want, i === 0 ? '' : text);
      assert.equal(await page.getByRole('textbox', { name: 'Rules document' }).inputValue(), text.replaceAll('\r\n', '\n'));
    }
    const crlf = texts.slice(-50).reverse().findIndex((text) => text.includes('\r\n'));
    await buttons.nth(crlf).click();
    await page.getByText('Draft, not deployed').waitFor();
    await deploy(page);
    assert.equal(await server.rest('GET', '/.settings/rules'), texts.slice(-50).reverse()[crlf]);
    await server.rest('PUT', '/.settings/rules', before);
    await page.context().close();
  },

  async 'Live lists every commit once and in order while the server is killed and comes back'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/live/again');
    await page.waitForSelector('.live-screen .live[data-state=live]');
    const write = async (from, to) => {
      for (let i = from; i < to; i++) await server.rest('PUT', `/again/k${i}`, String(i));
    };
    await write(0, 5);
    await page.locator('[data-path="/again/k4"]').waitFor();
    await server.restart('SIGKILL');
    await write(5, 10); // most of them before the page is connected again
    await page.locator('[data-path="/again/k9"]').waitFor();
    await page.waitForSelector('.live-screen .live[data-state=live]');
    await write(10, 12);
    await page.locator('[data-path="/again/k11"]').waitFor();
    const shown = await page.getByRole('log', { name: 'Changes' }).locator(':scope > *').evaluateAll((all) => all.map((one) => one.dataset.path ?? one.textContent));
    assert.deepEqual(shown, Array.from({ length: 12 }, (_, i) => `/again/k${i}`));
    await page.context().close();
  },

  async 'a value of more than 1 MiB is neither opened nor shown whole'({ server, browser }) {
    await server.rest('PUT', '/huge', JSON.stringify({ large: 'x'.repeat((1 << 20) + 10), fits: 'y'.repeat(1 << 19) }));
    const page = await browser.open(server, '/console/db/default/data/huge');
    await select(page, '/huge/large');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'larger than 1 MiB' }).first().waitFor();
    assert.equal(await page.getByRole('form', { name: 'Edit value' }).count(), 0);
    await page.getByRole('complementary', { name: 'Details' }).getByRole('button', { name: 'JSON' }).click();
    await page.getByRole('alert').filter({ hasText: 'larger than 1 MiB. Export it instead' }).first().waitFor();
    assert.ok((await page.locator('.details-value').textContent()).length <= 1000);
    await select(page, '/huge/fits');
    await page.keyboard.press('Enter');
    const form = page.getByRole('form', { name: 'Edit value' });
    await form.waitFor();
    assert.equal((await form.getByLabel('Value').inputValue()).length, 1 << 19);
    await page.context().close();
  },

  async 'nothing moves where reduced motion is asked for'({ server, browser }) {
    await server.rest('PUT', '/calm', '{"a":1}');
    const page = await browser.open(server, '/console/db/default/data/calm', { reducedMotion: 'reduce' });
    await page.waitForSelector('.live[data-state=live]');
    await page.evaluate(() => {
      const ran = (window.ran = []);
      for (const name of ['animationstart', 'transitionrun']) document.addEventListener(name, (event) => ran.push(`${name} ${event.target.className}`), true);
    });
    await server.rest('PUT', '/calm/b', '2');
    await page.waitForSelector('[data-path="/calm/b"][data-flash=added]');
    await page.getByRole('switch', { name: 'Editing' }).click();
    await page.getByRole('button', { name: 'Theme' }).click();
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByRole('status').filter({ hasText: 'export' }).waitFor();
    assert.deepEqual(await page.evaluate(() => [...window.ran, ...document.getAnimations().map((one) => `runs ${one.effect.target.className}`)]), []);
    await page.context().close();
  },

  async 'the figures of Health agree with /metrics'({ server, browser }) {
    const counted = async () => {
      const text = await (await server.call('GET', '/metrics')).text();
      const sum = (name) => [...text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))].filter(([, labels]) => !/route="(console|admin)"/.test(labels ?? '')).reduce((all, [, , value]) => all + Number(value), 0);
      return { requests: sum('livetree_requests_total'), streams: sum('livetree_streams'), clients: sum('livetree_clients'), memory: sum('livetree_rss_bytes'), disk: sum('livetree_pebble_disk_bytes') };
    };
    const history = async () => (await server.call('GET', '/v1/history?span=1h')).json();
    const url = (await (await server.call('GET', '/v1/status')).json()).data_urls[0];
    for (let i = 0; i < 100; i++) await server.dataRequest(url, '/figures.json');
    const low = await counted();
    const page = await browser.open(server, '/console/health');
    const sum = (series) => Object.entries(series).filter(([name]) => name.startsWith('requests')).flatMap(([, values]) => values).reduce((all, value) => all + (value ?? 0), 0);
    let [seen, total] = [await history(), 0];
    await eventually('the sample with these requests', async () => {
      seen = await history();
      total = sum(seen.series) * seen.step;
      return total > 0.9 * low.requests;
    });
    const high = await counted();
    assert.ok(total > 0.9 * low.requests && total < 1.1 * high.requests, `${total} requests in the history, ${low.requests} to ${high.requests} in /metrics`);
    await page.reload();
    await page.waitForSelector('html[data-ready=signed-in]');
    seen = await history();
    const latest = async (name) => Number(await page.getByRole('figure', { name, exact: true }).getAttribute('data-latest'));
    const last = (name) => seen.series[name].findLast((value) => value !== null) ?? 0;
    assert.equal(await latest('Memory'), last('memory_rss_bytes'));
    assert.equal(await latest('Disk'), last('disk_bytes'));
    assert.ok(Math.abs(last('memory_rss_bytes') / high.memory - 1) < 0.5, `${last('memory_rss_bytes')} bytes of memory, ${high.memory} in /metrics`);
    assert.ok(Math.abs(last('disk_bytes') / high.disk - 1) < 0.5, `${last('disk_bytes')} bytes of disk, ${high.disk} in /metrics`);
    await page.context().close();
  },
};
