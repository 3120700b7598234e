#!/usr/bin/env bash
#
# release.sh VERSION: build the release into dist/: a binary for each platform,
# man pages and completions, checksums, and the list of modules in the binaries
# (SBOM, SPDX). Every binary is built twice, in two directories, and the two must
# be the same to the bit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?usage: scripts/release.sh VERSION}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}
GO=${GO:-go}

rm -rf dist
mkdir -p dist

# build DIRECTORY PLATFORM OUTPUT builds the tree in a directory.
build() {
	local os=${2%/*} arch=${2#*/}
	(cd "$1" && CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOFLAGS=-mod=readonly "$GO" build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X main.version=$version" -o "$3" ./cmd/livetree)
}

# Both are built from one copy of the tree: somebody may edit it meanwhile, and the two
# would differ for that.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/first"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/first"
cp -r "$work/first" "$work/second"
# The date in the manual pages is that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

for platform in $platforms; do
	name=livetree-$version-${platform/\//-}
	[[ $platform == windows/* ]] && name+=.exe
	build "$work/first" "$platform" "$PWD/dist/$name"
	build "$work/second" "$platform" "$work/again"
	cmp "dist/$name" "$work/again"
	printf '%s: %d bytes, the same twice\n' "$name" "$(stat -c %s "dist/$name")"
done

# What the command says of itself comes from one that runs here.
build "$work/first" "$("$GO" env GOHOSTOS)/$("$GO" env GOHOSTARCH)" "$work/livetree"
"$work/livetree" man dist/man
for shell in bash zsh fish powershell; do
	"$work/livetree" completion $shell >"dist/livetree.$shell"
done
"$GO" run -C "$work/first/tools" ./sbom "$work/livetree" "$version" >"dist/livetree-$version.spdx.json"
cp packaging/livetree.service LICENSE dist/
(cd dist && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
printf 'dist/ holds %d files\n' "$(find dist -type f | wc -l)"
