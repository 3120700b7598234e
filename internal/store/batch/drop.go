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
	if now, err := m.named(name); err != nil || now != id {
		return err
	}
	return rows.Delete(layout.NameKey(name), nil)
}

// named returns the number of the database that has a name, 0 if there is none.
func (m Maker) named(name string) (layout.ID, error) {
	value, closer, err := m.DB.Get(layout.NameKey(name))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = closer.Close() }()
	if len(value) != 4 {
		return 0, nil
	}
	return layout.ID(binary.BigEndian.Uint32(value)), nil
}

// Displace keeps the name of the database that has the one of a new database, until its drop is committed.
func (m Maker) Displace(rows *pebble.Batch, name string, by layout.ID) error {
	old, err := m.named(name)
	if err != nil || old == 0 || old == by {
		return err
	}
	return rows.Set(layout.DisplacedKey(old), []byte(name), nil)
}

// LeaveName has the batch of a drop leave a name to the database that has it by now, and delete what Displace has kept.
func (m Maker) LeaveName(b *Batch, name string) error {
	now, err := m.named(name)
	if err != nil || now == b.ID {
		return err
	}
	if now != 0 {
		err = b.Rows.Set(layout.NameKey(name), binary.BigEndian.AppendUint32(nil, uint32(now)), nil)
	}
	return errors.Join(err, b.Rows.Delete(layout.DisplacedKey(b.ID), nil))
}
