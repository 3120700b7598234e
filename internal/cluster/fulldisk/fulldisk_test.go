package fulldisk_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster/fulldisk"
)

const mib = 1 << 20

// A disk is one whose free space is set.
type disk struct{ free atomic.Uint64 }

func (d *disk) gauge() (uint64, bool) { return d.free.Load(), true }

func TestWatchEndsBelowTheFloor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		d.free.Store(300 * mib)
		looks := 0
		err := fulldisk.Watch(t.Context(), dir, d.gauge, func() {
			if looks++; looks == 10 {
				d.free.Store(255 * mib)
			}
		}, slog.New(slog.DiscardHandler))
		if !errors.Is(err, fulldisk.ErrFull) || looks != 10 {
			t.Errorf("Watch = %v after %d looks, want ErrFull after 10", err, looks)
		}
	})
}

func TestBallastIsMadeAndGivenBack(t *testing.T) {
	dir := t.TempDir()
	ballast := filepath.Join(dir, fulldisk.BallastFile)
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		d.free.Store(600 * mib)
		looks := 0
		_ = fulldisk.Watch(t.Context(), dir, d.gauge, func() {
			info, err := os.Stat(ballast)
			switch looks++; looks {
			case 1:
				if err == nil {
					t.Error("there is a ballast although 600 MiB are free, want none below 640")
				}
				d.free.Store(640 * mib)
			case 2:
				if err != nil || info.Size() != 128*mib {
					t.Errorf("the ballast with 640 MiB free is %v, %v, want 128 MiB", info, err)
				}
				d.free.Store(0)
			}
		}, slog.New(slog.DiscardHandler))
		if _, err := os.Stat(ballast); err == nil {
			t.Error("the ballast is still there on a full disk")
		}
	})
}

func TestAwaitNeedsTwiceTheFloor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		o := fulldisk.Options{Data: dir, Gauge: d.gauge, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
		waited := 0
		over := 0
		o.Waiting = func() func() { waited++; return func() { over++ } }
		d.free.Store(256 * mib)
		if err := fulldisk.Await(t.Context(), o); err != nil || waited > 0 {
			t.Errorf("Await with 256 MiB = %v, waited %d times, want nothing to wait for", err, waited)
		}
		d.free.Store(255 * mib)
		done := make(chan error, 1)
		go func() { done <- fulldisk.Await(t.Context(), o) }()
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		d.free.Store(511 * mib)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		select {
		case <-done:
			t.Error("Await is over with 511 MiB, want 512")
		default:
		}
		d.free.Store(512 * mib)
		if err := <-done; err != nil || waited != 1 || over != 1 {
			t.Errorf("Await with 512 MiB = %v, waited %d times, and was over %d times, want nil and 1", err, waited, over)
		}
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := fulldisk.Await(ctx, fulldisk.Options{Data: t.TempDir(), Gauge: d.gauge, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Await = %v, want the end of its context", err)
		}
	})
}

// TestEndBeginsAgain: a process whose write failed begins again if its disk is full, without its ballast, and ends if the disk has space.
func TestEndBeginsAgain(t *testing.T) {
	dir, d := t.TempDir(), &disk{}
	ballast := filepath.Join(dir, fulldisk.BallastFile)
	if err := os.WriteFile(ballast, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := 0
	again := func() error { begun++; return nil }
	d.free.Store(256 * mib)
	fulldisk.EndUntil(dir, d.gauge, slog.New(slog.DiscardHandler), again)
	if _, err := os.Stat(ballast); begun != 0 || err != nil {
		t.Errorf("with 256 MiB free the process has begun again %d times, and the ballast: %v", begun, err)
	}
	d.free.Store(255 * mib)
	fulldisk.EndUntil(dir, d.gauge, slog.New(slog.DiscardHandler), again)
	if _, err := os.Stat(ballast); begun != 1 || err == nil {
		t.Errorf("with 255 MiB free the process has begun again %d times, and the ballast: %v", begun, err)
	}
}
