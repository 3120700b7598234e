#!/usr/bin/env bash
#
# fuzz.sh SECONDS [each]: fuzz every target of the module, SECONDS in total or,
# with "each", SECONDS for each target; each at least one second. Fails when a
# target finds a failing input, and when the canary does not: that target has a
# bug on purpose, and silence would mean that nothing is fuzzed at all.
#
# FUZZ_TARGETS is a pattern of the names to fuzz, all by default. FIGURES is a
# file to append a line of figures for each target to; see `make figures`.
set -euo pipefail

total=${1:?usage: fuzz.sh SECONDS [each]}
go=${GO:-go}
canary=FuzzCanary
canary_seconds=600 # it ends when it has found it: seconds, but on a busy machine more

# `go test -list` prints the names of a package's targets, then "ok", the
# package and the time.
listing=$("$go" test -run '^$' -list "${FUZZ_TARGETS:-^Fuzz}" ./...)
targets=$(awk '/^Fuzz/ { names[n++] = $1 }
	$1 == "ok" { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' <<<"$listing" | { grep -v " $canary\$" || true; })

if [[ -z $targets ]]; then
	echo 'WARNING: NOTHING WAS FUZZED: there is no such fuzz target.' >&2
	exit 1
fi

count=$(wc -l <<<"$targets")
each=$total
[[ ${2:-} == each ]] || each=$((total / count))
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

# figure NAME FAILURES appends what the last run arrived at.
figure() {
	[[ -n ${FIGURES:-} ]] || return 0
	local execs
	execs=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$output" | tail -n 1)
	printf '%s fuzz/%s seconds=%d execs=%d failures=%d\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" "$each" "${execs:-0}" "$2" >>"$FIGURES"
}

# find_canary fuzzes the target with a bug until it is found. Its input is of no
# use and removed.
find_canary() {
	local found=0
	LIVETREE_FUZZ_CANARY=yes "$go" test -run '^$' -fuzz "^$canary\$" -fuzztime "${canary_seconds}s" -fuzzminimizetime 1s ./internal/proof >"$output" 2>&1 </dev/null || found=1
	rm -rf internal/proof/testdata/fuzz/"$canary"
	if ((!found)) || ! grep -q 'the canary sings' "$output"; then
		cat "$output"
		echo "the canary found nothing in ${canary_seconds}s: FUZZING DOES NOT WORK HERE" >&2
		return 1
	fi
	echo "$canary was found, as it must be"
}

failed=0
find_canary || failed=1
while read -r package target; do
	echo "$package $target"
	# Minimizing may take a minute per input by default, which no total bounds, and
	# inputs of targets with goroutines often look interesting.
	if "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${each}s" -fuzzminimizetime 100x "$package" >"$output" 2>&1 </dev/null; then
		tail -n 2 "$output"
		figure "$target" 0
	elif stopped_late; then
		tail -n 2 "$output"
		echo "NOTE: $target ran into its time limit; no failing input was found."
		figure "$target" 0
	else
		cat "$output"
		figure "$target" 1
		failed=1
	fi
done <<<"$targets"

if ((failed)); then
	echo 'fuzzing found a failure; a failing input is kept in testdata/fuzz beside the test' >&2
	exit 1
fi
