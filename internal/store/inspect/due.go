package inspect

import (
	"errors"
	"math"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// CheckDue looks for the row of every child that expires, and reports those that are
// missing, until report returns false. Rows that have no data are none of what is wrong: they
// are hints. Indexes for which skip is true are not looked at.
func CheckDue(r seek.Reader, x *layout.Indexes, skip func(number uint32) bool, report func(Flaw) bool) error {
	r.Rows = nil // what is remembered is not what is stored
	c := indexChecker{reader: r, skip: skip, report: report}
	err := c.dueRows()
	if err == nil && x.Expires() {
		walk := seek.DueWalk{Reader: r, Indexes: x, Yield: c.due}
		_, err = walk.Run(layout.DataPrefix(r.ID), layout.AppendSpace(nil, layout.SpaceData, r.ID+1), math.MaxInt)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// due looks for the row of one child.
func (c *indexChecker) due(index layout.Index, child tree.Path, time query.Value) error {
	if !time.IsNumber() || c.skip(index.Number) {
		return nil
	}
	key := layout.DueKey(nil, c.reader.ID, index.Number, time, child)
	present, err := c.has(key)
	if err != nil || present {
		return err
	}
	return c.flaw(key, errors.New("a row of what expires is missing"))
}

// dueRows holds the rows against their form, and asks for each index.
func (c *indexChecker) dueRows() error {
	from, to := layout.DueRange(c.reader.ID)
	_, err := countRows(c.reader, from, to, func(key []byte) (bool, error) {
		row, err := layout.CutDueKey(key)
		if err != nil {
			return false, c.flaw(key, err)
		}
		c.skip(row.Number)
		return true, nil
	})
	return err
}
