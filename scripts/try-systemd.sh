#!/usr/bin/env bash
#
# try-systemd.sh OLD NEW [ROOT]: install the package OLD for Debian into a Debian with a systemd that runs, kill the server, let
# it hang, restart it and upgrade it to NEW while clients come, and remove it. The Debian is a container of systemd-nspawn
# without a network, on the directory ROOT, made if there is none; without ROOT it is gone afterwards. It needs the rights of
# root. Where a program is missing nothing is checked, loudly; INSTALL=yes has apt-get install them.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/debian.bash"
old=${1:?usage: scripts/try-systemd.sh OLD NEW [ROOT]} new=${2:?} root=${3:-}

work=$(mktemp -d)
container=
clean() {
	if [[ -n $container ]] && kill -TERM "$container" 2>/dev/null; then
		sleep 1
		kill -TERM "$container" 2>/dev/null || true # the second one does not wait
		wait "$container" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap clean EXIT
root=${root:-$work/root}
make_debian "$root" systemd-nspawn nsenter

systemd-nspawn -q -D "$root" --boot --register=no --keep-unit --console=pipe --private-network --machine livetree-try </dev/null >"$work/boot" 2>&1 &
container=$!
inside() { nsenter -t "$first" -a -- "$@"; }
fail() {
	printf 'FAILED: %s\n' "$1" >&2
	inside journalctl --no-pager -n 40 -u livetree.service -u livetree.socket >&2 || cat "$work/boot" >&2
	exit 1
}
# until_true WHAT COMMAND...: wait for up to 2 minutes.
until_true() {
	local what=$1 n
	shift
	for ((n = 0; n < 600; n++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.2
	done
	fail "waited 2 minutes for $what"
}
must() { printf '  %s\n' "$1"; shift; "$@" || fail "$*"; }
show() { inside systemctl show livetree -P "$1"; }
leader() { first=$(pgrep -P "$container" -n) && [[ $(inside cat /proc/1/comm) == systemd ]]; }
until_true 'the container' leader
is_up() { inside systemctl is-system-running | grep -qE 'running|degraded'; }
until_true 'systemd in it' is_up
printf '%s\n' "$(inside systemctl --version | head -n 1) runs"

put() { cp "$1" "$root/var/tmp/package.deb" && inside dpkg -i /var/tmp/package.deb >"$work/dpkg" 2>&1 || { cat "$work/dpkg" >&2; return 1; }; }
is_ready() { inside livetree ready --data /var/lib/livetree; }
tried() { [[ $(inside livetree get /tried --data /var/lib/livetree 2>/dev/null) == '"yes"' ]]; }
# another SINCE: the server is another process than that, and ready.
another() { [[ $(show MainPID) != "$1" && $(show ActiveState) == active ]] && is_ready; }

must 'the package is installed' put "$old"
must 'both units are valid' inside systemd-analyze verify --man=no livetree.service livetree.socket
# With Type=notify this returns when clients are served.
must 'the server starts' inside systemctl enable --now livetree.service
must 'it is ready at once' is_ready
must 'systemd shows where it serves' grep -q 'serving https://127.0.0.1:9000' <<<"$(show StatusText)"
must 'it can write' inside livetree set /tried '"yes"' --data /var/lib/livetree
printf '  exposure: %s\n' "$(inside systemd-analyze security --no-pager livetree.service | tail -n 1)"

server=$(show MainPID)
inside sh -c "kill -KILL $server"
until_true 'a server after a kill' another "$server"
must 'a server that was killed is started again, with its data' tried

# A server that hangs. The time is that of the unit, shorter here.
inside mkdir -p /run/systemd/system/livetree.service.d
inside sh -c 'printf "[Service]\nWatchdogSec=3\n" >/run/systemd/system/livetree.service.d/watchdog.conf'
inside systemctl daemon-reload
must 'the server restarts' inside systemctl restart livetree.service
server=$(show MainPID)
sleep 8
must 'signs of life keep it running' test "$(show MainPID)" = "$server"
inside sh -c "kill -STOP $server"
until_true 'a server after a hang' another "$server"
must 'systemd says why' grep -q watchdog <<<"$(inside journalctl --no-pager -u livetree.service)"
inside rm /run/systemd/system/livetree.service.d/watchdog.conf
inside systemctl daemon-reload

# Connections that are refused while systemd holds the port: 7 is curl's code for one.
inside systemctl stop livetree.service
must 'systemd takes the port' inside systemctl enable --now livetree.socket
must 'the server starts on it' inside systemctl start livetree.service
cat >"$root/var/tmp/knock" <<'END'
while [ ! -e /var/tmp/enough ]; do
	curl -sS -o /dev/null --max-time 60 --cacert /var/lib/livetree/tls/ca.pem https://localhost:9000/.json 2>>/var/tmp/errors
	echo $? >>/var/tmp/codes
done
END
knocking() { # COMMAND...: run a command while clients come
	inside rm -f /var/tmp/enough /var/tmp/codes /var/tmp/errors
	inside sh /var/tmp/knock &
	local clients=$!
	until_true 'clients' test -s "$root/var/tmp/codes"
	"$@"
	: >"$root/var/tmp/enough"
	wait $clients
	printf '  %d connections meanwhile, refused or cut: %d\n' "$(wc -l <"$root/var/tmp/codes")" "$(grep -cv '^0$' "$root/var/tmp/codes" || true)"
	! grep -qv '^0$' "$root/var/tmp/codes" || { sort "$root/var/tmp/errors" | uniq -c >&2; fail 'clients see the restart'; }
}
restart() { inside systemctl restart livetree.service; }
knocking must 'the server restarts while clients come' restart
server=$(show MainPID)
knocking must 'the package is upgraded while clients come' put "$new"
must 'the server is the new one' another "$server"
must 'the data is there' tried

must 'the server stops' inside systemctl stop livetree.socket livetree.service
must 'in order' test "$(show Result)" = success
inside systemctl start livetree.socket
inside dpkg -P livetree >/dev/null 2>&1
must 'a purge ends socket and server' test "$(inside systemctl is-active livetree.socket)" = inactive
must 'the data stays' inside test -e /var/lib/livetree/LIVETREE
inside rm -rf /var/lib/livetree
printf 'all is well\n'
