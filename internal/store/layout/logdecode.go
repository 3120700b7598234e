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
	_, author := r.head(&c, logFlags)
	// All assignments are at the path of the write or below.
	at := r.take(r.uvarint())
	if r.err == nil && !c.Settings && !paths.touches(at) {
		return c, false, nil
	}
	c.Author, c.At = r.author(author), r.decode(at)
	c.Assignments = r.assignments(paths)
	r.end()
	return c, paths == nil || c.Settings || c.Truncated || len(c.Assignments) > 0, r.err
}

// head decodes what comes before the path of a change, and returns its flags, of which
// some are allowed, and its author.
func (r *logReader) head(c *tree.Change, allowed byte) (flags byte, author []byte) {
	row := r.rest
	head := r.take(LogHead)
	if head == nil {
		return 0, nil
	}
	version, flags := head[0], head[1]
	if version != logFirst && version != logVersion || flags&^allowed != 0 || version == logFirst && flags&^firstFlags != 0 {
		r.fail(fmt.Sprintf("unknown log row %.4x", row))
		return 0, nil
	}
	c.Patch, c.Truncated, c.Settings = flags&logPatch != 0, flags&logTruncated != 0, flags&logSettings != 0
	c.Millis = LogMillis(head)
	if version == logFirst {
		return flags, nil
	}
	return flags, r.take(r.uvarint())
}

func (r *logReader) author(text []byte) tree.Author {
	a := tree.ParseAuthor(string(text))
	if a.UID == "" && len(a.By) != len(text) {
		r.fail("unknown author in a log row")
	}
	return a
}

// assignments decodes those that concern some paths.
func (r *logReader) assignments(paths PathSet) (list []tree.Assignment) {
	for range r.uvarint() {
		if r.err != nil {
			break
		}
		a, ok, err := r.assignment(paths)
		if err != nil && r.err == nil {
			r.err = err
		}
		if ok {
			list = append(list, a)
		}
	}
	return list
}

// end fails if something is left.
func (r *logReader) end() {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("bytes behind a log row")
	}
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
