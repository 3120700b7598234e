package rowshttp

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/revert"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/tree"
)

// A RevertRequest says which part of a database is taken back to which moment.
type RevertRequest struct {
	Path string    `json:"path"`
	At   time.Time `json:"at"`
	// Overwrite makes it exactly as it was, Preview writes nothing.
	Overwrite bool `json:"overwrite"`
	Preview   bool `json:"preview"`
}

// Revert answers POST /v1/databases/{db}/revert with what was written, or would be. It counts
// as a copy. Noted is called with the path that something was written at.
func (h *Handlers) Revert(w http.ResponseWriter, r *http.Request, db *engine.Database, who shares.Who, noted func(path string)) {
	var req RevertRequest
	err := body(w, r, &req)
	var result revert.Result
	if err == nil {
		result, err = h.revert(r, db, req, who)
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	if result.Position > 0 {
		noted(result.Path)
	}
	answer(w, http.StatusOK, result)
}

func (h *Handlers) revert(r *http.Request, db *engine.Database, req RevertRequest, who shares.Who) (revert.Result, error) {
	p, err := tree.ParsePath(req.Path)
	if err != nil {
		return revert.Result{}, fault.Wrap(fault.Invalid, err, "path must be a valid path: %v", err)
	}
	if req.At.IsZero() {
		return revert.Result{}, fault.New(fault.Invalid, "at must be a time like 2026-11-15T14:05:00Z")
	}
	if h.opts.Past == nil {
		return revert.Result{}, fault.New(fault.Invalid, "nothing can be taken back: this server has no archive (livetree serve --archive)")
	}
	leave, ok := h.copies.Enter(who)
	if !ok {
		return revert.Result{}, fault.New(fault.Unavailable, "another node is being copied or taken back, try again")
	}
	defer leave()
	was, leavePast, err := h.opts.Past(r.Context(), db, req.At)
	if err != nil {
		return revert.Result{}, err
	}
	defer leavePast()
	remote, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero one is an address, too
	claim := h.opts.Writes.Claim(budget.Client{Network: remote.Addr(), Database: db.Name(), Admin: true}, false)
	defer claim.Release()
	then := was.View()
	defer then.Close()
	do := revert.Do
	if req.Preview {
		do = revert.Preview
	}
	return do(r.Context(), then.Tree(), db, p, revert.Options{
		Overwrite: req.Overwrite, MaxBytes: int(h.opts.MaxCopy), Claim: claim, Who: auth.Identity{Admin: true, Operator: true, By: author(who)},
	})
}

// author returns who is noted to have made a write: the session of a database was opened with its secret.
func author(who shares.Who) string {
	if who.Group != "" {
		return tree.BySecret
	}
	return tree.ByOperator
}
