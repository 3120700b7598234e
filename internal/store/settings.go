package store

import (
	"bytes"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// BuildSettings works out a batch that changes settings, of which a nil value
// deletes one, together with the rows of a step, which may be nil and are taken
// over. Of the change only the position and the time count.
func (s *Store) BuildSettings(id layout.ID, c tree.Change, changed Settings, step *batch.IndexRows) (*batch.Batch, error) {
	return s.batches.Settings(s.Live(id).reader, c, changed, step)
}

// Settings returns all settings of the database.
func (t Tree) Settings() (Settings, error) {
	prefix := layout.SettingKey(t.reader.ID, "")
	it, err := t.reader.Iterator(prefix)
	if err != nil {
		return nil, damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	settings := Settings{}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, damage.Mark(err)
		}
		settings[string(it.Key()[len(prefix):])] = bytes.Clone(value)
	}
	return settings, damage.Mark(it.Error())
}
