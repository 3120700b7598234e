//go:build !no_cluster

package etcdlog

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestCatchUpIsBoundedByBytes: as many entries are kept as have some bytes, and never fewer than those of a step.
func TestCatchUpIsBoundedByBytes(t *testing.T) {
	const mib = 1 << 20
	var c catchUp
	size := int64(mib)
	for _, step := range []struct {
		about string
		times int
		by    int64
		want  uint64
	}{
		{"small records", 30, 50 << 10, catchUpEntries},
		{"parts of a large write", 1, 50 * mib, stepEntries},
		{"a second step of them", 1, 50 * mib, stepEntries},
		{"more of them", 40, 50 * mib, stepEntries},
		{"a step that has all the bytes", 1, 500 * mib, stepEntries},
		{"small records again", 18, 0, 18 * stepEntries},
		{"as many as are kept at most", 2, 0, catchUpEntries},
		{"a trim", 1, -800 * mib, catchUpEntries},
		{"parts after a trim", 3, 50 * mib, stepEntries},
	} {
		var got uint64
		for range step.times {
			size += step.by
			got = c.entries(size)
		}
		if got != step.want {
			t.Errorf("%d entries are kept after %s, want %d", got, step.about, step.want)
		}
	}
	if len(c.grown) > catchUpEntries/stepEntries {
		t.Errorf("%d steps are remembered", len(c.grown))
	}
}

// TestEntriesOfAYoungLogAreBounded plays large writes into new logs, and gives up entries as etcd does: those that are in memory have 144 MiB at most, at any time.
func TestEntriesOfAYoungLogAreBounded(t *testing.T) {
	t.Parallel()
	const small, part = 300, 512 << 10
	for before := 20; before < 320; before += 10 {
		var c catchUp
		kept, noted, first := stepEntries, 0, 0 // first is that of the entries in memory
		size := func(entries int) int { return min(entries, before)*small + max(entries-before, 0)*part }
		for entries := 1; entries < before+1000; entries++ {
			if bytes := size(entries) - size(first); bytes > 144<<20 {
				t.Errorf("after %d small records and %d parts, %d MiB of entries are in memory", before, entries-before, bytes>>20)
				break
			}
			if entries <= noted+stepEntries {
				continue
			}
			noted = entries
			if last := entries - kept; last > first {
				first = last
				kept = min(int(c.entries(int64(size(entries)))), kept+stepEntries)
			}
		}
	}
}

// TestEtcdAsksHowManyEntriesToKeep: etcd says that it has given up entries where it is listened to, from the first steps of a new log on. A version that says something else keeps
// as many entries as at its start.
func TestEtcdAsksHowManyEntriesToKeep(t *testing.T) {
	t.Parallel()
	m, err := Start(Options{Dir: t.TempDir(), Peer: "localhost:1", Listen: "localhost:0", Cluster: "c", Members: []string{"localhost:1"}, Founds: true, Fatal: func(text string) { t.Error(text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // thousands of puts, each with a sync
	defer cancel()
	of := m.(*member)
	for i := range 7 * stepEntries {
		if _, err := of.client.Put(ctx, fmt.Sprint("key", i), "value"); err != nil && ctx.Err() != nil {
			t.Fatalf("after %d puts: %v", i, err)
		}
	}
	if got := of.behind.kept.Load(); got < 5*stepEntries || got > 8*stepEntries {
		t.Errorf("%d entries are kept after 700 small ones, want about as many", got)
	}
}
