package inspect

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// CheckLog reads the whole change log of a database: every row decodes, no position
// is missing, no change is of a later time than the newest commit of the store, and a
// database that holds something has a log.
func CheckLog(r seek.Reader, newestMillis int64, report func(Flaw) bool) error {
	it, err := r.Space(layout.SpaceLog)
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	last := uint64(0)
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		position, err := checkLogRow(it.Key(), row, last, newestMillis)
		if err != nil && !report(logFlaw(it.Key(), err)) {
			return nil
		}
		last = position
	}
	if err := it.Error(); err != nil {
		return damage.Mark(err)
	}
	if last > 0 {
		return checkWholes(r, last, report)
	}
	for _, space := range []byte{layout.SpaceData, layout.SpaceSettings} {
		holds, err := holds(r, space)
		if err != nil {
			return err
		}
		if holds {
			report(logFlaw(layout.AppendSpace(nil, layout.SpaceLog, r.ID), errors.New("there is data, but no change is in the log")))
			return nil
		}
	}
	return nil
}

// checkLogRow checks a row that follows the one of a position, 0 for none.
func checkLogRow(key, row []byte, last uint64, newestMillis int64) (position uint64, err error) {
	if len(key) != len(layout.LogKey(nil, 0, 0)) {
		return last, errors.New("not the key of a change")
	}
	position = layout.LogPosition(key)
	if position == 0 || last > 0 && position != last+1 {
		return position, fmt.Errorf("position %d follows %d", position, last)
	}
	c, _, err := layout.DecodeLogRow(row, position, nil)
	switch {
	case err != nil:
		return position, err
	case c.Millis > newestMillis:
		return position, fmt.Errorf("the change at position %d is of a later time than the newest commit", position)
	case (c.Truncated || c.Settings) && len(c.Assignments) > 0:
		return position, fmt.Errorf("the change at position %d should have no assignments", position)
	}
	return position, nil
}

// checkWholes reads the whole records that are kept of a database: each is of a commit in
// the log.
func checkWholes(r seek.Reader, newest uint64, report func(Flaw) bool) error {
	it, err := r.Space(layout.SpaceRecord)
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		if err := checkWhole(it.Key(), row, newest); err != nil && !report(logFlaw(it.Key(), err)) {
			return nil
		}
	}
	return damage.Mark(it.Error())
}

func checkWhole(key, row []byte, newest uint64) error {
	if len(key) != layout.LogKeyBytes {
		return errors.New("not the key of a record")
	}
	position := layout.LogPosition(key)
	if position == 0 || position > newest {
		return fmt.Errorf("there is a record of position %d, the newest is %d", position, newest)
	}
	text, err := layout.DecodeWhole(nil, row)
	if err != nil {
		return err
	}
	record, err := layout.DecodeRecord(text, position)
	if err == nil && !record.IsWhole() {
		err = fmt.Errorf("the record of position %d is not whole", position)
	}
	return err
}

func logFlaw(key []byte, err error) Flaw {
	return Flaw{Err: damage.AtRow(key, fmt.Errorf("change log: %w", err))}
}

// holds reports whether the database has a row in a space that a change in the log has made. What
// connections have left to be written is in no log.
func holds(r seek.Reader, space byte) (bool, error) {
	it, err := r.Iterator(layout.AppendSpace(nil, space, r.ID))
	if err != nil {
		return false, damage.Mark(err)
	}
	found := it.First()
	return found, damage.Mark(errors.Join(it.Error(), it.Close()))
}
