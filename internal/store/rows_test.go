package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// bothWays reads in a view with the rows that are remembered and without, and without memos.
func bothWays(r reading, v *View, id layout.ID) error {
	got, _, err := r.text(v, id, &seek.Cost{})
	if err != nil {
		return err
	}
	alone := r
	alone.alone = true
	want, _, err := alone.text(v, id, &seek.Cost{})
	if err == nil && got != want {
		err = fmt.Errorf("%+v in view %d is %s, want %s", r, v.number, got, want)
	}
	return err
}

// manyChildren are so many that deleting them is one delete of a range.
func manyChildren(i int) string {
	var body strings.Builder
	for child := range 300 {
		fmt.Fprintf(&body, `,"k%d":"%d"`, child, i)
	}
	return "{" + body.String()[1:] + "}"
}

// TestRowsOfConcurrentReads: while commits are under way that no view shows yet, readers of many views get from the
// cache of rows what Pebble has.
func TestRowsOfConcurrentReads(t *testing.T) {
	for _, limit := range []int{-1, 24, DefaultChunkBytes} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s := newStand(t, Options{ChunkBytes: limit})
			places := []string{"/", "a", "a/b", "a/b/k1", "a/x", "a/x/k1", "d/k1", "d/1"}
			var readers sync.WaitGroup
			var rounds atomic.Int64 // of all readers
			done := make(chan struct{})
			for i := range 3 {
				readers.Go(func() {
					rng := rand.New(rand.NewPCG(11, uint64(i)))
					for {
						select {
						case <-done:
							return
						default:
						}
						view := s.View()
						err := bothWays(randomReading(t, rng, places), view, s.id)
						for range 20 {
							err = errors.Join(err, bothWays(reading{at: parsePath(t, places[rng.IntN(len(places))])}, view, s.id))
						}
						view.Release()
						if err != nil {
							t.Error(err)
							return
						}
						rounds.Add(1)
					}
				})
			}
			rng := rand.New(rand.NewPCG(11, 99))
			for i := range 600 {
				at, body := places[1+rng.IntN(len(places)-1)], fmt.Sprint(i)
				switch rng.IntN(6) {
				case 0:
					body = manyChildren(i)
				case 1:
					body = `null`
				case 2, 3:
					body = fmt.Sprintf(`{"k1":"%d","k2":{".value":2,".priority":%d}}`, i, i)
				}
				if err := s.Commit(s.build(putWrite(t, at, body)), forgotten{}); err != nil {
					t.Fatal(err)
				}
				s.position++
			}
			for rounds.Load() < 20 && !t.Failed() { // on a busy machine the readers may not have begun
				runtime.Gosched()
			}
			close(done)
			readers.Wait()
			if stats := s.Stats().Rows; stats.Hits == 0 || stats.Misses == 0 || stats.Bytes > standRows {
				t.Errorf("the cache of %d bytes has %+v", standRows, stats)
			}
		})
	}
}

// TestRowOfAFailedCommit: a commit that is refused leaves nothing in the cache of rows.
func TestRowOfAFailedCommit(t *testing.T) {
	s := newStand(t, Options{})
	s.put("a/b", `"old"`)
	look := func() string {
		leaf, _, err := s.Live(s.id).Look(parsePath(t, "a/b"))
		if err != nil {
			t.Fatal(err)
		}
		return leaf.Text()
	}
	if look(); look() != "old" {
		t.Fatalf("a/b is %s", look())
	}
	s.pipeline.shut = true
	err := s.Store.Commit(s.build(putWrite(t, "a/b", `"new"`)), forgotten{})
	s.pipeline.shut = false
	if !errors.Is(err, ErrClosed) {
		t.Fatalf("Commit = %v, want ErrClosed", err)
	}
	if got := look(); got != "old" {
		t.Errorf("after a commit that failed a/b is %s, want what it was", got)
	}
}

// TestChecksReadWhatIsStored: a check of the indexes does not take the word of the cache.
func TestChecksReadWhatIsStored(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: 24})
	s.put("a", `{"x":{".value":"text",".priority":1},"y":{".value":"text that is long",".priority":2}}`)
	view := s.View()
	defer view.Release()
	key := layout.DataKey(nil, s.id, parsePath(t, "a/x"))
	node := putWrite(t, "a/x", `{".value":"text",".priority":9}`).Assignments[0].Node
	wrong, _ := layout.AppendChunk(nil, node, DefaultChunkBytes, nil)
	s.Store.rows.Keep(key, wrong, view.number)
	if got, err := view.Tree(s.id).Priority(parsePath(t, "a/x")); err != nil || got != tree.IntegerLeaf(9) {
		t.Fatalf("the wrong row is not in the cache: %v, %v", got, err)
	}
	err := inspect.CheckIndexes(view.Tree(s.id).Reader(), nil, func(uint32) bool { return false }, func(f Flaw) bool {
		t.Errorf("the check reports %v", f.Err)
		return true
	})
	if err != nil {
		t.Error(err)
	}
}
