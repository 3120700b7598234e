import assert from 'node:assert/strict';
import { test } from 'node:test';
import { address, join, parseAddress, pasted, restPath, split } from '../../web/lib/route.js';
import { curl, go, javascript, python, restURL } from '../../web/lib/snippet.js';

export const hostile = ['a b', "it's", '"q"', '%2F', '50%', '?', '&x=1', '=', '__proto__', '<img src=x onerror=alert(1)>', '${HOME}', '`id`', '$(id)'.replace('$', 'S'), '😀', '\u202eabc', 'é', '!', '(', ')', '*', '\\', '~', ';rm -rf', '\u2028', 'a'.repeat(700)];

test('an address says path, database and parameters, and is read again', () => {
  for (const key of hostile) {
    const to = address({ screen: 'query', database: 'shop', path: [key, 'x', key], params: { orderBy: '"a b"', startAt: JSON.stringify(key) } });
    const url = new URL(to, 'http://127.0.0.1:9001');
    const route = parseAddress(url.pathname, url.search);
    assert.deepEqual([route.screen, route.database, route.path, route.params.get('startAt')], ['query', 'shop', [key, 'x', key], JSON.stringify(key)], key);
    assert.match(to, /^\/console\/db\/shop\/query\//);
  }
  assert.equal(parseAddress('/console/', ''), null);
  assert.equal(parseAddress('/console/db/a', '').screen, 'data');
  assert.equal(parseAddress('/console/health', '').screen, 'health');
  assert.equal(parseAddress('/console/db/a/data/%zz', '').path[0], '%zz');
});

test('what is pasted may be a path, a REST URL or an address', () => {
  const here = { screen: 'data', database: 'shop', path: ['x'], params: new URLSearchParams() };
  const go = (text) => {
    const { screen, database, path, params } = pasted(text, here);
    return `${screen} ${database} ${join(path)} ${params}`;
  };
  assert.equal(go('/rooms/lobby'), 'data shop /rooms/lobby ');
  assert.equal(go('rooms//lobby/'), 'data shop /rooms/lobby ');
  assert.equal(go('/a%20b'), 'data shop /a%20b ');
  assert.equal(go('/what?'), 'data shop /what? ');
  assert.equal(go('https://db.example.com/rooms/a%20b.json'), 'data shop /rooms/a b ');
  assert.equal(go('https://db.example.com/rooms.json?ns=other&auth=geheim'), 'data other /rooms ');
  assert.equal(go('https://db.example.com/rooms.json?orderBy="n"&limitToLast=3'), 'query shop /rooms orderBy=%22n%22&limitToLast=3');
  assert.equal(go('/rooms.json?shallow=true'), 'data shop /rooms ');
  assert.equal(go('http://127.0.0.1:9001/console/db/x/data/a%2Fb'.replace('%2F', '/')), 'data x /a/b ');
  assert.equal(go('/console/db/x/rules'), 'rules x / ');
  assert.equal(go(''), 'data shop / ');
  assert.deepEqual(split('/'), []);
});

test('no key can leave its quotes in a snippet, and no snippet holds a secret', () => {
  for (const key of hostile) {
    const target = { base: 'https://127.0.0.1:9000', database: 'shop', named: true, path: [key], params: [['orderBy', JSON.stringify(key)]] };
    const line = curl(target);
    assert.match(line, /^curl [^\n]*$/);
    const [, url] = /'([^']*)'/.exec(line);
    assert.equal(line.split("'").length, 3, line);
    assert.match(url, /^https:\/\/127\.0\.0\.1:9000[A-Za-z0-9\-_~/.?&=%]*$/);
    assert.equal(url, restURL(target));
    const back = new URL(url);
    assert.equal(decodeURIComponent(back.pathname), `/${key}.json`);
    assert.equal(back.searchParams.get('orderBy'), JSON.stringify(key));
    assert.match(line, /\$LIVETREE_SECRET/);
    for (const text of [javascript(target), go(target), python(target)]) {
      assert.match(text, /LIVETREE_SECRET/);
      assert.ok(text.includes(JSON.stringify(url)), text);
    }
  }
  assert.equal(restPath([]), '/.json');
});

test('snippets trust the authority of the server, wherever its file is', () => {
  const target = { base: 'https://127.0.0.1:9000', database: 'shop', named: false, path: ['a'], params: [] };
  assert.doesNotMatch(curl(target), /cacert/);
  assert.match(curl({ ...target, ca: '/var/lib/livetree/tls/ca.pem' }), / --cacert \/var\/lib\/livetree\/tls\/ca\.pem$/);
  const odd = "/it's $(here)\n/ca.pem";
  assert.ok(curl({ ...target, ca: odd }).endsWith(` --cacert '/it'\\''s $(here)\n/ca.pem'`));
  assert.ok(python({ ...target, ca: odd }).includes(`verify=${JSON.stringify(odd)}`));
  for (const text of [javascript({ ...target, ca: odd }), go({ ...target, ca: odd })]) assert.ok(text.startsWith('// ') && text.split('\n')[0].includes(JSON.stringify(odd)), text);
});
