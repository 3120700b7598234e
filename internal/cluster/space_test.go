package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// aFile is a file of a log that notes what is done to it.
type aFile struct {
	mu         sync.Mutex
	file, used int64
	full       bool
	done       []string
}

func (f *aFile) note(what string, change func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, what)
	change()
	return nil
}

func (f *aFile) set(file, used int64, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.file, f.used, f.full, f.done = file, used, full, nil
}

// doneSince returns what was done since the file was set.
func (f *aFile) doneSince() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.done)
}

func (f *aFile) Size() (file, used int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file, f.used
}

func (f *aFile) Full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.full
}

func (f *aFile) Quota() int64                   { return 1000 << 20 }
func (f *aFile) GiveLead(context.Context) error { return f.note("give", func() {}) }
func (f *aFile) Defragment() error              { return f.note("defragment", func() { f.file = f.used }) }
func (f *aFile) Clear(context.Context) error    { return f.note("clear", func() { f.full = false }) }

// TestFileOfTheLog holds what a node does when the file of its log is of some size.
func TestFileOfTheLog(t *testing.T) {
	tests := []struct {
		name       string
		file, used int64 // in MiB, of 1000
		full       bool
		want       []string
	}{
		{"small", 400, 10, false, nil},
		{"large, and in use", 600, 400, false, nil},
		{"large, and mostly unused", 600, 200, false, []string{"give", "defragment"}},
		{"full, and mostly unused", 1000, 200, true, []string{"defragment", "clear"}},
		{"full, and in use", 1000, 990, true, []string{"clear"}},
	}
	f := &aFile{}
	var file cluster.File = f
	upkeepWorld(t, []record.NodeID{1}, file, func(ctx context.Context, log shard.Log, _ *cluster.Node) {
		for _, test := range tests {
			f.set(test.file<<20, test.used<<20, test.full)
			// The turn may be taken by calls whose answers were lost, each for ten minutes.
			for wait := 0; wait < 10 && len(f.doneSince()) < len(test.want); wait++ {
				_ = pause.For(ctx, 15*time.Minute)
			}
			_ = pause.For(ctx, 15*time.Minute)
			if done := f.doneSince(); !slices.Equal(done, test.want) {
				t.Errorf("%s: done was %q, want %q", test.name, done, test.want)
			}
		}
		// Another node has the turn; it does not come back, and after a while it is this one's.
		turn := record.TransferID([]byte("defragment a log"))
		for err := errors.New("not begun"); err != nil && !errors.Is(err, shard.ErrGone); {
			_, err = log.Begin(ctx, turn)
		}
		f.set(600<<20, 200<<20, false)
		_ = pause.For(ctx, 9*time.Minute)
		if file, used := f.Size(); file == used {
			t.Error("two nodes defragment at once")
		}
		for wait := 0; wait < 10 && len(f.doneSince()) == 0; wait++ {
			_ = pause.For(ctx, 15*time.Minute)
		}
		if file, used := f.Size(); file != used {
			t.Error("a node that has failed keeps the turn")
		}
	})
}
