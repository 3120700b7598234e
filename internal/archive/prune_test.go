package archive_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// TestPruneKeepsAllLaterMoments prunes random histories at random moments, interrupted at
// random: every moment after it is restored as before, and what is older is gone.
func TestPruneKeepsAllLaterMoments(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		memory := placetest.NewMemory()
		h := newHistory(t, seed, memory, archive.Options{PartBytes: 200})
		for range 300 {
			h.step()
		}
		h.base()
		h.finish()
		from := time.UnixMilli(1_700_000_000_000 + h.rand.Int64N(h.now-1_700_000_000_000))
		pruneInPieces(t, memory, from)
		r := archive.NewReader(memory, archive.ReaderOptions{})
		for range 10 {
			at := from.Add(time.Duration(h.rand.Int64N(h.now-from.UnixMilli()+1)) * time.Millisecond)
			m, err := r.Find(t.Context(), at)
			if errors.Is(err, archive.ErrNoBase) && h.bases[0].Moment().After(at) {
				continue // as it was before
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := restore(t, r, m, at); err != nil || !maps.Equal(got, h.model(at)) {
				t.Errorf("pruned at %v, restored at %v: %d records, want %d, %v", from, at, len(got), len(h.model(at)), err)
			}
		}
		lines, err := r.Lines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := slices.IndexFunc(lines[0].Bases, func(m archive.Manifest) bool { return m.Moment().After(from) }); n > 1 {
			t.Errorf("%d bases from before the moment are left", n)
		}
		_, _, err = r.Check(t.Context(), func(d archive.Damage) { t.Errorf("after pruning: %v", &d) })
		if err != nil {
			t.Error(err)
		}
		// The server goes on where it was, also after a restart.
		segment := h.w.Line().Segment
		h.open()
		if got := h.w.Line().Segment; got != segment {
			t.Errorf("after pruning the line ends with segment %d, want %d", got, segment)
		}
	}
}

// pruneInPieces prunes, interrupted again and again.
func pruneInPieces(t *testing.T, memory *placetest.Memory, from time.Time) {
	t.Helper()
	faulty := placetest.NewFaulty(memory)
	for n := 1; ; n++ {
		left := 20
		faulty.Set(placetest.Faults{Fail: func(call, _ string) error {
			if call == "delete" {
				if left--; left < 0 {
					return placetest.ErrServer
				}
			}
			return nil
		}})
		_, err := archive.Prune(t.Context(), faulty, from)
		if err == nil {
			return
		}
		if !errors.Is(err, placetest.ErrServer) || n > 1000 {
			t.Fatal(err)
		}
	}
}

// TestPruneLines: a line goes when a later one shows the moment, and never the newest.
func TestPruneLines(t *testing.T) {
	t.Parallel()
	memory := placetest.NewMemory()
	begin := func(epoch uint64, made int64) {
		w, err := archive.Open(t.Context(), memory, archive.Options{Epoch: epoch, Now: func() time.Time { return time.UnixMilli(made) }, Patience: 1})
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.NewBase(t.Context())
		if err == nil {
			err = b.Row(t.Context(), []byte("key"), nil)
		}
		if err == nil {
			_, err = b.Commit(t.Context(), time.UnixMilli(made))
		}
		if err := errors.Join(err, appendOne(t, w, "row"), w.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	begin(1, 1000)
	begin(2, 2000)
	for _, test := range []struct {
		from  int64
		lines string
	}{{500, "1 2"}, {1500, "1 2"}, {2000, "2"}, {9000, "2"}} {
		if _, err := archive.Prune(t.Context(), memory, time.UnixMilli(test.from)); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, name := range memory.Names() {
			if epoch, ok := strings.CutPrefix(name, "lines/000000000000000"); ok && !slices.Contains(lines, epoch[:1]) {
				lines = append(lines, epoch[:1])
			}
		}
		if got := strings.Join(lines, " "); got != test.lines {
			t.Errorf("pruned at %d, the lines %s are left, want %s", test.from, got, test.lines)
		}
	}
	if m, err := archive.NewReader(memory, archive.ReaderOptions{}).Find(t.Context(), time.Time{}); err != nil || m.Epoch != "0000000000000002" {
		t.Errorf("after all, Find = %v, %v", m.Epoch, err)
	}
}

// prunedAt makes an archive with two bases, and a place that prunes the first of them away when an object is
// read for the first time.
func prunedAt(t *testing.T, object string) (*placetest.Faulty, archive.Manifest) {
	t.Helper()
	memory := placetest.NewMemory()
	now := time.UnixMilli(1_800_000_000_000)
	v := &visitor{t: t, epoch: 7}
	w := v.open(memory, &now)
	for i := range 100 {
		now = now.Add(time.Minute)
		if i%50 == 0 {
			v.base(w, now)
		}
		if err := v.put(w, now); err != nil {
			t.Fatal(err)
		}
	}
	first, err := archive.NewReader(memory, archive.ReaderOptions{}).FindIn(t.Context(), 7, now.Add(-60*time.Minute))
	if err != nil || first.Number != 1 {
		t.Fatalf("the first base is %d, %v", first.Number, err)
	}
	p := placetest.NewFaulty(memory)
	var once sync.Once
	p.Set(placetest.Faults{Fail: func(call, name string) (err error) {
		if call == "get" && strings.HasSuffix(name, object) {
			once.Do(func() { _, err = archive.Prune(t.Context(), memory, now.Add(-10*time.Minute)) })
		}
		return err
	}})
	return p, first
}

// TestReadBesidePrune: what is pruned while it is read is no damage, and a restore that needs it says
// what has happened.
func TestReadBesidePrune(t *testing.T) {
	t.Parallel()
	for _, object := range []string{"/bases/000000000001/list-000001", "/segments/000000000001", "/segments/000000000005"} {
		p, _ := prunedAt(t, object)
		if err := archive.NewReader(p, archive.ReaderOptions{}).CheckAll(t.Context()); err != nil {
			t.Errorf("pruned at %s: Check finds %v", object, err)
		}
		p, first := prunedAt(t, object)
		err := archive.NewReader(p, archive.ReaderOptions{}).Replay(t.Context(), first, time.Time{}, func(archive.Entry) error { return nil })
		if _, damaged := errors.AsType[*archive.Damage](err); damaged || !errors.Is(err, archive.ErrNoBase) || !strings.Contains(err.Error(), "pruned while it was read") {
			t.Errorf("pruned at %s: Replay = %v", object, err)
		}
	}
}
