#!/usr/bin/env bash
#
# fuzz.sh SECONDS [each]: fuzz every target of the module, SECONDS in total or,
# with "each", SECONDS for each target; each at least one second. Fails when a
# target finds a failing input, and when the canary does not: that target has a
# bug on purpose, and silence would mean that nothing is fuzzed at all.
#
# FUZZ_TARGETS is a pattern of the names to fuzz, all by default. FIGURES is a
# file to append a line of figures for each target to; see `make figures`. With
# DONE, a file, it goes on where it was stopped; see parts.bash. Its parts are
# called fuzz/TARGET/SECONDS.
set -euo pipefail
parts_of=${parts_of:-fuzz}
source "$(dirname "${BASH_SOURCE[0]}")/parts.bash"

total=${1:?usage: fuzz.sh SECONDS [each]}
go=${GO:-go}
canary=FuzzCanary
canary_seconds=600 # it ends when it has found it: seconds, but on a busy machine more

# The targets are read from the files: go test -list would build the tests of all packages first.
files='{{range .TestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}'
targets=$("$go" list -f "$files" ./... | while read -r package file; do
	[[ -z $package ]] || sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(f \*testing.F).*|$package \1|p" "$file"
done | sort | awk -v canary=$canary -v pattern="${FUZZ_TARGETS:-^Fuzz}" '$2 != canary && $2 ~ pattern')

if [[ -z $targets ]]; then
	echo 'WARNING: NOTHING WAS FUZZED: there is no such fuzz target.' >&2
	exit 1
fi

count=$(wc -l <<<"$targets")
each=$total
[[ ${2:-} == each ]] || each=$((total / count))
((each >= 1)) || each=1
[[ ${LIST:-} == yes ]] || echo "$count targets, ${each}s each"

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

# fuzz PACKAGE TARGET fuzzes one target.
fuzz() {
	echo "$1 $2"
	# Minimizing may take a minute per input by default, which no total bounds, and
	# inputs of targets with goroutines often look interesting.
	if "$go" test -run '^$' -fuzz "^$2\$" -fuzztime "${each}s" -fuzzminimizetime 100x "$1" >"$output" 2>&1 </dev/null; then
		tail -n 2 "$output"
		figure "$2" 0
	elif stopped_late; then
		tail -n 2 "$output"
		echo "NOTE: $2 ran into its time limit; no failing input was found."
		figure "$2" 0
	else
		cat "$output"
		figure "$2" 1
		return 1
	fi
}

[[ ${LIST:-} == yes ]] || find_canary || failed_parts+=("$canary")
while read -r package target; do
	part "fuzz/$target/$each" fuzz "$package" "$target"
done <<<"$targets"

((${#failed_parts[@]} == 0)) || echo 'fuzzing found a failure; a failing input is kept in testdata/fuzz beside the test' >&2
ended
