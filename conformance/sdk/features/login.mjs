// Who may do what. The rules are those of check.mjs.

import assert from 'node:assert/strict';

import { until } from '../../browser/until.mjs';
import { rules } from '../rules.mjs';
import { mint } from '../tokens.mjs';
import { cancelled, denied, listening, value } from './watching.mjs';

const inSeconds = (n) => Math.floor(Date.now() / 1000) + n;

export const login = {
  async 'a token of the secret'({ as, id }) {
    const ann = await as({ uid: 'ann', role: 'x' });
    await ann.set(`user/ann/${id}`, 1);
    assert.equal((await ann.get(`user/ann/${id}`)).value, 1);
    await denied(ann.set('user/ben', 1));
    await denied(ann.update('user', { 'ann/x': 1, 'ben/x': 1 }));
    await denied(ann.get('user/ben'));
    await denied(ann.transaction('user/ben', 'add', 1));
    await denied(ann.onDisconnect('user/ben', 'set', 1));
    await ann.listen('l', 'user/ben');
    await cancelled(ann, 'l');
    await ann.listen('q', 'user/ben', { orderBy: ['$key'], limitToFirst: [1] });
    await cancelled(ann, 'q');
    assert.equal((await ann.get(`user/ann/${id}`)).value, 1);
  },

  async 'a write that is refused is taken back'({ as, server, id }) {
    await server.admin('PUT', `/shown/${id}.json`, 'right');
    const ann = await as({ uid: 'ann' });
    await listening(ann, 'l', `shown/${id}`);
    await denied(ann.set(`shown/${id}`, 'wrong'));
    await value(ann, 'l', 'right');
    assert.deepEqual((await ann.record('l')).map((e) => e.value), ['right', 'wrong', 'right']);
  },

  async 'values that rules do not allow'({ as, id }) {
    const ann = await as({ uid: 'ann' });
    await ann.set(`numbers/${id}`, 1);
    await denied(ann.set(`numbers/${id}`, 'text'));
    await denied(ann.update('numbers', { [`${id}`]: 2, [`${id}x`]: 'text' }));
    assert.equal((await ann.get(`numbers/${id}`)).value, 1);
  },

  async 'rules change while it listens'({ as, server, id }) {
    const ann = await as({ uid: 'ann' });
    await listening(ann, 'plain', `open/${id}`);
    await listening(ann, 'query', `open/${id}-query`, { orderBy: ['$key'], limitToFirst: [2] });
    await listening(ann, 'own', 'user/ann');
    try {
      const closed = structuredClone(rules);
      closed.rules.open['.read'] = 'false';
      await server.admin('PUT', '/.settings/rules.json', closed);
      await cancelled(ann, 'plain');
      await cancelled(ann, 'query');
    } finally {
      await server.admin('PUT', '/.settings/rules.json', rules);
    }
    await ann.set(`user/ann/${id}`, 'goes on');
    await until('the other listen', async () => (await ann.record('own')).at(-1).value?.[id] === 'goes on');
  },

  async 'data that rules rest on changes'({ as, server, id }) {
    await server.admin('PUT', '/door.json', 'open');
    const ann = await as({ uid: 'ann' });
    await listening(ann, 'l', 'room');
    await server.admin('PATCH', '/.json', { door: 'closed', [`room/${id}`]: 'secret' });
    await cancelled(ann, 'l');
    assert.ok(!JSON.stringify(await ann.record('l')).includes('secret'));
  },
};

// clientLogin is what only the SDKs for clients have: an Admin SDK does not change
// its user.
export const clientLogin = {
  async 'users change: listens are judged again'({ as, id }) {
    const agent = await as({ uid: 'ann' });
    await listening(agent, 'open', `open/${id}`);
    await listening(agent, 'own', 'user/ann');
    await agent.signIn(mint({ uid: 'ben' }));
    await cancelled(agent, 'own');
    await agent.set('user/ben/here', id);
    await denied(agent.set('user/ann/here', id));
    await agent.signIn(null);
    await denied(agent.set('user/ben/here', 'nobody'));
    await agent.set(`open/${id}`, 'nobody');
    await value(agent, 'open', 'nobody');
  },

  async 'a token that expires is renewed'({ as, id }) {
    const agent = await as({ uid: 'ann' }, { exp: inSeconds(4) });
    await agent.renewBy(mint({ uid: 'ann' }));
    await listening(agent, 'own', `user/ann/${id}`);
    const end = Date.now() + 6000;
    await until('the end of the token', () => Date.now() > end);
    await agent.set(`user/ann/${id}`, 'after');
    await value(agent, 'own', 'after');
  },

  async 'a token that is wrong'({ as, id }) {
    const agent = await as(null);
    await agent.signIn(`${mint({ uid: 'ann' }).slice(0, -3)}xyz`);
    await agent.begin('refused', 'set', `user/ann/${id}`, 'wrong');
    await agent.signIn(mint({ uid: 'ann' }));
    await agent.set(`user/ann/${id}`, 'right');
    assert.equal((await agent.get(`user/ann/${id}`)).value, 'right');
  },
};

// adminLogin is what only the Admin SDK has.
export const adminLogin = {
  async 'the secret may do everything'({ agent, id }) {
    const admin = await agent();
    await admin.set(`closed/${id}`, 1);
    assert.equal((await admin.get(`closed/${id}`)).value, 1);
  },

  async 'nobody in the place of the administrator'({ agent, id }) {
    const nobody = await agent({ user: null });
    await denied(nobody.set('user/ann/x', 1));
    await nobody.set(`open/${id}`, 1);
    assert.equal((await nobody.get(`open/${id}`)).value, 1);
  },
};

// devLogin is for a server with --dev.
export const devLogin = {
  async 'mockUserToken'({ agent, id, server }) {
    const emulator = { host: 'localhost', port: server.port };
    const ann = await agent({ emulator, mockUserToken: { sub: 'ann' } });
    await ann.set(`user/ann/${id}`, 1);
    assert.equal((await ann.get(`user/ann/${id}`)).value, 1);
    await denied(ann.set('user/ben', 1));
    await ann.listen('l', 'user/ben');
    await cancelled(ann, 'l');
    const nobody = await agent({ emulator });
    await denied(nobody.get('user/ann'));
    await nobody.set(`open/${id}`, 1);
  },
};
