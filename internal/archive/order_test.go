package archive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// A sent is a segment of a test: the records of some databases, of which each is the next
// one of its database.
type sent struct {
	records []archive.Entry // without positions; one without a row says that the database was made
	goesOn  bool
}

// TestOrderOfTimes restores a moment from records that are not in the order of their times:
// a segment was full, or a commit took long.
func TestOrderOfTimes(t *testing.T) {
	t.Parallel()
	const start = 1_700_000_000_000
	record := func(database uint32, millis int64) archive.Entry {
		return archive.Entry{Database: database, Millis: start + millis, Row: []byte("row")}
	}
	made := func(database uint32, millis int64) archive.Entry {
		return archive.Entry{Database: database, Millis: start + millis}
	}
	const minute = 60_000
	cases := map[string]struct {
		segments []sent
		at       int64
		want     []string // database:position
	}{
		"in order":            {[]sent{{records: []archive.Entry{record(1, 10), record(2, 20)}}, {records: []archive.Entry{record(1, 50)}}}, 40, []string{"1:1", "2:1"}},
		"a commit took long":  {[]sent{{records: []archive.Entry{record(1, 50)}}, {records: []archive.Entry{record(2, 20)}}}, 40, []string{"2:1"}},
		"a segment was full":  {[]sent{{[]archive.Entry{record(1, 5*minute)}, true}, {[]archive.Entry{record(1, 6*minute)}, true}, {records: []archive.Entry{record(2, 20)}}}, 40, []string{"2:1"}},
		"the moment is later": {[]sent{{[]archive.Entry{record(1, 50)}, true}, {records: []archive.Entry{record(2, 20)}}}, 50, []string{"1:1", "2:1"}},
		"made":                {[]sent{{records: []archive.Entry{made(1, 10), made(2, 50)}}, {records: []archive.Entry{record(1, 45)}}}, 40, []string{"1:0"}},
		"made and written to": {[]sent{{records: []archive.Entry{made(1, 10)}}, {records: []archive.Entry{record(1, 20)}}}, 40, []string{"1:0", "1:1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := placetest.NewMemory()
			h := newHistory(t, 5, memory, archive.Options{})
			h.now = start
			h.emptyBase()
			for _, s := range c.segments {
				h.sendAs(s)
			}
			var got []string
			r := archive.NewReader(memory, archive.ReaderOptions{})
			err := r.Replay(t.Context(), h.bases[0], time.UnixMilli(start+c.at), func(e archive.Entry) error {
				got = append(got, fmt.Sprintf("%d:%d", e.Database, e.Position))
				return nil
			})
			slices.Sort(got)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("Replay gives %v, %v; want %v", got, err, c.want)
			}
			if _, _, err := r.Check(t.Context(), func(d archive.Damage) { t.Error(&d) }); err != nil {
				t.Error(err)
			}
		})
	}
}

// emptyBase makes a base of a store without databases.
func (h *history) emptyBase() {
	h.t.Helper()
	b, err := h.w.NewBase(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := b.Commit(h.t.Context(), time.UnixMilli(h.now))
	if err != nil {
		h.t.Fatal(err)
	}
	h.bases = append(h.bases, m)
}

// sendAs sends a segment as it is.
func (h *history) sendAs(s sent) {
	h.t.Helper()
	segment := archive.NewSegment()
	for _, e := range s.records {
		e.Name = fmt.Sprint("db-", e.Database)
		if e.Row == nil {
			segment.Made(e.Database, e.Name, e.Millis)
			continue
		}
		segment.Begin(e.Database, e.Name, h.sent[e.Database])
		h.heads[e.Database]++
		e.Position = h.heads[e.Database]
		if err := segment.Add(e); err != nil {
			h.t.Fatal(err)
		}
	}
	if s.goesOn {
		segment.GoesOn()
	}
	if err := h.w.Append(h.t.Context(), segment); err != nil {
		h.t.Fatal(err)
	}
	for database, mark := range segment.Marks() {
		h.sent[database] = mark
	}
}
