package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestFlushesAreMergedTogether: a large node that is replaced again and again is merged once for several times, and
// what was replaced before is dropped without being read.
func TestFlushesAreMergedTogether(t *testing.T) {
	s := newStand(t, Options{MemTableBytes: 256 << 10, Gather: time.Hour})
	replace := func(n int) {
		var body strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&body, `,"%s":"%d %s"`, userKey(i), n, strings.Repeat("text ", 20))
		}
		s.put("large", "{"+body.String()[1:]+"}")
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		replace(n)
		if m := s.db.Metrics(); m.Compact.DefaultCount != 0 || m.Levels[0].TablesCount == 0 {
			t.Fatalf("after %d flushes there were %d compactions, and %d tables are left to be merged", n+1, m.Compact.DefaultCount, m.Levels[0].TablesCount)
		}
	}
	replace(3)
	deadline := time.After(time.Minute)
	for {
		m := s.db.Metrics()
		if m.Levels[0].TablesCount == 0 {
			if m.Compact.DefaultCount > 2 {
				t.Errorf("four flushes took %d compactions", m.Compact.DefaultCount)
			}
			break
		}
		select {
		case <-deadline:
			t.Fatalf("four flushes were not merged within a minute:\n%s", m)
		case <-time.After(time.Millisecond):
		}
	}
}
