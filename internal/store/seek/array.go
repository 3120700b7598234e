package seek

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// IsArray reports whether the split node whose key is the first prefix bytes of the
// current row's prints as an array, and how many children were counted for that. The
// stepper is at the node's first child, and stays there. Only a node that begins with
// an index and ends with one, and not too far behind it, has its children counted:
// between them there may be keys that are integers and no indexes, such as 007.
func (s *Stepper) IsArray(prefix int, waiter Waiter, between func() error) (array bool, children int64, err error) {
	key := s.Key()
	first, ok := layout.ChildIndex(key, prefix)
	if !ok {
		return false, 0, nil
	}
	rows, err := s.Copy()
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = rows.Close() }()
	node := key[:prefix:prefix]
	if !rows.SeekLT(layout.SubtreeEnd(nil, node)) {
		return false, 0, errors.Join(rows.Error(), fmt.Errorf("%w: node %x has lost its rows", damage.ErrMalformedRow, node))
	}
	last, ok := layout.ChildIndex(rows.Key(), prefix)
	if !ok || !tree.ArrayRule(int64(last), int64(last)-int64(first)+1) {
		return false, 0, nil
	}
	rows.SeekGE(key)
	for within := string(node); rows.In(within); children++ {
		if err := waiter.Pace(int(children), between); err != nil {
			return false, children, err
		}
		if _, ok := layout.ChildIndex(rows.Key(), prefix); !ok {
			return false, children, nil
		}
		end, err := layout.ChildEnd(rows.Key(), prefix)
		if err != nil {
			return false, children, err
		}
		rows.SkipChild(end)
	}
	return tree.ArrayRule(int64(last), children), children, rows.Error()
}
