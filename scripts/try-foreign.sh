#!/usr/bin/env bash
#
# try-foreign.sh BINARY...: run binaries of livetree for other processors under QEMU's user mode: the version, a server, a
# write, a read, a stop in order. BINARY is named as release.sh does, livetree-VERSION-linux-arm64. One for which there is
# no QEMU is skipped, loudly; INSTALL=yes has apt-get install qemu-user-static.
set -euo pipefail

(($#)) || { echo 'usage: scripts/try-foreign.sh BINARY...' >&2; exit 1; }
if [[ ${INSTALL:-} == yes ]]; then
	apt-get install -y --no-install-recommends qemu-user-static >/dev/null || echo 'apt-get install failed' >&2
fi
work=$(mktemp -d)
server=
clean() {
	[[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap clean EXIT
fail() {
	printf 'FAILED: %s: %s\n' "$binary" "$1" >&2
	tail -n 20 "$work/log" >&2 || true
	exit 1
}

for binary; do
	binary=$(realpath "$binary")
	case $binary in
	*-arm64) emulator=(qemu-aarch64-static) ;;
	*-armv7) emulator=(qemu-arm-static) ;;
	*) emulator=() ;; # this machine's
	esac
	if ((${#emulator[@]})) && ! command -v "${emulator[0]}" >/dev/null; then
		echo "*** SKIPPED, $binary was NOT checked: install ${emulator[0]}, or run this with INSTALL=yes" >&2
		continue
	fi
	began=$SECONDS data=$work/$(basename "$binary") out=$work/out
	run=("${emulator[@]}" "$binary")
	"${run[@]}" version >"$out" || fail 'it does not say its version'
	version=$(head -n 1 "$out")
	"${run[@]}" serve --data "$data" --addr 127.0.0.1:0 --admin-addr '' >"$out" 2>"$work/log" &
	server=$!
	for ((n = 0; ; n++)); do
		grep -q 'listening on https://' "$out" && break
		kill -0 $server 2>/dev/null || fail 'the server does not start'
		((n < 1800)) || fail 'the server does not listen after 3 minutes'
		sleep 0.1
	done
	"${run[@]}" set /tried '"yes"' --data "$data" 2>/dev/null >/dev/null || fail 'nothing can be written'
	[[ $("${run[@]}" get /tried --data "$data" 2>/dev/null) == '"yes"' ]] || fail 'what was written is not there'
	kill -TERM $server
	wait $server || fail "the server ends with $?"
	server=
	printf '%s: %s, serves, writes, reads and stops in %d s\n' "$(basename "$binary")" "$version" $((SECONDS - began))
done
