// The EventSource and the fetch of Chromium, by HTTP/2, from a page of another
// origin.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';

import { chromium } from 'playwright-core';

import { checkGuard, evil } from './devguard.mjs';
import { secret } from './server.mjs';
import { until } from './until.mjs';

export async function checkBrowser(server, executablePath, key, say) {
  const pages = createServer((request, answer) => {
    answer.setHeader('Content-Type', 'text/html');
    if (request.url === '/hidden') {
      answer.setHeader('Referrer-Policy', 'no-referrer');
    }
    const frame = '<iframe sandbox="allow-scripts allow-forms" srcdoc="<title>frame</title>"></iframe>';
    answer.end(`<!doctype html><title>check</title>${request.url === '/frame' ? frame : ''}`);
  }).listen(0, '127.0.0.1');
  await once(pages, 'listening');
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', `--ignore-certificate-errors-spki-list=${key}`, `--host-resolver-rules=MAP ${evil} 127.0.0.1`],
  });
  try {
    const page = await browser.newPage();
    page.on('requestfailed', (r) => {
      if (r.failure().errorText.includes('CERT')) { // nothing else would say so
        console.log(`${r.url()}: ${r.failure().errorText}`);
      }
    });
    await page.goto(`http://127.0.0.1:${pages.address().port}/`);
    say(`browser: Chromium ${browser.version()}`);
    await checkStream(page, server, say);
    await checkMany(page, server, say);
    await checkFetch(page, server, say);
    await checkScript(page, server, say);
    await checkGuard(browser, pages.address().port, server, say);
    await checkCancel(page, server, say);
  } finally {
    await browser.close();
    pages.close();
  }
}

// open opens a stream in the page, under a name.
function open(page, name, url) {
  return page.evaluate(([name, url]) => {
    const source = new EventSource(url);
    const events = [];
    for (const type of ['put', 'patch', 'keep-alive', 'cancel']) {
      source.addEventListener(type, (e) => events.push({ type, data: JSON.parse(e.data), id: e.lastEventId }));
    }
    for (const type of ['open', 'error', 'message']) {
      source.addEventListener(type, () => events.push({ type }));
    }
    window[name] = { source, events };
  }, [name, url]);
}

const eventsOf = (page, name) => page.evaluate((name) => window[name].events, name);
const close = (page, name) => page.evaluate((name) => window[name].source.close(), name);

// changes returns the puts and patches of a stream when there are enough.
function changes(page, name, count) {
  return until(`${count} changes of ${name}`, async () => {
    const list = (await eventsOf(page, name)).filter((e) => e.type === 'put' || e.type === 'patch');
    return list.length >= count && list.map((e) => [e.type, e.data]);
  });
}

async function checkStream(page, server, say) {
  await server.send('PUT', '/page.json', { a: 1 });
  await open(page, 'stream', `${server.url}/page.json?resume=true`);
  assert.deepEqual(await changes(page, 'stream', 1), [['put', { path: '/', data: { a: 1 } }]]);
  say('browser: the first put');

  await server.send('PUT', '/page/b.json', [1, 2]);
  await server.send('PATCH', '/page.json', { a: null, 'c/d': 'é\n' });
  assert.deepEqual((await changes(page, 'stream', 4)).slice(1), [
    ['put', { path: '/b', data: [1, 2] }],
    ['patch', { path: '/c', data: { d: 'é\n' } }],
    ['patch', { path: '/', data: { a: null } }],
  ]);
  say('browser: changes');
  await until('a keep-alive', async () => (await eventsOf(page, 'stream')).some((e) => e.type === 'keep-alive'));
  say('browser: keep-alive');

  await server.kill();
  await until('an error', async () => (await eventsOf(page, 'stream')).some((e) => e.type === 'error'));
  await server.start();
  await server.send('PUT', '/page/e.json', 'missed');
  assert.deepEqual((await changes(page, 'stream', 5))[4], ['put', { path: '/e', data: 'missed' }]);
  say('browser: it comes back after a restart, and gets what it missed');

  // With nothing missed, it must still be told that the stream is open.
  await server.kill();
  await server.start();
  await until('a third opening', async () => (await eventsOf(page, 'stream')).filter((e) => e.type === 'open').length === 3);
  await server.send('PUT', '/page/f.json', 'live');
  assert.deepEqual((await changes(page, 'stream', 6)).slice(5), [['put', { path: '/f', data: 'live' }]]);
  say('browser: it comes back when it missed nothing, and gets what comes then');
  assert.ok(!(await eventsOf(page, 'stream')).some((e) => e.type === 'message'));
  say('browser: no event without a name');
  await close(page, 'stream');
}

