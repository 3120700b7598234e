// Shows what the SDK does wrong by itself, as docs/clients.md says it does.
//
//   node faults.mjs
//
// No Livetree is asked: a server of a few lines says what a server may say, in an
// order that a server may choose. Where a fault is gone from a newer SDK, the
// check fails, and the page is to be changed.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

import WebSocket from 'faye-websocket';

import { until } from '../browser/until.mjs';

const hashOf4 = 'eVih19a6ZDz3NL32uVBtg9KSgQY=';
let count = 0;

// ScriptedServer answers requests by a function, and ok by itself.
class ScriptedServer {
  constructor(answer) {
    this.answer = answer;
    this.requests = [];
    this.sockets = [];
    this.http = createServer();
    this.http.on('upgrade', (request, socket, body) => this.accept(request, socket, body));
  }

  async start() {
    this.http.listen(0, '127.0.0.1');
    await once(this.http, 'listening');
    this.host = `localhost:${this.http.address().port}`;
  }

  accept(request, socket, body) {
    this.sockets.push(socket);
    this.socket = socket;
    this.connection = new WebSocket(request, socket, body);
    this.connection.on('message', ({ data }) => this.take(data));
    this.send('c', { t: 'h', d: { ts: Date.now(), v: '5', h: this.host, s: `session${count++}` } });
  }

  take(data) {
    const message = JSON.parse(data);
    if (message.t !== 'd') {
      return;
    }
    const { r: number, a: action, b: body } = message.d;
    this.requests.push({ number, action, ...body });
    if (!this.answer(this, { number, action, ...body })) {
      this.reply(number, action === 'q' ? {} : '');
    }
  }

  send(t, d) {
    this.connection.send(JSON.stringify({ t, d }));
  }

  push(p, d) {
    this.send('d', { a: 'd', b: { p, d } });
  }

  reply(number, d = '', s = 'ok') {
    this.send('d', { r: number, b: { s, d } });
  }

  end() {
    this.sockets.forEach((socket) => socket.destroy());
    this.http.close();
  }
}

// outcome is what has become of a promise after all that was asked later is done.
async function outcome(promise, db, sdk) {
  let is = 'pending';
  promise.then(() => { is = 'resolved'; }, (error) => { is = error.message; });
  await sdk.set(sdk.ref(db, 'later'), 1);
  await pause(100);
  return is;
}

const told = (db, sdk, path) => {
  const values = [];
  sdk.onValue(sdk.ref(db, path), (snapshot) => values.push(snapshot.val()));
  return values;
};

// stale listens at x, runs a transaction there, and sets it so many times while the
// transaction is on its way. The transaction is refused, as one that is out of date.
async function stale(server, sdk, db, sets) {
  const values = told(db, sdk, 'x');
  await until('the first value', () => values.length > 0);
  const transaction = sdk.runTransaction(sdk.ref(db, 'x'), () => 77);
  await until('the transaction', () => server.requests.some((request) => 'h' in request && request.action === 'p'));
  const done = [];
  for (let i = 1; i <= sets; i++) {
    done.push(sdk.set(sdk.ref(db, 'x'), 100 + i));
  }
  await until('the sets', () => server.requests.filter((request) => request.action === 'p').length > sets);
  const [first, ...others] = server.requests.filter((request) => request.action === 'p');
  server.reply(first.number, 'Transaction hash does not match', 'datastale');
  for (const request of others) {
    server.push('x', request.d);
    server.reply(request.number);
  }
  await Promise.all(done);
  server.freed = true;
  return { values, was: await outcome(transaction, db, sdk) };
}

const startsWith5 = (server, { number, action, p, h }) => {
  if (action === 'q') {
    server.push('x', 5);
  } else if (action === 'p' && !server.freed) {
    return true;
  } else if (action === 'p' && h !== undefined && h !== hashOf4) {
    server.reply(number, 'Transaction hash does not match', 'datastale');
    return true;
  }
  return false;
};

