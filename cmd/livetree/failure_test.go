package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/store"
)

// failedJSON runs a command with --json that must fail, and returns what it says.
func failedJSON(t *testing.T, args ...string) failureJSON {
	t.Helper()
	code, _, errs := command(append(args, "--json")...)
	var f failureJSON
	if err := json.Unmarshal([]byte(errs), &f); err != nil || f.Error == "" || f.Exit != code || code == 0 {
		t.Errorf("livetree %q --json: exit %d, %q; want one JSON object with an error and the exit code", args, code, errs)
	}
	return f
}

// TestFailuresAsJSON: --json holds for errors too, of every command that has it.
func TestFailuresAsJSON(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	defer p.end()
	empty := t.TempDir()
	for _, args := range [][]string{
		{"db", "stats", "nobody", "--data", data},
		{"db", "create", "default", "--data", data},
		{"secret", "show", "nobody", "--data", data},
		{"service-account", "list", "--db", "nobody", "--data", data},
		{"backup", data, "--data", data},
		{"db", "list", "--data", empty},
		{"top", "--once", "--data", empty},
		{"token", "mint", "--data", empty},
		{"check", empty},
		{"backup", "verify", empty},
		{"restore", empty, filepath.Join(empty, "new")},
		{"get", "/", "--url", "https://127.0.0.1:1"},
	} {
		failedJSON(t, args...)
	}

	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "LIVETREE"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := failedJSON(t, "check", broken); f.Exit != store.ExitDamaged && f.Exit != 1 {
		t.Errorf("check of a broken directory: %+v", f)
	}
}

// TestInterruptedOperator: who interrupts a command is not told that the server
// does not answer.
func TestInterruptedOperator(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	defer p.end()
	signals := make(chan os.Signal, 2)
	errs := &console{ready: signals, at: "recording"}
	a := newApp()
	a.stdout, a.stderr = &console{}, errs
	code := run(signals, a, []string{"profile", "--for", "5m", "--data", data})
	if lines := strings.Split(errs.String(), "\n"); code != client.ExitInterrupted || lines[1] != "livetree: interrupted" {
		t.Errorf("an interrupted profile: exit %d, %q", code, errs)
	}
}

// TestInterruptedRestore: what was not read to its end is not called ok.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	dir := filepath.Join(t.TempDir(), "backup")
	done(t, "backup", dir, "--data", data)
	p.end()
	for _, args := range [][]string{{"restore", dir, filepath.Join(t.TempDir(), "new")}, {"backup", "verify", dir}} {
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGINT
		out, errs := &console{}, &console{}
		a := newApp()
		a.stdout, a.stderr = out, errs
		a.isTerminal = func(any) bool { return false }
		code := run(signals, a, args)
		if code == 0 {
			continue // it was faster
		}
		if code != client.ExitInterrupted || out.String() != "" || !oneLine(errs.String()) || !strings.HasSuffix(errs.String(), "interrupted\n") {
			t.Errorf("livetree %q, interrupted: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

// TestDoctorLooksInside: with a data directory it finds the authority by itself, and
// asks the server how it is.
func TestDoctorLooksInside(t *testing.T) {
	t.Parallel()
	p, data := operated(t, "--dev")
	code, out, errs := command("doctor", "--url", "https://"+p.addr, "--data", data)
	if code != 0 || !strings.Contains(out, "ok       certificate ") || !strings.Contains(out, "warning  server       its own check dev says on") {
		t.Errorf("livetree doctor: exit %d, %s%s", code, out, errs)
	}
	if code, out, _ := command("doctor", "--data", data); code != 0 || !strings.Contains(out, "warning  rules        the rules let everybody read and write everything\n") {
		t.Errorf("livetree doctor of a server with --dev: exit %d, %s", code, out)
	}
	if code, out, _ := command("doctor", "--url", "http://"+p.addr, "--data", data); code != 1 ||
		!strings.Contains(out, "answered 404: use HTTPS") || !strings.Contains(out, "do: begin --url with https://") {
		t.Errorf("livetree doctor of plain HTTP: exit %d, %s", code, out)
	}
	if code := p.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with code %d", code)
	}
}

// TestUsageOfACommandWithCommands: backup does something itself, too.
func TestUsageOfACommandWithCommands(t *testing.T) {
	t.Parallel()
	if out := done(t, "backup", "--help"); !strings.Contains(out, "Usage:\n  livetree backup DIR [flags]\n  livetree backup COMMAND\n") {
		t.Errorf("livetree backup --help: %s", out)
	}
	if out := done(t, "db", "--help"); !strings.Contains(out, "Usage:\n  livetree db COMMAND\n") {
		t.Errorf("livetree db --help: %s", out)
	}
}
