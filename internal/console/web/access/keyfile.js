/**
 * The key file of a service account, in Google's format. The key pair is made here: the
 * private half never leaves the browser but for the file.
 */

import { h } from '../core/dom.js';

/**
 * Makes a key pair, gives the server the public half, and returns a link that saves the
 * file when it is clicked.
 * @param {import('../lib/api.js').Api} api
 * @param {string} base
 * @param {string} database
 * @param {string} name
 * @param {string} origin the URL of the data port
 */
export async function makeKeyFile(api, base, database, name, origin) {
  const pair = await crypto.subtle.generateKey({ name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, true, ['sign', 'verify']);
  const [secret, open] = await Promise.all([crypto.subtle.exportKey('pkcs8', pair.privateKey), crypto.subtle.exportKey('spki', pair.publicKey)]);
  const uri = new URL('/oauth2/token', origin).toString();
  const added = await api.json(base + '/accounts', { body: { name, public_key: pem('PUBLIC KEY', open), token_uri: uri } });
  const file = {
    type: 'service_account', project_id: database, private_key_id: added.key_id, private_key: pem('PRIVATE KEY', secret), client_email: added.email, client_id: clientID(added.key_id), token_uri: uri,
    auth_uri: new URL('/oauth2/auth', origin).toString(), auth_provider_x509_cert_url: new URL('/oauth2/certs', origin).toString(), client_x509_cert_url: new URL('/oauth2/certs/' + encodeURIComponent(added.email), origin).toString(),
  };
  const url = URL.createObjectURL(new Blob([JSON.stringify(file, null, 2) + '\n'], { type: 'application/json' }));
  const link = h('a', { download: `${name}.json` });
  link.href = url; // lint: a blob of our own, not data
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  return link;
}

/**
 * @param {string} label
 * @param {ArrayBuffer} bytes
 */
function pem(label, bytes) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return `-----BEGIN ${label}-----\n${(text.match(/.{1,64}/g) ?? []).join('\n')}\n-----END ${label}-----\n`;
}

/**
 * A number of 21 digits, which is the form that libraries know.
 * @param {string} keyID in hexadecimal digits
 */
function clientID(keyID) {
  return '1' + (BigInt('0x0' + keyID.replace(/[^0-9a-fA-F]/g, '')) % 10n ** 20n).toString().padStart(20, '0');
}
