package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	manifestrecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Flaw is something in a store that no store writes.
type Flaw struct {
	// File is the file that is damaged, if that is known, in the data directory.
	File string
	// Path is where in its tree a row belongs, empty if that is not known.
	Path string
	Err  error
}

// flawAt says that a row is wrong, and where it belongs as far as its key tells.
func flawAt(key []byte, err error) Flaw {
	if !errors.Is(err, ErrDamaged) {
		err = rowError(key, err)
	}
	return Flaw{Path: pathOf(key).String(), Err: err}
}

// checkRecords reads a manifest to its end. Pebble takes a bad record for the end,
// as a power cut may leave one there.
func checkRecords(f vfs.File) error {
	records := manifestrecord.NewReader(f, 0)
	for {
		r, err := records.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnfinished, err)
		}
	}
}

// ErrUnfinished says that a file ends with a record that is not whole. A power cut
// leaves that, and does no harm; so does damage, which does.
var ErrUnfinished = errors.New("the last record is not whole")

// CheckDirectory checks the numbers of the databases, and that there are no rows
// but those of metadata and of databases that have a name.
func (a *Archive) CheckDirectory(report func(Flaw) bool) error {
	names := map[ID]string{}
	next := a.store.databases.next
	var ids []ID
	err := a.Names(func(name string, id ID) bool {
		switch other, taken := names[id]; {
		case taken:
			return report(flawAt(nameKey(name), fmt.Errorf("the databases %q and %q have the same number %d", other, name, id)))
		case id == 0 || id >= next:
			return report(flawAt(nameKey(name), fmt.Errorf("the database %q has the number %d, the next is %d", name, id, next)))
		}
		names[id] = name
		ids = append(ids, id)
		return true
	})
	if err != nil {
		return err
	}
	slices.Sort(ids)
	return a.checkSpaces(ids, report)
}

// checkSpaces seeks from one range that rows may be in to the next.
func (a *Archive) checkSpaces(ids []ID, report func(Flaw) bool) error {
	type span struct{ from, to []byte }
	allowed := []span{{[]byte{spaceMeta, metaSettings}, []byte{spaceMeta, metaNames + 1}}}
	for _, space := range []byte{spaceData, spaceIndex, spaceSettings, spaceLog} {
		for _, id := range ids {
			allowed = append(allowed, span{appendSpace(nil, space, id), appendSpace(nil, space, id+1)})
		}
	}
	it, err := a.view.snapshot.NewIter(nil)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	ok := it.First()
	for _, s := range allowed {
		if ok && string(it.Key()) < string(s.from) && !report(strayRow(it.Key())) {
			return nil
		}
		ok = it.SeekGE(s.to)
	}
	if ok {
		report(strayRow(it.Key()))
	}
	return damaged(it.Error())
}

func strayRow(key []byte) Flaw {
	return Flaw{Err: rowError(key, errors.New("it belongs to no database"))}
}

// CheckLog reads the whole change log: every row decodes, no position is missing,
// and a database that holds something has one.
func (t Tree) CheckLog(report func(Flaw) bool) error {
	it, err := t.reader.NewIter(&pebble.IterOptions{
		LowerBound: appendSpace(nil, spaceLog, t.id), UpperBound: appendSpace(nil, spaceLog, t.id+1),
	})
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	last := uint64(0)
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return damaged(err)
		}
		position, err := t.checkLogRow(it.Key(), row, last)
		if err != nil && !report(logFlaw(it.Key(), err)) {
			return nil
		}
		last = position
	}
	if err := it.Error(); err != nil {
		return damaged(err)
	}
	if last > 0 {
		return nil
	}
	for _, space := range []byte{spaceData, spaceSettings} {
		holds, err := t.holds(space)
		if err != nil {
			return err
		}
		if holds {
			report(logFlaw(appendSpace(nil, spaceLog, t.id), errors.New("there is data, but no change is in the log")))
			return nil
		}
	}
	return nil
}

// checkLogRow checks a row that follows the one of a position, 0 for none.
func (t Tree) checkLogRow(key, row []byte, last uint64) (position uint64, err error) {
	if len(key) != len(logKey(nil, 0, 0)) {
		return last, errors.New("not the key of a change")
	}
	position = logPosition(key)
	if position == 0 || last > 0 && position != last+1 {
		return position, fmt.Errorf("position %d follows %d", position, last)
	}
	c, err := decodeLogRow(row, position)
	switch {
	case err != nil:
		return position, err
	case c.Millis > t.store.meta.millis:
		return position, fmt.Errorf("the change at position %d is of a later time than the newest commit", position)
	case (c.Truncated || c.Settings) && len(c.Assignments) > 0:
		return position, fmt.Errorf("the change at position %d should have no assignments", position)
	}
	return position, nil
}

func logFlaw(key []byte, err error) Flaw {
	return Flaw{Err: rowError(key, fmt.Errorf("change log: %w", err))}
}

// holds reports whether the database has a row in a space.
func (t Tree) holds(space byte) (bool, error) {
	it, err := t.reader.NewIter(&pebble.IterOptions{LowerBound: appendSpace(nil, space, t.id), UpperBound: appendSpace(nil, space, t.id+1)})
	if err != nil {
		return false, damaged(err)
	}
	found := it.First()
	return found, damaged(errors.Join(it.Error(), it.Close()))
}

// CheckMarks compares the small files of the directory with the store: the format
// version, and the group that was known to be durable.
func (a *Archive) CheckMarks(report func(Flaw)) error {
	row, err := a.store.metaRow(formatKey, 4)
	if err != nil {
		return damaged(err)
	}
	text, err := a.store.dir.read(markerFile)
	if err != nil {
		return err
	}
	if want := markerText + strconv.Itoa(int(binary.BigEndian.Uint32(row))) + "\n"; text != want {
		report(Flaw{File: markerFile, Err: fmt.Errorf("%w: it says %.60q instead of %q", ErrDamaged, text, want)})
	}
	if a.Group < a.Durable {
		report(Flaw{Err: fmt.Errorf("%w: the log ends at group %d, but group %d was committed", ErrDamaged, a.Group, a.Durable)})
	}
	return nil
}
