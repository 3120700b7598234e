// Agents in processes of Node.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { remote } from './remote.mjs';

const script = fileURLToPath(new URL('nodeagent.mjs', import.meta.url));

// startProcess starts an agent with an SDK. Its kill is that of the system: the
// process has no time to say anything.
export async function startProcess(sdk, env = {}) {
  const child = fork(script, [sdk], { env: { ...process.env, ...env } });
  const waiting = new Map();
  const ready = new Promise((resolve, reject) => {
    child.on('message', (m) => {
      if (m.ready) {
        resolve();
        return;
      }
      waiting.get(m.id)?.(m);
      waiting.delete(m.id);
    });
    child.on('exit', (code) => {
      const error = { message: `the process of the agent ended with ${code}` };
      waiting.forEach((answer) => answer({ error }));
      reject(new Error(error.message));
    });
  });
  ready.catch(() => {}); // told below, if nobody killed it
  await ready;
  let count = 0;
  const send = (method, args) => new Promise((resolve) => {
    const id = count++;
    waiting.set(id, resolve);
    child.send({ id, method, args }, (e) => e && resolve({ error: { message: `the agent is gone: ${e.message}` } }));
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const ended = once(child, 'exit');
    process.kill(child.pid, 'SIGKILL');
    await ended;
  };
  return remote(send, kill);
}
