package main

import (
	"bytes"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){name: main})
}

// TestScripts runs testdata/script. Beside the commands of testscript there is
//
//	fails CODE COMMAND [ARGUMENT...]
//
// which wants the exit code, no output, and one line that says what is wrong.
func TestScripts(t *testing.T) {
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
	if code != want || out != "" || !strings.HasPrefix(errs, name+": ") || strings.Index(errs, "\n") != len(errs)-1 {
		ts.Fatalf("exit %d, %q, %q; want exit %d and one line", code, out, errs, want)
	}
}

// TestTerminal: a text of others, here the name of a file, does not act on a terminal.
func TestTerminal(t *testing.T) {
	var out, errs bytes.Buffer
	s := streams{strings.NewReader(""), &out, &errs, func(string) (string, bool) { return "", false }, func(any) bool { return true }}
	if code := run(t.Context(), s, []string{"--url", "https://127.0.0.1:1", "--ca", "\x1b]0;title\x07"}); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	if strings.ContainsAny(errs.String(), "\x1b\x07") || !strings.Contains(errs.String(), "no such file") {
		t.Errorf("a terminal gets %q", errs.String())
	}
}
