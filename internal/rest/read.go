package rest

import (
	"net/http"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// read answers GET and HEAD.
func (c *call) read() error {
	if _, err := c.condition(); err != nil {
		return err
	}
	if err := c.usage.chargeMultiplexed(); err != nil {
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
	if err := c.usage.chargeContent(body); err != nil {
		return err
	}
	return c.reply.respond(http.StatusOK, body)
}

// look opens what the call asks for, and its ETag if that is of interest.
func (c *call) look() (content, string, error) {
	if c.database == nil {
		return nullText, nullTag(c.r), nil
	}
	snapshot := c.database.View() // not by c.snapshot: this one stays off the heap
	snapshot.Until(waiting(c.r))
	defer snapshot.Close()
	trace, err := snapshot.AllowRead(c.who, c.path(), c.params.filter())
	c.reply.showTrace(trace)
	if err != nil {
		return nil, "", err // without a position, which tells how much is written
	}
	c.showPosition()
	tag, err := c.readTag(snapshot)
	if err != nil {
		return nil, "", err
	}
	switch {
	case c.target.kind == ofPriority && c.params.filtered:
		return nullText, "", nil // a leaf, or nothing, has no children to select
	case c.target.kind == ofPriority:
		priority, err := snapshot.Priority(c.path())
		return text(tree.AppendLeaf(nil, priority)), tag, err
	case c.params.behind != "" || c.params.limit > 0:
		body, err := snapshot.ShallowPage(c.path(), c.params.behind, c.params.limit)
		return body, tag, err
	case c.params.shallow:
		body, err := snapshot.Shallow(c.path())
		return body, tag, err
	case c.params.filtered:
		body, err := snapshot.Select(c.path(), c.params.query, c.params.form)
		if err == nil && c.reply.dialect.arrays {
			body.AllowArray()
		}
		return body, tag, err
	}
	body, err := snapshot.Printer(c.path(), c.params.form)
	return body, tag, err
}

// snapshot returns the newest snapshot, for reads that end when nobody waits.
func (c *call) snapshot() *state.View {
	snapshot := c.database.View()
	snapshot.Until(waiting(c.r))
	return snapshot
}

// readTag returns the ETag of the location if the request calls for it.
func (c *call) readTag(snapshot *state.View) (string, error) {
	if c.params.shallow || c.params.filtered || !(wantsETag(c.r) || len(c.r.Header.Values("If-None-Match")) > 0) {
		return "", nil
	}
	return tagOf(snapshot, c.target.kind, c.path())
}

// tagOf returns the ETag of what is at a path, or of its priority if a target is about that.
func tagOf(snapshot *state.View, about kind, p tree.Path) (string, error) {
	if about == ofPriority {
		return snapshot.PriorityETag(p)
	}
	return snapshot.ETag(p)
}

func nullTag(r *http.Request) string {
	if wantsETag(r) || r.Header.Get("If-None-Match") != "" {
		return state.NullETag
	}
	return ""
}
