#!/usr/bin/env bash
#
# try-deb.sh OLD NEW [ROOT]: install the package OLD for Debian into a Debian of its own, write data, upgrade it to NEW over
# that data, remove it and purge it. The Debian is the directory ROOT, made if there is none; without ROOT it is gone afterwards.
# It needs the rights to chroot. No systemd runs there, so the server is started by hand, as its user. Where a program is missing nothing
# is checked, loudly; INSTALL=yes has apt-get install it.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/debian.bash"
old=${1:?usage: scripts/try-deb.sh OLD NEW [ROOT]} new=${2:?} root=${3:-}
if [[ -z $root ]]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	root=$work/root # which others than root can enter
fi
make_debian "$root"
data=/var/lib/livetree
within=(chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin)
user=("${within[@]}" setpriv --reuid livetree --regid livetree --clear-groups --)
in_root() { "${within[@]}" "$@"; }
as_user() { "${user[@]}" "$@"; }
must() { printf '  %s\n' "$1"; shift; "$@" || { printf 'FAILED\n'; exit 1; }; }

# serve COMMAND... runs commands beside a server.
serve() {
	# Not by as_user: the id must be that of the server, not of a shell around it.
	"${user[@]}" livetree serve --data $data --addr 127.0.0.1:0 --admin-addr 127.0.0.1:0 >"$root/tmp/out" 2>&1 &
	local server=$!
	until grep -q 'listening on https://' "$root/tmp/out"; do
		kill -0 $server 2>/dev/null || { cat "$root/tmp/out"; exit 1; }
		sleep 0.1
	done
	"$@"
	kill -TERM $server
	wait $server
}

put() { cp "$1" "$root/tmp/package.deb" && in_root dpkg -i /tmp/package.deb; }
read_back() { [[ $(as_user livetree get /tried --data $data) == '"yes"' ]]; }
gone() { [[ ! -e $root$1 ]]; }

printf '%s\n' "install $old"
put "$old"
must 'the user is there' in_root getent passwd livetree
must 'the data directory is for the user alone' test "$(in_root stat -c '%U %a' $data)" = 'livetree 700'
must 'the units are valid' in_root systemd-analyze verify --man=no /usr/lib/systemd/system/livetree.service /usr/lib/systemd/system/livetree.socket
must 'there is a man page' test -s "$root/usr/share/man/man1/livetree.1.gz"
must 'there is a completion' in_root bash -n /usr/share/bash-completion/completions/livetree
serve as_user livetree set /tried '"yes"' --data $data
printf 'LIVETREE_LOG_LEVEL=DEBUG\n' >>"$root/etc/default/livetree"

printf '%s\n' "upgrade to $new"
put "$new"
in_root livetree version
serve must 'the data is there' read_back
must 'settings that were changed stay' grep -q LOG_LEVEL=DEBUG "$root/etc/default/livetree"
must 'the data is whole' as_user livetree check $data

printf 'remove\n'
in_root dpkg -r livetree
must 'the binary is gone' gone /usr/bin/livetree
must 'the settings stay' test -e "$root/etc/default/livetree"

printf 'purge\n'
in_root dpkg -P livetree
must 'the settings are gone' gone /etc/default/livetree
must 'the data stays' test -e "$root$data/LIVETREE"
rm -rf "${root:?}$data" "$root/tmp/package.deb" "$root/tmp/out"
printf 'all is well\n'
