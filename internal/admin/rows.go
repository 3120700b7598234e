package admin

import (
	"net/http"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/rows/rowshttp"
	"github.com/livetree/livetree/internal/shares"
)

// maxRowsBody bounds the body of a request for rows: 200 locations with long paths.
const maxRowsBody = 1 << 20

// newRows returns what answers for the rows of databases.
func newRows(opts Options) *rowshttp.Handlers {
	return rowshttp.New(rowshttp.Options{
		Now: opts.Now, Logger: opts.Logger, MaxCopy: opts.MaxCopy, Writes: opts.Writes, Denials: &opts.Engine.Denials, Past: opts.Past, Older: opts.Older,
	})
}

// rowRoutes are the routes to the rows of a database.
func (h *Handler) rowRoutes() []route {
	const below = "/v1/databases/{name}"
	return []route{
		{pattern: "POST " + below + "/watch", access: byDatabase, streams: true, maxBody: maxRowsBody, handle: h.onDatabase(h.rows.Watch)},
		{pattern: "GET " + below + "/changes", access: byDatabase, streams: true, handle: h.onDatabase(h.rows.Changes)},
		{pattern: "GET " + below + "/denials", access: byDatabase, streams: true, handle: h.onDatabase(h.rows.Denials)},
		{pattern: "POST " + below + "/find", access: byDatabase, streams: true, handle: h.forSession(h.rows.Find)},
		{pattern: "POST " + below + "/copy", access: byDatabase, handle: h.forSession(h.rows.Copy)},
		{pattern: "GET " + below + "/history", access: byDatabase, handle: h.forSession(h.rows.History)},
		{pattern: "POST " + below + "/revert", access: byDatabase, handle: h.forSession(h.revert)},
		{pattern: "POST " + below + "/exports", access: byDatabase, handle: h.onDatabase(h.export)},
	}
}

// onDatabase finds the database that a route names.
func (h *Handler) onDatabase(next func(http.ResponseWriter, *http.Request, *engine.Database)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		database, err := h.opts.Catalog.Database(r.PathValue("name"))
		if err != nil {
			h.failWith(w, err)
			return
		}
		freshenOne(w, r, database)
		next(w, r, database)
	}
}

// forSession is onDatabase for what is bounded for each caller.
func (h *Handler) forSession(next func(http.ResponseWriter, *http.Request, *engine.Database, shares.Who)) http.HandlerFunc {
	return h.onDatabase(func(w http.ResponseWriter, r *http.Request, database *engine.Database) {
		next(w, r, database, callerOf(r).who())
	})
}

// revert takes a part of a database back to an earlier moment.
func (h *Handler) revert(w http.ResponseWriter, r *http.Request, database *engine.Database, who shares.Who) {
	h.rows.Revert(w, r, database, who, func(path string) {
		h.audit(r, "took a part back to an earlier moment", database.Name(), path)
	})
}

// export answers with the URL of a download, which ends with the session of the caller.
func (h *Handler) export(w http.ResponseWriter, r *http.Request, database *engine.Database) {
	who := callerOf(r)
	h.rows.Export(w, r, database, who.who(), func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) bool {
		if who.session != nil && !h.gate.stands(*who.session) {
			return false
		}
		h.gate.admit(w, r, who, true, next)
		return true
	})
}

// download answers with what was asked for by a session. The token in its URL, which is good
// once, is the credential.
func (h *Handler) download(w http.ResponseWriter, r *http.Request) {
	noteConsole(w)
	h.rows.Download(w, r)
}
