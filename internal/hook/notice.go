package hook

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/tree"
)

// A Notice is what a commit is to one hook.
type Notice struct {
	// Position, Millis and Author are those of the commit, At is where it was made. The position is
	// not part of the row: it is in its key.
	Position uint64
	Millis   int64
	Author   tree.Author
	At       tree.Path
	// Changes are the locations that have changed.
	Changes []Changed
	// More says that there are others, which were too many.
	More bool
}

// A Mark names a notice that is stored.
type Mark struct {
	Hook     uint32
	Position uint64
	Bytes    int
}

// Changed is a location that a commit has changed.
type Changed struct {
	Path          tree.Path
	Event         Event
	Before, After Value
}

// A Value is a node as JSON, as an ordinary read shows it: null for none. One that is too large is
// cut: there is no text.
type Value struct {
	Text []byte
	Cut  bool
}

// Deliveries returns how many deliveries a notice makes: one for each location, and one that
// says that there were more.
func (n *Notice) Deliveries() int {
	if n.More {
		return len(n.Changes) + 1
	}
	return len(n.Changes)
}

// Largest returns how many bytes the largest of its changes has.
func (n *Notice) Largest() (bytes int) {
	for i := range n.Changes {
		c := &n.Changes[i]
		bytes = max(bytes, len(c.Path.String())+len(c.Before.Text)+len(c.After.Text))
	}
	return bytes
}

// The bytes of a row.
const (
	noticeVersion = 0x01
	noticeMore    = 0x01 // flag of the row

	eventMask byte = 0x07
	beforeCut byte = 0x10
	afterCut  byte = 0x20
)

// errNotice says that a row is no notice.
var errNotice = errors.New("not the row of a notice")

// AppendTo appends the notice as a row.
func (n *Notice) AppendTo(dst []byte) []byte {
	var flags byte
	if n.More {
		flags |= noticeMore
	}
	dst = append(dst, noticeVersion, flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(n.Millis))
	dst = appendText(dst, n.Author.AppendTo(nil))
	dst = appendText(dst, []byte(n.At.String()))
	dst = binary.AppendUvarint(dst, uint64(len(n.Changes)))
	for i := range n.Changes {
		c := &n.Changes[i]
		kind := byte(c.Event)
		if c.Before.Cut {
			kind |= beforeCut
		}
		if c.After.Cut {
			kind |= afterCut
		}
		dst = append(dst, kind)
		dst = appendText(dst, []byte(c.Path.String()))
		dst = appendText(dst, c.Before.Text)
		dst = appendText(dst, c.After.Text)
	}
	return dst
}

func appendText(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// DecodeNotice reads a row, of a commit with a position. The notice keeps the row.
func DecodeNotice(position uint64, row []byte) (Notice, error) {
	const head = 2 + 8
	n := Notice{Position: position}
	if len(row) < head || row[0] != noticeVersion || row[1]&^noticeMore != 0 {
		return n, errNotice
	}
	n.More = row[1]&noticeMore != 0
	n.Millis = int64(binary.BigEndian.Uint64(row[2:head]))
	r := noticeReader{rest: row[head:]}
	n.Author = tree.ParseAuthor(string(r.text()))
	n.At = r.path()
	count := r.number()
	if count > uint64(len(r.rest)) { // each takes some bytes
		return n, errNotice
	}
	n.Changes = make([]Changed, 0, count)
	for range count {
		n.Changes = append(n.Changes, r.changed())
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = errNotice
	}
	return n, r.err
}

// A noticeReader takes a row apart. After an error it returns nothing more.
type noticeReader struct {
	rest []byte
	err  error
}

func (r *noticeReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

func (r *noticeReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail(errNotice)
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *noticeReader) text() []byte {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.fail(errNotice)
		return nil
	}
	text := r.rest[:n:n]
	r.rest = r.rest[n:]
	return text
}

func (r *noticeReader) path() tree.Path {
	p, err := tree.ParsePath(string(r.text()))
	if err != nil {
		r.fail(fmt.Errorf("%w: %w", errNotice, err))
	}
	return p
}

func (r *noticeReader) changed() Changed {
	if len(r.rest) == 0 {
		r.fail(errNotice)
		return Changed{}
	}
	kind := r.rest[0]
	r.rest = r.rest[1:]
	c := Changed{Event: Event(kind & eventMask)}
	if kind&^(eventMask|beforeCut|afterCut) != 0 || c.Event.String() == "unknown" {
		r.fail(errNotice)
	}
	c.Path = r.path()
	c.Before = Value{r.text(), kind&beforeCut != 0}
	c.After = Value{r.text(), kind&afterCut != 0}
	return c
}
