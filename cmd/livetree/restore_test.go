package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
)

// TestDrillOfTheOperator takes the steps of docs/backup.md.
func TestDrillOfTheOperator(t *testing.T) {
	t.Parallel()
	p, data := operated(t, "--dev")
	p.expect("PUT", "/rooms.json", `{"blue":{"topic":"sea"}}`, `{"blue":{"topic":"sea"}}`)
	dir := filepath.Join(t.TempDir(), "monday")
	done(t, "backup", dir, "--data", data)
	p.expect("PUT", "/rooms/blue/topic.json", `"sky"`, `"sky"`)
	refused(t, "stop the server first", "check", data)
	p.end()

	if out := done(t, "check", data); !strings.Contains(out, ": ok: ") || strings.Contains(out, "note") {
		t.Errorf("livetree check: %q", out)
	}
	note := filepath.Join(data, "damage")
	if err := os.WriteFile(note, []byte("2026-11-15T12:00:00Z something was damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := done(t, "check", data); !strings.Contains(out, "note, file damage: ") || !strings.Contains(out, "something was damaged") {
		t.Errorf("livetree check with a note of damage: %q", out)
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("livetree check has left the note of damage there")
	}
	if out := done(t, "backup", "verify", dir); !strings.Contains(out, ": ok: ") {
		t.Errorf("livetree backup verify: %q", out)
	}
	restored := filepath.Join(t.TempDir(), "the data")
	if out := done(t, "restore", dir, restored); !strings.Contains(out, "livetree serve --data '"+restored+"'") {
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
	t.Parallel()
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

// TestServerIsToldOfVerifiedBackups: by backup verify and by a drill, if it is its
// own backup, and it remembers over a restart.
func TestServerIsToldOfVerifiedBackups(t *testing.T) {
	t.Parallel()
	p, data := operated(t, "--dev")
	dir := filepath.Join(t.TempDir(), "monday")
	done(t, "backup", dir, "--data", data)
	verified := filepath.Join(data, "admin", "last-verified")
	// Without being asked to, nothing tells.
	done(t, "backup", "verify", dir)
	if _, err := os.Stat(verified); err == nil {
		t.Error("the server was told of a backup without a flag")
	}
	wantAge := func(never bool) {
		t.Helper()
		page := p.metrics(data)
		if got := strings.Contains(page, "livetree_restore_verified_age_seconds +Inf\n"); got != never {
			t.Errorf("restore_verified_age_seconds is infinite: %v, want %v", got, never)
		}
	}
	wantAge(true)
	done(t, "backup", "verify", dir, "--data", data)
	wantAge(false)
	if err := os.Remove(verified); err != nil {
		t.Fatal(err)
	}
	drill := filepath.Join(t.TempDir(), "drill")
	done(t, "restore", dir, drill, "--data", data)
	wantAge(false)
	p.end()
	code, out, errs := command("backup", "verify", dir, "--data", data)
	if code != 1 || !strings.Contains(out, ": ok: ") || !oneLine(errs) || !strings.Contains(errs, "the backup is good, but the server was not told of it") {
		t.Errorf("backup verify for a server that is stopped: exit %d, %q, %q", code, out, errs)
	}
	p = start(t, serving(data, "--dev", "--admin-addr", "127.0.0.1:0")...)
	wantAge(false)
	p.end()

	// A restored server is another one, whose backups are others.
	p = start(t, serving(drill, "--dev", "--admin-addr", "127.0.0.1:0")...)
	code, _, errs = command("backup", "verify", dir, "--data", drill)
	if code != 1 || !oneLine(errs) || !strings.Contains(errs, "not of this server") {
		t.Errorf("backup verify for another server: exit %d, %q", code, errs)
	}
	p.end()
}

// metrics returns the metrics of a server.
func (p *process) metrics(data string) string {
	p.t.Helper()
	r, err := http.NewRequest("GET", read(p.t, filepath.Join(data, "admin", "addr"))+"/metrics", http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+read(p.t, filepath.Join(data, "admin", "token")))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		p.t.Fatalf("/metrics: %d, %v", answer.StatusCode, err)
	}
	return string(page)
}
