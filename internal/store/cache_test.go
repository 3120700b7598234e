package store

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestReadOfDataLargerThanTheCache: where the data is many times the block cache, a
// read takes one block from disk. What leads to that, the indexes and the filters of
// the tables, is small enough to stay.
func TestReadOfDataLargerThanTheCache(t *testing.T) {
	if raceEnabled {
		t.Skip("it counts blocks in one goroutine")
	}
	const cacheBytes, children, reads = 1 << 20, 30_000, 3000
	s := newStand(t, Options{CacheBytes: cacheBytes, MemTableBytes: 256 << 10})
	rng := rand.New(rand.NewPCG(1, 2))
	var body strings.Builder
	for i := range children {
		fmt.Fprintf(&body, `,"%s":%s`, userKey(i), record(rng))
	}
	if body.Len() < 5*cacheBytes {
		t.Fatalf("%d bytes of data are not much more than the cache", body.Len())
	}
	s.put("users", "{"+body.String()[1:]+"}")
	s.settle()

	view := s.View()
	defer view.Release()
	read := func(text string) {
		if err := view.Tree(s.id).Print(io.Discard, parsePath(t, text), tree.Plain); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		text   func(i int) string
		blocks float64
	}{
		{"children", func(i int) string { return "users/" + userKey(i) }, 1.2},
		{"leaves", func(i int) string { return "users/" + userKey(i) + "/age" }, 1.2},
		// Filters rule out what is not there; where they cannot, it takes a block.
		{"children that are not there", func(i int) string { return fmt.Sprintf("users/user%06dx", i) }, 1.3},
	} {
		for range 200 { // the cache finds out what is worth keeping
			read(test.text(rng.IntN(children)))
		}
		before := s.Stats().Pebble
		for range reads {
			read(test.text(rng.IntN(children)))
		}
		after := s.Stats().Pebble
		got := float64(after.CacheMisses-before.CacheMisses) / reads
		t.Logf("%s: %.2f blocks a read; the cache holds %d bytes", test.name, got, after.CacheBytes)
		if got > test.blocks {
			t.Errorf("a read of %s takes %.2f blocks, want at most %.1f", test.name, got, test.blocks)
		}
	}
}
