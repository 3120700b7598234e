package rest

import (
	"io"
	"net/http"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// write answers PUT, POST, PATCH and DELETE.
func (c *call) write() error {
	req, err := c.request()
	if err != nil {
		return err
	}
	if err := c.create(); err != nil {
		return err
	}
	commit, err := c.database.Write(c.r.Context(), req)
	c.reply.showTrace(commit.Trace)
	for tries := 1; fault.KindOf(err) == fault.Precondition; tries++ {
		shown, mismatch := c.mismatch(req.IfMatch)
		switch {
		case shown:
			return mismatch
		case tries == maxMismatches:
			return fault.New(fault.Unavailable, "the data at %s changes too often, try again", c.path())
		}
		commit, err = c.database.Write(c.r.Context(), req)
	}
	if err != nil {
		return err
	}
	if c.hides(req.Write) {
		return c.reply.respond(http.StatusOK, nullText)
	}
	c.showPosition()
	c.tagWritten(commit)
	return c.reply.respond(http.StatusOK, echo(c.verb, commit))
}

// maxMismatches is how often a write is made whose condition did not hold, but
// does again when that is to be answered.
const maxMismatches = 8

// hides reports whether the answer to a write would tell more than its sender may
// read: what an increment came to.
func (c *call) hides(w tree.Write) bool {
	increments := w.Increments()
	if c.who.Admin || c.verb == post || len(increments) == 0 {
		return false
	}
	snapshot := c.snapshot()
	defer snapshot.Close()
	return snapshot.MayReadAll(c.who, increments) != nil
}

// request reads what is to be written.
func (c *call) request() (engine.Request, error) {
	req := engine.Request{Who: c.who, Push: c.verb == post}
	var err error
	if req.IfMatch, err = c.condition(); err != nil {
		return req, err
	}
	if c.target.kind == ofPriority && c.verb&(patch|post) != 0 {
		return req, fault.New(fault.Invalid, "a priority is written with PUT or DELETE")
	}
	if c.verb == post && c.path().Depth() == tree.MaxDepth {
		return req, fault.New(fault.Invalid, "%s: %v", invalidPath, tree.ErrTooDeep)
	}
	if c.verb == del {
		req.Write = tree.Put(c.path(), tree.Node{})
		if c.target.kind == ofPriority {
			req.Write = tree.PutPriority(c.path(), tree.Node{})
		}
		return req, c.usage.chargeWaiting()
	}
	if req.Write, err = c.decode(); err != nil {
		return req, err
	}
	return req, c.stands()
}

// decode reads the body.
func (c *call) decode() (tree.Write, error) {
	depth := c.path().Depth()
	if c.verb == post {
		depth++
	}
	opts, err := c.body.open(depth)
	if err != nil {
		return tree.Write{}, err
	}
	var body io.Reader = &c.body
	if c.target.upload {
		if body, err = uploaded(body, c.r.Header.Get("Content-Type")); err != nil {
			return tree.Write{}, err
		}
	}
	var w tree.Write
	switch {
	case c.verb == patch:
		w, err = tree.DecodePatch(body, c.path(), opts)
	case c.target.kind == ofPriority:
		var n tree.Node
		n, err = tree.DecodePriority(body, opts)
		w = tree.PutPriority(c.path(), n)
	default:
		var n tree.Node
		n, err = tree.Decode(body, opts)
		w = tree.Put(c.path(), n)
	}
	if err != nil {
		return tree.Write{}, state.DecodeError(err, c.verb == patch)
	}
	return w, nil
}

// condition returns the ETag of if-match, which only PUT and DELETE know. A write with if-none-match, which HTTP has
// for making what is not there yet, must not replace what is.
func (c *call) condition() (string, error) {
	if !c.verb.reads() && len(c.r.Header["If-None-Match"]) > 0 {
		return "", fault.New(fault.Invalid, "if-none-match works with GET only: a write that is to be made if there is no data has if-match: null_etag")
	}
	tag, err := oneTag(c.r.Header, "If-Match")
	if tag != "" && c.verb&(put|del) == 0 {
		err = fault.New(fault.Invalid, "if-match is not supported with GET, POST and PATCH")
	}
	return tag, err
}

// mismatch answers a write whose condition does not hold: with the current
// value and its ETag, for those who may read it. It shows nothing if others have
// made the condition true since it was judged: a refusal with the very ETag that
// the client sent would contradict itself, so the write is to be judged again.
func (c *call) mismatch(sent string) (shown bool, err error) {
	snapshot := c.snapshot()
	defer snapshot.Close()
	err = snapshot.MayRead(c.who, c.path())
	switch {
	case fault.KindOf(err) == fault.Denied:
		return true, fault.New(fault.Precondition, "the ETag does not match")
	case err != nil: // it was dropped since
		return true, err
	}
	tag, err := tagOf(snapshot, c.target.kind, c.path())
	if err != nil || tag == sent {
		return err != nil, err
	}
	body, err := c.current(snapshot)
	if err != nil {
		return true, err
	}
	defer func() { _ = body.Close() }()
	if err := c.chargeCurrent(body); err != nil {
		return true, err
	}
	setETag(c.w.Header(), tag)
	c.params.print = compact
	return true, c.reply.respond(http.StatusPreconditionFailed, body)
}

// chargeCurrent takes the memory of the answer to a write that was not made, which
// may be as large as that to any read.
func (c *call) chargeCurrent(body content) error {
	if _, known := body.Size(); !known {
		return c.usage.chargeAnswer(longAnswer, false)
	}
	return c.usage.chargeContent(body)
}

// current returns what is at the target of a write.
func (c *call) current(snapshot *state.View) (content, error) {
	if c.target.kind == ofPriority {
		priority, err := snapshot.Priority(c.path())
		return text(tree.AppendLeaf(nil, priority)), err
	}
	return snapshot.Printer(c.path(), tree.Plain)
}

// tagWritten sets the ETag of what was written, if the client asked for it. That of a priority is there even if no data
// carries it, as the answer is: the sender may not be one who may know.
func (c *call) tagWritten(commit engine.Commit) {
	if !wantsETag(c.r) || c.verb == patch {
		return
	}
	setETag(c.w.Header(), c.database.ETagOf(commit.Assignments[0].Node))
}
