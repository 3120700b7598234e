package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

const (
	timeBefore int64 = 1_767_225_600_000
	timeAfter  int64 = 1_777_888_999_123
	keyBefore        = "-OdjQrZ0abcdefghijkl"
	keyAfter         = "-OdjQrZ1zzzzzzzzzzzz"

	timestamp = `{".sv":"timestamp"}`
)

// resolved returns the PUT of a body, resolved at a time.
func resolved(t testing.TB, at, body string, millis int64) tree.Write {
	t.Helper()
	w, err := tree.Resolve(putWrite(t, at, body), millis, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// prepare prepares a write on the newest view.
func (s *stand) prepare(w tree.Write) *batch.Prepared {
	s.Helper()
	view := s.View()
	defer view.Release()
	p, err := view.Tree(s.id).Prepare(w, s.indexes, 1)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// TestRenewRefusesOtherSizes: what does not fit is left as it is.
func TestRenewRefusesOtherSizes(t *testing.T) {
	const body = `{"at":` + timestamp + `,"b":{"c":1,"d":2}}`
	for _, c := range []struct {
		at     string
		millis int64
	}{
		{"l/" + keyBefore, 10 * timeBefore},
		{"l/" + keyBefore, 999},
		{"l/" + keyAfter + "x", timeBefore},
		{"m", timeBefore},
	} {
		s := newStand(t, Options{ChunkBytes: -1})
		w := resolved(t, "l/"+keyBefore, body, timeBefore)
		p := s.prepare(w)
		defer p.Close()
		if ok, err := p.Renew(resolved(t, c.at, body, c.millis), timeBefore, c.millis); ok || err != nil {
			t.Errorf("Renew for %s at %d = %v, %v, want false", c.at, c.millis, ok, err)
		}
		s.commitPrepared(w, p)
		s.expect("l/"+keyBefore, fmt.Sprintf(`{"at":%d,"b":{"c":1,"d":2}}`, timeBefore))
	}
}

// TestRenewedRowsAreCommitted: Pebble commits what was written over a batch, also one
// that is too large for a memtable, and finds it in its log after a restart.
func TestRenewedRowsAreCommitted(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "larger than a memtable": 300} {
		t.Run(name, func(t *testing.T) {
			opts := Options{FS: vfs.NewMem(), ChunkBytes: 150, MemTableBytes: 32 << 10}
			s := openStand(t, opts)
			indexes := &layout.Indexes{Wildcard: &layout.Indexes{Wildcard: &layout.Indexes{Here: []layout.Index{{Number: 1, Order: query.ByChild(parsePath(t, "at"))}}}}}
			s.indexes = indexes
			s.put("l/first", children(20)) // so that l is split
			var body strings.Builder
			for i := range size {
				fmt.Fprintf(&body, `,"k%d":{"at":%s,"v":"%070d"}`, i, timestamp, i)
			}
			text := "{" + body.String()[1:] + "}"
			p := s.prepare(resolved(t, "l/"+keyBefore, text, timeBefore))
			defer p.Close()
			w := resolved(t, "l/"+keyAfter, text, timeAfter)
			if ok, err := p.Renew(w, timeBefore, timeAfter); !ok || err != nil {
				t.Fatalf("Renew = %v, %v", ok, err)
			}
			s.commitPrepared(w, p)
			want := string(tree.AppendJSON(nil, w.Assignments[0].Node, tree.Export))
			for range 2 {
				s.expect("l/"+keyBefore, "null")
				s.expect("l/"+keyAfter, want)
				if err := checkIndexes(s.Live(s.id), indexes); err != nil {
					t.Error(err)
				}
				s.close()
				s = openStand(t, opts)
			}
			s.close()
		})
	}
}

// commitPrepared commits a write whose rows are prepared.
func (s *stand) commitPrepared(w tree.Write, p *batch.Prepared) {
	s.Helper()
	change := tree.Change{Write: w, Position: s.position + 1, Millis: s.opts.Now().UnixMilli()}
	batch, err := s.Build(s.Live(s.id), change, s.indexes, p, &s.frontier)
	if err != nil {
		s.Fatal(err)
	}
	done := make(visible)
	if err := s.Commit(batch, done); err != nil {
		s.Fatal(err)
	}
	s.position++
	<-done
}
