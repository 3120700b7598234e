/**
 * Lines to paste elsewhere. Nothing that came from data can end a quote or begin a
 * command: URLs hold letters, digits and - _ ~ / . ? & = % only. The secret is named,
 * never shown. A server with a certificate authority of its own is trusted by that
 * authority's file, which is on the server's machine.
 */

import { restPath } from './route.js';

/** @param {string} text */
function encode(text) {
  return encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
}

/**
 * @typedef {object} Target
 * @property {string} base the URL of the data port, such as https://127.0.0.1:9000
 * @property {string} database
 * @property {boolean} named whether a request has to name the database
 * @property {string[]} path
 * @property {[string, string][]} params
 * @property {string} [ca] the file of the server's own certificate authority
 */

/**
 * The REST URL of a node or query, without a credential.
 * @param {Target} target
 */
export function restURL(target) {
  const params = target.named ? [...target.params, ['ns', target.database]] : target.params;
  const search = params.map(([name, value]) => `${encode(name ?? '')}=${encode(value ?? '')}`).join('&');
  return base(target) + restPath(target.path) + (search ? '?' + search : '');
}

/** @param {Target} target */
function base(target) {
  return target.base.replace(/\/+$/, '').replace(/[^A-Za-z0-9\-_~/.:[\]]/g, '');
}

/** @param {Target} target */
export function curl(target) {
  const trust = target.ca ? ` --cacert ${shellWord(target.ca)}` : '';
  return `curl --globoff --get '${restURL(target)}' --data-urlencode "auth=$LIVETREE_SECRET"${trust}`;
}

/**
 * One word for a shell, whatever is in it.
 * @param {string} text
 */
function shellWord(text) {
  return /^[A-Za-z0-9/._-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A line before a snippet that says how its program trusts the server.
 * @param {string} sign of a comment
 * @param {string} name of an environment variable
 * @param {Target} target
 */
function trusting(sign, name, target) {
  return target.ca ? [`${sign} ${name}=${quoted(target.ca)}`] : [];
}

/** @param {string} text */
function quoted(text) {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

/** @param {Target} target */
export function javascript(target) {
  return [
    ...trusting('//', 'NODE_EXTRA_CA_CERTS', target),
    `const url = new URL(${quoted(restURL(target))});`,
    'url.searchParams.set("auth", process.env.LIVETREE_SECRET);',
    'const value = await (await fetch(url)).json();',
  ].join('\n');
}

/** @param {Target} target */
export function go(target) {
  return [
    ...trusting('//', 'SSL_CERT_FILE', target),
    `u, _ := url.Parse(${quoted(restURL(target))})`,
    'q := u.Query()',
    'q.Set("auth", os.Getenv("LIVETREE_SECRET"))',
    'u.RawQuery = q.Encode()',
    'answer, err := http.Get(u.String())',
  ].join('\n');
}

/** @param {Target} target */
export function python(target) {
  return [
    'import os, requests',
    `value = requests.get(${quoted(restURL(target))}, params={"auth": os.environ["LIVETREE_SECRET"]}${target.ca ? `, verify=${quoted(target.ca)}` : ''}).json()`,
  ].join('\n');
}
