package archive_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// TestRecords reads the records of one database from a moment on, a little at a time, and
// compares them with what happened. Segments were sent twice, and old ones pruned.
func TestRecords(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	memory := placetest.NewMemory()
	h := newHistory(t, seed, memory, archive.Options{PartBytes: 200})
	for range 600 {
		h.step()
		h.now += h.rand.Int64N(4000) // some minutes in each group of segments
	}
	h.finish()
	if len(h.bases) > 2 {
		if _, err := h.w.Prune(t.Context(), h.bases[len(h.bases)/4].Moment()); err != nil {
			t.Fatal(err)
		}
	}
	oldest, err := archive.NewReader(memory, archive.ReaderOptions{}).Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := oldest.Bases[0].Moment().UnixMilli()
	for range 10 {
		from, database := start+h.rand.Int64N(h.now-start), uint32(1+h.rand.IntN(5))
		got := h.records(archive.RecordsRequest{
			Epoch: h.options.Epoch, Database: database, From: time.UnixMilli(from), Until: time.UnixMilli(h.now), MaxBytes: h.rand.Int64N(5000),
		})
		var want []string
		for _, e := range h.all {
			if e.Database == database && e.Millis >= from {
				want = append(want, fmt.Sprint(e.Position, e.Millis, e.Row))
			}
		}
		if len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
			t.Errorf("from %d on %d records of database %d were read, want at least the last %d", from, len(got), database, len(want))
		}
	}
}

// records reads in as many calls as it takes.
func (h *history) records(q archive.RecordsRequest) (got []string) {
	h.t.Helper()
	r := archive.NewReader(h.place, archive.ReaderOptions{})
	last := uint64(0)
	for {
		_, next, err := r.Records(h.t.Context(), q, func(segment uint64, e archive.Entry) error {
			if e.Position > last {
				last = e.Position
				got = append(got, fmt.Sprint(e.Position, e.Millis, e.Row))
			}
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
		if next == 0 {
			return got
		}
		if next <= q.Segment {
			h.t.Fatalf("it goes on at segment %d after %d", next, q.Segment)
		}
		q.Segment = next
	}
}
