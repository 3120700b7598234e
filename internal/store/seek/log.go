package seek

import (
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// Position returns the position of the newest commit of the database, 0 if
// there is none.
func (r Reader) Position() (uint64, error) {
	it, err := r.LogRows(0)
	if err != nil {
		return 0, damage.Mark(err)
	}
	var position uint64
	if it.Last() {
		position = layout.LogPosition(it.Key())
	}
	return position, damage.Mark(errors.Join(it.Error(), it.Close()))
}

// LogRows returns an iterator over the change log from a position on.
func (r Reader) LogRows(from uint64) (*pebble.Iterator, error) {
	return r.Source.NewIter(&pebble.IterOptions{
		LowerBound: layout.LogKey(nil, r.ID, from),
		UpperBound: append(layout.LogKey(nil, r.ID, math.MaxUint64), 0),
	})
}
