package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/journal"
)

// TestSweepLeavesNewRecords: records of commits that are made while others are swept stay.
func TestSweepLeavesNewRecords(t *testing.T) {
	t.Parallel()
	s, err := Open("data", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const count, busy = 1500, 50
	dbs := make([]*stand, count)
	for i := range dbs {
		dbs[i] = useDatabase(t, s, fmt.Sprint("db", i))
	}
	f := follow(t, s, 1<<40)
	defer f.hold.Close()
	for round := range 4 {
		for _, db := range dbs {
			db.set(Settings{"rules": []byte(fmt.Sprint(round))})
		}
		if err := f.hold.Restart(); err != nil { // what was kept is given up
			t.Fatal(err)
		}
		if err := f.hold.Begin(f.positions()); err != nil {
			t.Fatal(err)
		}
		var sweep sync.WaitGroup
		sweep.Go(s.holds.Sweep)
		for i := range busy {
			dbs[i].set(Settings{"rules": []byte(fmt.Sprint("new", round))})
		}
		sweep.Wait()
		dbs[count-1].set(Settings{"rules": []byte("another view")})
		read := 0
		err := f.hold.Pending(func(p journal.Pending) bool {
			err := f.hold.Read(p.DB, p.From, p.To, func(uint64, []byte) error { read++; return nil })
			if err != nil {
				t.Errorf("round %d: after %d records: %v", round, read, err)
			}
			return err == nil
		})
		if err != nil || read < busy {
			t.Errorf("round %d: %d records were read, want %d at least: %v", round, read, busy, err)
		}
	}
}
