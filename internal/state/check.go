package state

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
)

// Check holds the settings of a database, and what connections have left to be written in
// it, against what the engine can use, and the rows of its indexes against its data. Indexes that are being built or dropped
// have only some of their rows and are left out. The error is what kept it from
// reading on.
func Check(t store.Tree, report func(store.Flaw) bool) error {
	rows, err := t.Settings()
	if err != nil {
		return err
	}
	list, err := decodeIndexes(rows[SettingIndexes])
	if err == nil {
		err = list.check()
	}
	if err != nil {
		report(store.Flaw{Err: fmt.Errorf("%w: the list of indexes: %w", store.ErrDamaged, err)})
		return nil
	}
	s, err := NewSettings(rows)
	if err != nil {
		report(store.Flaw{Err: fmt.Errorf("%w: the settings: %w", store.ErrDamaged, err)})
		return nil
	}
	if err := inspect.CheckLeft(t.Reader(), checkLeft, report); err != nil {
		return err
	}
	unknown := map[uint32]bool{}
	skip := func(number uint32) bool {
		if number == 0 {
			return false
		}
		i := list.Find(number)
		if i < 0 {
			unknown[number] = true
		}
		return i < 0 || list.Entries[i].State != IndexReady
	}
	if err := inspect.CheckDue(t.Reader(), s.Indexes, skip, report); err != nil {
		return err
	}
	err = inspect.CheckIndexes(t.Reader(), s.Indexes, skip, report)
	for number := range unknown {
		report(store.Flaw{Err: fmt.Errorf("%w: there are rows of index %d, which is not in the list of indexes", store.ErrDamaged, number)})
	}
	return err
}

// checkLeft reports whether a row of what a connection has left can be used.
func checkLeft(number uint64, value []byte) error {
	if number == layout.LeftIdentity {
		_, err := leave.DecodeIdentity(string(value))
		return err
	}
	r, err := leave.Decode(number, string(value))
	if err == nil {
		_, err = r.Write()
	}
	return err
}

// check reports whether the list is one that this package writes.
func (l IndexList) check() error {
	seen := map[uint32]bool{}
	for _, e := range l.Entries {
		switch {
		case e.Number == 0 || e.Number >= l.Next || seen[e.Number]:
			return fmt.Errorf("the number %d is taken, or not yet given", e.Number)
		case len(e.Except) != len(e.Pattern):
			return errors.New("a pattern and its exceptions differ in length")
		case e.State != IndexBuilding && e.State != IndexReady && e.State != IndexDropping:
			return fmt.Errorf("the state %q is unknown", e.State)
		}
		seen[e.Number] = true
	}
	return nil
}
