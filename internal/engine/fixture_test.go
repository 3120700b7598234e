package engine_test

import (
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/tree"
)

// A fixture is a database in a store in memory.
type fixture struct{ *enginetest.Fixture }

func open(t testing.TB, opts store.Options) *fixture {
	t.Helper()
	return &fixture{enginetest.Open(t, opts)}
}

func everyLimit(t *testing.T, test func(t *testing.T, f *fixture)) {
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) { test(t, &fixture{f}) })
}

var (
	admin    = enginetest.Admin
	user     = enginetest.User
	path     = enginetest.Path
	put      = enginetest.DecodePut
	whole    = enginetest.Whole
	filtered = enginetest.Filtered
)

// checkIndexes compares the rows of all indexes that are ready with the data.
func checkIndexes(v *state.View) error {
	list := v.Settings.List
	skip := func(number uint32) bool {
		i := list.Find(number)
		return number != 0 && (i < 0 || list.Entries[i].State != state.IndexReady)
	}
	return firstFlaw(func(report func(store.Flaw) bool) error {
		return inspect.CheckIndexes(v.Tree().Reader(), v.Settings.Indexes, skip, report)
	})
}

// checkData returns the first flaw in the data rows of a tree.
func checkData(t store.Tree) error {
	return firstFlaw(func(report func(store.Flaw) bool) error { return inspect.CheckData(t.Reader(), report) })
}

// firstFlaw returns the first flaw that a check reports, or what kept the check from
// reading on.
func firstFlaw(check func(report func(store.Flaw) bool) error) error {
	var first error
	err := check(func(f store.Flaw) bool {
		first = f.Err
		return false
	})
	return errors.Join(first, err)
}

// indexStates returns how many indexes are in each state.
func indexStates(v *state.View) map[string]int {
	states := make(map[string]int)
	for _, e := range v.Settings.List.Entries {
		states[e.State]++
	}
	return states
}

// changes calls yield with the changes after a position, in order, until it returns
// false.
func changes(v *state.View, behind uint64, yield func(tree.Change) bool) error {
	if err := v.Exists(); err != nil {
		return err
	}
	return v.Tree().Changes(behind, yield)
}
