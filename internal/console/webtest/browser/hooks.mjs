// The screen Hooks, with a receiver of its own: hooks are added, tested, paused, removed, and
// what they have delivered is shown and delivered again.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { eventually } from './world.mjs';

/** Starts a receiver on loopback, which the server must allow. It answers what `answer` says. */
async function startReceiver() {
  const receiver = { got: [], answer: () => [204, ''] };
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part)).on('end', () => {
      const body = Buffer.concat(parts).toString();
      receiver.got.push({ body: JSON.parse(body), text: body, headers: request.headers });
      const [status, text] = receiver.answer();
      response.writeHead(status).end(text);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${server.address().port}/in`,
    of: (event) => receiver.got.filter((one) => one.body.event === event),
    stop: () => (server.closeAllConnections(), server.close()),
  });
}

/** Whether a delivery is signed with a secret. */
function signedWith(secret, { headers, text }) {
  const mac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64')).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`).digest('base64');
  return headers['webhook-signature'].split(' ').includes('v1,' + mac);
}

/** A server that shows a hook with deliveries good and bad, for axe and for pictures. */
export async function prepare(server) {
  const receiver = await startReceiver();
  const add = (name, more = {}) => server.call('POST', '/v1/databases/default/hooks', JSON.stringify({ name, path: `/${name}/$id`, url: receiver.url, ...more }));
  for (const name of ['shown', 'gone']) assert.equal((await add(name, name === 'gone' ? { events: ['delete'] } : {})).status, 201, name);
  await server.call('PATCH', '/v1/databases/default/hooks/gone', '{"paused":true}');
  await server.rest('PUT', '/shown/a', '{"n":1}');
  await eventually('a delivery', () => receiver.got.length >= 1);
  receiver.answer = () => [500, 'Internal error: <b>the receiver</b> has none of it, and says so at length. '.repeat(3)];
  await server.rest('PUT', '/shown/b', '{"n":2}');
  await eventually('two deliveries', () => receiver.got.length >= 2);
  return receiver;
}

