package batch

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// Drop works out a batch that removes a database with all it holds. It must be the last
// one of the database. While somebody needs whole records, the log stays, and ends with
// the drop; of the change only the position, the time and the author count.
func (m Maker) Drop(name string, live seek.Reader, c tree.Change) (*Batch, error) {
	b := m.newBuilder(live, nil)
	defer b.free()
	w := &b.writer
	err := m.dropName(w.rows, name, live.ID)
	spaces := []byte{layout.SpaceData, layout.SpaceIndex, layout.SpaceSettings}
	batch := &Batch{ID: live.ID, Logged: LogRow{Millis: c.Millis}}
	if m.isHeld() {
		c.Write = tree.Write{}
		var logErr error
		batch.Dropped = name
		batch.Logged, logErr = w.log(layout.Record{Change: c, Dropped: true})
		err = errors.Join(err, logErr, w.rows.Set(layout.DroppedKey(live.ID), []byte(name), nil))
	} else {
		spaces = append(spaces, layout.SpaceLog, layout.SpaceRecord)
	}
	for _, space := range spaces {
		err = errors.Join(err, w.rows.DeleteRange(layout.AppendSpace(nil, space, live.ID), layout.AppendSpace(nil, space, live.ID+1), nil))
	}
	if err != nil {
		return nil, errors.Join(err, w.rows.Close())
	}
	batch.Rows = w.rows
	return batch, nil
}

// dropName deletes the name of a database, unless it is that of a later one by now: in a cluster a
// node may learn of that first.
func (m Maker) dropName(rows *pebble.Batch, name string, id layout.ID) error {
	key := layout.NameKey(name)
	value, closer, err := m.DB.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	if len(value) != 4 || layout.ID(binary.BigEndian.Uint32(value)) != id {
		return nil
	}
	return rows.Delete(key, nil)
}
