package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
)

// maxSecrets is how many secrets a database may have.
const maxSecrets = 32

// A Secret is what the operator is shown of one. Its value is left out unless it
// is asked for.
type Secret struct {
	ID    string `json:"id"`
	Value string `json:"value,omitempty"`
}

// SecretID names a secret without telling it.
func SecretID(secret string) string {
	sum := sha256.Sum256([]byte("livetree secret " + secret))
	return hex.EncodeToString(sum[:4])
}

// listSecrets answers with the names of the secrets, and with their values if
// the parameter show says so.
func (h *Handler) listSecrets(w http.ResponseWriter, r *http.Request) {
	database, err := h.opts.Catalog.Database(r.PathValue("name"))
	if err != nil {
		h.failWith(w, err)
		return
	}
	list := []Secret{}
	for _, secret := range database.Secrets() {
		s := Secret{ID: SecretID(secret)}
		if r.URL.Query().Get("show") == "true" {
			s.Value = secret
			h.audit(r, "looked at a secret", r.PathValue("name"), s.ID)
		}
		list = append(list, s)
	}
	answer(w, http.StatusOK, map[string]any{"secrets": list})
}

// addSecret adds the secret in the body, or draws one. The answer never has it.
func (h *Handler) addSecret(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Value string `json:"value"`
	}
	if err := body(r, &request); err != nil {
		h.failWith(w, err)
		return
	}
	if request.Value == "" {
		request.Value = auth.DrawSecret()
	}
	err := h.reviseSecrets(r.Context(), r.PathValue("name"), func(secrets []string) ([]string, error) {
		if err := auth.CheckSecret(request.Value); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%v", err)
		}
		switch {
		case slices.Contains(secrets, request.Value):
			return nil, fault.New(fault.Conflict, "the database has this secret already")
		case len(secrets) >= maxSecrets:
			return nil, fault.New(fault.Conflict, "the database has %d secrets: remove one first", len(secrets))
		}
		return append(slices.Clone(secrets), request.Value), nil
	})
	if err != nil {
		h.failWith(w, err)
		return
	}
	h.audit(r, "added a secret", r.PathValue("name"), SecretID(request.Value))
	answer(w, http.StatusCreated, Secret{ID: SecretID(request.Value)})
}

// removeSecret removes a secret by its name; the last one only by force.
func (h *Handler) removeSecret(w http.ResponseWriter, r *http.Request) {
	id, force := r.PathValue("id"), r.URL.Query().Get("force") == "true"
	err := h.reviseSecrets(r.Context(), r.PathValue("name"), func(secrets []string) ([]string, error) {
		left := slices.DeleteFunc(slices.Clone(secrets), func(secret string) bool { return SecretID(secret) == id })
		switch {
		case len(left) == len(secrets):
			return nil, fault.New(fault.NotFound, "the database has no secret with the id %.16q", id)
		case len(left) == 0 && !force:
			return nil, fault.New(fault.Conflict, "this is the last secret: without one the rules cannot be changed; add another first, or force it")
		}
		return left, nil
	})
	if err != nil {
		h.failWith(w, err)
		return
	}
	h.audit(r, "removed a secret", r.PathValue("name"), id)
	answer(w, http.StatusOK, map[string]string{"removed": id})
}

// reviseSecrets changes the secrets of a database. One change follows the other,
// so that none is lost.
func (h *Handler) reviseSecrets(ctx context.Context, name string, change func([]string) ([]string, error)) error {
	if h.opts.SetSecrets == nil {
		return fault.New(fault.Unavailable, "this server cannot do that")
	}
	h.secrets.Lock()
	defer h.secrets.Unlock()
	database, err := h.opts.Catalog.Database(name)
	if err != nil {
		return err
	}
	secrets, err := change(database.Secrets())
	if err != nil {
		return err
	}
	if err := h.opts.SetSecrets(ctx, database, name, secrets); err != nil {
		return err
	}
	h.gate.reviewSessions()
	h.opts.Logger.Info("the secrets were replaced by the operator", "database", name, "valid", len(secrets))
	return nil
}
