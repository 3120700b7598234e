// Pages of strangers against a server with --dev: what they try must neither read nor
// write anything. Each attempt is also made by a page of localhost, where it works, so
// that an attempt which could never work proves nothing.

import assert from 'node:assert/strict';

import { until } from './until.mjs';

// evil is the host name of a stranger. It leads to this machine.
export const evil = 'evil.example';

// attempt tries everything that a page can do, and returns what it could read. It runs
// in the page. What it wrote is for the server to tell: many ways do not.
async function attempt(url) {
  const within = (promise) => Promise.race([promise, new Promise((resolve) => { setTimeout(resolve, 5000, 'nothing'); })]);
  const read = (target, options) => fetch(url + target, options).then((a) => a.text().then((text) => `${a.status} ${text}`), () => 'refused');
  const script = (target) => new Promise((resolve) => {
    window.took = (data) => resolve(JSON.stringify(data));
    const element = document.createElement('script');
    element.src = `${url}${target}?callback=took`;
    element.onerror = () => resolve('refused');
    document.documentElement.append(element);
  });
  const stream = (target) => new Promise((resolve) => {
    const source = new EventSource(url + target);
    const end = (text) => { source.close(); resolve(text); };
    source.addEventListener('put', (e) => end(e.data));
    source.addEventListener('error', () => end('refused'));
  });
  const post = (target) => new Promise((resolve) => {
    const frame = document.createElement('iframe');
    frame.name = `frame${Math.random()}`;
    const form = document.createElement('form');
    Object.assign(form, { method: 'POST', action: url + target, enctype: 'text/plain', target: frame.name });
    const field = document.createElement('input');
    Object.assign(field, { name: '{"form":"', value: '"}' }); // which makes {"form":"="}
    form.append(field);
    document.documentElement.append(frame, form);
    frame.onload = () => resolve();
    form.submit();
  });
  const plain = { method: 'POST', mode: 'no-cors', body: '"blind"' };
  const result = {
    fetch: await read('/guarded.json'),
    owner: await read('/guarded.json?access_token=owner'),
    rules: await read('/.settings/rules.json?access_token=owner').then((text) => text.slice(0, 3)),
    put: await read('/written/put.json', { method: 'PUT', body: '1' }).then((text) => text.slice(0, 3)),
    script: await within(script('/guarded.json')),
    stream: await within(stream('/guarded.json')),
  };
  await read('/written/blind.json', plain);
  await read('/written/owner.json?access_token=owner', plain);
  await read('/written/override.json?x-http-method-override=PUT', plain);
  navigator.sendBeacon(`${url}/written/beacon.json`, '"beacon"');
  await within(post('/written/form.json'));
  return result;
}

const data = JSON.stringify({ secret: 'of the developer' });
const everything = {
  fetch: `200 ${data}`, owner: `200 ${data}`, rules: '200', put: '200', script: data, stream: `{"path":"/","data":${data}}`,
};
const nothing = Object.fromEntries(Object.keys(everything).map((way) => [way, 'ref']));
const ways = ['beacon', 'blind', 'form', 'override', 'owner', 'put'];

// short leaves of a refusal what does not depend on the way.
const short = (result) => Object.fromEntries(Object.entries(result).map(([way, text]) => [way, text.slice(0, 3)]));

const written = async (server) => Object.keys(await server.send('GET', '/written.json') ?? {}).sort();

export async function checkGuard(browser, port, server, say) {
  await server.send('PUT', '/guarded.json', JSON.parse(data));
  const page = await browser.newPage();
  const refuse = async (where, frame) => {
    await server.send('PUT', '/written.json', null);
    assert.deepEqual(short(await frame.evaluate(attempt, server.url)), nothing, where);
    assert.deepEqual(await written(server), [], where);
    say(`guard: ${where} reads and writes nothing`);
  };

  await page.goto(`http://localhost:${port}/`);
  await server.send('PUT', '/written.json', null);
  assert.deepEqual(await page.evaluate(attempt, server.url), everything);
  await until('all writes of a page of localhost', async () => (await written(server)).length === ways.length);
  assert.deepEqual(await written(server), ways);
  say('guard: a page of localhost, at another port, may do all that others try');

  await page.goto(`http://${evil}:${port}/`);
  await refuse('a page of a stranger', page);
  await page.goto(`http://${evil}:${port}/hidden`);
  await refuse('a page of a stranger that hides where it is', page);

  await page.goto(`http://localhost:${port}/frame`);
  const sandbox = await until('the frame', () => page.frames().find((f) => f !== page.mainFrame() && f.url() === 'about:srcdoc'));
  assert.equal(await sandbox.evaluate(() => origin), 'null');
  await refuse('a frame in a sandbox, whose origin is null', sandbox);
  await page.goto('data:text/html,<title>data</title>');
  await refuse('a page of a data URL', page);

  await checkRebinding(page, server, say);
  await page.close();
}

// checkRebinding calls the server by the name of a stranger. Its page is of the same
// origin then, so that the browser keeps nothing from it.
async function checkRebinding(page, server, say) {
  const answer = await page.goto(`https://${evil}:${server.port}/guarded.json`);
  assert.equal(answer.status(), 403);
  const got = await page.evaluate(async () => {
    const list = [];
    for (const target of ['/guarded.json', '/guarded.json?access_token=owner', '/.settings/rules.json?access_token=owner']) {
      for (const method of ['GET', 'PUT', 'POST', 'PATCH', 'DELETE']) {
        const body = method === 'GET' ? undefined : '{}';
        const a = await fetch(target, { method, body });
        list.push(`${a.status} ${(await a.text()).includes('developer')}`);
      }
    }
    return list;
  });
  assert.deepEqual(got, got.map(() => '403 false'));
  assert.deepEqual(await server.send('GET', '/guarded.json'), JSON.parse(data));
  say('guard: a stranger whose name was pointed at the server is refused (DNS rebinding)');
}
