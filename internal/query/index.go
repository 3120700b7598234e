package query

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/tree"
)

// An Index is an order of children that needs rows on disk. It is comparable.
// The zero Index is none.
type Index struct {
	order Order
}

// The spellings in .indexOn of what is not a path: no key begins with a dot.
const (
	valueIndex    = ".value"
	priorityIndex = ".priority"
)

// ErrInvalidIndex says that a text does not name an index.
var ErrInvalidIndex = errors.New("invalid index")

// ErrNoIndex is the cause of the fault that a query without its index is refused with.
var ErrNoIndex = errors.New("no index")

// ParseIndex reads an index as .indexOn spells it: a path below each child,
// .value or .priority. The error wraps ErrInvalidIndex.
func ParseIndex(text string) (Index, error) {
	switch text {
	case valueIndex:
		return Index{ByValue()}, nil
	case priorityIndex:
		return Index{ByPriority()}, nil
	}
	path, err := tree.ParsePath(text)
	if err != nil {
		return Index{}, fmt.Errorf("%w: %w", ErrInvalidIndex, err)
	}
	if path.IsRoot() {
		return Index{}, fmt.Errorf("%w: the path is empty", ErrInvalidIndex)
	}
	return Index{ByChild(path)}, nil
}

// Index returns the index that o needs, none if it is the order by key.
func (o Order) Index() (index Index, ok bool) {
	return Index{o}, o != ByKey()
}

// Order returns the order that the index is for.
func (i Index) Order() Order { return i.order }

// String returns the index as .indexOn spells it.
func (i Index) String() string {
	switch i.order.by {
	case byValue:
		return valueIndex
	case byPriority:
		return priorityIndex
	default:
		return i.order.String()
	}
}
