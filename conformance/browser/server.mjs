// A server in a process of its own, which can be killed and started again.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

export const secret = 'bRoWsErBrOwSeRbRoWsErBrOwSeRbRoWsErBrOwS';

export async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}

export class Server {
  // flags are those of the server beside the ones that say where it is. With plain,
  // its clients reach it without TLS.
  constructor(binary, data, port, { flags = ['--dev', '--keep-alive', '2s'], plain = false } = {}) {
    Object.assign(this, { binary, data, port, flags, url: `${plain ? 'http' : 'https'}://localhost:${port}` });
  }

  // start returns when the server listens.
  async start() {
    this.process = spawn(this.binary, ['serve', '--data', this.data, '--addr', `127.0.0.1:${this.port}`,
      '--admin-addr', '', '--log-level', 'ERROR', ...this.flags],
    { env: { ...process.env, LIVETREE_SECRET: secret }, stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    for await (const text of this.process.stdout) {
      said += text;
      if (said.includes('listening on https://')) {
        return;
      }
    }
    throw new Error(`the server does not start: ${said}`);
  }

  // kill ends it without a warning.
  async kill() {
    await this.end('SIGKILL');
  }

  // stop ends it in order.
  async stop() {
    await this.end('SIGTERM');
  }

  async end(signal) {
    const ended = once(this.process, 'exit');
    this.process.kill(signal);
    await ended;
  }

  async send(method, target, data) {
    const answer = await fetch(this.url + target, { method, body: method === 'GET' ? undefined : JSON.stringify(data) });
    if (!answer.ok) {
      throw new Error(`${method} ${target}: ${answer.status} ${await answer.text()}`);
    }
    return answer.json();
  }
}
