package watch

import (
	"io"
	"sync/atomic"

	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// An EventKind is what an event says.
type EventKind uint8

const (
	// Put: replace what is at the path.
	Put EventKind = iota
	// Patch: replace those children of what is at the path that are named.
	Patch
	// Ranges: replace those ranges of what is at the place that are named. It is the first
	// event of a watch whose client knows something already.
	Ranges
	// Cancel: the rules no longer allow the watch. It is over.
	Cancel
	// Revoked: the credential is no longer good. It is over, unless it lasts: then it is told
	// nothing more until it is for another identity.
	Revoked
	// End: the database is closed, the watch is too far behind, or what it shows
	// cannot be read now. It is over.
	End

	// silent says nothing; but see Watch.Next.
	silent
)

// An Event is what a watch is told. Events are shared and must not be changed.
type Event struct {
	Kind EventKind
	// Path is where the change is, as seen from the place that is watched, and Value what
	// is there now, as JSON, of a Put or a Patch.
	Path  tree.Path
	Value []byte
	// Content, if not nil, prints the value of a Put at the place itself. It must be
	// closed.
	Content Content
	// Merges are those of Ranges.
	Merges []sdkhash.Merge
	// Position is that of the commit. Last says that no further event of it comes.
	Position uint64
	Last     bool
	// Millis is the time of the commit, 0 if the event is not of one.
	Millis int64

	// from and to, unless to is 0, are the positions that a window was moved between.
	// All events of the move together do not tell enough to a watch that began in
	// between.
	from, to uint64
	// shared is how many watches were to be told when it was published.
	shared int
	frame  atomic.Pointer[[]byte]
}

// Content is a text that can be printed once.
type Content interface {
	PrintTo(w io.Writer) error
	Close() error
}

// Frame returns the event as a front encodes it. It is encoded once for all
// watches that share it, so there must be one way to encode.
func (e *Event) Frame(encode func(*Event) []byte) []byte {
	if frame := e.frame.Load(); frame != nil {
		return *frame
	}
	frame := encode(e)
	e.frame.Store(&frame)
	return frame
}

// bytes returns about how much memory the event takes, when it was framed.
func (e *Event) bytes() int {
	const eventBytes = 160
	return eventBytes + 2*len(e.Value) + e.Path.Bytes()
}

// Part returns what the event counts for one that holds it, as far as it is in memory: those
// who are told it share it.
func (e *Event) Part() int {
	if e.Content != nil {
		return 0
	}
	return e.bytes() / max(1, e.shared)
}

// A text is content in memory.
type text []byte

func (t text) PrintTo(w io.Writer) error {
	_, err := w.Write(t)
	return err
}

func (t text) Close() error { return nil }
