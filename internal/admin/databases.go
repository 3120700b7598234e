package admin

import (
	"net/http"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// A Database is what the operator is shown of one.
type Database struct {
	Name     string `json:"name"`
	Position uint64 `json:"position"`
	// The sizes are estimates of what is on disk.
	DataBytes  uint64 `json:"data_bytes"`
	IndexBytes uint64 `json:"index_bytes"`
	LogBytes   uint64 `json:"log_bytes"`
	// Secrets is how many there are, Open whether the rules let everybody read or
	// write everything. They are told of a single database.
	Secrets *int  `json:"secrets,omitempty"`
	Open    *bool `json:"open,omitempty"`
}

// listDatabases answers with all databases. It opens none of them.
func (h *Handler) listDatabases(w http.ResponseWriter, r *http.Request) {
	freshenAll(h, w, r)
	list := []Database{}
	var failed error
	err := h.opts.Store.Names(func(name string, id store.ID) bool {
		var d Database
		d, failed = h.describe(name, id)
		list = append(list, d)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"databases": list})
}

func (h *Handler) describe(name string, id store.ID) (Database, error) {
	stats, err := h.opts.Store.DatabaseStats(id)
	return Database{
		Name:       name,
		Position:   stats.Position,
		DataBytes:  stats.DataBytes,
		IndexBytes: stats.IndexBytes,
		LogBytes:   stats.LogBytes,
	}, err
}

func (h *Handler) showDatabase(w http.ResponseWriter, r *http.Request) {
	freshenAll(h, w, r)
	name := r.PathValue("name")
	database, err := h.opts.Catalog.Database(name)
	if err != nil {
		h.failWith(w, err)
		return
	}
	id, found, err := h.opts.Store.Find(name)
	if err == nil && !found {
		err = state.NoDatabase(name) // dropped just now
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	d, err := h.describe(name, id)
	if err == nil {
		err = database.Standing() // or else that is of another database of this name
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	secrets, open := len(database.Secrets()), database.IsOpen()
	d.Secrets, d.Open = &secrets, &open
	answer(w, http.StatusOK, d)
}

func (h *Handler) createDatabase(w http.ResponseWriter, r *http.Request) {
	if missing(w, h.opts.Create == nil) {
		return
	}
	var request struct {
		Name string `json:"name"`
	}
	err := body(r, &request)
	if err == nil {
		err = catalog.CheckName(request.Name)
	}
	var file string
	if err == nil {
		file, err = h.opts.Create(r.Context(), request.Name)
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	h.audit(r, "made a database", request.Name, "")
	h.opts.Logger.Info("a database was made by the operator", "database", request.Name)
	answer(w, http.StatusCreated, map[string]string{"name": request.Name, "secret_file": file})
}

func (h *Handler) dropDatabase(w http.ResponseWriter, r *http.Request) {
	if missing(w, h.opts.Drop == nil) {
		return
	}
	name := r.PathValue("name")
	err := catalog.CheckName(name)
	if err == nil {
		err = h.opts.Drop(r.Context(), name)
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	h.gate.reviewSessions()
	h.audit(r, "dropped a database", name, "")
	h.opts.Logger.Warn("a database was dropped by the operator", "database", name)
	answer(w, http.StatusOK, map[string]string{"dropped": name})
}

// missing answers for an action that this server cannot do.
func missing(w http.ResponseWriter, is bool) bool {
	if is {
		exchange.Fail(w, http.StatusNotImplemented, "this server cannot do that")
	}
	return is
}
