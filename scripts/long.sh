#!/usr/bin/env bash
#
# long.sh nightly|torture: run the tests of docs/reliability.md for hours, part by part; figures are appended to the file FIGURES.
# FUZZ_EACH is how many seconds each target is fuzzed. PART, DONE and LIST are those of parts.bash: run some parts, go on
# with a run that was stopped, list the parts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export parts_of=${1:?usage: scripts/long.sh nightly|torture}
source scripts/parts.bash
go=${GO:-go}
keep=(-figures "${FIGURES:?a file for figures}")

case $parts_of in
nightly) length=-long cuts=5000 flips=50 runs=20 minutes=10m ;;
torture) length=-torture cuts=20000 flips=400 runs=200 minutes=2h ;;
*) echo "long.sh knows nightly and torture, but not $parts_of" >&2; exit 1 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# tests PATTERN PACKAGE FLAGS... runs tests of a package for as long as they take.
tests() { "$go" test -count=1 -timeout 48h -v -run "$1" "${@:2}"; }

# trust TEST FLAGS... runs one test of package trust, in its directory, as go test does.
trust() { (cd trust && "$work/trust.test" -test.v -test.timeout 48h -test.run "^$1\$" "${@:2}"); }

# race TESTS: tests of package trust against a server with the race detector.
race() {
	"$go" build -race -o "$work/livetree" ./cmd/livetree &&
		tests "$1" ./trust -long -binary "$work/livetree"
}

if [[ $parts_of == nightly ]]; then
	part race "$go" test -race -shuffle=on -timeout 30m ./...
	part 32bit env CGO_ENABLED=0 GOARCH=arm "$go" vet ./...
	part growth make growth
	part cluster tests . ./internal/cluster -seeds 100000
	part databases tests 'Histories$' ./internal/cluster/databases -seeds 200
	part archiver tests 'ClusterHistories$' ./internal/archiver -seeds 100
	part etcdlog tests . ./internal/cluster/etcdlog -long -rounds 20 -kills 200
	part membership tests . ./internal/cluster/membership -long
fi

if wants trust/; then
	"$go" test -c -o "$work/trust.test" ./trust
	for test in $(cd trust && "$work/trust.test" -test.list '^Test'); do
		part "trust/$test" trust "$test" $length "${keep[@]}"
	done
fi
[[ $parts_of != torture ]] || part race race 'KillLoop$|Linear$|Twins$|Variants$|Races$'

part engine/powerloss tests 'PowerLoss$' ./internal/engine "${keep[@]}" -crash.cuts $cuts -crash.time 24h
part engine/model tests 'Model$' ./internal/engine "${keep[@]}" -model.time $minutes
part watch tests 'WatchChecker$' ./internal/watch "${keep[@]}" -watch.runs $runs
part store tests 'DiskFaults$|Damage$|HoldCrashes$' ./internal/store "${keep[@]}" -fault.step 1 -damage.flips $flips -hold.crashes $cuts
part backup tests 'Damage$|Drill$' ./internal/backup -damage.step 1 -drill.backups $runs
part conformance tests 'Streams|Gate|Long' ./conformance -long -streams.time $minutes "${keep[@]}"

# Its parts are fuzz/TARGET/SECONDS.
if wants fuzz/; then
	found_parts=$((found_parts + 1))
	scripts/fuzz.sh "${FUZZ_EACH:?seconds for each target}" each || failed_parts+=(fuzz)
fi
ended
