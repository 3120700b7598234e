package deliver_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
)

// stored returns the bytes of the notices of a hook.
func stored(t *testing.T, d *engine.Database, h *hook.Hook) (bytes int64) {
	t.Helper()
	err := engine.Notices(d, h.Number, 0, math.MaxUint64, func(_ uint64, row []byte) bool {
		bytes += int64(len(row))
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return bytes
}

// A gapLog is a receiver that remembers gaps and positions.
type gapLog struct {
	fails atomic.Bool

	mu        sync.Mutex
	gaps      []delivery
	positions []uint64
}

func (l *gapLog) receive(_ *http.Request, d delivery) (int, http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fails.Load():
		return http.StatusInternalServerError, nil
	case d.Event == "gap":
		l.gaps = append(l.gaps, d)
	default:
		l.positions = append(l.positions, d.Position)
	}
	return http.StatusOK, nil
}

// TestSpool has a receiver fail until what waits is too much: the oldest is dropped, no more than needed, and the receiver is
// told which, also after longer than a delivery is tried.
func TestSpool(t *testing.T) {
	t.Parallel()
	for _, pace := range []time.Duration{0, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l := &gapLog{}
			l.fails.Store(true)
			limits := deliver.DefaultLimits()
			limits.Spool, limits.Window, limits.Share, limits.RetryFor = 2000, 3, 1, time.Hour
			limits.MaxPause = time.Minute
			disk := vfs.NewMem()
			x := open(t, disk, limits, nil, l.receive)
			d := x.database("db")
			h := add(t, d, "h", "/a/$x")
			for i := range 100 {
				put(t, d, fmt.Sprintf("/a/%d", i), `"0123456789"`)
				time.Sleep(pace) //nolint:forbidigo // fake time
			}
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			s := x.runner.Stat("db", h)
			if s.Bytes > limits.Spool || s.Bytes != stored(t, d, h) || s.Bytes != x.runner.Waiting() || s.Bytes < limits.Spool/2 {
				t.Errorf("it is said that %d bytes are stored and %d wait, of %d; there are %d", s.Bytes, x.runner.Waiting(), limits.Spool, stored(t, d, h))
			}
			if s.Skipped == 0 || !s.Failing || s.Lag < 0.1 {
				t.Errorf("the hook says %+v", s)
			}
			x.runner.Drop()         // asked for too often
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			if again := x.runner.Stat("db", h); again.Skipped != s.Skipped {
				t.Errorf("%d commits were dropped without need", again.Skipped-s.Skipped)
			}
			x.close() // the gap is stored
			x = open(t, disk, limits, nil, l.receive)
			defer x.close()
			time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
			l.fails.Store(false)
			time.Sleep(5 * time.Minute) //nolint:forbidigo // fake time
			if waiting := x.runner.Waiting(); waiting != 0 {
				t.Errorf("%d bytes wait when all is delivered", waiting)
			}
			checkGaps(t, l, 2, 101, int(s.Skipped))
		})
	}
}

// checkGaps makes sure that each position is either delivered or in a gap, and not too many in gaps.
func checkGaps(t *testing.T, l *gapLog, first, last uint64, skipped int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := 0
	for p := first; p <= last; p++ {
		lost := slices.ContainsFunc(l.gaps, func(g delivery) bool { return g.First <= p && p <= g.Last })
		if lost {
			missing++
		}
		if lost == slices.Contains(l.positions, p) {
			t.Errorf("position %d was delivered and is in a gap, or neither", p)
		}
	}
	if missing != skipped || missing == 0 || missing == int(last-first+1) {
		t.Errorf("%d of %d positions are in gaps, and it is said that %d were skipped: %+v", missing, last-first+1, skipped, l.gaps)
	}
}

