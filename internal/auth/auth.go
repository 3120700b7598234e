// Package auth turns a credential into an identity.
//
// A credential is what a client sends: the app secret of a database, which makes
// it the administrator. It knows nothing of requests and of rules.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// An Identity is who a request comes from. The zero value is nobody in
// particular.
type Identity struct {
	// Admin says that rules do not apply.
	Admin bool
	// Operator says that it may also read and replace the rules: it is the
	// holder of the app secret.
	Operator bool
	// Auth is what rules see as auth; no data for nobody.
	Auth tree.Node
}

// Verify returns the identity that a credential gives in a database with these
// secrets. No credential is nobody; an unknown one is a fault.Unauthenticated
// error. How long it takes tells nothing about the secrets.
func Verify(credential string, secrets []string) (Identity, error) {
	if credential == "" {
		return Identity{}, nil
	}
	given := sha256.Sum256([]byte(credential))
	match := 0
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		want := sha256.Sum256([]byte(secret))
		match |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if match == 1 {
		return Identity{Admin: true, Operator: true}, nil
	}
	return Identity{}, fault.New(fault.Unauthenticated, "Could not parse auth token.")
}
