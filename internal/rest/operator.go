package rest

import (
	"cmp"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// notForOperators are parameters that make no sense where the database and the
// identity are known, or would let a page of another origin read the answer.
var notForOperators = []string{"ns", "auth", "access_token", "callback"}

// An Operated is a database whose operator was recognised.
type Operated struct {
	Name     string
	Database *engine.Database
	By       string // names the operator in the history of rules
	Author   string // who is noted to have written, tree.ByOperator by default
}

// ServeOperator answers a request for one database by its operator. The path of the request's URL is that of the data port. No page of another
// origin may read the answer, and a stream ends with the context of the request.
func (h *Handler) ServeOperator(w http.ResponseWriter, r *http.Request, of Operated) {
	w.Header()["X-Content-Type-Options"] = noSniffing
	if WantsStream(r.Header) && r.ProtoMajor == 1 {
		// As over HTTP/2, so that it is not taken out of the hands of the caller.
		stream := *r
		stream.ProtoMajor, stream.ProtoMinor = 2, 0
		r = &stream
		// A deadline that was set for one answer would end the next on this connection.
		defer func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) }()
	}
	c := h.newCall(w, r)
	defer c.usage.release()
	c.name, c.usage.database, c.database, c.operator = of.Name, of.Name, of.Database, of.By
	c.who = auth.Identity{Admin: true, Operator: true, By: cmp.Or(of.Author, tree.ByOperator)}
	c.reply.dialect = c.dialectOf(of.Database)
	if err := c.serveOperator(); err != nil {
		c.reply.fail(err)
	}
}

func (c *call) serveOperator() error {
	if err := c.ask(c.r); err != nil {
		return err
	}
	for _, name := range notForOperators {
		if c.given.has(name) {
			return fault.New(fault.Invalid, "the parameter %s does not work here", name)
		}
	}
	if c.target.kind == ofDatabases {
		return fault.New(fault.Denied, "Permission denied")
	}
	return c.answer()
}
