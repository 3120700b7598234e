// The long runs: what the page does with a million children and with a thousand changes a
// second. Prints what it sees and judges nothing: CHILDREN, SECONDS and RATE set how much.
// LIVETREE and CHROMIUM name the programs; ONLY=text runs the parts whose names have it; with
// TRACE=1 it also prints what the page's thread was busy with.

import { setTimeout as rest } from 'node:timers/promises';
import { startBrowser, startServer } from './browser/world.mjs';

const children = Number(process.env.CHILDREN ?? 1_000_000);
const seconds = Number(process.env.SECONDS ?? 600);
const rate = Number(process.env.RATE ?? 1000);
const key = (i) => 'k' + String(i).padStart(7, '0');
const print = (name, seen) => console.log(`${new Date().toISOString().slice(11, 19)} ${name}: ${typeof seen === 'string' ? seen : JSON.stringify(seen)}`);

/** Frames and long tasks of a page from here on; call the result for what was seen. */
async function meter(page) {
  await page.evaluate(() => {
    const seen = (globalThis.seen = { frames: [], tasks: [], on: true });
    new PerformanceObserver((list) => list.getEntries().forEach((task) => seen.on && seen.tasks.push(Math.round(task.duration)))).observe({ entryTypes: ['longtask'] });
    let last = performance.now();
    requestAnimationFrame(function frame(now) {
      seen.frames.push(now - last);
      last = now;
      if (seen.on) requestAnimationFrame(frame);
    });
  });
  return () => page.evaluate(() => {
    const { seen } = globalThis;
    seen.on = false;
    const frames = seen.frames.slice(1).sort((a, b) => a - b);
    const at = (part) => Math.round(10 * (frames[Math.floor(frames.length * part)] ?? 0)) / 10;
    return { frames: frames.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), most: at(0.99999), longTasks: seen.tasks.sort((a, b) => b - a).slice(0, 8), longTaskCount: seen.tasks.length };
  });
}

async function heap(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  await cdp.detach();
  return Math.round(usedSize / 1e5) / 10;
}

/** Milliseconds until a row is in the page. */
async function until(page, act, path) {
  const began = performance.now();
  await act();
  await page.waitForSelector(`[role=treeitem][data-path="${path}"]`, { timeout: 120_000 });
  return Math.round(performance.now() - began);
}

/** Bytes that come to the browser, as they are on the wire; those of streams when they come. */
async function traffic(page) {
  const sizes = new Map(); // by request; of one that has not ended, its text
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  cdp.on('Network.dataReceived', ({ requestId, dataLength }) => sizes.set(requestId, (sizes.get(requestId) ?? 0) + dataLength));
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => sizes.set(requestId, encodedDataLength));
  return () => [...sizes.values()].reduce((a, b) => a + b, 0);
}

/**
 * What the page's own thread does from here on, if TRACE is set: its longest tasks with the
 * processor time they took, so that a task that waited for the processor is told from one that
 * worked, and what the time went to.
 */
async function trace(page) {
  if (!process.env.TRACE) return async () => {};
  const cdp = await page.context().browser().newBrowserCDPSession();
  const events = [];
  cdp.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await cdp.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline', '__metadata'] } });
  const profiler = await page.context().newCDPSession(page);
  await profiler.send('Profiler.enable');
  await profiler.send('Profiler.start');
  return async (name) => {
    const { profile } = await profiler.send('Profiler.stop');
    const ended = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve));
    await cdp.send('Tracing.end');
    await ended;
    await cdp.detach();
    const main = events.find((one) => one.name === 'FunctionCall' && String(one.args?.data?.url).includes('/console/'));
    const mine = events.filter((one) => one.ph === 'X' && one.pid === main?.pid && one.tid === main?.tid);
    const tasks = mine.filter((one) => one.name === 'RunTask').sort((a, b) => b.dur - a.dur);
    print(`${name}: longest tasks, [ms, of them working]`, tasks.slice(0, 8).map((one) => [Math.round(one.dur / 1000), Math.round((one.tdur ?? 0) / 1000)]));
    print(`${name}: tasks over 50 ms of work`, String(tasks.filter((one) => one.tdur > 50_000).length));
    const worst = tasks.filter((one) => one.tdur > 50_000).sort((a, b) => b.tdur - a.tdur)[0];
    const inside = mine.filter((one) => worst && one !== worst && one.ts >= worst.ts && one.ts + one.dur <= worst.ts + worst.dur).sort((a, b) => b.tdur - a.tdur);
    print(`${name}: in the one that worked most`, inside.slice(0, 10).map((one) => `${one.name} ${Math.round(one.tdur / 1000)}`));
    const sums = {};
    for (const one of mine) if (one.tdur > 0) sums[one.name] = (sums[one.name] ?? 0) + one.tdur / 1000;
    print(`${name}: ms of work by kind`, Object.fromEntries(Object.entries(sums).sort((a, b) => b[1] - a[1]).slice(0, 14).map(([kind, ms]) => [kind, Math.round(ms)])));
    const own = {};
    const names = new Map(profile.nodes.map((node) => [node.id, `${node.callFrame.functionName || '(anonymous)'} ${node.callFrame.url.split('/').slice(-2).join('/')}:${node.callFrame.lineNumber + 1}`]));
    for (const [i, id] of profile.samples.entries()) own[names.get(id)] = (own[names.get(id)] ?? 0) + profile.timeDeltas[i] / 1000;
    print(`${name}: ms by function`, Object.fromEntries(Object.entries(own).sort((a, b) => b[1] - a[1]).slice(0, 16).map(([fn, ms]) => [fn, Math.round(ms)])));
  };
}

