package inspect

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// lostRows are the rows with keys from one, included, to another, excluded. What
// other tables hold there may be older than what is lost, or deleted by it, and is
// lost with it.
type lostRows struct {
	from, to []byte
	// guard is the last key before them that can be read, nil for none. To step
	// on from there is to read what is damaged.
	guard []byte
}

// after returns the key that follows another at once.
func after(key []byte) []byte { return append(bytes.Clone(key), 0) }

// lostRows returns what is lost of a damaged table, if that is anything: all from
// the first row that cannot be read to the last.
func (f Files) lostRows(t Table) (lost lostRows, some bool) {
	lost = lostRows{from: t.span.From, to: after(t.span.To)}
	some = true
	_, _ = f.Check(t.Name(), func(opened vfs.File) error {
		r, err := f.openTable(opened)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		// Which rows a damaged list of deleted ranges has deleted is not known.
		ranges, err := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
		if err != nil {
			return err
		}
		if ranges != nil {
			ranges.Close()
		}
		last, whole := outermostKey(r, true)
		if whole {
			some = false
			return nil
		}
		if last != nil {
			lost.guard, lost.from = last, after(last)
		}
		// A newer version of the first key that can be read behind the damage may
		// be in it.
		if first, _ := outermostKey(r, false); first != nil {
			lost.to = after(first)
		}
		return nil
	})
	// A part of a file may be out of use.
	some = some && bytes.Compare(lost.from, t.span.To) <= 0 && bytes.Compare(t.span.From, lost.to) < 0
	return lost, some
}

// outermostKey goes through a table, forward or backward, until it cannot go on. It
// returns the last key that it came to, and whether it came to the end.
func outermostKey(r *sstable.Reader, forward bool) (key []byte, whole bool) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, false
	}
	begin, step := it.First, it.Next
	if !forward {
		begin, step = it.Last, it.Prev
	}
	for row := begin(); row != nil; row = step() {
		key = append(key[:0], row.K.UserKey...)
	}
	return key, errors.Join(it.Error(), it.Close()) == nil
}

// DamagedSpan narrows down which rows of a damaged table cannot be read.
func (f Files) DamagedSpan(t Table) Span {
	lost, some := f.lostRows(t)
	if !some {
		return t.span
	}
	return Span{lost.from, bytes.TrimSuffix(lost.to, []byte{0})}
}
