package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// Losses are what cannot be read of an archive any more.
type Losses struct {
	// Files are the tables that are damaged. Some may have lost nothing: their
	// filters only save reads.
	Files []Flaw

	lost []lostRows // in order, without overlaps
}

// Losses reads every table and works out what is lost by the damage in them.
func (a *Archive) Losses(ctx context.Context) (*Losses, error) {
	tables, err := Tables(a.DB)
	if err != nil {
		return nil, err
	}
	l := &Losses{}
	for _, t := range tables {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, err := a.Files.Check(t.Name(), a.Files.CheckTable)
		if err == nil {
			continue
		}
		if !errors.Is(err, damage.ErrDamaged) && !errors.Is(err, syscall.EIO) {
			return nil, err // it could not be looked at
		}
		l.Files = append(l.Files, Flaw{File: t.File(), Err: err})
		if rows, some := a.Files.lostRows(t); some {
			l.lost = append(l.lost, rows)
		}
	}
	l.merge()
	return l, nil
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
func (l *Losses) in(space byte, id layout.ID) []lostRows {
	return l.between(layout.AppendSpace(nil, space, id), layout.AppendSpace(nil, space, id+1))
}

// between returns what is lost of the rows from one key to another, excluded.
func (l *Losses) between(from, to []byte) []lostRows {
	var list []lostRows
	for _, rows := range l.lost {
		if bytes.Compare(rows.from, to) < 0 && bytes.Compare(from, rows.to) < 0 {
			list = append(list, rows)
		}
	}
	return list
}

// Contains reports whether the row with a key may be lost.
func (l *Losses) Contains(key []byte) bool {
	return slices.ContainsFunc(l.lost, func(rows lostRows) bool {
		return bytes.Compare(rows.from, key) <= 0 && bytes.Compare(key, rows.to) < 0
	})
}

// Data says for people which parts of the tree of a database are lost.
func (l *Losses) Data(id layout.ID) []string {
	first, end := layout.AppendSpace(nil, layout.SpaceData, id), layout.AppendSpace(nil, layout.SpaceData, id+1)
	var list []string
	for _, rows := range l.in(layout.SpaceData, id) {
		begin, stop := bytes.Compare(rows.from, first) <= 0, bytes.Compare(rows.to, end) >= 0
		switch from, to := layout.PathOf(rows.from), layout.PathOf(rows.to); {
		case begin && stop:
			list = append(list, "all data")
		case begin:
			list = append(list, fmt.Sprintf("all from the begin up to %s", to))
		case stop:
			list = append(list, fmt.Sprintf("all after %s", from))
		default:
			list = append(list, fmt.Sprintf("all after %s up to %s", from, to))
		}
	}
	return list
}

// Settings reports whether settings of a database, such as its rules and secrets,
// may be lost.
func (l *Losses) Settings(id layout.ID) bool {
	left, _ := layout.LeftRange(id)
	return len(l.between(layout.SettingKey(id, ""), left)) > 0
}

// Left reports whether something may be lost that connections have left to be written in a
// database.
func (l *Losses) Left(id layout.ID) bool { return len(l.between(layout.LeftRange(id))) > 0 }

// Names reports whether databases may be lost with their names.
func (l *Losses) Names() bool {
	first, end := layout.NameRange()
	for _, rows := range l.lost {
		if bytes.Compare(rows.from, end) < 0 && bytes.Compare(first, rows.to) < 0 {
			return true
		}
	}
	return false
}

// NamesBeside is Names for a damaged archive: those that can be read.
func (a *Archive) NamesBeside(l *Losses) (names map[string]layout.ID, err error) {
	names = map[string]layout.ID{}
	first, end := layout.NameRange()
	err = a.readable(l, first, end, func(key, row []byte) error {
		id, err := seek.DecodeID(key, row)
		names[string(key[len(first):])] = id
		return err
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
	row, closer, err := a.Rows.Get(rows.guard)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return damage.Mark(err)
	}
	return errors.Join(yield(rows.guard, row), closer.Close())
}

func (a *Archive) readRows(from, to []byte, yield func(key, row []byte) error) error {
	if bytes.Compare(from, to) >= 0 {
		return nil
	}
	it, err := a.Rows.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damage.Mark(err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var row []byte
		if row, err = it.ValueAndErr(); err == nil {
			err = yield(it.Key(), row)
		}
	}
	return damage.Mark(errors.Join(err, it.Error(), it.Close()))
}
