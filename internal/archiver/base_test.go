package archiver_test

import (
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archiver"
)

// TestBaseIsDue: a base follows daily, or when the segments outgrow it, but then not at once.
func TestBaseIsDue(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	line := func(age time.Duration, bytes, since int64) archive.Status {
		return archive.Status{LastBase: &archive.Manifest{Made: now.Add(-age), Bytes: bytes}, SinceBase: since}
	}
	back := line(time.Second, 1, 0)
	back.Back = true
	for _, test := range []struct {
		what string
		line archive.Status
		due  bool
	}{
		{"no base", archive.Status{}, true},
		{"little after a base", line(23*time.Hour, 1, 60<<20), false},
		{"a day after a base", line(24*time.Hour, 1, 0), true},
		{"much after a small base", line(15*time.Minute, 1, 65<<20), true},
		{"much, soon after a small base", line(14*time.Minute, 1, 1<<40), false},
		{"less than a large base", line(15*time.Minute, 100<<20, 99<<20), false},
		{"more than a large base", line(15*time.Minute, 100<<20, 101<<20), true},
		{"a base of the future", line(-48*time.Hour, 1, 0), true},
		{"back from another server", back, true},
	} {
		if due := (archiver.Pace{}).BaseIsDue(test.line, now); due != test.due {
			t.Errorf("%s: a base is due: %v, want %v", test.what, due, test.due)
		}
	}
}
