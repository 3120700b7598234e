package deliver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// A log is a receiver that remembers the paths that it has taken, with their positions. What refuse returns a status for it does not take.
type log struct {
	refuse func(path string) int

	mu    sync.Mutex
	tries int
	taken map[string][]uint64
}

func (l *log) receive(_ *http.Request, d delivery) (int, http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	if status := l.refuse(d.Path); status != 0 {
		return status, nil
	}
	if l.taken == nil {
		l.taken = map[string][]uint64{}
	}
	l.taken[d.Path] = append(l.taken[d.Path], d.Position)
	return http.StatusOK, nil
}

// count returns how many deliveries were taken of paths that begin so.
func (l *log) count(prefix string) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, positions := range l.taken {
		if strings.HasPrefix(path, prefix) {
			count += len(positions)
		}
	}
	return count
}

func (l *log) triesSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// TestOneLocationHoldsUpItself has a receiver refuse one location, of which there are more deliveries than a queue holds: others are
// delivered meanwhile, also after a restart, and in the end that one is, all of it and in order.
func TestOneLocationHoldsUpItself(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusTooManyRequests} {
		synctest.Test(t, func(t *testing.T) {
			var heals atomic.Bool
			l := &log{refuse: func(path string) int {
				if path == "/a/bad" && !heals.Load() {
					return status
				}
				return 0
			}}
			limits := deliver.DefaultLimits()
			limits.Window, limits.Share, limits.Late = 16, 4, 2
			disk := vfs.NewMem()
			x := open(t, disk, limits, nil, l.receive)
			d := x.database("db")
			add(t, d, "h", "/a/$x")
			for i := range 100 {
				put(t, d, "/a/bad", fmt.Sprint(i))
			}
			for round := range 3 {
				for i := range 20 {
					put(t, d, fmt.Sprintf("/a/good%d-%d", round, i), `1`)
					put(t, d, "/a/bad", fmt.Sprintf("1%d%d", round, i))
				}
				time.Sleep(5 * time.Second) //nolint:forbidigo // fake time
				if n := l.count("/a/good"); n != 20*(round+1) {
					t.Errorf("%d of %d deliveries were made of locations that the receiver takes", n, 20*(round+1))
				}
				x.close()
				x = open(t, disk, limits, nil, l.receive)
				d = x.database("db")
			}
			heals.Store(true)
			time.Sleep(time.Hour) //nolint:forbidigo // fake time
			x.close()
			l.mu.Lock()
			defer l.mu.Unlock()
			positions := l.taken["/a/bad"]
			if len(positions) != 160 || !slices.IsSorted(positions) {
				t.Errorf("of 160 deliveries of the location that was refused %d were made: %v", len(positions), positions)
			}
		})
	}
}

// TestBlip has a receiver fail for two seconds: what is under way then counts as one failure, not as many.
func TestBlip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		fails.Store(true)
		l := &log{refuse: func(string) int { return map[bool]int{true: http.StatusBadGateway}[fails.Load()] }}
		x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, l.receive)
		defer x.close()
		d := x.database("db")
		add(t, d, "h", "/a/$x")
		for i := range 200 {
			put(t, d, fmt.Sprintf("/a/%d", i), `1`)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
		fails.Store(false)
		time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
		if n := l.count("/a/"); n != 200 {
			t.Errorf("ten seconds after the receiver has failed for two, %d of 200 deliveries were made", n)
		}
	})
}

// TestRefusedDoNotSlow has a receiver refuse some locations, and nothing else to be delivered for long: one that is written then
// does not wait for them.
func TestRefusedDoNotSlow(t *testing.T) {
	t.Parallel()
	for refused, within := range map[int]time.Duration{1: time.Second, 2: time.Second, 30: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := &log{refuse: func(path string) int {
				return map[bool]int{true: http.StatusBadRequest}[strings.HasPrefix(path, "/a/bad")]
			}}
			limits := deliver.DefaultLimits()
			limits.MaxPause = time.Minute
			x := open(t, vfs.NewMem(), limits, nil, l.receive)
			defer x.close()
			d := x.database("db")
			add(t, d, "h", "/a/$x")
			for i := range refused {
				put(t, d, fmt.Sprintf("/a/bad%d", i), `1`)
			}
			time.Sleep(15 * time.Minute) //nolint:forbidigo // fake time
			put(t, d, "/a/good", `1`)
			time.Sleep(within) //nolint:forbidigo // fake time
			if l.count("/a/good") != 1 {
				t.Errorf("%v after it was written, a location was not delivered while %d others are refused", within, refused)
			}
		})
	}
}

