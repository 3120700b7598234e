package leave

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// A Row is one write that is left, as it is stored.
type Row struct {
	// Number is the place of the write in the order of its list.
	Number uint64
	// Encoded is the value of the row: see Decode.
	Encoded string

	at    tree.Path
	patch bool
	parts []part // their paths and texts are parts of Encoded
}

// A part is what is left for one path.
type part struct {
	path     tree.Path
	priority bool // text is the priority of the node at the path
	text     string
}

// The version and the flags of rows, and the kinds of parts.
const (
	rowVersion = 0x01
	patchFlag  = 0x01

	nodeKind     = 0x00
	priorityKind = 0x01
)

// ErrRow is what the decoders of this package wrap: no List has made these bytes.
var ErrRow = errors.New("malformed row of what is left to be written")

func textOf(n tree.Node) string { return string(tree.AppendJSON(nil, n, tree.Export)) }

// node returns what the text of a part says.
func (p part) node() (n tree.Node, err error) {
	if p.priority {
		n, err = tree.DecodePriority(strings.NewReader(p.text), tree.DecodeOptions{})
	} else {
		n, err = tree.DecodeBytes([]byte(p.text), tree.DecodeOptions{Depth: p.path.Depth()})
	}
	if err == nil && textOf(n) != p.text {
		err = errors.New("a text that is not in canonical form")
	}
	if err != nil {
		return n, fmt.Errorf("%w: %s: %w", ErrRow, p.path, err)
	}
	return n, nil
}

// Write returns the write of the row, with its server values unresolved. If the row is not one
// that a List has made, it fails with ErrRow.
func (r Row) Write() (tree.Write, error) {
	w := tree.Write{At: r.at, Patch: r.patch || len(r.parts) > 1}
	for _, p := range r.parts {
		n, err := p.node()
		if err != nil {
			return tree.Write{}, err
		}
		a := tree.Assignment{Path: p.path, Node: n, Priority: p.priority}
		if w.Patch {
			a.Name = nameOf(r.at, p)
		} else {
			w.At = p.path
		}
		w.Assignments = append(w.Assignments, a)
	}
	if err := w.CheckOverlap(); err != nil {
		return tree.Write{}, fmt.Errorf("%w: %w", ErrRow, err)
	}
	return w, nil
}

// nameOf returns the key that a part would have in a PATCH.
func nameOf(at tree.Path, p part) string {
	name := strings.TrimPrefix(at.Below(p.path).String(), "/")
	switch {
	case !p.priority:
		return name
	case name == "":
		return ".priority"
	}
	return name + "/.priority"
}

// bytes returns about how long the encoded row is, and not more than that.
func (r Row) bytes() int {
	total := r.at.Bytes()
	for _, p := range r.parts {
		total += r.at.Below(p.path).Bytes() + len(p.text)
	}
	return total
}

// encode returns the value of the row: version, flags, path, number of parts; and for each
// part its kind, its path below the path of the row, and its text. Paths and texts have
// their length before them.
func (r Row) encode() string {
	flags := byte(0)
	if r.patch {
		flags = patchFlag
	}
	dst := append(make([]byte, 0, r.bytes()), rowVersion, flags)
	dst = appendText(dst, pathText(r.at))
	dst = binary.AppendUvarint(dst, uint64(len(r.parts)))
	for _, p := range r.parts {
		kind := byte(nodeKind)
		if p.priority {
			kind = priorityKind
		}
		dst = appendText(append(dst, kind), pathText(r.at.Below(p.path)))
		dst = appendText(dst, p.text)
	}
	return string(dst)
}

func pathText(p tree.Path) string { return strings.TrimPrefix(p.String(), "/") }

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// Decode reads the value of a row. Whether its texts are in order is found out by Write. An
// error wraps ErrRow.
func Decode(number uint64, encoded string) (Row, error) {
	r := Row{Number: number, Encoded: encoded}
	c := cursor{rest: encoded}
	version, flags := c.byte(), c.byte()
	if c.err == nil && (version != rowVersion || flags&^patchFlag != 0) {
		c.fail("version %d, flags %x", version, flags)
	}
	r.patch = flags&patchFlag != 0
	r.at = c.path()
	count := c.number()
	for range count {
		kind := c.byte()
		if c.err == nil && kind > priorityKind {
			c.fail("a part of kind %d", kind)
		}
		p := part{path: r.at.Join(c.path()), priority: kind == priorityKind, text: c.text()}
		if c.err != nil {
			return Row{}, c.err
		}
		r.parts = append(r.parts, p)
	}
	if err := c.end(); err != nil {
		return Row{}, err
	}
	return r, r.check()
}

// check reports what no list writes.
func (r Row) check() error {
	if len(r.parts) == 0 {
		return fmt.Errorf("%w: it has no parts", ErrRow)
	}
	for _, p := range r.parts {
		if (r.patch || len(r.parts) > 1) && p.path == r.at && !p.priority {
			return fmt.Errorf("%w: %s is one part of several", ErrRow, p.path)
		}
		if p.path.Depth() > tree.MaxDepth {
			return fmt.Errorf("%w: %s: %w", ErrRow, p.path, tree.ErrTooDeep)
		}
	}
	return nil
}

// A cursor reads an encoded row. After an error it reads nothing.
type cursor struct {
	rest string
	err  error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrRow, fmt.Sprintf(format, args...))
	}
	c.rest = ""
}

func (c *cursor) byte() byte {
	if c.rest == "" {
		c.fail("it ends too soon")
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

// number reads a length or a count, which is never more than the bytes that follow.
func (c *cursor) number() int {
	var head [binary.MaxVarintLen64]byte
	v, n := binary.Uvarint(head[:copy(head[:], c.rest)])
	if n <= 0 || v > uint64(len(c.rest)-n) || n > 1 && head[n-1] == 0 {
		c.fail("a length that cannot be")
		return 0
	}
	c.rest = c.rest[n:]
	return int(v)
}

func (c *cursor) text() string {
	n := c.number()
	text := c.rest[:n]
	c.rest = c.rest[n:]
	return text
}

func (c *cursor) path() tree.Path {
	text := c.text()
	p, err := tree.ParsePath(text)
	if err == nil && pathText(p) != text {
		err = errors.New("not the plain spelling of a path")
	}
	if err != nil {
		c.fail("%v", err)
	}
	return p
}

func (c *cursor) end() error {
	if c.err == nil && c.rest != "" {
		c.fail("%d bytes too many", len(c.rest))
	}
	return c.err
}
