#!/usr/bin/env bash
# Runs the JavaScript SDKs, in Node and in Chromium, against servers that are built
# here. Where a program is missing, it says so and does nothing, or nothing in
# Chromium: this check is for machines that have them.
#
# CHROMIUM names the browser. ONLY names what is run. The first run fetches packages
# from the npm registry.
set -euo pipefail
cd "$(dirname "$0")"

skip() {
	printf '*** SKIPPED, nothing was checked: %s\n' "$1" >&2
	exit 0
}

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
command -v node >/dev/null || skip 'there is no node'
command -v npm >/dev/null || skip 'there is no npm'
# npm leaves a copy of the lock file in what it has installed. It is older than the
# lock file if another version is wanted by now.
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
	npm ci --no-audit --no-fund --ignore-scripts --omit=optional || skip 'npm ci failed; it needs the npm registry'
	touch node_modules/.package-lock.json
fi

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"${GO:-go}" build -o "$directory/livetree" ../../cmd/livetree
if [[ -z ${ONLY:-} ]]; then
	node faults.mjs
fi
node check.mjs "$directory/livetree" "$chromium"
