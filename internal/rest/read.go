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
	return c.respond(http.StatusOK, body)
}

// look opens what the call asks for, and its ETag if that is of interest.
func (c *call) look() (content, string, error) {
	if c.database == nil {
		return nullText, c.nullTag(), nil
	}
	snapshot := c.database.Snapshot()
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
	case c.params.shallow:
		body, err := snapshot.Shallow(c.path())
		return body, tag, err
	case c.params.filtered:
		body, err := snapshot.Select(c.path(), c.params.query, c.params.form)
		return body, tag, err
	}
	body, err := snapshot.Printer(c.path(), c.params.form)
	return body, tag, err
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
