package admin

import (
	"net/http"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
)

// A BackupRequest says what backup is to be made.
type BackupRequest struct {
	// Target is a directory on the server's machine.
	Target string `json:"target"`
	// AuthorityKey also takes the key of the server's own certificate authority.
	AuthorityKey bool `json:"authority_key,omitempty"`
}

// makeBackup makes one backup at a time.
func (h *Handler) makeBackup(w http.ResponseWriter, r *http.Request) {
	if missing(w, h.opts.Backup == nil) {
		return
	}
	var request BackupRequest
	if err := body(r, &request); err != nil {
		h.failWith(w, err)
		return
	}
	if request.Target == "" {
		exchange.Fail(w, http.StatusBadRequest, "target must be a directory on the server's machine")
		return
	}
	if !h.backup.TryLock() {
		exchange.Fail(w, http.StatusConflict, "a backup is being made already")
		return
	}
	defer h.backup.Unlock()
	result, err := h.opts.Backup(r.Context(), request)
	if err != nil {
		h.opts.Logger.Error("a backup was not made", "target", request.Target, "error", err)
		// The operator is told all of it: it is his disk and his directory.
		status, ok := statuses[fault.KindOf(err)]
		if !ok {
			status = http.StatusInternalServerError
		}
		exchange.Fail(w, status, err.Error())
		return
	}
	h.audit(r, "made a backup", "", request.Target)
	answer(w, http.StatusOK, result)
}

// noteVerified is told of a backup that somebody else has verified.
func (h *Handler) noteVerified(w http.ResponseWriter, r *http.Request) {
	if missing(w, h.opts.Verified == nil) {
		return
	}
	var request struct {
		Epoch string `json:"epoch"`
	}
	if err := body(r, &request); err != nil {
		h.failWith(w, err)
		return
	}
	if request.Epoch == "" {
		exchange.Fail(w, http.StatusBadRequest, "epoch must be that of the manifest")
		return
	}
	if err := h.opts.Verified(request.Epoch); err != nil {
		h.failWith(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]bool{"noted": true})
}
