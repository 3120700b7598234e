package seek

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// HasSetting reports whether the database has a setting.
func (r Reader) HasSetting(name string) (bool, error) {
	_, closer, err := r.Source.Get(layout.SettingKey(r.ID, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, damage.Mark(err)
	}
	return true, damage.Mark(closer.Close())
}

// HookProgress returns the row that says how far a hook is, nil if there is none.
func (r Reader) HookProgress(hook uint32) ([]byte, error) {
	row, closer, err := r.Source.Get(layout.HookProgressKey(r.ID, hook))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage.Mark(err)
	}
	row = bytes.Clone(row)
	return row, damage.Mark(closer.Close())
}

// Notices calls yield with the notices of a hook whose positions are from first to last, in
// order, until it returns false. A row is good until yield returns.
func (r Reader) Notices(hook uint32, first, last uint64, yield func(position uint64, row []byte) bool) error {
	from, to := layout.NoticeRange(r.ID, hook, first, last)
	it, err := r.Source.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damage.Mark(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(errors.Join(err, it.Close()))
		}
		if !yield(layout.NoticePosition(it.Key()), row) {
			break
		}
	}
	return damage.Mark(errors.Join(it.Error(), it.Close()))
}
