package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/journal"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A shareStand is two stores of a cluster that take the same notes.
type shareStand struct {
	*testing.T
	stores [2]*Store
	holds  [2]*journal.Hold
	number uint64   // of the last control record
	late   [][]byte // notes that the second store has not taken yet
	lags   bool     // the second store takes no notes
	fails  error
}

func newShareStand(t *testing.T) *shareStand {
	t.Helper()
	s := &shareStand{T: t}
	for i := range s.stores {
		s.stores[i] = openReplicated(t, vfs.NewMem())
		var err error
		s.holds[i], err = Hold(s.stores[i], "test", journal.Options{Bound: 1 << 20, Share: s.share})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := range s.stores {
			s.holds[i].Close()
			closeStore(t, s.stores[i])
		}
	})
	s.create("first") // in the shard of the notes; others are in other shards
	return s
}

func (s *shareStand) share(notes []byte) error {
	if s.fails != nil {
		return s.fails
	}
	if _, err := DecodeNaming(notes); err == nil || !journal.IsNotes(notes) || layout.IsNote(notes) {
		s.Errorf("notes are read as something else: %x", notes)
	}
	s.number++
	if err := CommitHeldNotes(s.stores[0], notes, Applied{Number: s.number}); err != nil {
		return err
	}
	s.late = append(s.late, notes)
	s.takeLate()
	return nil
}

// takeLate has the second store take the notes that it lacks, unless it lags.
func (s *shareStand) takeLate() {
	s.Helper()
	for len(s.late) > 0 && !s.lags {
		next := s.number - uint64(len(s.late)) + 1
		if err := CommitHeldNotes(s.stores[1], s.late[0], Applied{Number: next}); err != nil {
			s.Fatal(err)
		}
		s.late = s.late[1:]
	}
}

// create makes a database in both stores.
func (s *shareStand) create(name string) layout.ID {
	s.Helper()
	s.number++
	naming, err := NewNaming(s.stores[0], name, 16)
	if err != nil {
		s.Fatal(err)
	}
	for i := range s.stores {
		if err := CommitNaming(s.stores[i], naming, Applied{Number: s.number}); err != nil {
			s.Fatal(err)
		}
		s.show(i)
	}
	return naming.ID
}

// show has views of a store show all that was committed.
func (s *shareStand) show(store int) {
	s.Helper()
	done := make(visible)
	if err := s.stores[store].Barrier(done); err != nil {
		s.Fatal(err)
	}
	<-done
}

// write commits to one store, in the shard of the database.
func (s *shareStand) write(store int, id layout.ID, position uint64, drop bool) {
	s.Helper()
	of := s.stores[store]
	change := tree.Change{Position: position, Millis: int64(1000 * position), Write: putWrite(s.T, "/a", fmt.Sprint(position))}
	var b *Batch
	var err error
	if drop {
		b, err = of.BuildDrop("db", id, change)
	} else {
		b, err = of.Build(of.Live(id), change, nil, nil, nil)
	}
	if err != nil {
		s.Fatal(err)
	}
	if err := CommitRecord(of, []RecordPart{{Batch: b, Ticket: forgotten{}}}, Applied{Shard: byte(ShardOf(id)), Number: position}); err != nil {
		s.Fatal(err)
	}
	s.show(store)
}

// begin has the first store's holder note a base of all that is there.
func (s *shareStand) begin(positions ...journal.Released) {
	s.Helper()
	if err := s.holds[0].Begin(append(positions, journal.Released{DB: 1}, journal.Released{Note: []byte("base")})); err != nil {
		s.Fatal(err)
	}
}

// release reads and releases all that waits at the first store.
func (s *shareStand) release() (read []uint64) {
	s.Helper()
	var list []journal.Released
	err := s.holds[0].Pending(func(p journal.Pending) bool {
		err := s.holds[0].Read(p.DB, p.From, p.To, func(position uint64, _ []byte) error {
			read = append(read, position)
			return nil
		})
		if err != nil {
			s.Fatal(err)
		}
		list = append(list, journal.Released{DB: p.DB, Position: p.To, Note: fmt.Append(nil, p.To)})
		return true
	})
	if err == nil {
		err = s.holds[0].Release(append(list, journal.Released{Note: []byte("end")}))
	}
	if err != nil {
		s.Fatal(err)
	}
	return read
}

// waits returns how many databases the second store has something to read of.
func (s *shareStand) waits() int {
	n, _ := s.holds[1].Waiting()
	return n
}

// TestSharedHold has the hold of a second store go on where that of the first one was.
func TestSharedHold(t *testing.T) {
	s := newShareStand(t)
	id := s.create("db")
	s.write(0, id, 1, false)
	s.write(1, id, 1, false)
	s.begin(journal.Released{DB: id, Position: 1})
	if err := s.holds[1].Resume(); err != nil || s.holds[1].State() != journal.Following || s.waits() != 0 {
		t.Fatalf("the second store is in state %d with %d databases: %v", s.holds[1].State(), s.waits(), err)
	}
	for position := uint64(2); position < 5; position++ {
		s.write(0, id, position, false)
	}
	s.write(1, id, 2, false)
	passed := s.holds[1].Passed()
	if passed() || s.waits() != 1 {
		t.Errorf("before it is released, %d databases wait", s.waits())
	}
	s.release() // up to 4, of which the second store has 2
	if !passed() || s.waits() != 0 {
		t.Errorf("after it is released, %d databases wait", s.waits())
	}
	for position := uint64(3); position < 6; position++ {
		s.write(1, id, position, false)
	}
	if s.waits() != 1 {
		t.Errorf("%d databases wait of what was not released", s.waits())
	}
	var from uint64
	err := s.holds[1].Pending(func(p journal.Pending) bool {
		from = p.From
		return bytes.Equal(p.Note, []byte("4"))
	})
	if note, noteErr := s.holds[1].Note(); from != 5 || string(note) != "end" || err != nil || noteErr != nil {
		t.Errorf("the second store goes on at %d with the note %q: %v, %v", from, note, err, noteErr)
	}
}

