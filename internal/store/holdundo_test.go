package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/tree"
)

// A failing stand is one whose commits can be refused while the store lives on.
type failing struct{ *stand }

// drop works out the drop of the database.
func (s *failing) drop() *batch.Batch {
	s.Helper()
	b, err := s.BuildDrop("db", s.id, tree.Change{Position: s.position + 1, Author: tree.NewAuthor(tree.BySecret, "")})
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// refuse has commits refused: one by itself, or those of a record.
func (s *failing) refuse(record bool, batches ...*batch.Batch) {
	s.Helper()
	s.pipeline.shut = true
	defer func() { s.pipeline.shut = false }()
	var parts []RecordPart
	for _, b := range batches {
		parts = append(parts, RecordPart{b, nil})
	}
	var err error
	if record || len(parts) > 1 {
		err = CommitRecord(s.Store, parts, Applied{Shard: 3, Number: 1})
	} else {
		err = s.Store.Commit(batches[0], forgotten{})
	}
	if !errors.Is(err, ErrClosed) {
		s.Fatalf("a commit that is to be refused gives %v, want ErrClosed", err)
	}
}

// TestHoldOfAFailedDrop: a database whose drop could not be committed lives on, and keeps its log when the holder has
// read what comes next.
func TestHoldOfAFailedDrop(t *testing.T) {
	t.Parallel()
	for _, record := range []bool{false, true} {
		s := &failing{openStand(t, Options{FS: vfs.NewMem()})}
		f := follow(t, s.Store, 1<<40)
		s.refuse(record, s.drop())
		s.put("a", `1`)
		if err := f.catchUp(); err != nil {
			t.Fatal(err)
		}
		if _, n := s.logged(); n != 1 {
			t.Errorf("record %v: %d rows are left of the log after a drop that failed, want 1", record, n)
		}
		s.put("a", `2`)
		if err := f.catchUp(); err != nil {
			t.Fatal(err)
		}
		f.same(fmt.Sprintf("record %v", record))
	}
}

// TestHoldOfFailedCommits: commits that fail, also several of a database at once, and the last of them a drop, change
// nothing of what a hold keeps, counts and offers.
func TestHoldOfFailedCommits(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 6))
	s := &failing{openStand(t, Options{FS: vfs.NewMem()})}
	f := follow(t, s.Store, 1<<40)
	waiting := 0
	state := func() string {
		bytes, lost := f.hold.Stats()
		databases, oldest := f.hold.Waiting()
		if waiting > 29 {
			bytes = -1 // what has become one segment with others stays counted
		}
		return fmt.Sprint(bytes, lost, databases, oldest.UnixMilli())
	}
	for step := range 300 {
		switch rng.IntN(4) {
		case 0:
			waiting++
			s.put("a", `"`+strings.Repeat("x", rng.IntN(2000))+`"`)
		case 1:
			if rng.IntN(20) > 0 {
				continue // so that there are sometimes more commits than segments
			}
			waiting = 0
			if err := f.catchUp(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		default:
			before := state()
			s.refuse(rng.IntN(2) == 0, s.some(rng)...)
			if got := state(); got != before {
				t.Fatalf("seed %d, step %d: the hold is %s after commits that failed, want %s", seed, step, got, before)
			}
		}
	}
	if err := f.catchUp(); err != nil {
		t.Fatal(err)
	}
	f.same(fmt.Sprintf("seed %d", seed))
	if bytes, _ := f.hold.Stats(); bytes != 0 {
		t.Errorf("seed %d: %d bytes are kept when everything is released, want 0", seed, bytes)
	}
}

// some works out a commit or two, which may be a drop.
func (s *failing) some(rng *rand.Rand) (list []*batch.Batch) {
	if rng.IntN(3) == 0 {
		return []*batch.Batch{s.drop()}
	}
	at := s.position
	defer func() { s.position = at }()
	list = append(list, s.build(putWrite(s, "b", `1`)))
	s.position++
	if rng.IntN(2) == 0 {
		list = append(list, s.drop())
	}
	return list
}
