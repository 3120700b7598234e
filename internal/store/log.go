package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/tree"
)

// maxLogged is the largest change that is kept in the log; of a larger one only
// a marker is.
const maxLogged = 64 << 10

// The first bytes of a log row: the version of its layout, then flags.
const (
	logVersion byte = 1

	logPatch     byte = 1 << 0
	logTruncated byte = 1 << 1
	logSettings  byte = 1 << 2

	logFlags = logPatch | logTruncated | logSettings
)

// How an assignment in a log row changes its path.
const (
	logDelete byte = iota
	logNode
	logPriority
	logVoid // a delete of nothing
	logLeaf // a node below a leaf that becomes an object
)

// log adds the change to the log.
func (b *builder) log(c tree.Change) error {
	row, ok := appendLogRow(b.scratch[:0], c)
	if !ok {
		c.Assignments, c.Truncated = nil, true
		row, _ = appendLogRow(b.scratch[:0], c)
	}
	b.scratch = row[:0]
	b.place.key = logKey(b.place.key[:0], b.id, c.Position)
	return b.rows.Set(b.place.key, row, nil)
}

// appendLogRow appends a change; it reports false when that takes more than
// maxLogged bytes.
func appendLogRow(dst []byte, c tree.Change) ([]byte, bool) {
	var flags byte
	if c.Patch {
		flags |= logPatch
	}
	if c.Truncated {
		flags |= logTruncated
	}
	if c.Settings {
		flags |= logSettings
	}
	dst = append(dst, logVersion, flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Millis))
	start := len(dst)
	dst = sized(appendPath(dst, c.At), start)
	dst = binary.AppendUvarint(dst, uint64(len(c.Assignments)))
	for _, a := range c.Assignments {
		kind := logNode
		switch {
		case a.Void:
			kind = logVoid
		case a.Priority:
			kind = logPriority
		case a.Node.IsNull():
			kind = logDelete
		case a.Leaf > 0:
			kind = logLeaf
		}
		dst = append(dst, kind)
		if kind == logLeaf {
			dst = append(dst, byte(a.Leaf))
		}
		start = len(dst)
		dst = sized(appendPath(dst, a.Path), start)
		start = len(dst)
		if !a.Node.IsNull() {
			var fits bool
			if dst, _, fits = tree.AppendWithin(dst, a.Node, tree.Export, maxLogged); !fits {
				return dst, false
			}
		}
		dst = sized(dst, start)
		if len(dst) > maxLogged {
			return dst, false
		}
	}
	return dst, true
}

// sized puts the length of all that follows start in front of it.
func sized(dst []byte, start int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(dst)-start))
	return slices.Insert(dst, start, length[:n]...)
}

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

func (r *logReader) path() tree.Path {
	p, err := decodePath(r.take(r.uvarint()))
	if err != nil && r.err == nil {
		r.err = err
	}
	return p
}

func decodeLogRow(row []byte, position uint64) (tree.Change, error) {
	r := &logReader{rest: row}
	c := tree.Change{Position: position}
	head := r.take(10)
	if head == nil {
		return c, r.err
	}
	if head[0] != logVersion || head[1]&^logFlags != 0 {
		return c, fmt.Errorf("unknown log row %.4x", row)
	}
	c.Patch, c.Truncated = head[1]&logPatch != 0, head[1]&logTruncated != 0
	c.Settings = head[1]&logSettings != 0
	c.Millis = int64(binary.BigEndian.Uint64(head[2:]))
	c.At = r.path()
	for range r.uvarint() {
		if r.err != nil {
			break
		}
		a, err := r.assignment()
		if err != nil {
			return c, err
		}
		c.Assignments = append(c.Assignments, a)
	}
	if r.err == nil && len(r.rest) > 0 {
		r.fail("bytes behind a log row")
	}
	return c, r.err
}

func (r *logReader) assignment() (tree.Assignment, error) {
	var a tree.Assignment
	kind := r.take(1)
	if len(kind) > 0 && kind[0] == logLeaf {
		if leaf := r.take(1); len(leaf) > 0 {
			a.Leaf = int(leaf[0])
		}
	}
	a.Path = r.path()
	text := r.take(r.uvarint())
	if r.err != nil {
		return a, r.err
	}
	a.Priority, a.Void = kind[0] == logPriority, kind[0] == logVoid
	node := kind[0] == logNode || kind[0] == logLeaf
	if kind[0] > logLeaf || node != (len(text) > 0) && !a.Priority || a.Leaf > a.Path.Depth() {
		return a, errors.New("unknown assignment in a log row")
	}
	if len(text) == 0 {
		return a, nil
	}
	var err error
	a.Node, err = tree.DecodeBytes(text, tree.DecodeOptions{Depth: a.Path.Depth()})
	return a, err
}

// Position returns the position of the newest commit of the database, 0 if
// there is none.
func (t Tree) Position() (uint64, error) {
	it, err := t.logRows(0)
	if err != nil {
		return 0, damaged(err)
	}
	var position uint64
	if it.Last() {
		position = logPosition(it.Key())
	}
	return position, damaged(errors.Join(it.Error(), it.Close()))
}

// Changes calls yield with the changes behind a position, in order, until it
// returns false. It fails with ErrTrimmed when the log no longer reaches back
// to that position.
func (t Tree) Changes(behind uint64, yield func(tree.Change) bool) error {
	it, err := t.logRows(behind + 1)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; ok = it.Next() {
		position := logPosition(it.Key())
		if position != behind+1 {
			return ErrTrimmed
		}
		row, err := it.ValueAndErr()
		if err != nil {
			return damaged(err)
		}
		c, err := decodeLogRow(row, position)
		if err != nil {
			return rowError(it.Key(), err)
		}
		if !yield(c) {
			return nil
		}
		behind = position
	}
	return damaged(it.Error())
}

// ErrTrimmed says that changes were asked for that the log has no more.
var ErrTrimmed = errors.New("the log of changes does not reach back so far")

// logRows returns an iterator over the log from a position on.
func (t Tree) logRows(from uint64) (*pebble.Iterator, error) {
	return t.reader.NewIter(&pebble.IterOptions{
		LowerBound: logKey(nil, t.id, from),
		UpperBound: append(logKey(nil, t.id, math.MaxUint64), 0),
	})
}

func logPosition(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }
