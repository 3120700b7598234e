package store

import (
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/tree"
)

// BuildSettings works out a batch that changes settings of a tree as Build does, of which a
// nil value deletes one, together with the rows of a step, which may be nil and are taken
// over. Of the change only the position and the time count.
func (s *Store) BuildSettings(on Tree, c tree.Change, changed Settings, step *batch.IndexRows) (*batch.Batch, error) {
	return s.batches.Settings(on.reader, c, changed, step)
}

// Settings returns all settings of the database.
func (t Tree) Settings() (Settings, error) { return t.reader.Settings() }

// NewBatch returns a batch that does nothing yet, and is no change in the log. What
// connections have left to be written is put into it.
func (t Tree) NewBatch() *batch.Batch { return t.store.batches.Empty(t.reader.ID) }
