// What checks wait for.

import assert from 'node:assert/strict';

import { until } from '../../browser/until.mjs';

// listening starts a listen for values and waits for the first.
export async function listening(agent, name, path, query = null) {
  await agent.listen(name, path, query);
  await until(`the first value of ${path}`, async () => (await agent.last(name)).count > 0);
}

// value waits until the newest value is the one that is wanted.
export async function value(agent, name, want) {
  let newest;
  try {
    await until('a value', async () => {
      newest = (await agent.record(name)).at(-1)?.value;
      return equal(newest, want);
    });
  } catch {
    assert.deepEqual(newest, want);
  }
}

// window waits until the keys of the newest value are those that are wanted.
export async function window(agent, name, want) {
  let newest;
  try {
    await until('a window', async () => {
      newest = (await agent.record(name)).at(-1)?.keys;
      return equal(newest, want);
    });
  } catch {
    assert.deepEqual(newest, want);
  }
}

// events waits for a number of events and returns them in short.
export async function events(agent, name, count) {
  await until(`${count} events`, async () => (await agent.last(name)).count >= count);
  return (await agent.record(name)).map((e) => `${e.kind} ${e.key} ${e.previous}`);
}

// cancelled waits for the end of a listen.
export async function cancelled(agent, name) {
  const last = await until('a cancel', async () => (await agent.record(name)).find((e) => e.kind === 'cancel'));
  assert.match(`${last.code} ${last.message}`, /permission[_ ]denied/i);
}

// denied expects a refusal by the rules.
export async function denied(promise) {
  await assert.rejects(promise, (e) => /permission[_ ]denied/i.test(`${e.code} ${e.message}`));
}

function equal(a, b) {
  try {
    assert.deepEqual(a, b);
    return true;
  } catch {
    return false;
  }
}
