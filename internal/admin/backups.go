package admin

import (
	"net/http"

	"github.com/livetree/livetree/internal/fault"
)

// makeBackup makes one backup at a time.
func (h *Handler) makeBackup(w http.ResponseWriter, r *http.Request) {
	if missing(w, h.opts.Backup == nil) {
		return
	}
	var request struct {
		Target string `json:"target"`
	}
	if err := body(r, &request); err != nil {
		h.failWith(w, err)
		return
	}
	if request.Target == "" {
		fail(w, http.StatusBadRequest, "target must be a directory on the server's machine")
		return
	}
	if !h.backup.TryLock() {
		fail(w, http.StatusConflict, "a backup is being made already")
		return
	}
	defer h.backup.Unlock()
	result, err := h.opts.Backup(r.Context(), request.Target)
	if err != nil {
		h.opts.Logger.Error("a backup was not made", "target", request.Target, "error", err)
		// The operator is told all of it: it is his disk and his directory.
		status, ok := statuses[fault.KindOf(err)]
		if !ok {
			status = http.StatusInternalServerError
		}
		fail(w, status, err.Error())
		return
	}
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
		fail(w, http.StatusBadRequest, "epoch must be that of the manifest")
		return
	}
	if err := h.opts.Verified(request.Epoch); err != nil {
		h.failWith(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]bool{"noted": true})
}