// TestBeginsAgain has a receiver fail for hours. It is tried rarely then; when an operator says that it is elsewhere, or resumes it,
// at once.
func TestBeginsAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*hook.Hook){
		"another url": func(h *hook.Hook) { h.URL = "https://example.com/other" },
		"resumed":     func(h *hook.Hook) { h.Paused = "" },
	} {
		synctest.Test(t, func(t *testing.T) {
			var heals atomic.Bool
			l := &log{refuse: func(string) int { return map[bool]int{true: http.StatusBadGateway}[!heals.Load()] }}
			x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, l.receive)
			defer x.close()
			d := x.database("db")
			add(t, d, "h", "/a/$x")
			for i := range 50 {
				put(t, d, fmt.Sprintf("/a/%d", i), `1`)
			}
			time.Sleep(time.Hour) //nolint:forbidigo // fake time
			if tries := l.triesSoFar(); tries > 300 {
				t.Errorf("a receiver that fails was tried %d times in an hour", tries)
			}
			revise(t, d, func(h *hook.Hook) { h.Paused = map[bool]string{true: hook.ByOperator}[name == "resumed"] })
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			heals.Store(true)
			revise(t, d, change)
			time.Sleep(time.Second) //nolint:forbidigo // fake time
			if n := l.count("/a/"); n != 50 {
				t.Errorf("%s: %d of 50 deliveries were made within a second", name, n)
			}
		})
	}
}

func revise(t *testing.T, d *engine.Database, change func(*hook.Hook)) {
	t.Helper()
	if _, err := engine.ReviseHook(t.Context(), d, "h", func(h *hook.Hook) error { change(h); return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestClockIsSet sets the clock while a delivery waits to be made again: it is neither given up, nor does it wait longer.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var offset atomic.Int64
			var heals atomic.Bool
			l := &log{refuse: func(string) int { return map[bool]int{true: http.StatusBadGateway}[!heals.Load()] }}
			x := openAt(t, vfs.NewMem(), deliver.DefaultLimits(), nil, l.receive, func() time.Time {
				return time.Now().Round(0).Add(time.Duration(offset.Load()))
			})
			defer x.close()
			d := x.database("db")
			add(t, d, "h", "/a/$x")
			put(t, d, "/a/1", `1`)
			time.Sleep(time.Minute) //nolint:forbidigo // fake time
			offset.Store(int64(step))
			time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
			heals.Store(true)
			time.Sleep(13 * time.Minute) //nolint:forbidigo // fake time
			if l.count("/a/") != 1 {
				t.Errorf("after the clock was set by %v the delivery was not made: %+v", step, x.runner.Stats())
			}
		})
	}
}

// TestStoppedForLong has the server stopped for longer than deliveries are tried: one that has failed before is not given up at once.
func TestStoppedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heals atomic.Bool
		l := &log{refuse: func(string) int { return map[bool]int{true: http.StatusBadGateway}[!heals.Load()] }}
		disk := vfs.NewMem()
		x := open(t, disk, deliver.DefaultLimits(), nil, l.receive)
		d := x.database("db")
		add(t, d, "h", "/a/$x")
		put(t, d, "/a/1", `1`)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		x.close()
		time.Sleep(48 * time.Hour) //nolint:forbidigo // fake time
		x = open(t, disk, deliver.DefaultLimits(), nil, l.receive)
		defer x.close()
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		heals.Store(true)
		time.Sleep(time.Hour) //nolint:forbidigo // fake time
		if l.count("/a/") != 1 {
			t.Errorf("the delivery was not made: %+v", x.runner.Stats())
		}
	})
}

// TestPausedForLong has a hook paused for longer than deliveries are tried, while one location is written more often than its share. The
// receiver fails for half a minute after the hook was resumed: nothing is given up.
func TestPausedForLong(t *testing.T) {
	t.Parallel()
	for _, why := range []string{hook.Gone, hook.ByOperator} {
		for _, writes := range []int{10, 40} {
			synctest.Test(t, func(t *testing.T) {
				var gone, fails atomic.Bool
				l := &log{}
				l.refuse = func(path string) int {
					switch {
					case gone.Load():
						return http.StatusGone
					case fails.Load() && len(l.taken[path]) >= writes/2+4: // some that were left are taken up by then
						return http.StatusBadGateway
					}
					return 0
				}
				x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, l.receive)
				defer x.close()
				d := x.database("db")
				h := add(t, d, "h", "/a/$x")
				if gone.Store(why == hook.Gone); why == hook.ByOperator {
					revise(t, d, func(h *hook.Hook) { h.Paused = why })
				}
				for i := range writes {
					put(t, d, "/a/hot", fmt.Sprint(i))
				}
				time.Sleep(25 * time.Hour) //nolint:forbidigo // fake time
				gone.Store(false)
				fails.Store(true)
				revise(t, d, func(h *hook.Hook) {
					if h.Paused != why {
						t.Errorf("the hook is paused by %q, want %q", h.Paused, why)
					}
					h.Paused = ""
				})
				time.Sleep(30 * time.Second) //nolint:forbidigo // fake time
				fails.Store(false)
				time.Sleep(time.Hour) //nolint:forbidigo // fake time
				if s := x.runner.Stat("db", h); l.count("/a/") != writes || s.Failed > 0 {
					t.Errorf("paused by %s: %d of %d deliveries were made, %d were given up after half a minute", why, l.count("/a/"), writes, s.Failed)
				}
			})
		}
	}
}
