package archive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// A history is what a store did: the model that archives are compared with.
type history struct {
	t       *testing.T
	rand    *rand.Rand
	options archive.Options
	place   place.Place
	w       *archive.Writer
	now     int64
	all     []archive.Entry
	heads   map[uint32]uint64       // the newest position
	sent    map[uint32]archive.Mark // what the store has noted as sent
	queue   []archive.Entry         // what is not noted
	bases   []archive.Manifest
}

func newHistory(t *testing.T, seed uint64, p place.Place, options archive.Options) *history {
	t.Helper()
	h := &history{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), options: options, place: p, now: 1_700_000_000_000,
		heads: map[uint32]uint64{}, sent: map[uint32]archive.Mark{},
	}
	h.options.Epoch = seed | 1
	h.options.Now = func() time.Time { return time.UnixMilli(h.now) }
	h.open()
	return h
}

func (h *history) open() {
	h.t.Helper()
	w, err := archive.Open(h.t.Context(), h.place, h.options)
	if err != nil {
		h.t.Fatal(err)
	}
	h.w = w
}

// commit makes a record.
func (h *history) commit() {
	db := uint32(1 + h.rand.IntN(5))
	h.now += int64(h.rand.IntN(3))
	row := make([]byte, h.rand.IntN(60))
	for i := range row {
		row[i] = byte(h.rand.IntN(4))
	}
	h.heads[db] += 1 + uint64(h.rand.IntN(2))
	e := archive.Entry{Database: db, Name: fmt.Sprintf("db-%d", db), Position: h.heads[db], Millis: h.now, Row: row}
	h.all = append(h.all, e)
	h.queue = append(h.queue, e)
}

// send sends some of the queue as a segment. Unless killed, it notes what was sent.
func (h *history) send(most int, killed bool) {
	h.t.Helper()
	s := archive.NewSegment()
	n := min(most, len(h.queue))
	if n == 0 {
		return
	}
	for _, e := range h.queue[:n] {
		s.Begin(e.Database, e.Name, h.sent[e.Database])
		if err := s.Add(e); err != nil {
			h.t.Fatal(err)
		}
	}
	var err error
	for range 1000 {
		if err = h.w.Append(h.t.Context(), s); err == nil {
			break
		}
		if errors.Is(err, archive.ErrTaken) {
			h.t.Fatal(err)
		}
	}
	if err != nil {
		h.t.Fatal(err)
	}
	if !killed {
		maps.Insert(h.sent, s.Marks())
		h.queue = h.queue[n:]
	}
}

func baseKey(e archive.Entry) []byte {
	key := binary.BigEndian.AppendUint32(nil, e.Database)
	return binary.BigEndian.AppendUint64(key, e.Position)
}

func baseValue(e archive.Entry) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(e.Millis)), e.Row...)
}

