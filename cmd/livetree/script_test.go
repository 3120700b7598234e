package main

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script. Beside the commands of testscript there is
//
//	fails CODE COMMAND [ARGUMENT...]
//
// which wants the exit code, no output, and one line that says what is wrong.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"fails": fails},
	})
}

func fails(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: fails CODE COMMAND [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](ts.Exec(args[1], args[2:]...)); ok {
		code = exit.ExitCode()
	}
	out, errs := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	if code != want || out != "" || !oneLine(errs) {
		ts.Fatalf("exit %d, %q, %q; want exit %d and one line", code, out, errs, want)
	}
}
