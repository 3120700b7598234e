# parts.bash is for scripts that run for hours, and is read by them.
#
# part NAME COMMAND... runs a part of $parts_of. It goes on when a part fails; ended says at the end which did. The
# environment says which parts are run:
#
#   PART  those whose names begin with this; all by default
#   DONE  a file with a line for each part that has passed: those are left out, and others are added when they have
#         passed. So a run can be stopped at any time, and the next one goes on with the part that was stopped. A part
#         that has passed on an earlier commit is left out as well: begin with a new file when the code has changed
#   LIST  yes prints the names, and runs nothing
failed_parts=()
found_parts=0

# A child that is interrupted ends with a code like any other; the parts after it must not run.
trap 'exit 130' INT TERM

# wants PREFIX reports whether parts whose names begin with this are run.
wants() { [[ $1 == "${PART:-}"* || ${PART:-} == "$1"* ]]; }

part() {
	local name=$1 began=$SECONDS
	shift
	[[ $name == "${PART:-}"* ]] || return 0
	found_parts=$((found_parts + 1))
	if [[ ${LIST:-} == yes ]]; then
		printf '%s\n' "$name"
		return
	fi
	if [[ -n ${DONE:-} ]] && grep -sF " $parts_of $name " "$DONE"; then
		return # it has printed the line
	fi
	printf '\n--- %s %s\n' "$parts_of" "$name"
	if ! "$@"; then
		printf '%s\n' "--- $name: FAILED"
		failed_parts+=("$name")
		return
	fi
	[[ -z ${DONE:-} ]] || printf '%s %s %s passed in %d s on %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$parts_of" "$name" \
		$((SECONDS - began)) "$(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')" >>"$DONE"
}

# ended prints the parts that failed, and fails if there are any, or if there was no such part.
ended() {
	((found_parts)) || { printf 'there is no part whose name begins with "%s"; LIST=yes lists them\n' "${PART:-}" >&2; return 1; }
	((${#failed_parts[@]} == 0)) || { printf 'failed: %s\n' "${failed_parts[*]}" >&2; return 1; }
}
