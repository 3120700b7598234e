#!/bin/sh
# Three nodes of a cluster on this machine, below one directory: to try things, not to keep data.
#
#   scripts/cluster.sh up          make a key if there is none, start three nodes, wait until all are ready
#   scripts/cluster.sh kill N      end node N at once, as a crash does
#   scripts/cluster.sh stop N      end node N as an operator does
#   scripts/cluster.sh start N     start node N again
#   scripts/cluster.sh status      livetree cluster status, asked of the first node that answers
#   scripts/cluster.sh down        end all nodes; their data stays
#
# LIVETREE names the program (livetree), CLUSTER_DIR the directory (./livetree-cluster), CLUSTER_PORT the first of nine
# ports (9000): clients at PORT+N, operators at PORT+100+N, other nodes at PORT+200+N. It ends only what it has started.
set -eu

program=${LIVETREE:-livetree}
dir=${CLUSTER_DIR:-./livetree-cluster}
port=${CLUSTER_PORT:-9000}
wait_seconds=60

usage() {
	sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

# enter: go by the whole path of the directory, which there must be.
enter() {
	if [ ! -d "$dir" ]; then
		echo "$0: there is no cluster at $dir: \"$0 up\" makes one, CLUSTER_DIR names another" >&2
		exit 1
	fi
	dir=$(cd "$dir" && pwd)
}

node() {
	case "${1:-}" in
	1 | 2 | 3) ;;
	*) echo "$0: a node is 1, 2 or 3" >&2; exit 2 ;;
	esac
}

# runs N: node N is a process that this script has started, and not another that has its number now.
runs() {
	[ -f "$dir/$1.pid" ] || return 1
	pid=$(cat "$dir/$1.pid")
	kill -0 "$pid" 2>/dev/null || return 1
	[ ! -r "/proc/$pid/cmdline" ] || tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- "--data $dir/$1 "
}

start() {
	if runs "$1"; then
		echo "node $1 is up"
		return
	fi
	list="127.0.0.1:$((port + 201)),127.0.0.1:$((port + 202)),127.0.0.1:$((port + 203))"
	nohup "$program" serve --data "$dir/$1" --addr "127.0.0.1:$((port + $1))" --admin-addr "127.0.0.1:$((port + 100 + $1))" \
		--cluster "$list" --cluster-addr "127.0.0.1:$((port + 200 + $1))" --cluster-key "$dir/cluster.key" \
		</dev/null >>"$dir/$1.out" 2>>"$dir/$1.log" &
	echo $! >"$dir/$1.pid"
}

# await N: wait until node N is ready, for a minute at most.
await() {
	i=0
	until "$program" ready --data "$dir/$1" >/dev/null 2>&1; do
		i=$((i + 1))
		if ! kill -0 "$(cat "$dir/$1.pid")" 2>/dev/null || [ $i -gt $((wait_seconds * 5)) ]; then
			echo "node $1 is not ready; the end of $dir/$1.log:" >&2
			tail -n 5 "$dir/$1.log" >&2
			exit 1
		fi
		sleep 0.2
	done
	echo "node $1 is ready at https://127.0.0.1:$((port + $1))"
}

# end N SIGNAL: wait until node N is gone, for half a minute at most.
end() {
	if runs "$1"; then
		pid=$(cat "$dir/$1.pid")
		kill "-$2" "$pid"
		i=0
		while kill -0 "$pid" 2>/dev/null; do
			i=$((i + 1))
			[ $i -le 150 ] || { echo "node $1 (process $pid) does not end" >&2; exit 1; }
			sleep 0.2
		done
	fi
	rm -f "$dir/$1.pid"
}

case "${1:-}" in
up)
	command -v "$program" >/dev/null || { echo "$0: there is no program $program: put it in a directory of PATH, or name it by LIVETREE" >&2; exit 1; }
	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd)
	[ -s "$dir/cluster.key" ] || (umask 077 && "$program" cluster key >"$dir/cluster.key")
	for n in 1 2 3; do start $n; done
	for n in 1 2 3; do await $n; done
	;;
kill | stop)
	node "${2:-}"
	enter
	end "$2" "$([ "$1" = kill ] && echo KILL || echo TERM)"
	;;
start)
	node "${2:-}"
	enter
	start "$2"
	await "$2"
	;;
status)
	enter
	for n in 1 2 3; do
		if runs $n; then
			exec "$program" cluster status --data "$dir/$n"
		fi
	done
	echo "no node is up" >&2
	exit 1
	;;
down)
	enter
	for n in 1 2 3; do runs $n && kill -TERM "$(cat "$dir/$n.pid")"; done || true
	for n in 1 2 3; do end $n TERM; done
	;;
*) usage ;;
esac
