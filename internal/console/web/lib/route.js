/**
 * Addresses of the console, and what people paste into the path box.
 *
 * /console/db/NAME/SCREEN/PATH?PARAMETERS for the screens of one database and
 * /console/SCREEN for the others. Each key of PATH is percent-encoded, as in REST.
 */

/**
 * @typedef {object} Route
 * @property {string} screen
 * @property {string} database empty for the screens of the server
 * @property {string[]} path
 * @property {URLSearchParams} params
 */

export const databaseScreens = ['data', 'query', 'rules', 'live', 'access', 'hooks'];
export const serverScreens = ['health', 'databases', 'backups', 'settings', 'docs'];

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Encodes one key for an address or a REST URL. Quotes and brackets are encoded
 * too, which encodeURIComponent leaves alone: a shell would read them.
 * @param {string} key
 */
export function encodeKey(key) {
  return encodeURIComponent(key.toWellFormed()).replace(/[!'()*.]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
}

/**
 * Reads an address of the console, or returns null if it names no screen.
 * @param {string} pathname
 * @param {string} search
 * @returns {Route | null}
 */
export function parseAddress(pathname, search) {
  const parts = pathname.replace(/^\/console\/?/, '').split('/').filter((part) => part !== '').map(decode);
  const params = new URLSearchParams(search);
  if (parts[0] === 'db' && parts[1]) {
    const screen = databaseScreens.includes(parts[2] ?? '') ? /** @type {string} */ (parts[2]) : 'data';
    return { screen, database: parts[1], path: parts.slice(3), params };
  }
  if (serverScreens.includes(parts[0] ?? '')) return { screen: parts[0] ?? '', database: '', path: parts.slice(1), params };
  return null;
}

/**
 * Prints an address of the console.
 * @param {{screen: string, database?: string, path?: string[], params?: URLSearchParams | Record<string, string>}} route
 * @returns {string}
 */
export function address(route) {
  const search = new URLSearchParams(route.params ?? {}).toString();
  const where = (route.path ?? []).map((key) => '/' + encodeKey(key)).join('');
  const base = route.database ? `/console/db/${encodeKey(route.database)}/${route.screen}` : `/console/${route.screen}`;
  return base + where + (search ? '?' + search : '');
}

/**
 * Splits a path into keys: /a/b. Extra slashes mean nothing.
 * @param {string} text
 * @returns {string[]}
 */
export function split(text) {
  return text.split('/').filter((key) => key !== '');
}

/**
 * Prints a path with plain keys.
 * @param {string[]} path
 */
export function join(path) {
  return '/' + path.join('/');
}

/**
 * The address of a path on the data routes of the admin listener.
 * @param {string} database
 * @param {string[]} path
 */
export function dataRoute(database, path) {
  return `/v1/databases/${encodeKey(database)}/data${restPath(path)}`;
}

/**
 * The path of a REST URL.
 * @param {string[]} path
 */
export function restPath(path) {
  return '/' + path.map(encodeKey).join('/') + '.json';
}

/**
 * Reads what was pasted into the path box: a plain path, a REST URL or an
 * address of the console.
 * @param {string} text
 * @param {Route} here
 * @returns {Route}
 */
export function pasted(text, here) {
  const trimmed = text.trim();
  if (/^https?:\/\//i.test(trimmed)) {
    const url = URL.canParse(trimmed) ? new URL(trimmed) : null;
    if (url?.pathname.startsWith('/console/')) return parseAddress(url.pathname, url.search) ?? here;
    if (url) return rest(url.pathname, url.searchParams, here);
  }
  if (trimmed.startsWith('/console/')) {
    const [path = '', search = ''] = trimmed.split('?', 2);
    return parseAddress(path, search) ?? here;
  }
  const json = trimmed.indexOf('.json');
  if (json >= 0 && /^(\?|$)/.test(trimmed.slice(json + 5))) {
    return rest(trimmed.slice(0, json + 5), new URLSearchParams(trimmed.slice(json + 5)), here);
  }
  return { screen: 'data', database: here.database, path: split(trimmed), params: new URLSearchParams() };
}

const queryParams = ['orderBy', 'startAt', 'startAfter', 'endAt', 'endBefore', 'equalTo', 'limitToFirst', 'limitToLast'];

/**
 * @param {string} pathname
 * @param {URLSearchParams} given
 * @param {Route} here
 * @returns {Route}
 */
function rest(pathname, given, here) {
  const params = new URLSearchParams();
  for (const name of queryParams) {
    const value = given.get(name);
    if (value !== null) params.set(name, value);
  }
  const path = pathname.replace(/\.json$/, '').split('/').filter((part) => part !== '').map(decode);
  const at = given.get('at');
  if (params.size === 0 && at !== null) return { screen: 'data', database: given.get('ns') ?? here.database, path, params: new URLSearchParams({ at }) };
  return { screen: params.size > 0 ? 'query' : 'data', database: given.get('ns') ?? here.database, path, params };
}
