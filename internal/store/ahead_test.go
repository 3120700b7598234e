package store

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A laggard is a disk whose reads take a while, once it is told.
type laggard struct {
	vfs.FS
	mu     sync.Mutex
	turn   sync.Cond
	lag    time.Duration
	reads  int
	flying int // reads at this moment
	most   int
	// together is from which read on each waits until another one is under way; 0 for never.
	together int
	alone    int // those that waited for nothing
}

func newLaggard() *laggard {
	l := &laggard{FS: vfs.NewMem()}
	l.turn.L = &l.mu
	return l
}

func (l *laggard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := l.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return lagging{f, l}, nil
}

type lagging struct {
	vfs.File
	disk *laggard
}

func (f lagging) ReadAt(p []byte, off int64) (int, error) {
	l := f.disk
	l.mu.Lock()
	lag := l.lag
	if lag > 0 {
		l.begin()
	}
	l.mu.Unlock()
	if lag == 0 {
		return f.File.ReadAt(p, off)
	}
	time.Sleep(lag) //nolint:forbidigo // the disk is slow
	l.mu.Lock()
	l.flying--
	l.mu.Unlock()
	return f.File.ReadAt(p, off)
}

// begin counts a read, and has it wait for another one if it is to.
func (l *laggard) begin() {
	l.reads++
	l.flying++
	l.most = max(l.most, l.flying)
	l.turn.Broadcast()
	if l.together == 0 || l.reads < l.together {
		return
	}
	late := time.AfterFunc(20*time.Second, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.alone++
		l.together = 0
		l.turn.Broadcast()
	})
	defer late.Stop()
	for l.most < 2 && l.together > 0 {
		l.turn.Wait()
	}
}

// slow sets what reads take from now on.
func (l *laggard) slow(lag time.Duration, together int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lag, l.together, l.reads, l.most, l.alone = lag, together, 0, 0, 0
}

// newAheadStand returns a store on a slow disk, with n strings in /l that are indexed by value, in another order than
// that of their keys, and a cache that holds few of them.
func newAheadStand(t testing.TB, n int, ahead AheadBounds) (*stand, *laggard, tree.Node) {
	disk := newLaggard()
	s := newStand(t, Options{FS: disk, Ahead: ahead, CacheBytes: 64 << 10, RowBytes: -1})
	s.memos.Init(0)
	s.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{"l": {Here: []layout.Index{valueIndexed}}}}
	rng := rand.New(rand.NewPCG(1, 2))
	var body strings.Builder
	for i, at := range rng.Perm(n) {
		text := "" // that hardly packs
		for len(text) < 400 {
			text += fmt.Sprintf("%016x", rng.Uint64())
		}
		fmt.Fprintf(&body, `,"k%06d":"%06d%s"`, i, at, text)
	}
	text := "{" + body.String()[1:] + "}"
	s.put("/l", text)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	node, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s, disk, node
}

// among returns a query for some of the strings of newAheadStand.
func among(from, limit int) query.Query {
	return query.Query{Order: query.ByValue(), Limit: limit, Lower: query.Bound{Set: true, Value: tree.StringLeaf(fmt.Sprintf("%06d", from))}}
}

// printSelected writes what a query by value selects from /l.
func (s *stand) printSelected(w io.Writer, q query.Query) error {
	view := s.View()
	defer view.Release()
	selection, err := view.Tree(s.id).Select(parsePath(s, "/l"), q, &valueIndexed, tree.Plain)
	if err != nil {
		return err
	}
	return errors.Join(selection.PrintTo(w), selection.Close())
}

// TestAhead: on a slow disk the children of a query are read several at a time, and what is printed is the same.
func TestAhead(t *testing.T) {
	t.Parallel()
	s, disk, node := newAheadStand(t, 2000, AheadBounds{})
	ahead := func() int64 {
		before := s.shared.AheadReads.Load()
		s.expectSelected(node, among(100, 100))
		return int64(s.shared.AheadReads.Load() - before)
	}
	n := ahead()
	for tries := 0; n > 0 && tries < 20; tries++ {
		n = ahead() // on a busy machine any disk may be slow for a moment
	}
	if n > 0 {
		t.Errorf("%d rows were read ahead from a disk that is fast", n)
	}
	disk.slow(time.Millisecond, 30)
	s.expectSelected(node, among(700, 100))
	disk.mu.Lock()
	defer disk.mu.Unlock()
	if disk.most < 2 || disk.alone > 0 || s.shared.AheadReads.Load() == 0 {
		t.Errorf("of %d reads of a slow disk at most %d were under way at a time; %d rows were read ahead", disk.reads, disk.most, s.shared.AheadReads.Load())
	}
}

// TestAheadIsBounded: all queries together read no more ahead than the store allows, and one whose client has left ends what was read for it.
func TestAheadIsBounded(t *testing.T) {
	t.Parallel()
	const queries, total = 6, 3
	s, disk, _ := newAheadStand(t, 2000, AheadBounds{Probe: 1, Each: 2, Total: total})
	disk.slow(200*time.Microsecond, 0)
	gone := errors.New("the client has left")
	var all sync.WaitGroup
	for i := range queries {
		all.Go(func() {
			var w io.Writer = io.Discard
			if i%2 == 0 {
				w = failingWriter{gone}
			}
			for from := i; from < 1500; from += 300 {
				if err := s.printSelected(w, among(from, 400)); err != nil && !errors.Is(err, gone) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	disk.mu.Lock()
	defer disk.mu.Unlock()
	if most := queries + total; disk.most > most {
		t.Errorf("%d reads at a time, want at most %d", disk.most, most)
	}
	if s.shared.AheadReads.Load() == 0 {
		t.Error("nothing was read ahead")
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// BenchmarkAhead looks a hundred children up on disks of several speeds, one after the other and several at a time.
func BenchmarkAhead(b *testing.B) {
	for _, lag := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond} {
		for _, way := range []struct {
			name  string
			ahead AheadBounds
		}{{"one by one", AheadBounds{Each: -1}}, {"ahead", AheadBounds{}}} {
			b.Run(fmt.Sprintf("%v/%s", lag, way.name), func(b *testing.B) {
				s, disk, _ := newAheadStand(b, 20_000, way.ahead)
				disk.slow(lag, 0)
				for i := 0; b.Loop(); i++ {
					if err := s.printSelected(io.Discard, among(i*137%19_000, 100)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
