package batch

import (
	"github.com/livetree/livetree/internal/store/layout"
)

// A LeftRow changes a row of what a connection has left to be written: it sets the value,
// or deletes the row if that is nil.
type LeftRow struct {
	Connection string
	Number     uint64
	Value      []byte
}

// Left changes rows of what connections have left, together with all else that the batch
// does.
func (b *Batch) Left(rows []LeftRow) error {
	for _, r := range rows {
		key := layout.LeftKey(b.ID, r.Connection, r.Number)
		var err error
		if r.Value == nil {
			err = b.Rows.Delete(key, nil)
		} else {
			err = b.Rows.Set(key, r.Value, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Empty returns a batch that does nothing to a database. It has no position: it is not in
// the change log.
func (m Maker) Empty(id layout.ID) *Batch { return &Batch{ID: id, Rows: m.DB.NewBatch()} }