// TestGapIsNotGivenUp has a receiver fail for longer than a delivery is tried: it is told of the gap nevertheless, once.
func TestGapIsNotGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &gapLog{}
		l.fails.Store(true)
		limits := deliver.DefaultLimits()
		limits.Spool, limits.RetryFor, limits.MaxPause = 2000, time.Minute, 10*time.Second
		x := open(t, vfs.NewMem(), limits, nil, l.receive)
		defer x.close()
		d := x.database("db")
		add(t, d, "h", "/a/$x")
		for i := range 100 {
			put(t, d, fmt.Sprintf("/a/%d", i), `"0123456789"`)
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
		l.fails.Store(false)
		time.Sleep(5 * time.Minute) //nolint:forbidigo // fake time
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.gaps) != 1 || l.gaps[0].First == 0 || l.gaps[0].First > l.gaps[0].Last || l.gaps[0].Last > 101 {
			t.Errorf("the receiver was told of %+v", l.gaps)
		}
		if s := x.runner.Stats(); s[0].Failed == 0 || s[0].Pending != 0 {
			t.Errorf("the hook says %+v", s)
		}
	})
}

// TestHealthyHooksLoseNothing: what is delivered and kept for operators is no reason to drop what is not.
func TestHealthyHooksLoseNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &gapLog{}
		limits := deliver.DefaultLimits()
		limits.Spool = 4000
		x := open(t, vfs.NewMem(), limits, nil, l.receive)
		defer x.close()
		d := x.database("db")
		var hooks []*hook.Hook
		for i := range 8 {
			hooks = append(hooks, add(t, d, fmt.Sprint("h", i), fmt.Sprintf("/a%d/$x", i)))
		}
		for i := range 400 {
			put(t, d, fmt.Sprintf("/a%d/%d", i%8, i), `"0123456789012345678901234567890123456789"`)
			time.Sleep(20 * time.Millisecond) //nolint:forbidigo // fake time
		}
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		kept := int64(0)
		for _, h := range hooks {
			kept += stored(t, d, h)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.positions) != 400 || len(l.gaps) > 0 || x.runner.Waiting() != 0 || kept > limits.Spool/4 {
			t.Errorf("%d of 400 were delivered, gaps are %+v, %d bytes wait and %d are kept", len(l.positions), l.gaps, x.runner.Waiting(), kept)
		}
	})
}

// TestDroppedDatabaseIsForgotten drops a database with what waits for a receiver, and makes another of its name.
func TestDroppedDatabaseIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &gapLog{}
		l.fails.Store(true)
		x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, l.receive)
		defer x.close()
		for round := range 3 {
			d := x.database("db")
			add(t, d, "h", "/a/$x")
			for i := range 10 {
				put(t, d, fmt.Sprintf("/a/%d", i), fmt.Sprint(round))
			}
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			if s := x.runner.Stats(); len(s) != 1 || s[0].Pending != 10 {
				t.Errorf("before the drop there are %+v", s)
			}
			x.bases.stale.Store(d) // it is told of the drop before the catalog has forgotten the database
			if err := x.bases.Drop("db"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			if s := x.runner.Stats(); len(s) != 0 || x.runner.Waiting() != 0 {
				t.Errorf("after the drop %d bytes wait for %+v", x.runner.Waiting(), s)
			}
			x.bases.stale.Store(nil)
		}
	})
}

// TestGoneIsForTheHookThatWasAsked has a receiver answer 410 when the hook was removed and another has its name: that one is not paused.
func TestGoneIsForTheHookThatWasAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, func(_ *http.Request, d delivery) (int, http.Header) {
			if d.Path == "/b/1" {
				time.Sleep(5 * time.Second) //nolint:forbidigo // fake time
				return http.StatusGone, nil
			}
			return http.StatusOK, nil
		})
		defer x.close()
		d := x.database("db")
		add(t, d, "h", "/b/$x")
		put(t, d, "/b/1", `1`)
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		revise(t, d, func(h *hook.Hook) { h.URL = "https://example.com/new" })
		time.Sleep(5 * time.Second) //nolint:forbidigo // fake time
		if h, err := engine.Hooks(d).Named("h"); err != nil || h.Paused != "" {
			t.Errorf("a hook with another receiver was paused: %+v %v", h, err)
		}
	})
}
