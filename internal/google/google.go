// Package google answers for the services beside the database that Google's programs
// talk to: firebase-tools, and the admin SDKs with a service account.
//
// On the hosted service these are three APIs with hosts of their own. Here they are
// paths on the port of the data, which the programs can be pointed at:
//
//   - The token endpoint (oauth2.googleapis.com; RFC 6749, 3.2) exchanges the
//     assertion of a service account for an access token: token.go.
//   - What firebase-tools asks before it works with a database (the APIs of Firebase
//     projects, of their permissions and of database instances): management.go. A
//     project here is a database, and all of it is its operator's alone. With the
//     credential owner any project will do.
//
// Endpoints is the one type to know. It is a rest.Endpoint: rest has a path looked up
// in it before it takes a request for one of data, which it never is, as paths of data
// end in .json. rest does for it what it does for every request: it keeps strangers'
// web pages out, sets headers, answers preflights, identifies, and counts memory.
//
// The package holds no rule: what an assertion is worth is up to auth, and who may see
// a database up to its credentials. Errors of the token endpoint have the form of
// OAuth, all others that of the rest.
package google

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/rest"
)

// Options configure Endpoints. All must be set.
type Options struct {
	Catalog *catalog.Catalog
	Hosts   hosts.Hosts
	// Creates says that a database which is written to is made.
	Creates bool
	Logger  *slog.Logger
	Now     func() time.Time
}

// Endpoints answer requests of Google's programs.
type Endpoints struct{ opts Options }

// New returns the endpoints.
func New(opts Options) *Endpoints { return &Endpoints{opts} }

// Find implements rest.Endpoint.
func (e *Endpoints) Find(path string) func(*rest.Request) {
	if slices.Contains(tokenPaths, path) {
		return func(r *rest.Request) { (&tokenRequest{Request: r, Endpoints: e}).answer() }
	}
	for _, api := range managementAPIs {
		if parts := api.path.FindStringSubmatch(path); parts != nil {
			return func(r *rest.Request) {
				m := &managementRequest{Request: r, Endpoints: e}
				if err := m.answer(api, parts); err != nil {
					r.Fail(err)
				}
			}
		}
	}
	return nil
}

// answerJSON sends a small value. None of those there are fails to encode.
func answerJSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		exchange.Fail(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header()["Content-Type"] = exchange.JSONTypes
	w.WriteHeader(status)
	_, _ = w.Write(text) // no one is left to be told
}
