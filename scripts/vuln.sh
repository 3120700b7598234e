#!/usr/bin/env bash
#
# vuln.sh COMMAND...: run govulncheck, given as COMMAND. A vulnerability fails,
# and so does every other error. If the database cannot be fetched, nothing was
# looked at: that is "not checked", exit code 4, which is neither a pass nor a
# finding. So is a run that does not end, since a network that swallows packets
# looks like that.
set -euo pipefail

not_checked=4

output=$(mktemp)
trap 'rm -f "$output"' EXIT

status=0
timeout 5m "$@" >"$output" 2>&1 || status=$?
cat "$output"

if ((status == 124)) || { ((status != 0 && status != 3)) && grep -q '^govulncheck: fetching vulnerabilities: ' "$output"; }; then
	echo 'not checked: the database of vulnerabilities cannot be reached'
	exit "$not_checked"
fi
if ((status == not_checked)); then
	status=1 # whatever it means there
fi
exit "$status"
