package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cli"
)

// hostileText is every kind of character that a terminal acts on.
const hostileText = "\x1b]0;title\x07 \x7f \u009b31m \u202egnp.exe \u2066x\u2069 \u061c \u200f \u2028"

// wantHarmless fails if a text for a terminal holds anything but lines.
func wantHarmless(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && cli.Visible(string(r)) != string(r) {
			t.Errorf("%s: %q holds %U", what, text, r)
			return
		}
	}
}

// TestEveryCommandIsGuarded has a server full of what a terminal acts on shown by the
// commands that show what others wrote. A program gets the bytes as they are.
func TestEveryCommandIsGuarded(t *testing.T) {
	dir := t.TempDir()
	s, err := startInProcess(filepath.Join(dir, "livetree-data"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	t.Chdir(dir)
	t.Setenv("LIVETREE_URL", s.url)
	t.Setenv("LIVETREE_AUTH", scriptSecret)
	t.Setenv("PAGER", "")
	const key = "key\u009b\u202e" // which the interface allows
	write(t, "data.json", `{"`+key+`":{"a":"\u001b]0;x\u0007\u009b\u202e"}}`)
	write(t, "bad\u202e.json", "{\"a\":\x1b}")
	write(t, "rules\u009b.json", "{\"rules\":{\".read\":\"\u202e\"}}")
	if code, _, errs := command("import", "data.json", "/", "--replace", "--yes"); code != 0 {
		t.Fatal(errs)
	}
	for _, args := range [][]string{
		{"get", "/"}, {"get", "/", "--json"}, {"get", "/", "--shallow"}, {"get", "/" + key + "/" + hostileText},
		{"get", "/", "--url", "https://\u202e\x1b"}, {"set", "/" + key, `"` + "\u009b" + `"`}, {"remove", "/" + key + "x", "--yes"},
		{"watch", "/", "--count", "1"}, {"watch", "/", "--count", "1", "--value"}, {"watch", "/", "--count", "1", "--json"},
		{"export", "/", "out\u009b.json"}, {"export", "/", "-"}, {"import", "bad\u202e.json", "/new"}, {"import", "missing\x1b", "/new"},
		{"rules", "check", "rules\u009b.json"}, {"rules", "get"}, {"get", "/", "--db", hostileText}, {hostileText}, {"get", "--" + hostileText},
		{"restore", hostileText, "x"}, {"check", hostileText}, {"token", "inspect", hostileText}, {"docs", hostileText},
		{"serve", "--config", hostileText}, {"service-account", "list", "--data", hostileText}, {"secret", "show", hostileText},
	} {
		_, out, errs := atTerminal("", args...)
		wantHarmless(t, strings.Join(args, " ")+": standard output", out)
		wantHarmless(t, strings.Join(args, " ")+": standard error", strings.ReplaceAll(errs, "\r", "")) // of progress
	}
	if _, out, _ := command("get", "/"); !strings.Contains(out, "\u009b") {
		t.Errorf("a program is shown %q, want the bytes as they are", out)
	}
}
