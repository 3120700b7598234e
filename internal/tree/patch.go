package tree

import (
	"errors"
	"io"
	"strings"
	"unsafe"
)

// DecodePatch reads the body of a PATCH at a location: an object whose keys are
// paths relative to it. A path may end in .priority. The body null deletes the
// location. Errors are those of Decode; opts.Depth is ignored.
func DecodePatch(r io.Reader, at Path, opts DecodeOptions) (Write, error) {
	opts.Depth = at.Depth()
	d := newDecoder(r, nil, opts)
	defer d.free()
	c, err := d.peek()
	switch {
	case err != nil:
		return Write{}, err
	case c == 0:
		return Write{}, d.fail(ErrNoData, "no data supplied")
	case c == 'n':
		if err := d.word("null"); err != nil {
			return Write{}, err
		}
		return Put(at, Node{}), d.end()
	case c != '{':
		return Write{}, d.fail(ErrValue, "a PATCH needs a JSON object")
	}
	w := Write{At: at, Patch: true}
	if w.Assignments, err = d.assignments(at); err != nil {
		return Write{}, err
	}
	if err := checkOverlap(w.Assignments); err != nil {
		return Write{}, d.failAt(position{1, 1}, ErrValue, "%v", err)
	}
	return w, d.end()
}

// assignments reads the members of a PATCH.
func (d *decoder) assignments(at Path) ([]Assignment, error) {
	d.pos++ // the brace
	d.makeRoom()
	list := make([]Assignment, 0, fewAssignments)
	for first := true; ; first = false {
		c, err := d.peek()
		if err != nil {
			return nil, err
		}
		if first && c == '}' {
			break
		}
		if c != '"' {
			return nil, d.unexpected(c, "a key in double quotes")
		}
		a, err := d.assignment(at)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
		if c, err = d.peek(); err != nil {
			return nil, err
		}
		if c == '}' {
			break
		}
		if err := d.expect(',', `"," or "}"`); err != nil {
			return nil, err
		}
	}
	d.pos++
	return list, nil
}

// fewAssignments is how many a PATCH has room for at first.
const fewAssignments = 4

// maxPatchKey bounds the key of a PATCH: a path of the longest keys.
const maxPatchKey = MaxDepth * (MaxKeyBytes + 1) * 2

// assignmentBytes is what an assignment takes in a list that grows, and in the
// sorted copy of that list which checkOverlap makes.
const assignmentBytes = 3 * int64(unsafe.Sizeof(Assignment{}))

// assignment reads one member of a PATCH.
func (d *decoder) assignment(at Path) (Assignment, error) {
	where := d.position()
	start := len(d.slab.text)
	text, err := d.appendString(d.slab.text, maxPatchKey, "a key")
	d.slab.text = text[:start]
	if err != nil {
		return Assignment{}, err
	}
	a := Assignment{Name: string(text[start:])}
	target, isPriority := cutPriority(a.Name)
	rel, err := ParsePath(target)
	if errors.Is(err, ErrTooDeep) {
		return a, d.failAt(where, ErrTooDeep, "%v", err)
	}
	if err != nil {
		return a, d.failAt(where, ErrInvalidKey, "%v", err)
	}
	if rel.IsRoot() && !isPriority {
		return a, d.failAt(where, ErrInvalidKey, "%v: %q names no child", ErrInvalidKey, a.Name)
	}
	if at.Depth()+rel.Depth() > MaxDepth {
		return a, d.failAt(where, ErrTooDeep, "%v", ErrTooDeep)
	}
	if err := d.expect(':', `":"`); err != nil {
		return a, err
	}
	var c cell
	if isPriority {
		c, err = d.leafValue(".priority")
	} else {
		c, err = d.value(at.Depth() + rel.Depth())
	}
	if err != nil {
		return a, err
	}
	a.Path, a.Priority, a.Node = at.Join(rel), isPriority, d.node(c)
	d.beside += int64(len(a.Name)+len(a.Path.keys)) + assignmentBytes
	return a, d.charge()
}

// cutPriority takes .priority off the end of a path.
func cutPriority(name string) (target string, found bool) {
	name = strings.TrimRight(name, "/")
	target, found = strings.CutSuffix(name, ".priority")
	if found && (target == "" || target[len(target)-1] == '/') {
		return target, true
	}
	return name, false
}

// DecodePriority reads the body of a PUT at .priority: null, a number, a string
// or a server value.
func DecodePriority(r io.Reader, opts DecodeOptions) (Node, error) {
	d := newDecoder(r, nil, opts)
	defer d.free()
	c, err := d.peek()
	if err != nil {
		return Node{}, err
	}
	if c == 0 {
		return Node{}, d.fail(ErrNoData, "no data supplied")
	}
	value, err := d.leafValue(".priority")
	if err != nil {
		return Node{}, err
	}
	return d.node(value), d.end()
}
