package rest

import (
	"io"
	"net/http"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// Content is the text of an answer: a printer of the store, or a text at hand.
type content interface {
	// Size returns the length in bytes if it is known.
	Size() (bytes int, known bool)
	PrintTo(w io.Writer) error
	Close() error
}

// A text is content in memory.
type text []byte

func (t text) Size() (int, bool) { return len(t), true }

func (t text) PrintTo(w io.Writer) error {
	_, err := w.Write(t)
	return err
}

func (t text) Close() error { return nil }

var nullText = text("null")

// read answers GET and HEAD.
func (c *call) read() error {
	if _, err := c.condition(); err != nil {
		return err
	}
	body, tag, err := c.look()
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if tag != "" {
		setETag(c.w.Header(), tag)
		if matches, err := matchTag(c.r.Header, "If-None-Match", tag); err != nil {
			return err
		} else if matches {
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	if err := c.chargeAnswer(body); err != nil {
		return err
	}
	return c.respond(http.StatusOK, body)
}

// chargeAnswer takes the memory of an answer that is held as a whole, a long string
// perhaps, from the budget for bodies: clients that do not read would otherwise
// fill the memory with it.
func (c *call) chargeAnswer(body content) error {
	size, known := body.Size()
	if !known || size <= smallBody {
		return nil
	}
	return c.chargeRead(int64(size))
}

// longAnswer is what an answer takes that is sent as it is read: a cursor of the
// store, and buffers on the way to the client.
const longAnswer = 128 << 10

// chargeLong does so for an answer that is longer than is gathered. HTTP/2 has many
// on one connection, and a client that takes none of them has them wait.
func (c *call) chargeLong() error {
	if c.verb != get || c.charged >= longAnswer {
		return nil // of a write, the body was charged
	}
	return c.chargeRead(longAnswer)
}

func (c *call) chargeRead(bytes int64) error {
	if !c.bodies.grow(c.charged, bytes) {
		return fault.New(fault.Unavailable, "too many large answers are under way, try again")
	}
	c.charged = bytes
	return nil
}

// look opens what the call asks for, and its ETag if that is of interest.
func (c *call) look() (content, string, error) {
	if c.database == nil {
		return nullText, c.nullTag(), nil
	}
	snapshot := c.database.Snapshot() // not by c.snapshot: this one stays off the heap
	snapshot.Until(c.waiting())
	defer snapshot.Close()
	trace, err := snapshot.AllowRead(c.who, c.path(), c.params.filter())
	c.showTrace(trace)
	if err != nil {
		return nil, "", err
	}
	tag, err := c.readTag(snapshot)
	if err != nil {
		return nil, "", err
	}
	switch {
	case c.target.priority && c.params.filtered:
		return nullText, "", nil // a leaf, or nothing, has no children to select
	case c.target.priority:
		priority, err := snapshot.Priority(c.path())
		return text(tree.AppendLeaf(nil, priority)), tag, err
	case c.params.behind != "" || c.params.limit > 0:
		body, err := c.shallowPage(snapshot)
		return body, tag, err
	case c.params.shallow:
		body, err := snapshot.Shallow(c.path())
		return body, tag, err
	case c.params.filtered:
		body, err := snapshot.Select(c.path(), c.params.query, c.params.form)
		if err == nil && c.dialect().arrays {
			body.AllowArray()
		}
		return body, tag, err
	}
	body, err := snapshot.Printer(c.path(), c.params.form)
	return body, tag, err
}

// snapshot returns the newest snapshot, for reads that end when nobody waits.
func (c *call) snapshot() *engine.Snapshot {
	snapshot := c.database.Snapshot()
	snapshot.Until(c.waiting())
	return snapshot
}

// shallowPage returns the keys of a page. Of a leaf, the first page is the leaf.
func (c *call) shallowPage(snapshot *engine.Snapshot) (content, error) {
	keys, err := snapshot.ShallowPage(c.path(), c.params.behind, c.params.limit)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 && c.params.behind == "" {
		return snapshot.Shallow(c.path())
	}
	if len(keys) == 0 {
		return nullText, nil
	}
	page := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			page = append(page, ',')
		}
		page = append(tree.AppendString(page, key), ":true"...)
	}
	return text(append(page, '}')), nil
}

// readTag returns the ETag of the location if the request calls for it.
func (c *call) readTag(snapshot *engine.Snapshot) (string, error) {
	if c.params.shallow || c.params.filtered || !(wantsETag(c.r) || len(c.r.Header.Values("If-None-Match")) > 0) {
		return "", nil
	}
	return snapshot.ETag(c.path())
}

func (c *call) nullTag() string {
	if wantsETag(c.r) || c.r.Header.Get("If-None-Match") != "" {
		return engine.NullETag
	}
	return ""
}

// matchTag reports whether a conditional header names an ETag.
func matchTag(header http.Header, name, tag string) (bool, error) {
	wanted, err := oneTag(header, name)
	return wanted != "" && wanted == tag, err
}

// oneTag returns the one ETag of a conditional header, without the quotes and
// the mark of a weak one; empty when the header is not there.
func oneTag(header http.Header, name string) (string, error) {
	list := header.Values(name)
	if len(list) == 0 {
		return "", nil
	}
	tag := trimTag(list[0])
	if len(list) > 1 || !validTag(tag) {
		return "", fault.New(fault.Invalid, "%s must hold exactly one ETag", name)
	}
	return tag, nil
}
