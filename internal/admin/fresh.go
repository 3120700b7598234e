package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/engine"
)

const (
	// freshTime is how long an operator waits for the other nodes of a cluster.
	freshTime = 2 * time.Second
	// freshHeader says that an answer shows what this node has: the others were not reached.
	freshHeader = "X-Livetree-Consistency"
)

// freshen returns when this node has all that was acknowledged before the call, by whatever node. If the nodes do not agree, an operator needs to see something all the same: it is what this
// node has, and the answer says so.
func freshen(w http.ResponseWriter, r *http.Request, await func(context.Context) error) {
	ctx, cancel := context.WithTimeout(r.Context(), freshTime)
	defer cancel()
	if err := await(ctx); err != nil {
		w.Header().Set(freshHeader, "local")
	}
}

// freshenAll is freshen for all databases.
func freshenAll(h *Handler, w http.ResponseWriter, r *http.Request) {
	if h.opts.Cluster != nil {
		freshen(w, r, h.opts.Cluster.CaughtUp)
	}
}

// freshenOne is freshen for one database.
func freshenOne(w http.ResponseWriter, r *http.Request, d *engine.Database) {
	freshen(w, r, func(ctx context.Context) error { return engine.Await(ctx, d) })
}
