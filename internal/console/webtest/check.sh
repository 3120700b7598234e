#!/usr/bin/env bash
# Checks the page of the console: its types, a lint for what it must not have, its modules
# under Node, and all of it in a browser against a server that is built here. Where a
# program is missing, it says so and does nothing.
#
# CHROMIUM and FIREFOX name the browsers, ONLY a part of the names of Chromium's tests. The first run
# fetches three packages from the npm registry. With the argument "page" the browser's tests
# are left out.
set -euo pipefail
cd "$(dirname "$0")"

skip() {
	printf '*** SKIPPED, not checked: %s\n' "$1" >&2
	exit 0
}

command -v node >/dev/null || skip 'there is no node'
command -v npm >/dev/null || skip 'there is no npm'
if [[ ! -d node_modules/playwright-core || ! -d node_modules/axe-core || ! -d node_modules/typescript ]]; then
	npm ci --no-audit --no-fund || skip 'npm ci failed; it needs the npm registry'
fi
node lint.mjs
node_modules/.bin/tsc -p tsconfig.json
node --test unit/
[[ ${1:-} != page ]] || exit 0

CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[[ -n $CHROMIUM ]] || skip 'there is no chromium; install it, or name it with CHROMIUM'
export CHROMIUM
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"${GO:-go}" build -o "$directory/livetree" ../../../cmd/livetree
LIVETREE=$directory/livetree node --test browser/check.mjs

FIREFOX=${FIREFOX:-$(command -v firefox-esr || command -v firefox || true)}
if [[ -n $FIREFOX && -z ${ONLY:-} ]]; then
	FIREFOX=$FIREFOX LIVETREE=$directory/livetree node --test browser/firefox.mjs
elif [[ -z $FIREFOX ]]; then
	printf '*** SKIPPED, not checked: there is no firefox; install it, or name it with FIREFOX\n' >&2
fi
