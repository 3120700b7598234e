package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
)

// fillHall writes children whose text does not shrink, and returns them by path.
func fillHall(p *process) (children map[string]string) {
	children = map[string]string{}
	for shelf := range 40 {
		var list []string
		for i := range 20 {
			rng := rand.New(rand.NewPCG(uint64(shelf), uint64(i)))
			text := make([]byte, 800)
			for k := range text {
				text[k] = byte('a' + rng.IntN(26))
			}
			child := fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, text)
			children[fmt.Sprintf("/hall/%d/k%d.json", shelf, i)] = child
			list = append(list, fmt.Sprintf(`"k%d":%s`, i, child))
		}
		body := "{" + strings.Join(list, ",") + "}"
		if status, got := p.request("PUT", fmt.Sprintf("/hall/%d.json?print=silent", shelf), body); status != 204 {
			p.t.Fatalf("PUT: %d %s", status, got)
		}
	}
	return children
}

// harmLargest flips a bit in the middle of the largest table of a data directory.
func harmLargest(t *testing.T, data string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(data, "store", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	name, text := "", []byte{}
	for _, table := range tables {
		if got, err := os.ReadFile(table); err == nil && len(got) > len(text) {
			name, text = table, got
		}
	}
	if name == "" {
		t.Fatal("there is no table")
	}
	text[len(text)/3] ^= 4
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAcceptLoss: what is lost is told, and only if the operator says so the rest
// becomes a data directory that is in order.
func TestAcceptLoss(t *testing.T) {
	t.Parallel()
	p, data := operated(t, "--dev")
	children := fillHall(p)
	p.expect("PUT", "/.settings/rules.json?auth="+read(t, filepath.Join(data, "secrets", "default")), `{"rules":{".read":true,".write":true,"hall":{"$shelf":{".indexOn":"n"}}}}`, `{"status":"ok"}`)
	target := filepath.Join(t.TempDir(), "rescued")
	refused(t, "stop the server first", "accept-loss", data, target)
	p.end()
	refused(t, "no table is damaged, so there is no loss to accept", "accept-loss", data, target, "--yes-lose-data")

	harmLargest(t, data)
	code, out, errs := command("accept-loss", data, target)
	if code != 1 || !strings.Contains(out, "damaged: store/") || !strings.Contains(out, "LOST: database default: all after /hall/") ||
		!oneLine(errs) || !strings.Contains(errs, "--yes-lose-data") {
		t.Errorf("accept-loss without yes: exit %d, %q, %q", code, out, errs)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("accept-loss has written something without being told to")
	}
	code, out, _ = command("accept-loss", data, target, "--json")
	var l backup.Losses
	if err := json.Unmarshal([]byte(out), &l); err != nil || code != 1 || l.Accepted || len(l.Lost) == 0 || len(l.Files) != 1 {
		t.Errorf("accept-loss --json: exit %d, %+v, %v", code, l, err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, "the directory is not empty", "accept-loss", data, full, "--yes-lose-data")

	out = done(t, "accept-loss", data, target, "--yes-lose-data")
	if !strings.Contains(out, "LOST: ") || !strings.Contains(out, "livetree serve --data "+target) {
		t.Errorf("accept-loss: %q", out)
	}
	if out := done(t, "check", target); !strings.Contains(out, ": ok: ") {
		t.Errorf("check of what was rescued: %q", out)
	}
	if code, out, _ := command("check", data); code != store.ExitDamaged {
		t.Errorf("check of the damaged directory: exit %d, %q: it was changed", code, out)
	}
	wantRescued(t, target, children)
}

// wantRescued serves a directory that was rescued: each child is there or not, none
// is another, the rules are, the index is, and writes are taken.
func wantRescued(t *testing.T, target string, children map[string]string) {
	t.Helper()
	p := start(t, serving(target, "--dev", "--admin-addr", "127.0.0.1:0")...)
	defer p.end()
	lost := 0
	for path, want := range children {
		switch _, got := p.request("GET", path, ""); got {
		case want:
		case "null":
			lost++
		default:
			t.Errorf("GET %s = %.100s, want %.100s or null", path, got, want)
		}
	}
	if lost == 0 || lost > len(children)/4 {
		t.Errorf("%d of %d children are lost, want a few", lost, len(children))
	}
	p.expect("PUT", "/hall/0/k0/n.json", "7", "7")
	if _, rules := p.request("GET", "/.settings/rules.json?auth="+read(t, filepath.Join(target, "secrets", "default")), ""); !strings.Contains(rules, "indexOn") {
		t.Errorf("the rules are %s", rules)
	}
	// The index is built when the database is opened.
	deadline, tick := time.After(60*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		status, got := p.request("GET", `/hall/0.json?orderBy="n"&equalTo=7`, "")
		if status == 200 && strings.Contains(got, `"k0"`) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("a query by the index answers %d %.200s", status, got)
		}
	}
}
