#!/usr/bin/env bash
#
# deb.sh VERSION ARCH DIST TARGET: make a package for Debian of a release in the directory
# DIST, which has the binaries, man pages and completions. ARCH is that of the binaries:
# amd64, arm64 or armv7. It needs dpkg-deb, and no rights, and prints the name of the package.
# SOURCE_DATE_EPOCH is the time of all files, COMPRESSION how they are compressed: xz, or none for a quick try.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?usage: scripts/deb.sh VERSION ARCH DIST TARGET} arch=${2:?} dist=${3:?} target=${4:?}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
declare -A debian=([amd64]=amd64 [arm64]=arm64 [armv7]=armhf)
architecture=${debian[$arch]:?no name of Debian for this}
# v1.2.0-rc.1 comes before 1.2.0 in Debian's order as 1.2.0~rc.1.
number=${version#v}
number=${number//-/\~}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 0755 "$root"
put() { install -D -m "$1" "$2" "$root/$3"; }

put 0755 "$dist/livetree-$version-linux-$arch" usr/bin/livetree
put 0755 "$dist/livetree-bench-$version-linux-$arch" usr/bin/livetree-bench
put 0644 "$dist/livetree.bash" usr/share/bash-completion/completions/livetree
put 0644 "$dist/livetree.zsh" usr/share/zsh/vendor-completions/_livetree
put 0644 "$dist/livetree.fish" usr/share/fish/vendor_completions.d/livetree.fish
for page in "$dist"/man/*; do
	put 0644 "$page" "usr/share/man/man${page##*.}/$(basename "$page")"
done
put 0644 CHANGELOG.md usr/share/doc/livetree/changelog
put 0644 docs/modules.txt usr/share/doc/livetree/modules.txt
put 0644 packaging/deb/copyright usr/share/doc/livetree/copyright
gzip -9n "$root"/usr/share/man/*/* "$root/usr/share/doc/livetree/changelog"
put 0600 packaging/deb/default etc/default/livetree

# The package has a user of its own, so that the data stays that user's.
mkdir -p "$root/usr/lib/systemd/system"
sed -e '1,/^#$/d' -e '/^DynamicUser=/d' -e 's|/usr/local/bin/|/usr/bin/|' packaging/livetree.service \
	>"$root/usr/lib/systemd/system/livetree.service"
chmod 0644 "$root/usr/lib/systemd/system/livetree.service"
put 0644 packaging/livetree.socket usr/lib/systemd/system/livetree.socket

mkdir -p "$root/DEBIAN"
sed -e "s/@VERSION@/$number/" -e "s/@ARCHITECTURE@/$architecture/" \
	-e "s/@SIZE@/$(du -sk --exclude=DEBIAN --apparent-size "$root" | cut -f1)/" packaging/deb/control >"$root/DEBIAN/control"
printf '/etc/default/livetree\n' >"$root/DEBIAN/conffiles"
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
chmod 0644 "$root/DEBIAN"/*
for script in postinst prerm postrm; do
	install -m 0755 "packaging/deb/$script" "$root/DEBIAN/$script"
done
find "$root" -type d -exec chmod 0755 {} +
find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
name=livetree_${number}_$architecture.deb
dpkg-deb --root-owner-group "-Z${COMPRESSION:-xz}" --build "$root" "$target/$name" >/dev/null
printf '%s\n' "$name"
