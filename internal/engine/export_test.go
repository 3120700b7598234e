package engine

import (
	"context"
	"slices"

	"github.com/livetree/livetree/internal/store"
)

// SetIndexes is SetRules for indexes alone, without a document around them.
func (d *Database) SetIndexes(ctx context.Context, rules []IndexRule) error {
	err := d.revise(ctx, func(s *settings) (revision, error) {
		return revision{rows: store.Settings{settingIndexes: s.list.with(rules).encode()}}, nil
	})
	d.startMaintenance()
	return err
}

// CheckIndexes compares the rows of all indexes that are ready with the data.
func (s *Snapshot) CheckIndexes() error {
	list := s.settings.list
	return s.tree().CheckIndexes(s.settings.indexes, func(number uint32) bool {
		i := list.find(number)
		return number != 0 && (i < 0 || list.Entries[i].State != indexReady)
	})
}

// IndexState returns how many indexes are in each state.
func (s *Snapshot) IndexState() map[string]int {
	states := make(map[string]int)
	for _, e := range s.settings.list.Entries {
		states[e.State]++
	}
	return states
}

// HoldIndexes has no index built from now on.
func (d *Database) HoldIndexes() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maintaining = true
}

// StepStands reports whether what is prepared for a write before a step of the first
// index still stands behind it.
func (d *Database) StepStands() bool {
	s := d.published.Load().settings
	list := indexList{s.list.Next, slices.Clone(s.list.Entries)}
	list.Entries[0].Cursor = []byte("further")
	after, err := s.with(store.Settings{settingIndexes: list.encode()})
	return err == nil && after.preparesLike(s)
}