// TestSharedDrop has a store know of a drop only after that was released, and keep nothing of it.
func TestSharedDrop(t *testing.T) {
	for _, renamed := range []bool{false, true} {
		s := newShareStand(t)
		id := s.create("db")
		s.begin(journal.Released{DB: id})
		if err := s.holds[1].Resume(); err != nil {
			t.Fatal(err)
		}
		s.write(0, id, 1, true)
		if renamed {
			s.create("db")
		}
		s.release()
		s.write(1, id, 1, true)
		s.stores[1].holds.Sweep()
		if renamed {
			s.release()
		}
		if n := droppedRows(t, s.stores[1]); n != 0 || s.waits() != 0 {
			t.Errorf("renamed %t: %d rows of dropped databases, %d databases wait", renamed, n, s.waits())
		}
		if again := s.stores[1]; again.holds.Floor(id) < 1 {
			t.Error("the log of the database is kept")
		}
	}
}

// TestSharedDropThatComesLate: of a database that was made and dropped after the base, and whose name another has, a store is told that
// it was released before the drop comes to it. Nothing waits of it, whenever the store begins again.
func TestSharedDropThatComesLate(t *testing.T) {
	for _, again := range []string{"never", "before the drop", "after the drop"} {
		t.Run(again, func(t *testing.T) {
			s := newShareStand(t)
			s.begin()
			resume := func(when string) {
				err := error(nil)
				if when == again {
					err = s.holds[1].Restart()
				}
				if err = errors.Join(err, s.holds[1].Resume()); err != nil || s.holds[1].State() != journal.Following {
					t.Fatalf("the second store is in state %d %s: %v", s.holds[1].State(), when, err)
				}
			}
			resume("at first")
			id := s.create("db")
			s.write(0, id, 1, true)
			s.create("db")
			s.release()
			resume("before the drop")
			s.write(1, id, 1, true)
			resume("after the drop")
			s.release() // of the second database
			s.stores[1].holds.Sweep()
			if n := droppedRows(t, s.stores[1]); n != 0 || s.waits() != 0 {
				t.Errorf("%d rows of dropped databases, %d databases wait", n, s.waits())
			}
		})
	}
}

// TestSharedHoldIsTold: what the others were not told is not released, and who begins anew is followed.
func TestSharedHoldIsTold(t *testing.T) {
	s := newShareStand(t)
	id := s.create("db")
	s.begin(journal.Released{DB: id})
	if err := s.holds[1].Resume(); err != nil {
		t.Fatal(err)
	}
	s.write(0, id, 1, false)
	s.write(1, id, 1, false)
	s.fails = errors.New("another node is the home")
	if err := s.holds[0].SetNote([]byte("x")); !errors.Is(err, s.fails) {
		t.Errorf("a note that nobody takes: %v", err)
	}
	s.fails = nil
	if note, err := s.holds[0].Note(); err != nil || string(note) != "base" {
		t.Errorf("the note is %q: %v", note, err)
	}
	if err := s.holds[0].Restart(); err != nil {
		t.Fatal(err)
	}
	s.lags = true
	s.begin(journal.Released{DB: id, Position: 1})
	s.lags = false
	s.takeLate()
	if s.holds[1].State() != journal.Beginning {
		t.Errorf("the second store is in state %d after another base", s.holds[1].State())
	}
	if err := s.holds[1].Resume(); err != nil || s.holds[1].State() != journal.Following || s.waits() != 0 {
		t.Errorf("the second store is in state %d with %d databases: %v", s.holds[1].State(), s.waits(), err)
	}
}

// TestSharedBaseAfterDrop: of a database that was dropped before the base nothing waits at a store that goes on from it.
func TestSharedBaseAfterDrop(t *testing.T) {
	s := newShareStand(t)
	id := s.create("db")
	s.begin(journal.Released{DB: id})
	for i := range s.stores {
		s.write(i, id, 1, true)
	}
	if err := s.holds[0].Restart(); err != nil {
		t.Fatal(err)
	}
	s.begin()
	if err := s.holds[1].Resume(); err != nil || s.holds[1].State() != journal.Following {
		t.Fatalf("the second store is in state %d: %v", s.holds[1].State(), err)
	}
	s.stores[1].holds.Sweep()
	if n := droppedRows(t, s.stores[1]); n != 0 || s.waits() != 0 {
		t.Errorf("%d rows of dropped databases, %d databases wait", n, s.waits())
	}
}

// TestNumbersFromAClusterLeaveNext: a database that comes from a cluster, with its shard in its number, does not use up numbers.
func TestNumbersFromAClusterLeaveNext(t *testing.T) {
	s, err := Open("data", Options{FS: vfs.NewMem(), BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if err := CreateAs(s, "far", 15<<24|16); err != nil {
		t.Fatal(err)
	}
	if id, err := s.Create("next"); err != nil || id != 17 {
		t.Errorf("the next database has the number %x, %v; want 17", id, err)
	}
}
