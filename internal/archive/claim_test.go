package archive_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
)

func openAs(t *testing.T, ctx context.Context, p place.Place, epoch uint64) (*archive.Writer, error) {
	t.Helper()
	return archive.Open(ctx, p, archive.Options{Epoch: epoch, Now: time.Now})
}

func mustOpenAs(t *testing.T, p place.Place, epoch uint64) *archive.Writer {
	t.Helper()
	w, err := openAs(t, t.Context(), p, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func appendOne(t *testing.T, w *archive.Writer, row string) error {
	t.Helper()
	s := archive.NewSegment()
	s.Begin(1, "a", archive.Mark{})
	if err := s.Add(archive.Entry{Database: 1, Position: 1, Row: []byte(row)}); err != nil {
		t.Fatal(err)
	}
	return w.Append(t.Context(), s)
}

// TestClaimIsTakenOver: a server of another epoch waits while the claim is renewed, and
// takes it a minute after the last time.
func TestClaimIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := placetest.NewMemory()
		first := mustOpenAs(t, memory, 1)
		go func() {
			for range 20 {
				time.Sleep(archive.RenewEvery) //nolint:forbidigo // fake time
				if err := first.Renew(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}()
		start := time.Now()
		waits := 0
		second, err := archive.Open(t.Context(), memory, archive.Options{Epoch: 2, Now: time.Now, Waiting: func(archive.Claim) { waits++ }})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 360*time.Second || took > 370*time.Second || waits < 20 {
			t.Errorf("the claim was taken over after %v and %d waits, want 6 minutes", took, waits)
		}
		if err := appendOne(t, second, "second"); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := first.Renew(t.Context()); !errors.Is(err, archive.ErrTaken) {
				t.Errorf("the first server renews: %v, want ErrTaken", err)
			}
			if err := appendOne(t, first, "first"); !errors.Is(err, archive.ErrTaken) {
				t.Errorf("the first server appends: %v, want ErrTaken", err)
			}
			if _, err := first.NewBase(t.Context()); !errors.Is(err, archive.ErrTaken) {
				t.Errorf("the first server makes a base: %v, want ErrTaken", err)
			}
		}
		if err := errors.Join(first.Close(t.Context()), second.Renew(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

func TestClaimIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := placetest.NewMemory()
		first := mustOpenAs(t, memory, 1)
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		mustOpenAs(t, memory, 2)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("a claim that was given back was taken after %v", took)
		}
		if err := appendOne(t, first, "late"); err == nil {
			t.Error("a closed writer appends")
		}
	})
}

// TestClaimOfTheSameServer: after a restart a server does not wait for itself. A copy of
// its data directory that runs at the same time is found out.
func TestClaimOfTheSameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := placetest.NewMemory()
		first := mustOpenAs(t, memory, 1)
		start := time.Now()
		second := mustOpenAs(t, memory, 1)
		if took := time.Since(start); took != 0 {
			t.Errorf("a restart waited %v", took)
		}
		if err := appendOne(t, second, "second"); err != nil {
			t.Fatal(err)
		}
		if err := appendOne(t, first, "first"); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("a copy appends the same segment: %v, want ErrTaken", err)
		}
		if err := first.Renew(t.Context()); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("a copy renews: %v, want ErrTaken", err)
		}
		if err := second.Renew(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestClaimTakenByMany: of servers that find an old claim at the same time, one gets it.
func TestClaimTakenByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := placetest.NewMemory()
		mustOpenAs(t, memory, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var mu sync.Mutex
		won := 0
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				faulty := placetest.NewFaulty(memory)
				faulty.Set(placetest.Faults{Delay: time.Duration(i) * 100 * time.Millisecond})
				w, err := openAs(t, ctx, faulty, uint64(i+2))
				if err != nil {
					return
				}
				mu.Lock()
				won++
				mu.Unlock()
				for ctx.Err() == nil {
					if err := w.Renew(ctx); errors.Is(err, archive.ErrTaken) {
						t.Errorf("server %d got the claim, then lost it: %v", i+2, err)
					}
					time.Sleep(archive.RenewEvery) //nolint:forbidigo // fake time
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Errorf("%d servers got the claim, want 1", won)
		}
	})
}

// TestClaimThatCannotBeRead is mended by its holder, and taken over if there is none.
func TestClaimThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := placetest.NewMemory()
		first := mustOpenAs(t, memory, 1)
		put(t, memory, "claim", []byte("{"))
		if err := first.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		put(t, memory, "claim", []byte("{"))
		mustOpenAs(t, memory, 2)
		if err := first.Renew(t.Context()); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("the first server renews: %v, want ErrTaken", err)
		}
	})
}

