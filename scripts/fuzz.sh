#!/usr/bin/env bash
#
# fuzz.sh SECONDS: fuzz every target of the module, SECONDS in total, each
# target at least one second. Fails when a target finds a failing input.
set -euo pipefail

total=${1:?usage: fuzz.sh SECONDS}
go=${GO:-go}

# `go test -list` prints the names of a package's targets, then "ok", the
# package and the time.
listing=$("$go" test -run '^$' -list '^Fuzz' ./...)
targets=$(awk '/^Fuzz/ { names[n++] = $1 }
	$1 == "ok" { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' <<<"$listing")

if [[ -z $targets ]]; then
	echo 'WARNING: NOTHING WAS FUZZED: the module has no fuzz target.'
	exit 0
fi

count=$(wc -l <<<"$targets")
each=$((total / count))
((each >= 1)) || each=1
echo "$count targets, ${each}s each"

output=$(mktemp)
trap 'rm -f "$output"' EXIT

# stopped_late reports whether the run failed only because its time was over:
# up to Go 1.26 a worker that is busy at the end of -fuzztime can turn the
# deadline into a failure without a failing input (go.dev/issue/75804).
stopped_late() {
	grep -qx ' *context deadline exceeded' "$output" &&
		! grep -qE 'Failing input written to|^panic:|fuzzing process' "$output"
}

failed=0
while read -r package target; do
	echo "$package $target"
	# Minimizing may take a minute per input by default, which no total bounds.
	if "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${each}s" -fuzzminimizetime 2s "$package" >"$output" 2>&1 </dev/null; then
		tail -n 2 "$output"
	elif stopped_late; then
		tail -n 2 "$output"
		echo "NOTE: $target ran into its time limit; no failing input was found."
	else
		cat "$output"
		failed=1
	fi
done <<<"$targets"

if ((failed)); then
	echo 'fuzzing found a failure; a failing input is kept in testdata/fuzz beside the test' >&2
	exit 1
fi
