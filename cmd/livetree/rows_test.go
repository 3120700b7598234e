package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRowCommands lists, searches, copies and moves as somebody at a terminal does.
func TestRowCommands(t *testing.T) {
	t.Parallel()
	p, data := operated(t, "--dev")
	defer p.end()
	var members strings.Builder
	for i := range 1500 { // more than a page
		fmt.Fprintf(&members, `"m%04d":%d,`, i, i)
	}
	p.request("PUT", "/rooms.json?print=silent", `{"blue":{".priority":2,"topic":"Sea"},"members":{`+strings.TrimSuffix(members.String(), ",")+`},"text":"`+strings.Repeat("x", 300)+`"}`)
	ls := func(args ...string) string {
		return done(t, append([]string{"ls", "--url", "https://" + p.addr, "--ca", filepath.Join(data, "tls", "ca.pem"),
			"--auth", read(t, filepath.Join(data, "secrets", "default"))}, args...)...)
	}
	if out, want := ls("/rooms"), "blue\t{\"topic\":\"Sea\"}\nmembers\t{…} over 1000 children\ntext\t\""+strings.Repeat("x", 159)+"… (300 bytes)\n"; out != want {
		t.Errorf("livetree ls /rooms prints\n%swant\n%s", out, want)
	}
	if out := ls("/rooms/members"); strings.Count(out, "\n") != 1500 || !strings.HasPrefix(out, "m0000\t0\n") || !strings.HasSuffix(out, "m1499\t1499\n") {
		t.Errorf("livetree ls of 1,500 children prints %d lines: %.40s…", strings.Count(out, "\n"), out)
	}
	if out := ls("/rooms/members", "--start-at", "m0998", "--limit", "3"); out != "m0998\t998\nm0999\t999\nm1000\t1000\n" {
		t.Errorf("livetree ls from a key prints %q", out)
	}
	if out := ls("/rooms/blue/topic"); out != "\"Sea\"\n" {
		t.Errorf("livetree ls of a leaf prints %q", out)
	}
	in := func(args ...string) []string { return append(args, "--data", data) }
	if out := done(t, in("find", "SEA")...); out != "/rooms/blue/topic\t\"Sea\"\n" {
		t.Errorf("livetree find prints %q", out)
	}
	done(t, in("copy", "/rooms/blue", "/rooms/red")...)
	refused(t, "data", in("copy", "/rooms/blue", "/rooms/red")...)
	done(t, in("copy", "/rooms/red", "/archive/red", "--move")...)
	p.expect("GET", "/archive.json?format=export", "", `{"red":{".priority":2,"topic":"Sea"}}`)
	p.expect("GET", "/rooms/red.json", "", "null")
}

// TestRulesSimulateCommand shows why a request is denied, by the rules in force and by a file.
func TestRulesSimulateCommand(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	defer p.end()
	file := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(file, []byte(`{"rules": {"rooms": {".read": "auth.uid == 'ann'"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(args ...string) []string {
		return append([]string{"rules", "simulate", "read", "/rooms/blue", "--data", data}, args...)
	}
	if out := done(t, in("--rules", file, "--as", `{"uid":"ann"}`)...); !strings.Contains(out, "1:31 /rooms .read: auth.uid == 'ann' => true\nallowed\n") {
		t.Errorf("for ann it prints %q", out)
	}
	for _, args := range [][]string{in("--rules", file), in()} {
		if code, out, errs := command(args...); code != 1 || !strings.HasSuffix(out, "denied\n") || errs != "" {
			t.Errorf("livetree %q: exit %d, %q, %q; want that it is denied", args, code, out, errs)
		}
	}
	refused(t, "--as must be JSON", in("--as", "ann")...)
}
