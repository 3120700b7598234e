package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Losses are what cannot be read of an archive any more.
type Losses struct {
	// Files are the tables that are damaged. That of some nothing is lost is
	// possible: filters only save reads.
	Files []Flaw

	lost []lostRows // in order, without overlaps
}

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

// Losses reads every table and works out what is lost by the damage in them.
func (a *Archive) Losses(ctx context.Context) (*Losses, error) {
	tables, err := a.store.tables()
	if err != nil {
		return nil, err
	}
	l := &Losses{}
	for _, t := range tables {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, err := a.store.checkFile(t.name(), a.store.checkTable)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, syscall.EIO) {
			return nil, err // it could not be looked at
		}
		l.Files = append(l.Files, Flaw{File: t.file(), Err: err})
		if rows, some := a.store.lostRows(t); some {
			l.lost = append(l.lost, rows)
		}
	}
	l.merge()
	return l, nil
}

// lostRows returns what is lost of a damaged table, if that is anything: all from
// the first row that cannot be read to the last.
func (s *Store) lostRows(t table) (lost lostRows, some bool) {
	lost = lostRows{from: t.span.from, to: after(t.span.to)}
	some = true
	_, _ = s.checkFile(t.name(), func(f vfs.File) error {
		r, err := s.openTable(f)
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
	some = some && bytes.Compare(lost.from, t.span.to) <= 0 && bytes.Compare(t.span.from, lost.to) < 0
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

// merge sorts what is lost and joins what overlaps.
func (l *Losses) merge() {
	slices.SortFunc(l.lost, func(a, b lostRows) int { return bytes.Compare(a.from, b.from) })
	var merged []lostRows
	for _, rows := range l.lost {
		if n := len(merged); n > 0 && bytes.Compare(rows.from, merged[n-1].to) <= 0 {
			if bytes.Compare(rows.to, merged[n-1].to) > 0 {
				merged[n-1].to = rows.to
			}
			continue
		}
		merged = append(merged, rows)
	}
	l.lost = merged
}

// in returns what is lost of the rows of a space of a database.
func (l *Losses) in(space byte, id ID) []lostRows {
	from, to := appendSpace(nil, space, id), appendSpace(nil, space, id+1)
	var list []lostRows
	for _, rows := range l.lost {
		if bytes.Compare(rows.from, to) < 0 && bytes.Compare(from, rows.to) < 0 {
			list = append(list, rows)
		}
	}
	return list
}

// Data says for people which parts of the tree of a database are lost.
func (l *Losses) Data(id ID) []string {
	first, end := appendSpace(nil, spaceData, id), appendSpace(nil, spaceData, id+1)
	var list []string
	for _, rows := range l.in(spaceData, id) {
		begin, stop := bytes.Compare(rows.from, first) <= 0, bytes.Compare(rows.to, end) >= 0
		switch from, to := pathOf(rows.from), pathOf(rows.to); {
		case begin && stop:
			list = append(list, "all data")
		case begin:
			list = append(list, fmt.Sprintf("all from the begin up to %s", to))
		case stop:
			list = append(list, fmt.Sprintf("all behind %s", from))
		default:
			list = append(list, fmt.Sprintf("all behind %s up to %s", from, to))
		}
	}
	return list
}

// Settings reports whether settings of a database, such as its rules and secrets,
// may be lost.
func (l *Losses) Settings(id ID) bool { return len(l.in(spaceSettings, id)) > 0 }

// Names reports whether databases may be lost with their names.
func (l *Losses) Names() bool {
	for _, rows := range l.lost {
		if bytes.Compare(rows.from, []byte{spaceMeta, metaNames + 1}) < 0 && bytes.Compare(nameKey(""), rows.to) < 0 {
			return true
		}
	}
	return false
}

// NamesBeside is Names for a damaged archive: those that can be read.
func (a *Archive) NamesBeside(l *Losses) (names map[string]ID, err error) {
	names = map[string]ID{}
	first := nameKey("")
	err = a.readable(l, first, []byte{spaceMeta, metaNames + 1}, func(key, row []byte) error {
		if len(row) != 4 {
			return rowError(key, errors.New("not a database number"))
		}
		names[string(key[len(first):])] = ID(binary.BigEndian.Uint32(row))
		return nil
	})
	return names, err
}

// readable calls yield with all rows from one key to another, excluded, that are not
// lost. What Pebble reads is right, or an error: nothing old shows up in the place
// of what is lost.
func (a *Archive) readable(l *Losses, from, to []byte, yield func(key, row []byte) error) error {
	for _, rows := range l.lost {
		if bytes.Compare(rows.to, from) <= 0 || bytes.Compare(rows.from, to) >= 0 {
			continue
		}
		if bytes.Compare(from, rows.from) < 0 {
			if err := a.readUpTo(from, rows, yield); err != nil {
				return err
			}
		}
		from = rows.to
	}
	if bytes.Compare(from, to) >= 0 {
		return nil
	}
	return a.readRows(from, to, yield)
}

// readUpTo reads the rows before some that are lost.
func (a *Archive) readUpTo(from []byte, rows lostRows, yield func(key, row []byte) error) error {
	if rows.guard == nil {
		return a.readRows(from, rows.from, yield)
	}
	if err := a.readRows(from, rows.guard, yield); err != nil {
		return err
	}
	row, closer, err := a.view.snapshot.Get(rows.guard)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return damaged(err)
	}
	return errors.Join(yield(rows.guard, row), closer.Close())
}

func (a *Archive) readRows(from, to []byte, yield func(key, row []byte) error) error {
	if bytes.Compare(from, to) >= 0 {
		return nil
	}
	it, err := a.view.snapshot.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damaged(err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var row []byte
		if row, err = it.ValueAndErr(); err == nil {
			err = yield(it.Key(), row)
		}
	}
	return damaged(errors.Join(err, it.Error(), it.Close()))
}
