package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// openReplicated opens a store without a log of its own.
func openReplicated(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("data", Options{FS: fs, Now: newClock().now, BallastBytes: -1, Replicated: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// commitNames makes databases by records, from a number on.
func commitNames(t *testing.T, s *Store, from, count int) {
	t.Helper()
	for n := from; n < from+count; n++ {
		naming, err := NewNaming(s, fmt.Sprintf("db%d", n), 16)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeNaming(naming.Encode())
		if err != nil || back != naming {
			t.Fatalf("%v became %v, %v", naming, back, err)
		}
		if err := CommitNaming(s, back, Applied{Number: uint64(n), Tenure: 1}); err != nil {
			t.Fatal(err)
		}
	}
}

func applied(t *testing.T, s *Store) uint64 {
	t.Helper()
	a, err := AppliedOf(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a.Number
}

// TestReplicatedCrash loses what was not flushed, whole records from the end, and opens again.
func TestReplicatedCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openReplicated(t, mem)
	commitNames(t, s, 1, 20)
	if err := Flush(s); err != nil {
		t.Fatal(err)
	}
	commitNames(t, s, 21, 5)
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	closeStore(t, s)

	s = openReplicated(t, crashed)
	if got := applied(t, s); got != 20 {
		t.Errorf("after a crash the store has %d records, not the 20 that were flushed", got)
	}
	if _, found, err := s.Find("db20"); !found || err != nil {
		t.Errorf("the last database that was flushed: %v, %v", found, err)
	}
	if _, found, _ := s.Find("db21"); found {
		t.Error("a database without its record is there")
	}
	commitNames(t, s, 21, 3)
	closeStore(t, s)
	s = openReplicated(t, crashed)
	defer closeStore(t, s)
	if got := applied(t, s); got != 23 {
		t.Errorf("after a close the store has %d records of 23", got)
	}
}

// TestNamingSpreads holds the numbers of databases to what cluster and single server expect of them.
func TestNamingSpreads(t *testing.T) {
	s := openReplicated(t, vfs.NewMem())
	defer closeStore(t, s)
	commitNames(t, s, 1, 33)
	for n := 1; n <= 33; n++ {
		id, found, err := s.Find(fmt.Sprintf("db%d", n))
		if want := layout.ID((n-1)%16)<<24 | layout.ID(n); err != nil || !found || id != want {
			t.Errorf("database %d has the number %x (%v, %v), not %x", n, id, found, err, want)
		}
	}
	if _, err := NewNaming(s, "db7", 16); !errors.Is(err, ErrExists) {
		t.Errorf("a name for the second time: %v", err)
	}
	if err := CommitNaming(s, Naming{Name: "late", ID: 40, next: 41}, Applied{Number: 40}); !errors.Is(err, ErrRecord) {
		t.Errorf("a record that is not the next: %v", err)
	}
	for _, bad := range []string{"", "12345678", "\x00\x00\x00\x05\x00\x00\x00\x09name"} {
		if n, err := DecodeNaming([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, n)
		}
	}
}

// TestDropLeavesALaterName drops a database whose name another has by now.
func TestDropLeavesALaterName(t *testing.T) {
	s := openReplicated(t, vfs.NewMem())
	defer closeStore(t, s)
	commitNames(t, s, 1, 1)
	if err := CommitNaming(s, Naming{Name: "db1", ID: 1<<24 | 2, next: 3}, Applied{Number: 2}); err != nil {
		t.Fatal(err)
	}
	b, err := s.BuildDrop("db1", 1, tree.Change{Position: 1, Millis: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := CommitRecord(s, []RecordPart{{Batch: b}}, Applied{Number: 3}); err != nil {
		t.Fatal(err)
	}
	if id, found, err := s.Find("db1"); err != nil || !found || id != 1<<24|2 {
		t.Errorf("the name is that of %x (%v, %v)", id, found, err)
	}
}

// TestDropOfADisplaced has a name become another's after the drop of the first was worked out, and before it is committed.
func TestDropOfADisplaced(t *testing.T) {
	s := openReplicated(t, vfs.NewMem())
	defer closeStore(t, s)
	commitNames(t, s, 1, 1)
	b, err := s.BuildDrop("db1", 1, tree.Change{Position: 1, Millis: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := CommitNaming(s, Naming{Name: "db1", ID: 1<<24 | 2, next: 3}, Applied{Number: 2}); err != nil {
		t.Fatal(err)
	}
	displaced := map[ID]string{}
	look := func() {
		clear(displaced)
		if err := Displaced(s, func(name string, id ID) { displaced[id] = name }); err != nil {
			t.Fatal(err)
		}
	}
	if look(); len(displaced) != 1 || displaced[1] != "db1" {
		t.Errorf("the displaced databases are %v, want 1 as db1", displaced)
	}
	if err := CommitDrop(s, "db1", RecordPart{Batch: b}, Applied{Number: 3}); err != nil {
		t.Fatal(err)
	}
	if id, found, err := s.Find("db1"); err != nil || !found || id != 1<<24|2 {
		t.Errorf("the name is that of %x (%v, %v)", id, found, err)
	}
	if look(); len(displaced) != 0 {
		t.Errorf("the displaced databases are %v after the drop", displaced)
	}
}

// TestReplicatedCheckpoint copies a store whose newest commits are in memory, goes on with the copy, and makes it
// one of a single server.
func TestReplicatedCheckpoint(t *testing.T) {
	mem := vfs.NewMem()
	s := openReplicated(t, mem)
	commitNames(t, s, 1, 10)
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	to := vfs.NewMem()
	copied, err := vfs.Clone(mem, to, c.Dir, "data")
	if err != nil || !copied {
		t.Fatal(copied, err)
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)

	other := openReplicated(t, to)
	if got := applied(t, other); got != 10 {
		t.Errorf("the copy has %d records of 10", got)
	}
	commitNames(t, other, 11, 1)
	closeStore(t, other)
	if err := ForgetApplied("data", Options{FS: to}); err != nil {
		t.Fatal(err)
	}
	alone, err := Open("data", Options{FS: to, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, alone)
	if got, err := AppliedOf(alone, 0); err != nil || got != (Applied{Tenure: 1}) {
		t.Errorf("what counts as applied is %+v, %v, want nothing but the tenure", got, err)
	}
	id, err := alone.Create("alone")
	if err != nil || id != 12 {
		t.Errorf("the next database of a single server has the number %x, %v", id, err)
	}
}