/** Waits until the children are counted, or the server has given up counting. */
async function counted(page) {
  const began = performance.now();
  const text = page.locator('[role=treeitem][aria-level="1"] .meta');
  while (performance.now() - began < 8000 && !(await text.textContent()).startsWith(children.toLocaleString('en-US'))) await rest(20);
  print(`counted after ${Math.round(performance.now() - began)} ms`, await text.textContent());
}

const parts = {
  async 'first tree'({ server, browser }) {
    await server.rest('PUT', '/small', '{"a":1}');
    const page = await browser.open(server, '/console/db/default/data/small');
    const count = [];
    const bytes = await traffic(page);
    page.on('request', (request) => count.push(new URL(request.url()).pathname));
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
    const times = [];
    for (let i = 0; i < 5; i++) {
      await page.reload();
      await page.waitForSelector('html[data-ready=signed-in]');
      times.push(Math.round(await page.evaluate(() => performance.getEntriesByName('console-ready')[0].startTime)));
    }
    await rest(500);
    print('first tree', { requests: count.length / 5, assets: count.filter((path) => path.startsWith('/console')).length / 5, kilobytes: Math.round(bytes() / 5 / 100) / 10, readyMillis: times });
    await page.context().close();
  },

  async 'many children'({ server, browser }) {
    const began = performance.now();
    for (let from = 0; from < children; from += 20_000) {
      const part = {};
      for (let i = from; i < Math.min(children, from + 20_000); i++) part[key(i)] = { by: 'user' + (i % 1000), n: i };
      await server.rest('PATCH', '/big', JSON.stringify(part), '?print=silent');
    }
    print('written', `${children} children in ${Math.round((performance.now() - began) / 1000)} s`);
    const page = await browser.open(server, '/console/db/default/data/small');
    const bytes = await traffic(page);
    const box = page.getByRole('textbox', { name: 'Path' });
    for (let i = 0; i < 3; i++) {
      await box.fill('/big');
      print('first rows, ms', String(await until(page, () => page.keyboard.press('Enter'), '/big/' + key(0))));
      if (i < 2) {
        await page.goBack();
        await page.waitForSelector('[data-path="/small"]');
      }
    }
    await counted(page);
    print('End, ms', String(await until(page, () => page.keyboard.press('End'), '/big/' + key(children - 1))));
    print('Home, ms', String(await until(page, () => page.keyboard.press('Home'), '/big/' + key(0))));
    const find = page.getByRole('searchbox', { name: 'Find key' });
    for (const prefix of [key(Math.floor(children * 0.7654)).slice(0, 7), key(Math.floor(children * 0.123)).slice(0, 6)]) {
      await find.fill(prefix);
      print(`prefix ${prefix}, ms`, String(await until(page, () => page.keyboard.press('Enter'), '/big/' + prefix.padEnd(8, '0'))));
    }
    await find.fill('');
    await until(page, () => page.keyboard.press('Enter'), '/big/' + key(0));
    await counted(page);
    print('rows in the page', String(await page.getByRole('treeitem').count()));
    const jumps = [];
    for (let i = 0; i < 20; i++) {
      jumps.push(await page.evaluate(async (to) => {
        const scroll = document.querySelector('[data-testid=tree-scroll]');
        scroll.scrollTop = to * scroll.scrollHeight;
        const began = performance.now();
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        const middle = () => document.elementFromPoint(scroll.getBoundingClientRect().left + 200, scroll.getBoundingClientRect().top + 100)?.closest('.row');
        while (!middle()?.dataset.path && performance.now() - began < 10_000) await new Promise((resolve) => setTimeout(resolve, 5));
        return Math.round(performance.now() - began);
      }, Math.random()));
    }
    print('jumps, ms', jumps);
    await page.mouse.move(400, 400);
    for (const step of [60, 400, 3000]) {
      const traced = await trace(page);
      const seen = await meter(page);
      for (let i = 0; i < 200; i++) {
        await page.mouse.wheel(0, step);
        await rest(16);
      }
      print(`scrolling by ${step}`, await seen());
      await traced(`scrolling by ${step}`);
    }
    await rest(1000);
    print('rows in the page', String(await page.getByRole('treeitem').count()));
    print('heap, MB', String(await heap(page)));
    print('to the browser, MB', String(Math.round(bytes() / 1e4) / 100));
    await page.context().close();
  },

  async 'large values'({ server, browser }) {
    await server.rest('PUT', '/large/text', JSON.stringify('x'.repeat(5_000_000)), '?print=silent');
    const records = {};
    for (let i = 0; i < 10_000; i++) records['r' + i] = { text: 'y'.repeat(1000) };
    await server.rest('PUT', '/large/tree', JSON.stringify(records), '?print=silent');
    const page = await browser.open(server, '/console/db/default/data/small');
    const bytes = await traffic(page);
    await page.getByRole('textbox', { name: 'Path' }).fill('/large');
    await until(page, () => page.keyboard.press('Enter'), '/large/tree');
    await page.locator('[data-path="/large/tree"] [data-part=key]').click();
    const took = await until(page, () => page.keyboard.press('ArrowRight'), '/large/tree/r0');
    await rest(1500);
    print('5 MB text and 10 MB subtree', { openMillis: took, megabytes: Math.round(bytes() / 1e4) / 100 });
    await page.context().close();
  },

  async 'many changes'({ server, browser }) {
    const size = 2000;
    const all = {};
    for (let i = 0; i < size; i++) all[key(i)] = 0;
    await server.rest('PUT', '/hot', JSON.stringify(all), '?print=silent');
    const page = await browser.open(server, '/console/db/default/data/hot');
    await page.waitForSelector('.live[data-state=live]');
    const start = await heap(page);
    print('heap at the start, MB', String(start));
    const ends = Date.now() + seconds * 1000;
    let sent = 0;
    const writing = (async () => {
      const began = Date.now();
      while (Date.now() < ends) {
        const part = {};
        for (let i = 0; i < 50; i++) part[key(Math.floor(Math.random() * size))] = sent + i;
        await server.rest('PATCH', '/hot', JSON.stringify(part), '?print=silent');
        sent += 50;
        const wait = began + (sent / rate) * 1000 - Date.now();
        if (wait > 0) await rest(wait);
      }
    })();
    const traced = await trace(page);
    const seen = await meter(page);
    const answers = [];
    for (let i = 1; Date.now() < ends; i++) {
      await rest(1000);
      const began = performance.now();
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
      answers.push(Math.round(performance.now() - began));
      if (i % 30 === 0) print(`after ${i} s`, { sent, heap: await heap(page), rate: await page.locator('.live').textContent(), rows: await page.getByRole('treeitem').count() });
    }
    await writing;
    answers.sort((a, b) => a - b);
    print('the page answers, ms', { p50: answers[answers.length >> 1], p95: answers[Math.floor(answers.length * 0.95)], most: answers.at(-1) });
    print('frames', await seen());
    await traced('changes');
    await rest(2000);
    const stored = JSON.parse(await server.rest('GET', '/hot'));
    const shown = await page.evaluate(() => [...document.querySelectorAll('[role=treeitem][aria-level="2"]')].map((row) => [row.querySelector('[data-part=key]').textContent, Number(row.querySelector('[data-part=value]').textContent)]));
    print('rows with an old value', String(shown.filter(([name, value]) => stored[name] !== value).length) + ` of ${shown.length}, ${sent} changes sent`);
    print('heap, MB, growth', `${await heap(page)}, ${Math.round(10 * ((await heap(page)) - start)) / 10}`);
    await page.context().close();
  },
};

const server = await startServer('--dev');
const browser = await startBrowser();
try {
  for (const [name, run] of Object.entries(parts)) if (name.includes(process.env.ONLY ?? '')) await run({ server, browser });
  print('sins', browser.sins);
} finally {
  await browser.close();
  await server.stop();
}
