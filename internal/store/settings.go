package store

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/tree"
)

// Settings are what a database keeps beside its tree: its rules, its secrets.
// They change in the same order of commits as the tree.
type Settings map[string][]byte

func settingKey(id ID, name string) []byte {
	return append(appendSpace(nil, spaceSettings, id), name...)
}

// BuildSettings works out a batch that changes settings, of which a nil value
// deletes one, together with the rows of a step, which may be nil and are taken
// over. Of the change only the position and the time count.
func (s *Store) BuildSettings(id ID, c tree.Change, changed Settings, step *IndexRows) (*Batch, error) {
	b := s.newBuilder(id, nil, nil)
	defer b.free()
	if step != nil {
		_ = b.rows.Close() // it is empty
		b.rows, step.rows = step.rows, nil
	}
	var err error
	for name, value := range changed {
		if value == nil {
			err = errors.Join(err, b.rows.Delete(settingKey(id, name), nil))
		} else {
			err = errors.Join(err, b.rows.Set(settingKey(id, name), value, nil))
		}
	}
	c.Write, c.Settings = tree.Write{}, true
	if err = errors.Join(err, b.log(c)); err != nil {
		return nil, errors.Join(err, b.rows.Close())
	}
	return &Batch{id: id, rows: b.rows, millis: c.Millis}, nil
}

// Settings returns all settings of the database.
func (t Tree) Settings() (Settings, error) {
	prefix := settingKey(t.id, "")
	it, err := t.iterator(prefix)
	if err != nil {
		return nil, damaged(err)
	}
	defer func() { _ = it.Close() }()
	settings := Settings{}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, damaged(err)
		}
		settings[string(it.Key()[len(prefix):])] = bytes.Clone(value)
	}
	return settings, damaged(it.Error())
}
