package rest

import (
	"io"
	"net/http"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
)

// An Endpoint answers requests that come to the port of the data and are not for
// data.
type Endpoint interface {
	// Find returns what answers requests for a path, percent-encoded; nil if the
	// endpoint does not know the path. It is not asked for paths that end in .json.
	Find(path string) func(*Request)
}

// A Request is one to an Endpoint. It has passed what every request must pass, its
// answer has the headers that every answer has, and what it takes of the server's
// memory counts as for a request for data.
type Request struct {
	W http.ResponseWriter
	R *http.Request

	call *call
}

// endpoint returns what answers a request that is not for data; nil if it is for
// data.
func (h *Handler) endpoint(r *http.Request) func(*Request) {
	path := escapedPath(r.URL)
	if h.opts.Endpoint == nil || strings.HasSuffix(path, suffix) {
		return nil
	}
	return h.opts.Endpoint.Find(path)
}

// Identify returns who asks about a database, by the credential of the request. The
// database is nil if there is none of that name.
func (q *Request) Identify(name string) (*engine.Database, auth.Identity, error) {
	c := q.call
	if err := c.readQuery(c.r); err != nil {
		return nil, auth.Identity{}, err
	}
	if err := catalog.CheckName(name); err != nil {
		return nil, auth.Identity{}, err
	}
	c.name, c.usage.database = name, name
	var err error
	c.database, err = c.opts.Catalog.Database(name)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, auth.Identity{}, err
	}
	c.reply.dialect = c.dialectOf(c.database)
	err = c.identify()
	return c.database, c.who, err
}

// OwnerAllowed reports whether the credential dev.Owner is an administrator's.
func (q *Request) OwnerAllowed() bool { return q.call.guard.AllowsOwner(q.R.Header) }

// Body reads the body of the request, within the limits of all bodies. It returns no
// more than most bytes, and one if there are more.
func (q *Request) Body(most int64) ([]byte, error) {
	if _, err := q.call.body.open(0); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(&q.call.body, most+1))
}

// Fail answers with an error, as it is answered to requests for data.
func (q *Request) Fail(err error) { q.call.reply.fail(err) }