// base makes a base of all that was committed, also of what was not sent.
func (h *history) base() {
	h.t.Helper()
	ctx := h.t.Context()
	b, err := h.w.NewBase(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	for db := uint32(1); db <= 5; db++ {
		d := archive.Database{Number: db, Name: fmt.Sprintf("db-%d", db), Position: h.heads[db]}
		for _, e := range h.all {
			if e.Database != db {
				continue
			}
			d.Millis = e.Millis
			if err := b.Row(ctx, baseKey(e), baseValue(e)); err != nil {
				h.t.Fatal(err)
			}
		}
		if mark := h.sent[db]; mark.Position == d.Position {
			d.Chain = &mark.Chain // otherwise it is not known
		}
		if d.Position == 0 {
			continue
		}
		if err := b.Database(ctx, d); err != nil {
			h.t.Fatal(err)
		}
	}
	// What is committed meanwhile is not in the base.
	now := h.now
	h.now++
	h.commit()
	h.send(3, false)
	m, err := b.Commit(ctx, time.UnixMilli(now))
	if err != nil {
		h.t.Fatal(err)
	}
	h.bases = append(h.bases, m)
}

// restore returns the records that an archive gives for a moment.
func restore(t *testing.T, r *archive.Reader, m archive.Manifest, at time.Time) (map[string]string, error) {
	t.Helper()
	got := map[string]string{}
	for i := range m.Parts {
		err := r.Rows(t.Context(), m, i, func(key, value []byte) error {
			got[string(key)] = string(value)
			return nil
		})
		if err != nil {
			return got, err
		}
	}
	err := r.Replay(t.Context(), m, at, func(e archive.Entry) error {
		if _, twice := got[string(baseKey(e))]; twice {
			t.Errorf("the record of %d at %d came twice", e.Database, e.Position)
		}
		got[string(baseKey(e))] = string(baseValue(e))
		return nil
	})
	return got, err
}

// model returns the records up to a moment; all for a zero time.
func (h *history) model(at time.Time) map[string]string {
	want := map[string]string{}
	unsent := map[string]bool{}
	for _, e := range h.queue {
		unsent[string(baseKey(e))] = true
	}
	for _, e := range h.all {
		if (at.IsZero() || e.Millis <= at.UnixMilli()) && !unsent[string(baseKey(e))] {
			want[string(baseKey(e))] = string(baseValue(e))
		}
	}
	return want
}

// step does something at random.
func (h *history) step() {
	switch h.rand.IntN(20) {
	case 0:
		h.base()
	case 1: // killed after sending, before noting so
		h.send(1+h.rand.IntN(10), true)
		h.open()
	case 2:
		if err := h.w.Renew(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
	case 3, 4, 5, 6, 7:
		h.send(1+h.rand.IntN(10), false)
	default:
		h.commit()
	}
}

// finish sends all that is left.
func (h *history) finish() {
	for len(h.queue) > 0 {
		h.send(len(h.queue), false)
	}
}

// compare restores some moments from each base.
func (h *history) compare(r *archive.Reader, moments int) {
	h.t.Helper()
	for range moments {
		at := time.UnixMilli(1_700_000_000_000 + h.rand.Int64N(h.now-1_700_000_000_000+2))
		m, err := r.Find(h.t.Context(), at)
		if errors.Is(err, archive.ErrNoBase) {
			if len(h.bases) > 0 && !h.bases[0].Moment().After(at) {
				h.t.Errorf("Find(%v) = %v", at, err)
			}
			continue
		}
		if err != nil {
			h.t.Fatal(err)
		}
		got, err := restore(h.t, r, m, at)
		if err != nil || !maps.Equal(got, h.model(at)) {
			h.t.Errorf("restored at %d from base %d: %d records, want %d, %v", at.UnixMilli(), m.Number, len(got), len(h.model(at)), err)
		}
	}
	for _, m := range h.bases {
		if got, err := restore(h.t, r, m, time.Time{}); err != nil || !maps.Equal(got, h.model(time.Time{})) {
			h.t.Errorf("restored all from base %d: %d records, want %d, %v", m.Number, len(got), len(h.all), err)
		}
	}
}

// TestHistories compares archives of random histories with what happened, at random
// moments.
func TestHistories(t *testing.T) {
	t.Parallel()
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			memory := placetest.NewMemory()
			h := newHistory(t, seed, memory, archive.Options{PartBytes: 200})
			for range 300 {
				h.step()
			}
			h.finish()
			r := archive.NewReader(memory, archive.ReaderOptions{})
			h.compare(r, 10)
			_, _, err := r.Check(t.Context(), func(d archive.Damage) { t.Error(&d) })
			if err != nil {
				t.Error(err)
			}
			lines, err := r.Lines(t.Context())
			if err != nil || len(lines) != 1 || len(lines[0].Bases) != len(h.bases) || lines[0].Segment != h.w.Line().Segment {
				t.Errorf("lines %+v, %v; want %d bases, %d segments", lines, err, len(h.bases), h.w.Line().Segment)
			}
		})
	}
}

