#!/usr/bin/env bash
#
# release.sh VERSION: build the release into dist/: livetree and livetree-bench for
# each platform, packages for Debian, images for containers, man pages and completions, checksums, and the list of modules in
# each of the two (SBOM, as SPDX and as CycloneDX). Every binary, package and image is built twice, in two
# directories, and the two must be the same to the bit. The second build takes from Go's cache what the first one has compiled;
# with FRESH=yes it begins with an empty cache, which takes much longer.
#
# PLATFORMS are those to build for, all by default. COMPRESSION is that of the packages, xz by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?usage: scripts/release.sh VERSION}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 linux/armv7 darwin/amd64 darwin/arm64 windows/amd64}
GO=${GO:-go}

rm -rf dist
mkdir -p dist

# build DIRECTORY PLATFORM COMMAND OUTPUT builds a command of the tree in a directory.
build() {
	local os=${2%/*} arch=${2#*/} arm=
	[[ $arch == armv* ]] && arm=${arch#armv} arch=arm
	(cd "$1" && if [[ $1 == */second && ${FRESH:-} == yes ]]; then export GOCACHE=$work/cache; fi && CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOARM=$arm GOFLAGS=-mod=readonly "$GO" build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X main.version=$version" -o "$4" "./cmd/$3")
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
	for command in livetree livetree-bench; do
		name=$command-$version-${platform/\//-}
		[[ $platform == windows/* ]] && name+=.exe
		build "$work/first" "$platform" $command "$PWD/dist/$name"
		build "$work/second" "$platform" $command "$work/again"
		cmp "dist/$name" "$work/again"
		printf '%s: %d bytes, the same twice\n' "$name" "$(stat -c %s "dist/$name")"
	done
done

# What the commands say of themselves comes from ones that run here.
for command in livetree livetree-bench; do
	build "$work/first" "$("$GO" env GOHOSTOS)/$("$GO" env GOHOSTARCH)" $command "$work/$command"
	for form in spdx cyclonedx; do
		"$GO" run -C "$work/first/tools" ./sbom "$work/$command" "$version" $form >"dist/$command-$version.$form.json"
	done
done
"$work/livetree" man dist/man
"$work/livetree" docs --man dist/man --html dist/manual
for shell in bash zsh fish powershell; do
	"$work/livetree" completion $shell >"dist/livetree.$shell"
done
cp packaging/livetree.service packaging/livetree.socket LICENSE dist/

# Packages for Debian, where its tools are.
if command -v dpkg-deb >/dev/null; then
	for platform in $platforms; do
		[[ $platform == linux/* ]] || continue
		for directory in first second; do
			mkdir -p "$work/deb-$directory"
			deb=$("$work/$directory/scripts/deb.sh" "$version" "${platform#*/}" "$PWD/dist" "$work/deb-$directory")
		done
		cmp "$work/deb-first/$deb" "$work/deb-second/$deb"
		mv "$work/deb-first/$deb" dist/
		printf '%s: %d bytes, the same twice\n' "$deb" "$(stat -c %s "dist/$deb")"
	done
else
	printf 'NOT BUILT: packages for Debian, since there is no dpkg-deb\n'
fi

# Images, with the authorities that this system trusts.
authorities=${AUTHORITIES:-/etc/ssl/certs/ca-certificates.crt}
if [[ -s $authorities ]]; then
	(cd "$work/first/tools" && "$GO" build -o "$work/image" ./image)
	for platform in $platforms; do
		[[ $platform == linux/* ]] || continue
		arch=${platform#*/} name=livetree-$version-image-${platform#*/}.tar
		for directory in first second; do
			"$work/image" "dist/livetree-$version-linux-$arch" "$version" "$arch" "$authorities" >"$work/image-$directory"
		done
		cmp "$work/image-first" "$work/image-second"
		mv "$work/image-first" "dist/$name"
		printf '%s: %d bytes, the same twice\n' "$name" "$(stat -c %s "dist/$name")"
	done
else
	printf 'NOT BUILT: images, since there is no %s\n' "$authorities"
fi
(cd dist && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
printf 'dist/ holds %d files\n' "$(find dist -type f | wc -l)"