// TestPlaceThatCannotBeReached: nothing but ErrTaken is final.
func TestPlaceThatCannotBeReached(t *testing.T) {
	t.Parallel()
	faulty := placetest.NewFaulty(placetest.NewMemory())
	h := newHistory(t, 9, faulty, archive.Options{})
	h.commit()
	for _, why := range []error{placetest.ErrServer, errors.New("403 Forbidden"), context.DeadlineExceeded} {
		faulty.Set(placetest.Faults{Fail: func(string, string) error { return why }})
		if err := h.w.Renew(t.Context()); !errors.Is(err, why) || errors.Is(err, archive.ErrTaken) {
			t.Errorf("Renew = %v, want %v", err, why)
		}
	}
	faulty.Set(placetest.Faults{Room: 10})
	s := archive.NewSegment()
	s.Begin(1, "a", archive.Mark{})
	if err := s.Add(archive.Entry{Database: 1, Position: 1}); err != nil {
		t.Fatal(err)
	}
	if err := h.w.Append(t.Context(), s); !errors.Is(err, placetest.ErrFull) {
		t.Errorf("Append = %v, want that it is full", err)
	}
	if err := appendOne(t, h.w, "another"); err == nil {
		t.Error("another segment was sent before the one that may have been")
	}
	faulty.Set(placetest.Faults{})
	if err := errors.Join(h.w.Append(t.Context(), s), h.w.Renew(t.Context()), h.w.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestBaseTriesAgain: a base of many parts is not given up for one call that failed.
func TestBaseTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := placetest.NewFaulty(placetest.NewMemory())
		w, err := archive.Open(t.Context(), faulty, archive.Options{Epoch: 1, Now: time.Now, PartBytes: 50})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		faulty.Set(placetest.Faults{Fail: func(string, string) error {
			if calls++; calls%3 != 0 {
				return placetest.ErrServer
			}
			return nil
		}})
		b, err := w.NewBase(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := b.Row(t.Context(), fmt.Appendf(nil, "%03d", i), []byte("value")); err != nil {
				t.Fatal(err)
			}
		}
		if m, err := b.Commit(t.Context(), time.Now()); err != nil || len(m.Parts) < 10 {
			t.Errorf("a base of %d parts, %v", len(m.Parts), err)
		}
		faulty.Set(placetest.Faults{Fail: func(string, string) error { return placetest.ErrServer }})
		b, err = w.NewBase(t.Context())
		if err == nil {
			_, err = b.Commit(t.Context(), time.Now())
		}
		if !errors.Is(err, placetest.ErrServer) {
			t.Errorf("a base in a place that cannot be reached: %v", err)
		}
	})
}

// TestClaimOfACluster: nodes of a cluster have one epoch, and take the claim from those with a lower tenure alone.
func TestClaimOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := placetest.NewMemory()
		as := func(tenure uint64) (*archive.Writer, error) {
			return archive.Open(t.Context(), memory, archive.Options{Epoch: 1, Tenure: tenure, Now: time.Now})
		}
		single := mustOpenAs(t, memory, 1)
		old, err := as(9)
		if err != nil {
			t.Fatal(err)
		}
		if err := single.Renew(t.Context()); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("the single server that the cluster was renews: %v, want ErrTaken", err)
		}
		claim, err := place.Read(t.Context(), memory, "claim", 4<<10)
		if err != nil {
			t.Fatal(err)
		}
		now, err := as(10)
		if err != nil {
			t.Fatal(err)
		}
		// The replaced node has read the claim before it was taken, and puts it after.
		if err := memory.Put(t.Context(), "claim", claim, false); err != nil {
			t.Fatal(err)
		}
		if err := appendOne(t, now, "now"); err != nil {
			t.Error(err)
		}
		if err := now.Renew(t.Context()); err != nil {
			t.Errorf("the node with the higher tenure renews: %v", err)
		}
		if err := old.Renew(t.Context()); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("the node that was replaced renews: %v, want ErrTaken", err)
		}
		if _, err := as(9); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("the node that was replaced opens the archive: %v, want ErrTaken", err)
		}
		if err := appendOne(t, old, "old"); !errors.Is(err, archive.ErrTaken) {
			t.Errorf("the node that was replaced sends a segment: %v, want ErrTaken", err)
		}
	})
}

// TestCutOff: a server that could not reach the archive while another took the claim writes nothing when it
// can again, neither a segment nor a base: its line would be taken for the one that was written to last.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"a base", "a segment"} {
		synctest.Test(t, func(t *testing.T) {
			p := placetest.NewMemory()
			now := time.UnixMilli(1_800_000_000_000)
			one, two := &visitor{t: t, epoch: 1}, &visitor{t: t, epoch: 2}
			first := one.open(p, &now)
			one.base(first, now)
			base, err := first.NewBase(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Minute)
			two.base(two.open(p, &now), now)
			before := len(p.Names())
			if what == "a base" {
				_, err = base.Commit(t.Context(), now)
			} else {
				err = one.put(first, now)
			}
			if wrote := len(p.Names()) - before; !errors.Is(err, archive.ErrTaken) || wrote != 0 {
				t.Errorf("%s of a server that was cut off: %d objects were written, %v, want ErrTaken", what, wrote, err)
			}
		})
	}
}
