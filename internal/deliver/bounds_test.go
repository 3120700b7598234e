package deliver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
)

// TestSpool has a receiver fail until what waits is too much: the oldest is dropped, and the receiver is told which.
func TestSpool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		fails, positions := true, []uint64{}
		var gaps []delivery
		limits := deliver.DefaultLimits()
		limits.Spool, limits.Window = 1000, 3
		disk := vfs.NewMem()
		to := func(_ *http.Request, d delivery) (int, http.Header) {
			mu.Lock()
			defer mu.Unlock()
			if fails {
				return http.StatusInternalServerError, nil
			}
			if d.Event == "gap" {
				gaps = append(gaps, d)
			} else {
				positions = append(positions, d.Position)
			}
			return http.StatusOK, nil
		}
		x := open(t, disk, limits, nil, to)
		d := x.database("db")
		add(t, d, "h", "/a/$x")
		for i := range 100 {
			put(t, d, fmt.Sprintf("/a/%d", i), `"0123456789"`)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // fake time
		}
		if s := x.runner.Stats(); len(s) != 1 || s[0].Bytes > 2*limits.Spool || s[0].Skipped == 0 || !s[0].Failing || s[0].Lag < 0.1 {
			t.Errorf("the hook says %+v", s)
		}
		x.close() // the gap is stored
		mu.Lock()
		fails = false
		mu.Unlock()
		x = open(t, disk, limits, nil, to)
		defer x.close()
		time.Sleep(time.Hour) //nolint:forbidigo // fake time
		mu.Lock()
		defer mu.Unlock()
		if len(gaps) == 0 {
			t.Fatal("the receiver was not told of the gap")
		}
		// Whatever is not in a gap was delivered; positions 2 to 101 are those of the writes.
		for p := uint64(2); p <= 101; p++ {
			missing := slices.ContainsFunc(gaps, func(g delivery) bool { return g.First <= p && p <= g.Last })
			if missing == slices.Contains(positions, p) && !missing {
				t.Errorf("position %d was not delivered, and is in no gap", p)
			}
		}
	})
}

// TestGone has a receiver answer 410: the hook is paused, and delivers what waits when it is resumed.
func TestGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var tries []string
		status := http.StatusGone
		x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, func(_ *http.Request, d delivery) (int, http.Header) {
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, d.Path)
			return status, nil
		})
		defer x.close()
		d := x.database("db")
		add(t, d, "h", "/a/$x")
		put(t, d, "/a/1", `1`)
		time.Sleep(time.Hour) //nolint:forbidigo // fake time
		if h, _ := engine.Hooks(d).Named("h"); h.Paused != hook.Gone {
			t.Errorf("the hook is paused by %q, want %q", h.Paused, hook.Gone)
		}
		put(t, d, "/a/2", `1`)
		mu.Lock()
		status = http.StatusOK
		mu.Unlock()
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		if _, err := engine.ReviseHook(t.Context(), d, "h", func(h *hook.Hook) error { h.Paused = ""; return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		mu.Lock()
		defer mu.Unlock()
		if slices.Sort(tries); strings.Join(tries, " ") != "/a/1 /a/1 /a/2" {
			t.Errorf("tried %v", tries)
		}
	})
}

// TestGivesUp has a receiver refuse one location for good: others are delivered, and that one is given up in the end.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := deliver.DefaultLimits()
		limits.RetryFor, limits.Window = time.Hour, 2
		x := open(t, vfs.NewMem(), limits, nil, func(_ *http.Request, d delivery) (int, http.Header) {
			if d.Path == "/a/bad" {
				return http.StatusBadRequest, nil
			}
			return http.StatusOK, nil
		})
		defer x.close()
		d := x.database("db")
		h := add(t, d, "h", "/a/$x")
		put(t, d, "/a/bad", `1`)
		for i := range 20 {
			put(t, d, fmt.Sprintf("/a/%d", i), `1`)
		}
		time.Sleep(30 * time.Minute) //nolint:forbidigo // fake time
		if s := x.runner.Stat("db", h); s.Delivered != 20 || s.Pending != 1 || s.Failed != 0 {
			t.Errorf("after half an hour: %+v", s)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // fake time
		if s := x.runner.Stat("db", h); s.Failed != 1 || s.Pending != 0 {
			t.Errorf("after an hour and a half: %+v", s)
		}
		records := x.runner.Recent("db", h)
		if err := x.runner.Replay(d, h, records[0].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		if now := x.runner.Recent("db", h); len(now) != len(records)+1 || !now[0].Replay {
			t.Errorf("the delivery was not repeated: %+v", now[0])
		}
		if _, err := engine.RemoveHook(t.Context(), d, "h"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		left := 0
		if err := engine.Notices(d, h.Number, 0, 1<<60, func(uint64, []byte) bool { left++; return true }); err != nil || left > 0 || len(x.runner.Stats()) > 0 {
			t.Errorf("%d notices of a hook that was removed are left, %v, %v", left, x.runner.Stats(), err)
		}
	})
}
