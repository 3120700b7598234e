package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
)

// TestDrillOfTheOperator takes the steps of docs/backup.md.
func TestDrillOfTheOperator(t *testing.T) {
	p, data := operated(t, "--dev")
	p.expect("PUT", "/rooms.json", `{"blue":{"topic":"sea"}}`, `{"blue":{"topic":"sea"}}`)
	dir := filepath.Join(t.TempDir(), "monday")
	done(t, "backup", dir, "--data", data)
	p.expect("PUT", "/rooms/blue/topic.json", `"sky"`, `"sky"`)
	refused(t, "stop the server first", "check", data)
	p.end()

	if out := done(t, "check", data); !strings.Contains(out, ": ok: ") {
		t.Errorf("livetree check: %q", out)
	}
	if out := done(t, "backup", "verify", dir); !strings.Contains(out, ": ok: ") {
		t.Errorf("livetree backup verify: %q", out)
	}
	restored := filepath.Join(t.TempDir(), "data")
	if out := done(t, "restore", dir, restored); !strings.Contains(out, "livetree serve --data "+restored) {
		t.Errorf("livetree restore: %q", out)
	}
	refused(t, "not empty", "restore", dir, restored)
	if read(t, filepath.Join(restored, "secrets", "default")) != read(t, filepath.Join(data, "secrets", "default")) {
		t.Error("the restored server has another secret")
	}
	again := start(t, serving(restored, "--dev")...)
	again.expect("GET", "/rooms.json", "", `{"blue":{"topic":"sea"}}`)
	again.end()
}

// TestDamageIsTold: reports go to the standard output, and the exit code says
// that something is damaged.
func TestDamageIsTold(t *testing.T) {
	p, data := operated(t, "--dev")
	p.expect("PUT", "/rooms.json", `{"blue":{"topic":"sea"}}`, `{"blue":{"topic":"sea"}}`)
	dir := filepath.Join(t.TempDir(), "monday")
	done(t, "backup", dir, "--data", data)
	p.end()
	for _, root := range []string{filepath.Join(dir, "data"), data} {
		if err := os.WriteFile(filepath.Join(root, "durable"), []byte("durable group 999\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", data}, {"backup", "verify", dir}} {
		code, out, errs := command(args...)
		if code != store.ExitDamaged || !strings.Contains(out, "DAMAGED") || !strings.Contains(out, "group 999") || !oneLine(errs) {
			t.Errorf("livetree %q: exit %d, %q, %q", args, code, out, errs)
		}
		code, out, _ = command(append(args, "--json")...)
		var r backup.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != store.ExitDamaged || r.OK || len(r.Findings) == 0 {
			t.Errorf("livetree %q --json: exit %d, %+v, %v", args, code, r, err)
		}
	}
	target := filepath.Join(t.TempDir(), "data")
	if code, out, errs := command("restore", dir, target); code != store.ExitDamaged || out != "" || !strings.Contains(errs, "durable") {
		t.Errorf("livetree restore of a damaged backup: exit %d, %q, %q", code, out, errs)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("livetree restore has made a data directory of a damaged backup")
	}
}
