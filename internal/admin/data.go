package admin

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/session"
	"github.com/livetree/livetree/internal/tree"
)

// dataTarget returns a request for the tree of a database with its name as a path value,
// and the path of the data port as its URL; false if it is not one. The path of a tree
// must not go through http.ServeMux, which would redirect some.
func dataTarget(r *http.Request) (*http.Request, bool) {
	escaped := r.URL.RawPath
	if escaped == "" {
		escaped = r.URL.EscapedPath()
	}
	rest, ok := strings.CutPrefix(escaped, "/v1/databases/")
	if !ok {
		return nil, false
	}
	name, path, ok := strings.Cut(rest, "/data/")
	if !ok || strings.Contains(name, "/") {
		return nil, false
	}
	name, err := url.PathUnescape(name)
	if err != nil {
		return nil, false
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		plain = path // it is refused, by how it was sent
	}
	inner := r.WithContext(r.Context())
	inner.URL = &url.URL{Path: "/" + plain, RawPath: "/" + path, RawQuery: r.URL.RawQuery}
	inner.SetPathValue("name", name)
	return inner, true
}

// isStream reports whether a request for data asks for a stream.
func isStream(r *http.Request) bool {
	return r.Method == http.MethodGet && rest.WantsStream(r.Header)
}

// serveData answers for the tree of a database and its rules document, as the data port
// would answer the holder of its secret.
func (h *Handler) serveData(w http.ResponseWriter, r *http.Request) {
	if missing(w, h.opts.Front == nil) {
		return
	}
	name := r.PathValue("name")
	database, err := h.opts.Catalog.Database(name)
	if err != nil {
		h.failWith(w, err)
		return
	}
	r.Header.Del("Authorization") // it was for us
	author := tree.ByOperator
	if callerOf(r).scope() != session.Operator {
		author = tree.BySecret // which has opened the session
	}
	h.opts.Front.ServeOperator(w, r, rest.Operated{Name: name, Database: database, By: callerOf(r).String(), Author: author})
}