// TestFaults has the place fail in all ways while a history is written. What is there in
// the end is the same.
func TestFaults(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			memory := placetest.NewMemory()
			faulty := placetest.NewFaulty(memory)
			h := newHistory(t, seed, faulty, archive.Options{PartBytes: 200})
			failing := rand.New(rand.NewPCG(seed, 2))
			for range 300 {
				faulty.Set(placetest.Faults{OldLists: failing.IntN(4)})
				if failing.IntN(3) == 0 {
					h.commit()
					faulty.Set(placetest.Faults{
						OldLists: failing.IntN(4),
						Fail: func(string, string) error {
							if failing.IntN(3) == 0 {
								return placetest.ErrServer
							}
							return nil
						},
						Lose: func(string, string) bool { return failing.IntN(3) == 0 },
					})
					h.send(5, failing.IntN(5) == 0)
					faulty.Set(placetest.Faults{OldLists: failing.IntN(4)})
					h.open()
				}
				h.step()
			}
			h.finish()
			h.compare(archive.NewReader(memory, archive.ReaderOptions{}), 5)
		})
	}
}

// TestManySegments passes several groups of the index, with restarts, and counts what a
// restart and a list of the archive cost.
func TestManySegments(t *testing.T) {
	t.Parallel()
	faulty := placetest.NewFaulty(placetest.NewMemory())
	h := newHistory(t, 7, faulty, archive.Options{})
	h.base()
	for i := range 900 {
		h.commit()
		h.send(1, false)
		if i%199 == 0 {
			h.open()
		}
	}
	gets := faulty.Calls("get")
	h.open()
	if n := faulty.Calls("get") - gets; n > 40 {
		t.Errorf("a start after %d segments took %d gets", h.w.Line().Segment, n)
	}
	gets = faulty.Calls("get")
	r := archive.NewReader(faulty, archive.ReaderOptions{})
	lines, err := r.Lines(t.Context())
	if err != nil || len(lines) != 1 || lines[0].Segment != 901 || !lines[0].Last.Equal(time.UnixMilli(h.now)) {
		t.Errorf("lines %+v, %v; want 901 segments up to %d", lines, err, h.now)
	}
	if n := faulty.Calls("get") - gets; n > 40 {
		t.Errorf("a list of %d segments took %d gets", h.w.Line().Segment, n)
	}
	var size int64
	for o := range faulty.List(t.Context(), "lines/0000000000000007/segments/", "") {
		size += o.Bytes
	}
	if got := h.w.Line().SinceBase; got != size {
		t.Errorf("%d bytes follow the base, want %d", got, size)
	}
	h.compare(r, 5)
}

func TestSegmentRefuses(t *testing.T) {
	t.Parallel()
	s := archive.NewSegment()
	e := archive.Entry{Database: 1, Position: 5}
	if err := s.Add(e); err == nil {
		t.Error("a record of a database that was not begun was added")
	}
	s.Begin(1, "a", archive.Mark{Position: 5})
	if err := s.Add(e); err == nil {
		t.Error("a record at the position of the one before was added")
	}
	h := newHistory(t, 3, placetest.NewMemory(), archive.Options{})
	if err := h.w.Append(t.Context(), s); err == nil {
		t.Error("an empty segment was sent")
	}
	e.Position = 6
	if err := s.Add(e); err != nil {
		t.Fatal(err)
	}
	if err := h.w.Append(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	e.Position = 7
	if err := s.Add(e); err == nil {
		t.Error("a record was added to a segment that was sent")
	}
}

func TestBaseRefusesKeysOutOfOrder(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 3, placetest.NewMemory(), archive.Options{})
	b, err := h.w.NewBase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key string
		ok  bool
	}{{"", true}, {"a", true}, {"a", false}, {"b", true}, {"ab", false}, {"c", true}} {
		if err := b.Row(t.Context(), []byte(test.key), bytes.Repeat([]byte("x"), 10)); (err == nil) != test.ok {
			t.Errorf("Row(%q) = %v", test.key, err)
		}
	}
	b.Abandon(t.Context())
	if _, err := b.Commit(t.Context(), time.UnixMilli(1)); err == nil {
		t.Error("a base that was abandoned was committed")
	}
}
