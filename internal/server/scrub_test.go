package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
)

// TestScrubOfDamagedTable: a running server finds damage that nobody reads, and
// does what it does when somebody has.
func TestScrubOfDamagedTable(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	m := startManaged(t, data, func(c *Config) { c.Dev = true })
	if page := m.want(200, "GET", "/metrics", ""); !strings.Contains(page, "livetree_scrub_age_seconds +Inf\n") {
		t.Error("livetree_scrub_age_seconds is not +Inf before the first scrub")
	}
	for g := range 50 {
		m.wantData(200, "PUT", fmt.Sprintf("/d/%d.json", g), "", childrenOf(g, 10))
	}
	m.stop()

	scrub := func(c *Config) { c.Dev, c.Scrub = true, store.Scrub{Every: time.Hour, BytesPerSecond: 1 << 30} }
	m = startManaged(t, data, scrub)
	wait(t, "a round of the scrub", func() bool {
		page := m.want(200, "GET", "/metrics", "")
		return strings.Contains(page, "livetree_scrub_progress 1\n") && !strings.Contains(page, "livetree_scrub_age_seconds +Inf\n")
	})
	m.waitCheck(200, "corruption", "none")
	m.stop()

	mend := damageLargestTable(t, data)
	// The next round would be due in an hour.
	if err := os.Remove(filepath.Join(data, "scrub")); err != nil {
		t.Fatal(err)
	}
	m = startManaged(t, data, scrub)
	m.waitCheck(503, "corruption", "found")
	if status, got := m.send("PUT", m.public+"/new.json", "", "1"); status != 500 || !strings.Contains(got, "data corruption") {
		t.Errorf("PUT after the scrub has found damage: %d %s, want that it is refused", status, got)
	}
	for _, want := range []string{"code=damaged", "file=store/", `from="database 1 /d/`, `to="database 1 /d/`} {
		if !strings.Contains(m.log.String(), want) {
			t.Errorf("the log lacks %s:\n%.3000s", want, m.log)
		}
	}
	if page := m.want(200, "GET", "/metrics", ""); strings.Contains(page, "livetree_corruption_total 0\n") {
		t.Error("livetree_corruption_total is 0 beside damage")
	}
	m.stop()

	// A restart does not make it whole, though nobody has met it since.
	m = startManaged(t, data, func(c *Config) { c.Dev = true })
	m.waitCheck(503, "corruption", "found")
	if status, _ := m.send("PUT", m.public+"/new.json", "", "1"); status != 500 {
		t.Errorf("PUT after a restart beside damage: %d, want 500", status)
	}
	m.wantData(200, "GET", "/d/0/k00.json", "", "")
	m.stop()
	report, err := backup.Check(t.Context(), data, nil)
	if err != nil || report.OK {
		t.Fatalf("Check beside damage = %v, %v", report, err)
	}
	mend()
	report, err = backup.Check(t.Context(), data, nil)
	if err != nil || !report.OK || len(report.Findings) != 1 || !report.Findings[0].Note {
		t.Fatalf("Check after it was mended = %v, %v, want a note", report, err)
	}
	m = startManaged(t, data, func(c *Config) { c.Dev = true })
	m.waitCheck(200, "corruption", "none")
	m.wantData(200, "PUT", "/new.json", "", "1")
}
