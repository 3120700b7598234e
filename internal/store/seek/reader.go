package seek

import (
	"bytes"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/rowcache"
	"github.com/livetree/livetree/internal/tree"
)

// A Reader reads the rows of one database at one moment.
type Reader struct {
	Shared *Shared
	Source pebble.Reader
	ID     layout.ID
	View   uint64 // the number of the view, Live if it is none
	Cost   *Cost  // counted if not nil
	Waiter Waiter
	// Rows remember what was looked up; nil if the source is read alone.
	Rows *rowcache.Cache
	Last *Last // may be nil
}

// Live stands for the live state, which is newer than every view.
const Live = math.MaxUint64

// Locate returns the location of a path in the database.
func (r Reader) Locate(p tree.Path) layout.Location {
	if r.Last != nil {
		return r.Last.locate(r.ID, p)
	}
	return layout.Locate(r.ID, p)
}

// SplitPriority returns the priority of the split node with a key.
func (r Reader) SplitPriority(key []byte) (tree.Leaf, error) {
	priority, _, err := r.SplitPriorityWithin(key, math.MaxInt)
	return priority, err
}

// SplitPriorityWithin is SplitPriority, but reports false for one of more than most bytes, which it does not decode.
func (r Reader) SplitPriorityWithin(key []byte, most int) (priority tree.Leaf, within bool, err error) {
	key = append(key[:len(key):len(key)], layout.PriorityMark)
	c, err := r.row(key, 0)
	if c == nil || err != nil {
		return tree.Leaf{}, true, err
	}
	defer c.Release()
	r.Cost.Add(len(c.Row))
	if len(c.Row) > most {
		return tree.Leaf{}, false, nil
	}
	priority, err = DecodePriority(key, c.Row)
	return priority, true, err
}

// DecodePriority returns the priority that is in the row with a key.
func DecodePriority(key, row []byte) (tree.Leaf, error) {
	n, err := layout.DecodeChunk(row)
	if err == nil && (n.IsObject() || n.Kind() == tree.Boolean) {
		err = errors.New("not a priority")
	}
	if err != nil {
		return tree.Leaf{}, damage.AtRow(key, err)
	}
	return n.Leaf(), nil
}

// Iterator returns an iterator over the subtree of a key, which passes all that is
// left of deleted rows: what reads for clients goes by a stepper.
func (r Reader) Iterator(key []byte) (*pebble.Iterator, error) {
	return r.Source.NewIter(&pebble.IterOptions{
		LowerBound: bytes.Clone(key),
		UpperBound: layout.SubtreeEnd(nil, key),
	})
}

// Space returns an iterator over all rows of the database in a space.
func (r Reader) Space(space byte) (*pebble.Iterator, error) {
	return r.Source.NewIter(&pebble.IterOptions{
		LowerBound: layout.AppendSpace(nil, space, r.ID),
		UpperBound: layout.AppendSpace(nil, space, r.ID+1),
	})
}

// Keeping returns whether the split node with a key keeps the index by priority.
func (r Reader) Keeping(parent []byte) (layout.Keeping, error) {
	var buffer [64]byte
	key := layout.IndexPrefix(buffer[:0], parent, layout.PriorityIndex)
	row, closer, err := r.Source.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return layout.Keeping{}, nil
	}
	if err != nil {
		return layout.Keeping{}, damage.Mark(err)
	}
	k, err := layout.DecodeKeeping(row)
	if err != nil {
		err = damage.AtRow(key, err)
	}
	return k, errors.Join(err, closer.Close())
}

// CopyOf returns a copy of the row at a key of any kind, nil if there is none.
func CopyOf(source pebble.Reader, key []byte) ([]byte, error) {
	row, closer, err := source.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage.Mark(err)
	}
	defer func() { _ = closer.Close() }()
	return append([]byte{}, row...), nil
}
