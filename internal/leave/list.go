package leave

import (
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// Limits bound a list.
type Limits struct {
	// MaxParts is how many paths may have something left for them.
	MaxParts int
	// MaxBytes is how large all rows together may be.
	MaxBytes int
}

// DefaultLimits are those of a server.
func DefaultLimits() Limits { return Limits{MaxParts: 1000, MaxBytes: 1 << 20} }

// A List is what a connection has left to be written, in order. It does not change.
type List struct {
	limits Limits
	rows   []Row // by number
	next   uint64
	parts  int // of all rows
	bytes  int // of all rows
}

// New returns a list of rows, which must be in order. There may be none.
func New(limits Limits, rows ...Row) *List {
	l := &List{limits: limits, rows: rows, next: 1}
	for _, r := range rows {
		l.bytes += len(r.Encoded)
		l.parts += len(r.parts)
		l.next = r.Number + 1
	}
	return l
}

// Rows returns the rows in the order in which they are to be made.
func (l *List) Rows() []Row { return slices.Clone(l.rows) }

// IsEmpty reports whether nothing is left.
func (l *List) IsEmpty() bool { return len(l.rows) == 0 }

// Bytes returns how large all rows together are.
func (l *List) Bytes() int { return l.bytes }

// Parts returns for how many paths something is left.
func (l *List) Parts() int { return l.parts }

// Has reports whether a row with a number is in the list.
func (l *List) Has(number uint64) bool { return l.find(number) >= 0 }

func (l *List) find(number uint64) int {
	return slices.IndexFunc(l.rows, func(r Row) bool { return r.Number == number })
}

// Done returns the list without the row with a number.
func (l *List) Done(number uint64) *List {
	i := l.find(number)
	if i < 0 {
		return l
	}
	shorter := *l
	shorter.rows = slices.Delete(slices.Clone(l.rows), i, i+1)
	shorter.bytes -= len(l.rows[i].Encoded)
	shorter.parts -= len(l.rows[i].parts)
	return &shorter
}

// With returns the list in which a write is left as well. If that is more than the limits
// allow, it fails with a fault.TooLarge error.
func (l *List) With(w tree.Write) (*List, error) {
	if len(w.Assignments) > l.limits.MaxParts {
		return nil, l.tooMany()
	}
	e := l.edit()
	values := e.values()
	inside := make(map[place][]tree.Assignment) // by the part whose value they change
	added := editedRow{Row: Row{Number: l.next, at: w.At, patch: w.Patch}, changed: true}
	for _, a := range w.Assignments {
		if at, found := holder(values, a.Path, a.Priority); found {
			inside[at] = append(inside[at], a)
			continue
		}
		added.parts = append(added.parts, part{a.Path, a.Priority, textOf(a.Node)})
	}
	for at, assignments := range inside {
		if err := e.change(at, assignments); err != nil {
			return nil, err
		}
	}
	e.forget(added.parts...)
	return e.list(append(e.rows, added))
}

// Without returns the list in which nothing is left at and below a path; or, for a
// priority, no priority of its own for the node at the path. Where that splits a value
// into more parts than the limits allow, it fails with a fault.TooLarge error.
func (l *List) Without(p tree.Path, priority bool) (*List, error) {
	e := l.edit()
	if at, found := holder(e.values(), p, priority); found {
		if err := e.split(at, p, priority); err != nil {
			return nil, err
		}
	} else {
		e.forget(part{path: p, priority: priority})
	}
	return e.list(e.rows)
}

// Changes returns which rows must be stored, and which deleted, to get from one list of a
// connection to another.
func Changes(from, to *List) (stored []Row, deleted []uint64) {
	was := make(map[uint64]string, len(from.rows))
	for _, r := range from.rows {
		was[r.Number] = r.Encoded
	}
	for _, r := range to.rows {
		if old, found := was[r.Number]; !found || old != r.Encoded {
			stored = append(stored, r)
		}
		delete(was, r.Number)
	}
	return stored, slices.Sorted(maps.Keys(was))
}

func (l *List) tooMany() error {
	return fault.New(fault.TooLarge, "more than %d paths to be written on disconnect", l.limits.MaxParts)
}

func (l *List) tooLarge() error {
	return fault.New(fault.TooLarge, "more than %d bytes to be written on disconnect", l.limits.MaxBytes)
}
