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

// TestReplayDoesNotWait has an operator ask for a delivery while a hook pauses after failures: it is made at once.
func TestReplayDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &gapLog{}
		x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, l.receive)
		defer x.close()
		d := x.database("db")
		h := add(t, d, "h", "/a/$x")
		put(t, d, "/a/first", `1`)
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		made := x.runner.Recent("db", h)[0].ID
		l.fails.Store(true)
		for i := range 40 {
			put(t, d, fmt.Sprintf("/a/%d", i), `1`)
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // fake time
		l.fails.Store(false)
		if err := x.runner.Replay(d, h, made); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // fake time
		records := x.runner.Recent("db", h)
		if i := slices.IndexFunc(records, func(r deliver.Record) bool { return r.Replay }); i < 0 || records[i].Status != http.StatusOK {
			t.Errorf("the delivery was not repeated: %+v", records[0])
		}
	})
}
