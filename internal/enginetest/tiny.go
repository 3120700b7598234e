package enginetest

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// An OpenFunc opens a database of a store.
type OpenFunc func(*store.Store, store.ID, engine.Options) (*engine.Database, error)

// OpenTiny is engine.Open with limits so tiny that ordinary writes exceed them.
func OpenTiny(s *store.Store, id store.ID, opts engine.Options) (*engine.Database, error) {
	opts.Limits = TinyLimits()
	opts.Scans = scan.NewPool(TinyScans())
	return OpenDatabase(s, id, opts)
}

// TinyLimits returns limits so tiny that ordinary writes exceed them.
func TinyLimits() *engine.Limits {
	return &engine.Limits{
		MaxQueued:     16,
		HeavyBytes:    64,
		HeavyPaths:    2,
		MaxRounds:     3,
		RecentChanges: 2,
		MaxTouched:    2,
		Leave:         leave.Limits{MaxParts: 6, MaxBytes: 512},
		LeftPage:      2,
		GroupBytes:    300,

		ExpireChildren: 5,
		ExpireWindow:   9,
		ExpireBytes:    64,
		ExpireTurn:     2,

		Watch: watch.Limits{
			HeavyBytes:      64,
			MaxObserved:     2,
			LeafBytes:       256,
			MaxPending:      16,
			MaxPendingBytes: 64 << 10,
			MaxMoved:        2,
			MaxMoving:       12,
			MaxCounted:      2,
			MaxFollowed:     4,
			Tries:           4,
			Rejudge:         watch.RejudgeBound{Watch: 150, Cheap: 100, Expensive: 300, All: 600, Gate: 200_000},
			Resume:          watch.ResumeBound{Rows: 8, Bytes: 2 << 10, Told: 4, Kept: 256},
		},
	}
}

// TinyScans returns bounds so tiny that ordinary windows without an index exceed them.
func TinyScans() scan.Bounds { return scan.Bounds{Kept: 8, Reserve: 1, Bytes: 8 << 20} }

// WaitForIndexes returns when no index is being built or dropped.
func WaitForIndexes(ctx context.Context, d *engine.Database) error {
	for {
		ready, err := haveReadyIndexes(d)
		if ready || err != nil {
			return err
		}
		// Let some steps be made: asking again at once takes the time of the indexer, which is what this waits for.
		if err := pause.For(ctx, time.Millisecond/4); err != nil {
			return err
		}
		// Every step is a commit. If none can be made any more, this fails as well.
		nothing := tree.Put(tree.Path{}.Child("nothing"), tree.Node{})
		if _, err := d.Write(ctx, engine.Request{Write: nothing, Who: auth.Identity{Admin: true, Simulate: true}}); err != nil {
			return err
		}
	}
}

func haveReadyIndexes(d *engine.Database) (bool, error) {
	v := d.View()
	defer v.Close()
	if _, unfinished := v.Settings.List.Unfinished(); unfinished {
		return false, nil
	}
	unbuilt, err := v.Tree().HasUnbuilt()
	return !unbuilt, err
}

// Unhurried is the deadline of writes where many compete for a busy machine, and
// none may fail for being slow.
const Unhurried = 10 * time.Minute
