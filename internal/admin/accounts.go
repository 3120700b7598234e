package admin

import (
	"net/http"
	"net/url"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
)

// An Account is what the operator is shown of a key of a service account. The
// private half of the key was never here.
type Account struct {
	Name     string    `json:"name"`
	Email    string    `json:"email"`
	KeyID    string    `json:"key_id"`
	TokenURI string    `json:"token_uri"`
	Created  time.Time `json:"created"`
}

func describeAccount(a auth.Account, database string) Account {
	return Account{
		Name:     a.Name,
		Email:    auth.AccountEmail(a.Name, database),
		KeyID:    a.KeyID,
		TokenURI: a.TokenURI,
		Created:  a.Created.UTC(),
	}
}

func (h *Handler) listAccounts(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	database, err := h.opts.Catalog.Database(name)
	if err != nil {
		h.failWith(w, err)
		return
	}
	list := []Account{}
	for _, a := range database.Accounts() {
		list = append(list, describeAccount(a, name))
	}
	answer(w, http.StatusOK, map[string]any{"accounts": list})
}

// A NewAccount asks for a key to be added to a service account.
type NewAccount struct {
	Name      string `json:"name"`
	PublicKey string `json:"public_key"` // PEM
	TokenURI  string `json:"token_uri"`
}

// addAccount adds the public key in the body to an account.
func (h *Handler) addAccount(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	added, err := h.newAccount(r, name)
	if err != nil {
		h.failWith(w, err)
		return
	}
	h.audit(r, "added a key to a service account", name, added.Name+" "+added.KeyID)
	h.opts.Logger.Info("a service account was given a key by the operator", "database", name, "account", added.Name, "key", added.KeyID)
	answer(w, http.StatusCreated, describeAccount(added, name))
}

func (h *Handler) newAccount(r *http.Request, name string) (auth.Account, error) {
	var request NewAccount
	if err := body(r, &request); err != nil {
		return auth.Account{}, err
	}
	key, err := auth.ParseAccountKey(request.PublicKey)
	if err != nil {
		return auth.Account{}, err
	}
	if err := checkTokenURI(request.TokenURI); err != nil {
		return auth.Account{}, err
	}
	database, err := h.opts.Catalog.Database(name)
	if err != nil {
		return auth.Account{}, err
	}
	return database.AddAccount(r.Context(), auth.Account{Name: request.Name, Key: key, TokenURI: request.TokenURI})
}

// maxTokenURI bounds the URI that is stored with a key.
const maxTokenURI = 1024

func checkTokenURI(text string) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxTokenURI || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return fault.New(fault.Invalid, "token_uri must be the URL of the server's token endpoint, such as https://db.example.com/oauth2/token")
	}
	return nil
}

// revokeAccount revokes a key by its id, or all keys of an account by its name.
func (h *Handler) revokeAccount(w http.ResponseWriter, r *http.Request) {
	name, id := r.PathValue("name"), r.PathValue("id")
	database, err := h.opts.Catalog.Database(name)
	var revoked int
	if err == nil {
		revoked, err = database.RevokeAccount(r.Context(), id)
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	h.audit(r, "revoked keys of a service account", name, id)
	h.opts.Logger.Info("keys of a service account were revoked by the operator", "database", name, "account", id, "keys", revoked)
	answer(w, http.StatusOK, map[string]int{"revoked": revoked})
}
