package inspect

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// CheckLeft reads what connections have left to be written in a database: every key is one
// of such a row, each connection has its identity before its writes and at least one write,
// and check, which knows the values, has nothing against them.
func CheckLeft(r seek.Reader, check func(number uint64, value []byte) error, report func(Flaw) bool) error {
	from, to := layout.LeftRange(r.ID)
	it, err := r.Source.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	var c leftChecker
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		err = errors.Join(c.row(it.Key()), check(layout.LeftNumber(it.Key()), value))
		if err != nil && !report(leftFlaw(it.Key(), err)) {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return damage.Mark(err)
	}
	if err := c.end(); err != nil {
		report(leftFlaw(from, err))
	}
	return nil
}

// A leftChecker goes through the keys of what connections have left, in order.
type leftChecker struct {
	connection string // of the newest row
	writes     int    // of that connection
}

func (c *leftChecker) row(key []byte) error {
	connection, number, ok := layout.CutLeftKey(key)
	switch {
	case !ok:
		return errors.New("not the key of what is left to be written")
	case connection == c.connection:
		c.writes++
		return nil
	}
	err := c.end()
	*c = leftChecker{connection: connection}
	if number != layout.LeftIdentity {
		c.writes++
		err = errors.Join(err, errors.New("writes are left by a connection without an identity"))
	}
	return err
}

// end reports whether the connection has less than it should.
func (c *leftChecker) end() error {
	if c.connection != "" && c.writes == 0 {
		return errors.New("a connection has an identity, but has left no write")
	}
	return nil
}

func leftFlaw(key []byte, err error) Flaw { return Flaw{Err: damage.AtRow(key, err)} }
