// The contract of the page, sentence by sentence: the roles, names, data attributes and
// addresses that tests and other programs may hold on to. A test opens a screen and lists every
// sentence that does not hold, not the first alone.

import assert from 'node:assert/strict';
import { row, select } from './world.mjs';

/** Runs sentences with their checks, and fails with all of those that do not hold. */
async function hold(sentences) {
  const broken = [];
  for (const [sentence, check] of Object.entries(sentences)) {
    try {
      if ((await check()) === false) broken.push(sentence);
    } catch (error) {
      broken.push(`${sentence}: ${String(error.message).split('\n')[0].slice(0, 200)}`);
    }
  }
  assert.deepEqual(broken, []);
}

const there = (locator) => locator.waitFor().then(() => true);
const one = async (locator) => (await there(locator.first())) && (await locator.count()) === 1;
const gone = (locator) => locator.waitFor({ state: 'detached' }).then(() => true);
const options = (locator) => locator.locator('option').evaluateAll((all) => all.map((each) => each.value));
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Whether the element that has the focus, or the row it stands for, shows it. */
const showsFocus = (page) => page.evaluate(() => {
  const active = document.activeElement;
  const named = document.getElementById(active?.getAttribute('aria-activedescendant') ?? '');
  return [active, named].some((element) => {
    const style = element && getComputedStyle(element);
    return style && ((style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none');
  });
});

export const tests = {
  async 'contract: the document and signing in'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/live/some/place', { hash: '', colorScheme: 'dark' });
    const form = page.getByRole('form', { name: 'Sign in', exact: true });
    const ready = () => page.locator('html').getAttribute('data-ready');
    await hold({
      'data-ready is signed-out when the form can be used': async () => (await ready()) === 'signed-out' && one(form),
      'performance has the mark console-ready': () => page.evaluate(() => performance.getEntriesByName('console-ready').length === 1),
      'data-theme is that of the system': async () => (await page.locator('html').getAttribute('data-theme')) === 'dark',
      'the fields are Credential and Database': async () => (await one(form.getByLabel('Credential', { exact: true }))) && one(form.getByLabel('Database', { exact: true })),
      'a refusal is an alert with the word refused': async () => {
        await form.getByLabel('Credential', { exact: true }).fill('wrong');
        await form.getByRole('button', { name: 'Sign in', exact: true }).click();
        return there(page.getByRole('alert').filter({ hasText: 'refused' }));
      },
      'signing in keeps the address, and data-ready is signed-in': async () => {
        await form.getByLabel('Credential', { exact: true }).fill(server.token);
        await form.getByRole('button', { name: 'Sign in', exact: true }).click();
        await page.waitForSelector('html[data-ready=signed-in]');
        return new URL(page.url()).pathname === '/console/db/default/live/some/place';
      },
      'the title names path and database': async () => /\/some\/place.*default/.test(await page.title()),
      'Theme changes the theme, which is remembered': async () => {
        await page.getByRole('button', { name: 'Theme', exact: true }).click();
        await page.reload();
        await page.waitForSelector('html[data-ready=signed-in]');
        return (await page.locator('html').getAttribute('data-theme')) === 'light';
      },
    });
    await page.context().close();
  },

  async 'contract: the shell'({ server, browser }) {
    await server.rest('PUT', '/contract', '{"a":1}');
    const page = await browser.open(server, '/console/db/default/data/contract');
    const nav = page.getByRole('navigation', { name: 'Main', exact: true });
    const editing = page.getByRole('switch', { name: 'Editing', exact: true });
    await hold({
      'the navigation has ten links': async () => same(await nav.getByRole('link').allTextContents(), ['Data', 'Query', 'Rules', 'Live', 'Access', 'Hooks', 'Health', 'Databases', 'Backups', 'Settings']),
      'Editing is a switch with aria-checked': async () => ['true', 'false'].includes(await editing.getAttribute('aria-checked')),
      'there is a button Sign out': () => one(page.getByRole('button', { name: 'Sign out', exact: true })),
      'there is one main': () => one(page.getByRole('main')),
      'the focus is shown wherever Tab leads': async () => {
        const hidden = [];
        await page.locator('body').click({ position: { x: 1, y: 1 } });
        for (let i = 0; i < 40; i++) {
          await page.keyboard.press('Tab');
          if (await page.evaluate(() => document.activeElement === document.body)) continue; // outside the page
          if (!(await showsFocus(page))) hidden.push(await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 80)));
        }
        if (hidden.length > 0) throw new Error([...new Set(hidden)].join(' '));
      },
      'every screen has its address': async () => {
        for (const path of ['db/default/data/contract', 'db/default/query/contract', 'db/default/rules', 'db/default/live/contract', 'db/default/access', 'db/default/hooks', 'health', 'databases', 'backups', 'settings', 'docs']) {
          await page.goto(`${server.base}/console/${path}`);
          await page.waitForSelector('html[data-ready=signed-in]');
          assert.equal(await page.locator('main').getAttribute('data-screen'), path.split('/')[path.startsWith('db') ? 2 : 0]);
        }
      },
      'with Editing off every change is disabled on every screen': async () => {
        await editing.click();
        for (const [path, name] of [['db/default/access', 'Add secret'], ['db/default/access', 'Make key file'], ['databases', 'Create'], ['backups', 'Back up now']]) {
          await page.goto(`${server.base}/console/${path}`);
          await page.waitForSelector('html[data-ready=signed-in]');
          assert.ok(await page.getByRole('button', { name, exact: true }).isDisabled(), name);
        }
        await editing.click();
      },
    });
    await page.context().close();
  },

  async 'contract: the tree'({ server, browser }) {
    await server.rest('PUT', '/tree', JSON.stringify({ a: 1, 'b c': 'x'.repeat(3000), o: { deep: { er: true } }, t: true }));
    const page = await browser.open(server, '/console/db/default/data/tree');
    const tree = page.getByRole('tree', { name: 'Data', exact: true });
    const attribute = (path, name) => row(page, path).getAttribute(name);
    await hold({
      'the tree is called Data': () => one(tree),
      'rows have data-path with plain keys': () => one(row(page, '/tree/b c')),
      'data-type is object, string, number or boolean': async () => same(await Promise.all(['/tree', '/tree/b c', '/tree/a', '/tree/t'].map((path) => attribute(path, 'data-type'))), ['object', 'string', 'number', 'boolean']),
      'aria-level counts from 1': async () => (await attribute('/tree', 'aria-level')) === '1' && (await attribute('/tree/a', 'aria-level')) === '2',
      'objects alone have aria-expanded': async () => (await attribute('/tree', 'aria-expanded')) === 'true' && (await attribute('/tree/o', 'aria-expanded')) === 'false' && (await attribute('/tree/a', 'aria-expanded')) === null,
      'a key is the whole text of its part': async () => (await row(page, '/tree/b c').locator('[data-part=key]').textContent()) === 'b c',
      'a value is JSON text of at most 1,000 characters': async () => {
        const text = await row(page, '/tree/b c').locator('[data-part=value]').textContent();
        return text.startsWith('"xxx') && text.length <= 1000 && (await row(page, '/tree/a').locator('[data-part=value]').textContent()) === '1';
      },
      'an object has no value': async () => (await row(page, '/tree/o').locator('[data-part=value]').count()) === 0,
      'clicking the key selects': async () => {
        await select(page, '/tree/a');
        return (await attribute('/tree/a', 'aria-selected')) === 'true' && (await attribute('/tree/t', 'aria-selected')) === 'false';
      },
      'the focus is on the row, or on the tree with aria-activedescendant': () => page.evaluate(() => {
        const active = document.activeElement;
        const at = active?.getAttribute('role') === 'tree' ? document.getElementById(active.getAttribute('aria-activedescendant') ?? '') : active;
        return at?.getAttribute('data-path') === '/tree/a';
      }),
      'it scrolls in tree-scroll': () => one(page.getByTestId('tree-scroll')),
      'a change flashes': async () => {
        await page.waitForSelector('.live[data-state=live]');
        await server.rest('PUT', '/tree/new', '1');
        await page.waitForSelector('[data-path="/tree/new"][data-flash=added]');
        await server.rest('PUT', '/tree/new', '2');
        await page.waitForSelector('[data-path="/tree/new"][data-flash=changed]');
      },
      'there are a textbox Path and a searchbox Find key': async () => (await one(page.getByRole('textbox', { name: 'Path', exact: true }))) && one(page.getByRole('searchbox', { name: 'Find key', exact: true })),
      'Find key applies with Enter, and clears when empty': async () => {
        await select(page, '/tree');
        const box = page.getByRole('searchbox', { name: 'Find key', exact: true });
        await box.fill('b');
        await page.keyboard.press('Enter');
        await gone(row(page, '/tree/a'));
        await there(row(page, '/tree/b c'));
        await box.fill('');
        await page.keyboard.press('Enter');
        return there(row(page, '/tree/a'));
      },
      'the key of the root is a slash': async () => {
        await page.goto(server.base + '/console/db/default/data');
        await page.waitForSelector('html[data-ready=signed-in]');
        return (await row(page, '/').locator('[data-part=key]').textContent()) === '/';
      },
      'where there is nothing, main says No data': async () => {
        await page.goto(server.base + '/console/db/default/data/no/where');
        return there(page.getByRole('main').getByText('No data', { exact: true }));
      },
    });
    await page.context().close();
  },

  async 'contract: the forms of the tree'({ server, browser }) {
    await server.rest('PUT', '/forms', '{"a":"x","o":{"b":1}}');
    const page = await browser.open(server, '/console/db/default/data/forms');
    const bar = page.getByRole('toolbar', { name: 'Node', exact: true });
    const form = (name) => page.getByRole('form', { name, exact: true });
    const opens = (button, path, fields, submit) => async () => {
      await select(page, path);
      await bar.getByRole('button', { name: button, exact: true }).click();
      const opened = form({ Edit: 'Edit value' }[button] ?? button);
      for (const field of fields) await there(opened.getByLabel(field, { exact: true }));
      await there(opened.getByRole('button', { name: submit, exact: true }));
      await page.keyboard.press('Escape');
      await gone(opened);
      return page.evaluate((want) => {
        const tree = document.activeElement;
        return document.getElementById(tree?.getAttribute('aria-activedescendant') ?? '')?.dataset.path === want;
      }, path);
    };
    await hold({
      'the toolbar has seven buttons': async () => {
        for (const name of ['Edit', 'Add child', 'Rename', 'Duplicate', 'Delete', 'Import', 'Export']) await there(bar.getByRole('button', { name, exact: true }));
      },
      'Edit value, and Escape gives the focus back': opens('Edit', '/forms/a', ['Type', 'Value'], 'Save'),
      'Edit value of an object': opens('Edit', '/forms/o', ['Type', 'Value'], 'Save'),
      'Add child': opens('Add child', '/forms', ['Key', 'Type', 'Value'], 'Add'),
      'Rename': opens('Rename', '/forms/a', ['Key'], 'Rename'),
      'Duplicate': opens('Duplicate', '/forms/a', ['Key'], 'Duplicate'),
      'Import': opens('Import', '/forms', ['File', 'Merge', 'Replace'], 'Import'),
      'Type is a select of four': async () => {
        await select(page, '/forms/a');
        await page.keyboard.press('Enter');
        const type = form('Edit value').getByLabel('Type', { exact: true });
        return (await type.evaluate((element) => element.tagName)) === 'SELECT' && same(await options(type), ['string', 'number', 'boolean', 'json']);
      },
      'Value is a text field, and an error keeps its text': async () => {
        await form('Edit value').getByLabel('Type', { exact: true }).selectOption('number');
        await form('Edit value').getByLabel('Value', { exact: true }).fill('x y');
        await page.keyboard.press('Enter');
        await there(form('Edit value').getByRole('alert').filter({ hasText: /./ }));
        return (await form('Edit value').getByLabel('Value', { exact: true }).inputValue()) === 'x y';
      },
      'Enter saves one line, and then there is Undo': async () => {
        await form('Edit value').getByLabel('Value', { exact: true }).fill('42');
        await page.keyboard.press('Enter');
        await gone(form('Edit value'));
        assert.equal(await server.rest('GET', '/forms/a'), '42');
        return one(page.getByRole('button', { name: 'Undo', exact: true }));
      },
      'deleting an object asks with its path': async () => {
        await select(page, '/forms/o');
        await page.keyboard.press('Delete');
        const sure = page.getByRole('alertdialog');
        await there(sure.getByText('/forms/o'));
        await there(sure.getByRole('button', { name: 'Delete', exact: true }));
        await sure.getByRole('button', { name: 'Cancel', exact: true }).click();
        return (await server.rest('GET', '/forms/o')) === '{"b":1}';
      },
    });
    await page.context().close();
  },

  async 'contract: queries'({ server, browser }) {
    await server.rest('PUT', '/asked', '{"a":{"n":3,"s":"x"},"b":{"n":1},"c":{"n":2}}');
    const page = await browser.open(server, '/console/db/default/query');
    const form = page.getByRole('form', { name: 'Query', exact: true });
    const field = (name) => form.getByLabel(name, { exact: true });
    const table = page.getByRole('table', { name: 'Result', exact: true });
    await hold({
      'the form has its fields': async () => {
        for (const name of ['Path', 'Order by', 'Start at', 'End at', 'Equal to', 'Limit', 'Count']) await one(field(name));
        return same(await options(field('Limit')), ['none', 'first', 'last']);
      },
      'Run puts the REST parameters into the address': async () => {
        await field('Path').fill('/asked');
        await field('Order by').fill('$key');
        await field('Start at').fill('"b"');
        await field('Limit').selectOption('first');
        await field('Count').fill('2');
        await form.getByRole('button', { name: 'Run', exact: true }).click();
        await there(table);
        const url = new URL(page.url());
        return url.pathname === '/console/db/default/query/asked' && same(Object.fromEntries(url.searchParams), { orderBy: '"$key"', startAt: '"b"', limitToFirst: '2' });
      },
      'rows have data-key in the order of the query': async () => same(await table.locator('tr[data-key]').evaluateAll((rows) => rows.map((each) => each.dataset.key)), ['b', 'c']),
      'the columns are Key and the children': async () => (await one(table.getByRole('columnheader', { name: 'Key', exact: true }))) && one(table.getByRole('columnheader', { name: 'n', exact: true })),
      'an address fills the form and runs it': async () => {
        await page.reload();
        await there(table.locator('tr[data-key=b]'));
        return (await field('Start at').inputValue()) === '"b"' && (await field('Count').inputValue()) === '2' && (await field('Path').inputValue()) === '/asked';
      },
      'the region Plan says what explain says': async () => {
        const plan = JSON.parse(await server.rest('GET', '/asked', undefined, '?orderBy=%22$key%22&startAt=%22b%22&limitToFirst=2&explain=true'));
        const text = await page.getByRole('region', { name: 'Plan', exact: true }).textContent();
        for (const [name, value] of Object.entries(plan)) if (!text.includes(`${name} ${value}`)) throw new Error(`${name} ${value} is not in ${text}`);
      },
      'snippet-curl is one line with the secret by name': async () => /^curl [^\n]*\$LIVETREE_SECRET[^\n]*$/.test(await page.getByTestId('snippet-curl').textContent()),
      'a missing index has a button Add index, which leads to Deploy rules': async () => {
        await field('Order by').fill('s/missing');
        await field('Start at').fill('');
        await form.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByRole('button', { name: 'Add index', exact: true }).click();
        await there(page.getByRole('dialog', { name: 'Deploy rules', exact: true }).locator('[data-diff=add]').first());
        await page.keyboard.press('Escape');
      },
    });
    await page.context().close();
  },

  async 'contract: rules'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/rules');
    const editor = page.getByRole('textbox', { name: 'Rules document', exact: true });
    const simulate = page.getByRole('form', { name: 'Simulate', exact: true });
    const before = await editor.inputValue();
    await hold({
      'problems are a list of items with data-line and data-column': async () => {
        await editor.fill('{"rules": {\n  ".read": "auth"\n}}');
        return there(page.getByRole('list', { name: 'Problems', exact: true }).locator('[data-line="2"][data-column]'));
      },
      'Review is disabled while there are problems': () => page.getByRole('button', { name: 'Review', exact: true }).isDisabled(),
      'History has the deployed one first, with Restore': async () => there(page.getByRole('list', { name: 'History', exact: true }).getByRole('button', { name: 'Restore', exact: true }).first()),
      'the form Simulate has its fields': async () => {
        for (const name of ['Path', 'Auth', 'Data']) await one(simulate.getByLabel(name, { exact: true }));
        return same(await options(simulate.getByLabel('Operation', { exact: true })), ['read', 'put', 'patch', 'post', 'delete']);
      },
      'the verdict is allowed or denied, of the text in the editor': async () => {
        await editor.fill('{"rules": {\n  ".read": "auth != null"\n}}');
        await simulate.getByRole('button', { name: 'Simulate', exact: true }).click();
        await page.waitForFunction(() => document.querySelector('[data-testid=verdict]')?.textContent === 'denied');
        await simulate.getByLabel('Auth', { exact: true }).fill('{"uid":"ann"}');
        await simulate.getByRole('button', { name: 'Simulate', exact: true }).click();
        await page.waitForFunction(() => document.querySelector('[data-testid=verdict]')?.textContent === 'allowed');
      },
      'Trace has items with data-line and data-outcome': () => there(page.getByRole('list', { name: 'Trace', exact: true }).locator('[data-line="2"][data-outcome=true]').first()),
      'Review shows the difference, and somebody else’s deploy is not overwritten': async () => {
        await editor.fill('{"rules": {\n  ".read": true, ".write": "auth != null"\n}}');
        await page.waitForFunction(() => !document.querySelector('.rules-left button.primary').disabled);
        await page.getByRole('button', { name: 'Review', exact: true }).click();
        const dialog = page.getByRole('dialog', { name: 'Deploy rules', exact: true });
        await there(dialog.locator('[data-diff=add]').first());
        await there(dialog.locator('[data-diff=remove]').first());
        await server.rest('PUT', '/.settings/rules', '{"rules":{".read":true,".write":true,"x":{".read":true}}}');
        await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
        const meanwhile = page.getByRole('alertdialog', { name: 'Changed meanwhile', exact: true });
        await there(meanwhile);
        await meanwhile.getByRole('button', { name: 'Cancel' }).click();
        return /"x"/.test(await server.rest('GET', '/.settings/rules'));
      },
      'a deploy is said in a status': async () => {
        await editor.fill(before);
        await page.waitForFunction(() => !document.querySelector('.rules-left button.primary').disabled);
        await page.getByRole('button', { name: 'Review', exact: true }).click();
        await page.getByRole('dialog', { name: 'Deploy rules', exact: true }).getByRole('button', { name: 'Deploy', exact: true }).click();
        return there(page.getByRole('status').filter({ hasText: 'deployed' }));
      },
    });
    await page.context().close();
  },

  async 'contract: live, health, access, databases'({ server, browser }) {
    const page = await browser.open(server, '/console/db/default/live/told');
    const log = page.getByRole('log', { name: 'Changes', exact: true });
    const button = (name) => page.getByRole('button', { name, exact: true });
    const go = async (path) => {
      await page.goto(server.base + path);
      await page.waitForSelector('html[data-ready=signed-in]');
    };
    await hold({
      'Changes has entries with the full path': async () => {
        await page.waitForSelector('.live[data-state=live]');
        await server.rest('PUT', '/told/a/b', '1');
        return there(log.locator('[data-path="/told/a/b"]'));
      },
      'Pause becomes Resume, and Clear clears': async () => {
        await button('Pause').click();
        await button('Resume').click();
        await button('Clear').click();
        return (await log.locator('[data-path]').count()) === 0 && there(button('Pause'));
      },
      'six figures have data-latest, a number': async () => {
        await go('/console/health');
        for (const name of ['Requests', 'Latency', 'Streams', 'Traffic', 'Disk', 'Memory']) {
          const latest = await page.getByRole('figure', { name, exact: true }).getAttribute('data-latest');
          assert.ok(latest !== null && latest !== '' && Number.isFinite(Number(latest)), `${name} ${latest}`);
        }
      },
      'Busiest paths is a table': () => one(page.getByRole('table', { name: 'Busiest paths', exact: true })),
      'a token is made and shown': async () => {
        await go('/console/db/default/access');
        const form = page.getByRole('form', { name: 'Make a token', exact: true });
        await form.getByLabel('uid', { exact: true }).fill('ann');
        await one(form.getByLabel('Claims', { exact: true }));
        await form.getByRole('button', { name: 'Make token', exact: true }).click();
        await page.waitForFunction(() => document.querySelector('textarea[aria-label=Token]').value.split('.').length === 3);
        return one(page.getByRole('textbox', { name: 'Token', exact: true }));
      },
      'Secrets is a list, with Add secret': async () => (await one(page.getByRole('list', { name: 'Secrets', exact: true }))) && one(button('Add secret')),
      'Databases is a table, with the form New database': async () => {
        await go('/console/databases');
        const form = page.getByRole('form', { name: 'New database', exact: true });
        return (await one(page.getByRole('table', { name: 'Databases', exact: true }))) && (await one(form.getByLabel('Name', { exact: true }))) && one(form.getByRole('button', { name: 'Create', exact: true }));
      },
    });
    await page.context().close();
  },

  async 'contract: a session of one database'({ server, browser }) {
    const { secrets } = await (await server.call('GET', '/v1/databases/default/secrets?show=true')).json();
    const page = await browser.open(server, '/console/db/default/data', { hash: '' });
    const form = page.getByRole('form', { name: 'Sign in', exact: true });
    await form.getByLabel('Credential', { exact: true }).fill(secrets[0].value);
    await form.getByLabel('Database', { exact: true }).fill('default');
    await form.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.waitForSelector('html[data-ready=signed-in]');
    await hold({
      'the navigation is without Health, Databases and Backups': async () => same(await page.getByRole('navigation', { name: 'Main', exact: true }).getByRole('link').allTextContents(), ['Data', 'Query', 'Rules', 'Live', 'Access', 'Settings']),
      'every screen of the database works': async () => {
        for (const screen of ['data', 'query', 'rules', 'live', 'access']) {
          await page.goto(`${server.base}/console/db/default/${screen}`);
          await page.waitForSelector('html[data-ready=signed-in]');
          assert.equal(await page.locator('.failure').count(), 0, screen);
        }
        await page.goto(server.base + '/console/settings');
        return there(page.getByText('database default'));
      },
      'another database is refused, and says so': async () => {
        await page.goto(server.base + '/console/db/other/data');
        return there(page.getByRole('alert'));
      },
      'a link without a place leads to its database': async () => {
        await page.goto(server.base + '/console/');
        await page.waitForURL(/\/console\/db\/default\/data/);
      },
    });
    await page.context().close();
  },
};
