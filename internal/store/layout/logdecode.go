package layout

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/tree"
)

// A logReader takes a log row apart.
type logReader struct {
	rest []byte
	err  error
}

func (r *logReader) fail(what string) {
	if r.err == nil {
		r.err = errors.New(what)
	}
	r.rest = nil
}

func (r *logReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail("log row cut short")
		return nil
	}
	part := r.rest[:n]
	r.rest = r.rest[n:]
	return part
}

func (r *logReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail("bad length in a log row")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *logReader) decode(path []byte) tree.Path {
	p, err := DecodePath(path)
	if err != nil && r.err == nil {
		r.err = err
	}
	return p
}

// A PathSet is the encoded paths whose changes are wanted; a nil one wants all
// changes.
type PathSet [][]byte

// NewPathSet returns the set of some paths.
func NewPathSet(paths []tree.Path) PathSet {
	list := make(PathSet, len(paths))
	for i, p := range paths {
		list[i] = appendPath(nil, p)
	}
	return list
}

// touches reports whether an encoded path is at, above or below one of them.
func (s PathSet) touches(path []byte) bool {
	for _, p := range s {
		if Belongs(path, p) || Belongs(p, path) {
			return true
		}
	}
	return s == nil
}

// DecodeLogRow decodes what concerns some paths. It reports false if nothing does, and
// does not look at the rest of the row then.
func DecodeLogRow(row []byte, position uint64, paths PathSet) (c tree.Change, ok bool, err error) {
	r := &logReader{rest: row}
	c.Position = position
	head := r.take(LogHead)
	if head == nil {
		return c, false, r.err
	}
	if head[0] != logVersion || head[1]&^logFlags != 0 {
		return c, false, fmt.Errorf("unknown log row %.4x", row)
	}
	c.Patch, c.Truncated = head[1]&logPatch != 0, head[1]&logTruncated != 0
	c.Settings = head[1]&logSettings != 0
	c.Millis = LogMillis(head)
	// All assignments are at the path of the write or below.
	at := r.take(r.uvarint())
	if r.err == nil && !c.Settings && !paths.touches(at) {
		return c, false, nil
	}
	c.At = r.decode(at)
	for range r.uvarint() {
		if r.err != nil {
			break
		}
		a, ok, err := r.assignment(paths)
		if err != nil {
			return c, false, err
		}
		if ok {
			c.Assignments = append(c.Assignments, a)
		}
	}
	if r.err == nil && len(r.rest) > 0 {
		r.fail("bytes behind a log row")
	}
	return c, paths == nil || c.Settings || c.Truncated || len(c.Assignments) > 0, r.err
}

// assignment decodes an assignment if it concerns some paths.
func (r *logReader) assignment(paths PathSet) (a tree.Assignment, ok bool, err error) {
	kind := r.take(1)
	if len(kind) > 0 && kind[0] == logLeaf {
		if leaf := r.take(1); len(leaf) > 0 {
			a.Leaf = int(leaf[0])
		}
	}
	path := r.take(r.uvarint())
	text := r.take(r.uvarint())
	if r.err != nil || !paths.touches(path) {
		return a, false, r.err
	}
	if a.Path = r.decode(path); r.err != nil {
		return a, false, r.err
	}
	a.Priority, a.Void = kind[0] == logPriority, kind[0] == logVoid
	node := kind[0] == logNode || kind[0] == logLeaf
	if kind[0] > logLeaf || node != (len(text) > 0) && !a.Priority || a.Leaf > a.Path.Depth() {
		return a, false, errors.New("unknown assignment in a log row")
	}
	if len(text) > 0 {
		a.Node, err = tree.DecodeBytes(text, tree.DecodeOptions{Depth: a.Path.Depth()})
	}
	return a, err == nil, err
}