// checkMany opens more streams than HTTP/1.1 could have.
async function checkMany(page, server, say) {
  const names = Array.from({ length: 30 }, (_, n) => `many${n}`);
  for (const name of names) {
    await open(page, name, `${server.url}/${name}.json`);
  }
  for (const name of names) {
    await changes(page, name, 1);
  }
  await server.send('PATCH', '/.json', Object.fromEntries(names.map((name) => [name, name])));
  for (const name of names) {
    assert.deepEqual((await changes(page, name, 2))[1], ['put', { path: '/', data: name }]);
    await close(page, name);
  }
  say('browser: 30 streams at a time');
}

async function checkFetch(page, server, say) {
  const result = await page.evaluate(async (url) => {
    const put = await fetch(url, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body: '{"x":1}' });
    const get = await fetch(url, { headers: { 'X-Firebase-ETag': 'true' } });
    const tag = get.headers.get('ETag');
    const lost = await fetch(url, { method: 'PUT', headers: { 'If-Match': 'wrong' }, body: '2' });
    const won = await fetch(url, { method: 'PUT', headers: { 'If-Match': tag }, body: '3' });
    const patch = await fetch(url, { method: 'POST', headers: { 'X-HTTP-Method-Override': 'PATCH' }, body: '{"y":4}' });
    const removed = await fetch(url, { method: 'DELETE' });
    const stream = await fetch(url, { headers: { Accept: 'text/event-stream', 'Last-Event-ID': '1-1' } });
    const first = await stream.body.getReader().read();
    return {
      put: [put.status, await put.json()], get: [get.status, await get.json()], tagged: tag?.length > 0,
      lost: lost.status, won: won.status, patch: patch.status, removed: removed.status,
      stream: [stream.status, stream.headers.get('Content-Type'), new TextDecoder().decode(first.value)],
      protocol: performance.getEntriesByName(url).at(0)?.nextHopProtocol,
    };
  }, `${server.url}/fetch.json`);
  assert.deepEqual(result, {
    put: [200, { x: 1 }], get: [200, { x: 1 }], tagged: true, lost: 412, won: 200, patch: 200, removed: 200,
    stream: [200, 'text/event-stream; charset=utf-8', 'event: put\ndata: {"path":"/","data":null}\n\n'],
    protocol: result.protocol,
  });
  say('browser: fetch of every verb, with preflights, conditions and a stream');
  if (result.protocol) { // it is hidden from pages of other origins, unless the server tells
    assert.equal(result.protocol, 'h2');
    say('browser: by HTTP/2');
  }
}

// checkScript reads by a script element, as pages did before there was CORS.
async function checkScript(page, server, say) {
  await server.send('PUT', '/script.json', { text: 'a\u2028b' });
  const got = await page.evaluate((url) => new Promise((resolve, reject) => {
    window.took = resolve;
    const script = document.createElement('script');
    script.src = `${url}?callback=took`;
    script.onerror = () => reject(new Error('the script was not loaded'));
    document.head.append(script);
  }), `${server.url}/script.json`);
  assert.deepEqual(got, { text: 'a\u2028b' });
  say('browser: a script with a callback');
}

async function checkCancel(page, server, say) {
  await open(page, 'cancelled', `${server.url}/page.json`);
  await changes(page, 'cancelled', 1);
  await server.send('PUT', `/.settings/rules.json?auth=${secret}`, { rules: { '.read': false } });
  await until('a cancel', async () => (await eventsOf(page, 'cancelled')).some((e) => e.type === 'cancel'));
  say('browser: cancel');
  await until('the end', () => page.evaluate(() => window.cancelled.source.readyState === EventSource.CLOSED));
  say('browser: and it gives up when it may not come back');
}
