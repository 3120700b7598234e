package engine

import (
	"context"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

// maxAccounts bounds the keys of all service accounts of a database.
const maxAccounts = 100

// Accounts returns the keys of the service accounts, in the order in which they
// were added.
func (d *Database) Accounts() []auth.Account {
	return slices.Clone(d.published.Load().Settings.Accounts)
}

// AddAccount adds a key to a service account, which need not be there yet. It
// sets the id of the key and when it was added.
func (d *Database) AddAccount(ctx context.Context, a auth.Account) (auth.Account, error) {
	if err := auth.CheckAccountName(a.Name); err != nil {
		return auth.Account{}, err
	}
	var err error
	if a.KeyID, err = auth.AccountKeyID(a.Key); err != nil {
		return auth.Account{}, err
	}
	a.Created = time.UnixMilli(d.source.Clock.Millis())
	_, err = d.revise(ctx, (*addAccount)(&a))
	return a, err
}

// RevokeAccount takes away the key with an id, or all keys of the account with a
// name, and returns how many those were. Whatever rests on them ends: access
// tokens are refused from the next request on, and watches are told.
func (d *Database) RevokeAccount(ctx context.Context, nameOrKeyID string) (int, error) {
	revised, err := d.revise(ctx, revokeAccount(nameOrKeyID))
	return revised.Revoked, err
}

// Grant returns an access token for an assertion: see auth.Verifier.Grant.
func (d *Database) Grant(assertion string, isHere func(audience string) bool) (string, error) {
	return d.source.Verifier.Grant(assertion, d.published.Load().Settings.Credentials(d.source.Name), isHere)
}
