#!/usr/bin/env bash
#
# proxies.sh: run requests and streams through nginx and Caddy, as the system has
# them and as packaging/ configures them, to a server that is built here. A proxy
# that is not installed is skipped, loudly; INSTALL=yes has apt-get install both.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${INSTALL:-} == yes ]]; then
	apt-get install -y --no-install-recommends nginx-light caddy curl >/dev/null || echo 'apt-get install failed' >&2
fi
PATH=$PATH:/usr/sbin
command -v curl >/dev/null || { echo '*** SKIPPED, nothing was checked: there is no curl' >&2; exit 0; }

work=$(mktemp -d)
server= proxy= stream=
clean() {
	for pid in $stream $proxy $server; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap clean EXIT

fail() {
	printf 'FAILED: %s: %s\n' "$name" "$1" >&2
	tail -n 20 "$work/$name.log" "$work/server.log" >&2 || true
	exit 1
}

# until_true WHAT COMMAND...: wait for up to 20 seconds.
until_true() {
	local what=$1 n
	shift
	for ((n = 0; n < 200; n++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	fail "waited 20 seconds for $what"
}

# ask WANT CURL-ARGUMENTS...: the status and the body must be WANT.
ask() {
	local want=$1 got
	shift
	got=$("${curl[@]}" -w ' %{http_code}' "$@") || fail "curl $* ends with $?"
	got=$(tr -d '\n' <<<"$got")
	[[ $got == "$want" ]] || fail "curl $*: ${got:0:300}, want ${want:0:300}"
}

start_server() {
	"$work/livetree" serve --dev --allow-http --trusted-proxy 127.0.0.1 --keep-alive 1s --data "$work/data-$name" --addr 127.0.0.1:0 --admin-addr '' \
		>"$work/server.out" 2>"$work/server.log" &
	server=$!
	until_true 'the server' grep -q listening "$work/server.out"
	upstream=$(sed -n 's|.*listening on https://||p' "$work/server.out")
}

start_nginx() {
	local user=
	((EUID)) || user='user root;' # whose directory this is
	sed -e "s/127.0.0.1:9000/$upstream/" -e "s/listen 443/listen 127.0.0.1:$port/" -e 's/db.example.com;/localhost;/' \
		-e "s|/etc/ssl/.*pem|$work/data-$name/tls/cert.pem|" -e "s|/etc/ssl/.*key|$work/data-$name/tls/key.pem|" \
		packaging/nginx.conf >"$work/livetree.conf"
	mkdir -p "$work/nginx"
	cat >"$work/nginx.conf" <<-END
		$user
		daemon off;
		pid $work/nginx.pid;
		error_log $work/nginx.log;
		events {}
		http {
			access_log off;
			client_body_temp_path $work/nginx/body;
			proxy_temp_path $work/nginx/proxy;
			fastcgi_temp_path $work/nginx/fastcgi;
			uwsgi_temp_path $work/nginx/uwsgi;
			scgi_temp_path $work/nginx/scgi;
			include $work/livetree.conf;
		}
	END
	nginx -q -p "$work" -c "$work/nginx.conf" >>"$work/nginx.log" 2>&1 &
	proxy=$!
}

start_caddy() {
	{
		printf '{\n\tadmin off\n\tauto_https off\n}\n'
		sed -e "s/127.0.0.1:9000/$upstream/" \
			-e "s|^db.example.com {|https://localhost:$port {\n\tbind 127.0.0.1\n\ttls $work/data-$name/tls/cert.pem $work/data-$name/tls/key.pem|" \
			packaging/Caddyfile
	} >"$work/Caddyfile"
	HOME=$work XDG_DATA_HOME=$work XDG_CONFIG_HOME=$work caddy run --config "$work/Caddyfile" --adapter caddyfile >"$work/caddy.log" 2>&1 &
	proxy=$!
}

check_requests() {
	ask '{"b":1} 200' -X PUT -d '{"b":1}' "$base/a.json"
	ask '{"c":2} 200' -X PATCH -d '{"c":2}' "$base/a.json"
	ask '{"b":1,"c":2} 200' "$base/a.json"
	ask ' 204' -X PUT -d 1 "$base/silent.json?print=silent"
	ask '1 200' -X PUT -d 1 "$base/a%20b/c%25d%2B.json"
	ask '{"c%d+":1} 200' "$base/a%20b.json"
	ask '{"c":2} 200' -G "$base/a.json" --data-urlencode 'orderBy="$key"' --data-urlencode 'startAt="c"'
	ask ' 400' -o /dev/null "$base/a%2Fb.json" # the proxy has not decoded it
	local tag long
	tag=$("${curl[@]}" -D - -o /dev/null -H 'X-Firebase-ETag: true' "$base/a.json" | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p')
	[[ -n $tag ]] || fail 'there is no ETag'
	ask '7 200' -X PUT -d 7 -H "if-match: $tag" "$base/a.json"
	ask '7 412' -X PUT -d 8 -H "if-match: $tag" "$base/a.json"
	ask 'null 200' -X DELETE "$base/a.json"
	long=$(printf '%*s' 700 '' | tr ' ' k)
	ask 'null 200' "$base/$(printf "$long/%.0s" {1..30})x.json"
	[[ $("${curl[@]}" --http2 -o /dev/null -w '%{http_version}' "$base/a.json") == 2 ]] || fail 'HTTP/2 is not spoken'
	# 16 MiB up and down.
	{ printf '"'; head -c 8388608 /dev/zero | tr '\0' x; printf '"'; } >"$work/large"
	printf '{"p":%s,"q":%s}' "$(cat "$work/large")" "$(cat "$work/large")" >"$work/larger"
	"${curl[@]}" -X PUT -T "$work/larger" "$base/large.json?print=silent" || fail 'a large body'
	"${curl[@]}" "$base/large.json" | cmp - "$work/larger" || fail 'a large answer differs'
	ask 'null 200' -X DELETE "$base/large.json"
}

check_stream() {
	"${curl[@]}" -N -H 'Accept: text/event-stream' "$base/live.json" >"$work/events" &
	stream=$!
	until_true 'the first event' grep -q '^data: {"path":"/","data":null}' "$work/events"
	local n
	for n in 1 2 3; do
		ask "$n 200" -X PUT -d "$n" "$base/live/n.json"
		until_true "event $n" grep -q "^data: {\"path\":\"/n\",\"data\":$n}" "$work/events"
	done
	until_true 'a keep-alive' grep -q '^event: keep-alive' "$work/events"
	# The server stops: the stream ends as a whole one, and so does curl.
	kill -TERM "$server"
	wait "$stream" || fail "the stream ends with $? when the server stops"
	wait "$server" || fail "the server ends with $?"
	stream= server=
	ask ' 502' -o /dev/null "$base/live.json"
	start_server_again
	until_true 'the proxy to find the server again' "${curl[@]}" -f "$base/live.json"
	ask '{"n":3} 200' "$base/live.json"
}

# start_server_again starts it on the port that the proxy knows.
start_server_again() {
	"$work/livetree" serve --dev --allow-http --trusted-proxy 127.0.0.1 --keep-alive 1s --data "$work/data-$name" --addr "$upstream" --admin-addr '' \
		>"$work/server.out" 2>>"$work/server.log" &
	server=$!
	until_true 'the server' grep -q listening "$work/server.out"
}

"${GO:-go}" build -o "$work/livetree" ./cmd/livetree
for name in nginx caddy; do
	if ! command -v "$name" >/dev/null; then
		echo "*** SKIPPED, $name was NOT checked: install it, or run this with INSTALL=yes" >&2
		continue
	fi
	port=$((20000 + RANDOM % 20000)) base=
	start_server
	base=https://localhost:$port
	curl=(curl -sS -g --max-time 60 --cacert "$work/data-$name/tls/ca.pem")
	"start_$name"
	until_true "$name" "${curl[@]}" "$base/a.json"
	check_requests
	check_stream
	kill "$proxy" "$server"
	wait "$proxy" "$server" || true
	proxy= server=
	echo "$name: requests and streams pass ($("$name" $([[ $name == nginx ]] && echo -v || echo version) 2>&1 | head -n 1))"
done
