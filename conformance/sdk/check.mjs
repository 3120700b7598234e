// Runs the JavaScript SDKs against servers, feature by feature.
//
//   node check.mjs LIVETREE [CHROMIUM]
//
// ONLY names what is run: a text that is in the name of an edition or a check.
// SDK_VERBOSE shows what the SDKs say on the console.
//
// One server speaks TLS, with its own certificate authority, and has a secret; the
// other runs with --dev and without TLS, as SDKs expect of an emulator. Two
// agents, in processes of their own, do what a check says. Node knows the authority
// of the server by a variable, for which the script starts itself again.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { X509Certificate, createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Server, freePort, secret } from '../browser/server.mjs';
import { editions } from './editions.mjs';
import { Report, runEdition } from './run.mjs';

const [binary, chromium, directory, port] = process.argv.slice(2);

class CheckedServer extends Server {
  // admin sends a request as the administrator.
  admin(method, target, data) {
    return this.send(method, `${target}?auth=${secret}`, data);
  }

  // ensure starts the server if a check has left it ended.
  async ensure() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) {
      await this.start();
    }
  }
}

const secure = (data, at) => new CheckedServer(binary, join(data, 'secure'), at, { flags: [] });

// prepare makes a certificate authority, and starts the script again with that.
async function prepare() {
  const data = mkdtempSync(join(tmpdir(), 'livetree-sdk-'));
  try {
    const server = secure(data, await freePort());
    await server.start();
    await server.kill();
    const again = spawn(process.execPath, [process.argv[1], binary, chromium ?? '', data, String(server.port)],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: join(data, 'secure', 'tls', 'ca.pem') }, stdio: 'inherit' });
    const [code] = await once(again, 'exit');
    process.exitCode = code ?? 1;
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

// keyOf returns the key of a certificate as Chromium takes it.
function keyOf(file) {
  const key = new X509Certificate(readFileSync(file)).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(key).digest('base64');
}

async function check() {
  const servers = {
    secure: secure(directory, Number(port)),
    dev: new CheckedServer(binary, join(directory, 'dev'), await freePort(), { flags: ['--dev', '--allow-http'], plain: true }),
  };
  const report = new Report(process.env.ONLY ?? '');
  try {
    await servers.secure.start();
    await servers.dev.start();
    for (const edition of editions) {
      const key = () => keyOf(join(directory, 'secure', 'tls', 'cert.pem'));
      await runEdition(edition, { servers, chromium, key }, report);
    }
  } finally {
    await Promise.allSettled(Object.values(servers).map((server) => server.process?.exitCode === null && server.kill()));
  }
  report.print();
  assert.ok(report.passed + report.failed > 0, 'nothing was checked');
  process.exitCode = report.failed > 0 ? 1 : 0;
}

await (directory ? check() : prepare());
