#!/usr/bin/env bash
#
# pictures.sh: make the pictures of the manual in docs/images, with Chromium and the command that is built
# here. Look at each of them before you commit it. CHROMIUM names the browser; the first run fetches
# packages from the npm registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for program in node npm; do
	command -v "$program" >/dev/null || { printf 'pictures.sh: there is no %s\n' "$program" >&2; exit 1; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[[ -n $CHROMIUM ]] || { echo 'pictures.sh: there is no chromium; install it, or name it with CHROMIUM' >&2; exit 1; }
export CHROMIUM
[[ -f internal/console/webtest/node_modules/playwright-core/index.mjs ]] || npm ci --prefix internal/console/webtest --no-audit --no-fund

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
if [[ -z ${LIVETREE:-} ]]; then
	"${GO:-go}" build -o "$directory/livetree" ./cmd/livetree
	LIVETREE=$directory/livetree
fi
node internal/console/webtest/picture.mjs "$LIVETREE" docs/images
for picture in docs/images/*.png; do
	size=$(stat -c %s "$picture")
	printf '%7d %s\n' "$size" "$picture"
	((size < 150 * 1024)) || { echo "pictures.sh: $picture is larger than 150 KiB" >&2; exit 1; }
done
