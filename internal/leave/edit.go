package leave

import (
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// An edit is a list that is being changed.
type edit struct {
	from *List
	rows []editedRow
}

// An editedRow is a row whose parts may have changed since it was encoded.
type editedRow struct {
	Row
	changed bool
}

// A place is where in an edit a part is: in which row, and which one of it.
type place struct{ row, part int }

func (l *List) edit() *edit {
	e := &edit{from: l, rows: make([]editedRow, len(l.rows), len(l.rows)+1)}
	for i, r := range l.rows {
		e.rows[i].Row = r
	}
	return e
}

// own makes the parts of a row the edit's own, and returns the row.
func (e *edit) own(row int) *editedRow {
	r := &e.rows[row]
	if !r.changed {
		r.parts, r.changed = slices.Clone(r.parts), true
	}
	return r
}

// values returns where the parts are that are values, by their paths.
func (e *edit) values() map[tree.Path]place {
	found := make(map[tree.Path]place, len(e.rows))
	for i := range e.rows {
		for j, h := range e.rows[i].parts {
			if !h.priority {
				found[h.path] = place{i, j}
			}
		}
	}
	return found
}

// holder returns the one of some values that decides what is at a path, or its priority.
func holder(values map[tree.Path]place, p tree.Path, priority bool) (place, bool) {
	if !priority {
		if p.IsRoot() {
			return place{}, false
		}
		p = p.Parent()
	}
	return above(values, p)
}

// above returns what is known of a path, or else of the nearest path above it. It takes as many
// steps as the path has keys, whatever else is known.
func above[T any](known map[tree.Path]T, p tree.Path) (T, bool) {
	for {
		if what, found := known[p]; found || p.IsRoot() {
			return what, found
		}
		p = p.Parent()
	}
}

// forget takes away what is left at and below the paths of some parts; of a priority, just
// that.
func (e *edit) forget(parts ...part) {
	values, priorities := map[tree.Path]struct{}{}, map[tree.Path]struct{}{}
	for _, p := range parts {
		if p.priority {
			priorities[p.path] = struct{}{}
		} else {
			values[p.path] = struct{}{}
		}
	}
	covered := func(q part) bool {
		if q.priority {
			if _, found := priorities[q.path]; found {
				return true
			}
		}
		_, found := above(values, q.path)
		return found
	}
	if len(parts) == 1 && !parts[0].priority { // as most are: no need to look paths up
		covered = func(q part) bool { return parts[0].path.Contains(q.path) }
	}
	for i := range e.rows {
		if slices.ContainsFunc(e.rows[i].parts, covered) {
			r := e.own(i)
			r.parts = slices.DeleteFunc(r.parts, covered)
		}
	}
}

// change makes assignments inside the value of a part.
func (e *edit) change(at place, assignments []tree.Assignment) error {
	part := &e.own(at.row).parts[at.part]
	n, err := part.node()
	if err != nil {
		return err
	}
	editor := tree.NewEditor(n)
	editor.Apply(part.path, slices.Values(assignments))
	part.text = textOf(editor.Node())
	return nil
}

// split puts parts for the other children in the place of a part that holds what is to be
// forgotten.
func (e *edit) split(at place, p tree.Path, priority bool) error {
	r := e.own(at.row)
	whole := r.parts[at.part]
	n, err := whole.node()
	if err != nil {
		return err
	}
	var rest []part
	collectOthers(n, whole.path, whole.path.Below(p), priority, func(p tree.Path, n tree.Node) {
		rest = append(rest, part{path: p, text: textOf(n)})
	})
	r.parts = slices.Replace(r.parts, at.part, at.part+1, rest...)
	return nil
}

// collectOthers calls add with what remains of the value n, which is for the path at, when
// what is at a path below it is forgotten.
func collectOthers(n tree.Node, at, below tree.Path, priority bool, add func(tree.Path, tree.Node)) {
	switch {
	case below.IsRoot() && !priority, n.IsNull():
		return
	case !n.IsObject():
		add(at, n)
		return
	}
	key, rest := below.Cut() // of the root it is no key of any child
	for name, child := range n.Children() {
		if name == key {
			collectOthers(child, at.Child(name), rest, priority, add)
		} else {
			add(at.Child(name), child)
		}
	}
}

// list returns the edit with these rows as a list, if the limits allow it.
func (e *edit) list(rows []editedRow) (*List, error) {
	l := &List{limits: e.from.limits, next: e.from.next}
	for _, r := range rows {
		if l.parts += len(r.parts); l.parts > l.limits.MaxParts {
			return nil, l.tooMany()
		}
		if len(r.parts) == 0 {
			continue
		}
		if r.changed {
			if r.bytes() > l.limits.MaxBytes { // it need not be encoded to know
				return nil, l.tooLarge()
			}
			encoded, err := Decode(r.Number, r.encode())
			if err != nil {
				return nil, fmt.Errorf("read what was written: %w", err)
			}
			r.Row = encoded
		}
		if l.bytes += len(r.Encoded); l.bytes > l.limits.MaxBytes {
			return nil, l.tooLarge()
		}
		l.rows = append(l.rows, r.Row)
		l.next = max(l.next, r.Number+1)
	}
	return l, nil
}
