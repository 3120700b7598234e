package store_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store"
)

// TestLevelOfTheCluster: the level is noted with its record, is there after a restart, and is forgotten with what was applied.
func TestLevelOfTheCluster(t *testing.T) {
	t.Parallel()
	opts := store.Options{FS: vfs.NewMem(), BallastBytes: -1}
	open := func(replicated bool) *store.Store {
		t.Helper()
		o := opts
		o.Replicated = replicated
		s, err := store.Open("data", o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	closing := func(s *store.Store) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := func(s *store.Store, want uint16) {
		t.Helper()
		if level, err := store.LevelOf(s); err != nil || level != want {
			t.Errorf("the level is %d, %v, want %d", level, err, want)
		}
	}
	closing(open(false))
	s := open(true)
	want(s, 0)
	if err := store.CommitLevel(s, 2, store.Applied{Shard: 0, Number: 1, Tenure: 1}); err != nil {
		t.Fatal(err)
	}
	want(s, 2)
	if err := store.CommitLevel(s, 3, store.Applied{Shard: 0, Number: 1, Tenure: 1}); err == nil {
		t.Error("a level is noted without the record that comes next")
	}
	closing(s)
	s = open(true)
	want(s, 2)
	if applied, err := store.AppliedOf(s, 0); err != nil || applied.Number != 1 {
		t.Errorf("applied is %+v, %v", applied, err)
	}
	closing(s)
	if err := store.ForgetApplied("data", opts); err != nil {
		t.Fatal(err)
	}
	s = open(false)
	want(s, 0)
	closing(s)
}
