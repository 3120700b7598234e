package rowshttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/tree"
)

// historyShares is how many histories are read at a time: each reads the change log of its
// database.
var historyShares = shares.Bound{Session: 1, Group: 2, All: 4}

// History answers GET /v1/databases/{db}/history with the commits that touched the node at
// path: since a time in milliseconds, behind a commit, up to a limit.
func (h *Handlers) History(w http.ResponseWriter, r *http.Request, db *engine.Database, who shares.Who) {
	req, err := parseHistory(r)
	if err != nil {
		h.fail(w, err)
		return
	}
	leave, ok := h.histories.Enter(who)
	if !ok {
		h.fail(w, fault.New(fault.Unavailable, "another history is being read, try again"))
		return
	}
	defer leave()
	req.Older = h.opts.Older
	list, err := rows.ReadHistory(r.Context(), db, req)
	if err != nil {
		h.fail(w, err)
		return
	}
	answer(w, http.StatusOK, list)
}

func parseHistory(r *http.Request) (req rows.HistoryRequest, err error) {
	query := r.URL.Query()
	if req.Path, err = tree.ParsePath(query.Get("path")); err != nil {
		return req, fault.Wrap(fault.Invalid, err, "path must be a valid path: %v", err)
	}
	req.Behind = query.Get("behind")
	for name, set := range map[string]func(n int64){
		"since": func(n int64) { req.Since = time.UnixMilli(n) },
		"limit": func(n int64) { req.Limit = int(n) },
	} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return req, fault.New(fault.Invalid, "%s must be a whole number", name)
		}
		set(n)
	}
	return req, nil
}