const faults = {
  'onDisconnect that was not answered when the connection was lost is never settled': {
    answer(server, { action }) {
      if (action === 'o') {
        server.socket.destroy();
      }
      return action === 'o';
    },
    async show(server, sdk, db) {
      await sdk.set(sdk.ref(db, 'x'), 1);
      const registered = sdk.onDisconnect(sdk.ref(db, 'x')).set(2);
      await until('another connection', () => server.sockets.length > 1);
      assert.equal(await outcome(registered, db, sdk), 'pending');
      assert.equal(server.requests.filter(({ action }) => action === 'o').length, 1, 'it was sent again');
    },
  },
  'a transaction beside one set is settled': {
    answer: startsWith5,
    async show(server, sdk, db) {
      const { values, was } = await stale(server, sdk, db, 1);
      assert.equal(was, 'set');
      server.push('x', 4);
      await until('the newer value', () => values.at(-1) === 4);
      await sdk.runTransaction(sdk.ref(db, 'x'), (value) => value + 1);
    },
  },
  'a transaction beside two sets is never settled, and hides what comes later': {
    answer: startsWith5,
    async show(server, sdk, db) {
      const { values, was } = await stale(server, sdk, db, 2);
      assert.equal(was, 'pending');
      server.push('x', 4);
      await pause(100);
      assert.notEqual(values.at(-1), 4);
      await assert.rejects(sdk.runTransaction(sdk.ref(db, 'x'), (value) => value + 1), /maxretry/);
    },
  },
  'what a get has found is laid over a newer change that came with it': {
    answer(server, { number, action }) {
      if (action === 'q') {
        server.push('x/y', 1);
      } else if (action === 'g') {
        server.socket.cork();
        server.reply(number, { y: 1 });
        server.push('x/y', 2);
        server.socket.uncork();
        return true;
      }
      return false;
    },
    async show(server, sdk, db) {
      const values = told(db, sdk, 'x/y');
      await until('the first value', () => values.length > 0);
      await sdk.get(sdk.ref(db, 'x'));
      await pause(100);
      assert.deepEqual(values, [1, 2, 1]);
    },
  },
  'a value in the place of children that were being written is not shown': {
    answer(server, { number, action }) {
      if (action === 'q') {
        server.push('x', { k: 1 });
      } else if (action === 'p') {
        server.push('x', { k: 2 });
        server.push('x', 0);
      }
      return false;
    },
    async show(server, sdk, db) {
      const values = told(db, sdk, 'x');
      await until('the first value', () => values.length > 0);
      await sdk.set(sdk.ref(db, 'x/k'), 2);
      await pause(100);
      assert.equal(values.at(-1), null);
    },
  },
  'listeners are told newer and then older, when a transaction runs again': {
    answer(server, { number, action, p, d }) {
      if (action === 'q' && p === '/x') {
        server.push('x', server.sockets.length === 1 ? { a: { s: 1 } } : { a: { s: 5 }, b: 9 });
      } else if (action === 'p') {
        server.push(p.slice(1), d);
      }
      return false;
    },
    async show(server, sdk, db) {
      const values = told(db, sdk, 'x');
      await until('the first value', () => values.length > 0);
      sdk.goOffline(db);
      const done = [sdk.runTransaction(sdk.ref(db, 'x/a/c'), () => 1),
        sdk.runTransaction(sdk.ref(db, 'x/a'), (value) => ({ ...value, n: value.s + 1 }))];
      sdk.goOnline(db);
      await Promise.all(done);
      assert.deepEqual(server.requests.findLast(({ action }) => action === 'p').d, { s: 5, c: 1, n: 6 });
      assert.deepEqual(values.slice(-2).map(({ a }) => a.n), [6, 2]);
    },
  },
};

console.warn = () => {};
let failed = 0;
for (const edition of ['firebase', 'firebase-two-years-older']) {
  const { initializeApp } = await import(`${edition}/app`);
  const sdk = await import(`${edition}/database`);
  for (const [name, { answer, show }] of Object.entries(faults)) {
    const server = new ScriptedServer(answer);
    await server.start();
    const db = sdk.getDatabase(initializeApp({ databaseURL: `http://${server.host}?ns=default` }, `app${count++}`));
    try {
      await show(server, sdk, db);
      console.log(`ok    ${edition}: ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL  ${edition}: ${name}\n${error.stack}`);
    }
    sdk.goOffline(db);
    server.end();
  }
}
process.exit(failed > 0 ? 1 : 0);
