// The variable that leads SDKs to an emulator, in Node.

import assert from 'node:assert/strict';

export const emulator = {
  async 'FIREBASE_DATABASE_EMULATOR_HOST'({ b, agent, server, at }) {
    const elsewhere = 'https://default.firebaseio.com';
    const led = await agent({ url: elsewhere }, { FIREBASE_DATABASE_EMULATOR_HOST: `localhost:${server.port}` });
    await led.set(at, 'led');
    assert.equal((await b.get(at)).value, 'led');
  },
};
