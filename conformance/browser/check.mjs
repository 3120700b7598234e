// Runs the EventSource and fetch of a browser, and the package eventsource of
// Node, against a server.
//
//   node check.mjs LIVETREE CHROMIUM
//
// The browser loads its page from another origin. It knows the server by the
// key of its certificate, Node by the server's own certificate authority, for
// which the script starts itself again.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { X509Certificate, createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { checkBrowser } from './browser.mjs';
import { checkNode } from './node.mjs';
import { Server, freePort } from './server.mjs';

const [binary, chromium, data, port] = process.argv.slice(2);

// prepare makes a data directory with a certificate authority, and starts the
// script again with that.
async function prepare() {
  const directory = mkdtempSync(join(tmpdir(), 'livetree-browser-'));
  try {
    const server = new Server(binary, directory, await freePort());
    await server.start();
    await server.kill();
    const again = spawn(process.execPath, [process.argv[1], binary, chromium, directory, String(server.port)],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: join(directory, 'tls', 'ca.pem') }, stdio: 'inherit' });
    const [code] = await once(again, 'exit');
    process.exitCode = code ?? 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

// keyOf returns the key of a certificate as Chromium takes it.
function keyOf(file) {
  const key = new X509Certificate(readFileSync(file)).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(key).digest('base64');
}

let passed = 0;

// say tells what was proved.
function say(what) {
  passed++;
  console.log(`ok  ${what}`);
}

async function check() {
  const server = new Server(binary, data, Number(port));
  await server.start();
  try {
    await checkNode(server, say);
    await checkBrowser(server, chromium, keyOf(join(data, 'tls', 'cert.pem')), say);
  } finally {
    await server.kill();
  }
  assert.ok(passed > 10);
  console.log(`${passed} checks passed`);
}

await (data ? check() : prepare());
