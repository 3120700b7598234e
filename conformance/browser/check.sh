#!/usr/bin/env bash
# Runs a browser and Node against a server that is built here. Where a program is
# missing, it says so and does nothing: this check is for machines that have them.
#
# CHROMIUM names the browser. The first run fetches two packages from the npm
# registry.
set -euo pipefail
cd "$(dirname "$0")"

skip() {
	printf '*** SKIPPED, nothing was checked: %s\n' "$1" >&2
	exit 0
}

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[[ -n $chromium ]] || skip 'there is no chromium; install it, or name it with CHROMIUM'
command -v node >/dev/null || skip 'there is no node'
command -v npm >/dev/null || skip 'there is no npm'
if [[ ! -d node_modules/playwright-core || ! -d node_modules/eventsource ]]; then
	npm ci --no-audit --no-fund || skip 'npm ci failed; it needs the npm registry'
fi

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"${GO:-go}" build -o "$directory/livetree" ../../cmd/livetree
node check.mjs "$directory/livetree" "$chromium"