export const tests = {
  async 'hooks are added, tested, paused and removed, and deliveries are replayed'({ server, browser }) {
    const receiver = await startReceiver();
    const page = await browser.open(server, '/console/db/default/data');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Hooks' }).click();
    const form = page.getByRole('form', { name: 'New hook' });
    await form.getByRole('button', { name: 'Add hook' }).click();
    await form.getByRole('alert').filter({ hasText: 'name' }).waitFor();
    await form.getByLabel('Name').fill('orders');
    await form.getByLabel('Path').fill('orders/$id');
    await form.getByLabel('URL').fill('http://192.0.2.1/in');
    await form.getByLabel('update').uncheck();
    await form.getByRole('button', { name: 'Add hook' }).click();
    await form.getByRole('alert').filter({ hasText: /path|pattern|url/ }).waitFor();
    await form.getByLabel('Path').fill('/orders/$id');
    await form.getByLabel('URL').fill(receiver.url);
    await form.getByRole('button', { name: 'Add hook' }).click();
    const dialog = page.getByRole('dialog', { name: 'Secret of orders' });
    const secret = await dialog.getByTestId('secret').textContent();
    assert.match(secret, /^whsec_/);
    await dialog.getByRole('button', { name: 'Copy secret' }).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    assert.ok(!(await page.content()).includes(secret), 'the secret is not shown again');
    await page.getByRole('table', { name: 'Hooks', exact: true }).locator('tr[data-name=orders]').getByRole('link', { name: 'orders' }).click();
    await page.waitForURL(/\/db\/default\/hooks\/orders$/);
    const bar = page.getByRole('toolbar', { name: 'Hook' });
    await bar.getByRole('button', { name: 'Test' }).click();
    await page.getByRole('status').filter({ hasText: 'Test: 204' }).waitFor();
    assert.ok(signedWith(secret, receiver.of('test')[0]), 'the test is signed with the secret');
    receiver.answer = () => [200, '<img src=x onerror=alert(1)>'];
    await server.rest('PUT', '/orders/1', '{"n":1}');
    const deliveries = page.getByRole('table', { name: 'Deliveries', exact: true });
    const row = deliveries.locator('tbody tr').first();
    await row.waitFor();
    assert.match(await row.textContent(), /200.*<img src=x onerror=alert\(1\)>.*msg_/);
    assert.equal(await page.locator('main img').count(), 0);
    await row.getByRole('button', { name: 'Replay' }).click();
    await eventually('the delivery comes again', () => receiver.of('create').length === 2);
    assert.equal(receiver.of('create')[0].body.id, receiver.of('create')[1].body.id);
    await deliveries.locator('tbody tr', { hasText: 'replay' }).waitFor();
    await bar.getByRole('button', { name: 'Pause' }).click();
    await page.locator('.hook-state[data-state=paused]').waitFor();
    await server.rest('PUT', '/orders/2', '{"n":1}');
    await bar.getByRole('button', { name: 'Resume' }).click();
    await eventually('what waited is delivered', () => receiver.of('create').some((one) => one.body.path === '/orders/2'));
    await bar.getByRole('button', { name: 'Replace secret' }).click();
    await page.getByRole('dialog', { name: 'Replace secret' }).getByRole('button', { name: 'Replace' }).click();
    const second = await dialog.getByTestId('secret').textContent();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await server.rest('PUT', '/orders/3', '{"n":1}');
    await eventually('the third', () => receiver.of('create').some((one) => one.body.path === '/orders/3'));
    const third = receiver.of('create').at(-1);
    assert.ok(signedWith(secret, third) && signedWith(second, third), 'both secrets sign');
    await bar.getByRole('button', { name: 'Drop old secret' }).click();
    await page.getByRole('alertdialog', { name: 'Drop old secret' }).getByRole('button', { name: 'Drop' }).click();
    await bar.getByRole('button', { name: 'Drop old secret' }).waitFor({ state: 'hidden' });
    await page.getByRole('switch', { name: 'Editing' }).click();
    for (const name of ['Test', 'Pause', 'Replace secret', 'Remove']) assert.ok(await bar.getByRole('button', { name }).isDisabled(), name);
    await row.getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('alert').filter({ hasText: 'Editing is off' }).waitFor();
    await page.getByRole('switch', { name: 'Editing' }).click();
    await bar.getByRole('button', { name: 'Remove' }).click();
    const remove = page.getByRole('alertdialog', { name: 'Remove hook' });
    assert.ok(await remove.getByRole('button', { name: 'Remove' }).isDisabled());
    await remove.getByLabel('Type orders to confirm').fill('orders');
    await remove.getByRole('button', { name: 'Remove' }).click();
    await page.waitForURL(/\/db\/default\/hooks$/);
    await page.getByRole('table', { name: 'Hooks', exact: true }).waitFor();
    assert.equal(await page.locator('tr[data-name=orders]').count(), 0);
    receiver.stop();
    await page.context().close();
  },

  async 'a row of deliveries keeps its focus while the list is read again'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/hooks/shown');
    const replay = page.getByRole('table', { name: 'Deliveries', exact: true }).getByRole('button', { name: /^Replay/ }).last();
    await replay.focus();
    await page.waitForResponse((answer) => answer.url().endsWith('/hooks/shown/deliveries'));
    await page.waitForResponse((answer) => answer.url().endsWith('/hooks/shown/deliveries'));
    assert.match(await page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? ''), /^Replay/);
    await page.context().close();
  },

  async 'a hook that is removed elsewhere is noticed, and one that was never there is said'({ server, browser }) {
    assert.equal((await server.call('POST', '/v1/databases/default/hooks', JSON.stringify({ name: 'brief', path: '/brief', url: 'https://example.com/in' }))).status, 201);
    const page = await browser.open(server, '/console/db/default/hooks/brief');
    await page.getByRole('heading', { name: 'brief' }).waitFor();
    await server.call('DELETE', '/v1/databases/default/hooks/brief');
    await page.getByRole('status').filter({ hasText: 'no hook that is called' }).waitFor();
    await page.reload();
    await page.getByRole('alert').filter({ hasText: 'no hook that is called' }).waitFor();
    await page.context().close();
  },

  async 'a session of one database has no screen Hooks'({ server, browser }) {
    const { secrets } = await (await server.call('GET', '/v1/databases/default/secrets?show=true')).json();
    const page = await browser.open(server, '/console/db/default/hooks', { hash: '' });
    const form = page.getByRole('form', { name: 'Sign in', exact: true });
    await form.getByLabel('Credential', { exact: true }).fill(secrets[0].value);
    await form.getByLabel('Database', { exact: true }).fill('default');
    await form.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByText('operator’s credential').waitFor();
    assert.equal(await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Hooks' }).count(), 0);
    await page.context().close();
  },
};
