package past

import (
	"errors"
	"os"
	"time"
)

// goOn closes the earlier moment that this one is to be made from, and returns its time; the zero time if there is none.
//
// One that was written to is of no use. Nobody writes to the past but the server itself: it builds the indexes that the base
// does not have, by commits of its own. Records of the archive have the same positions, and would be taken for what is
// there already.
func (m *Moment) goOn() (from time.Time, err error) {
	was := m.from
	if was == nil {
		return from, nil
	}
	m.from = nil
	written, err := was.isWritten()
	if err = errors.Join(err, was.shut()); err != nil {
		return from, err
	}
	if written {
		return from, os.RemoveAll(m.dir)
	}
	return was.At, nil
}

// isWritten closes the database, and reports whether anything was written to it since it was restored.
func (m *Moment) isWritten() (bool, error) {
	m.Database.Close()
	position, err := m.store.Live(m.number).Position()
	return position != m.restored, err
}
