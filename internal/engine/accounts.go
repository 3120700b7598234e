package engine

import (
	"context"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
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
	err = d.reviseAccounts(ctx, func(list []auth.Account) ([]auth.Account, error) {
		switch {
		case slices.ContainsFunc(list, func(other auth.Account) bool { return other.KeyID == a.KeyID }):
			return nil, fault.New(fault.Conflict, "the database has an account with this key already")
		case len(list) >= maxAccounts:
			return nil, fault.New(fault.Conflict, "the database has %d keys of accounts: revoke one first", len(list))
		}
		return append(list, a), nil
	})
	return a, err
}

// RevokeAccount takes away the key with an id, or all keys of the account with a
// name, and returns how many those were. Whatever rests on them ends: access
// tokens are refused from the next request on, and watches are told.
func (d *Database) RevokeAccount(ctx context.Context, nameOrKeyID string) (int, error) {
	revoked := 0 // it is read only when the turn is over: a caller that has gone does not wait for it
	err := d.reviseAccounts(ctx, func(list []auth.Account) ([]auth.Account, error) {
		left := slices.DeleteFunc(list, func(a auth.Account) bool {
			return a.KeyID == nameOrKeyID || a.Name == nameOrKeyID
		})
		if revoked = len(list) - len(left); revoked == 0 {
			return nil, fault.New(fault.NotFound, "the database has no account and no key of one that is called %.60q", nameOrKeyID)
		}
		return left, nil
	})
	if err != nil {
		return 0, err
	}
	return revoked, nil
}

// reviseAccounts changes the list, a copy of which change is given, at its turn
// in the order of commits.
func (d *Database) reviseAccounts(ctx context.Context, change func([]auth.Account) ([]auth.Account, error)) error {
	return d.revise(ctx, func(s *state.Settings) (revision, error) {
		list, err := change(slices.Clone(s.Accounts))
		if err != nil {
			return revision{}, err
		}
		text, err := state.EncodeAccounts(list)
		return revision{rows: store.Settings{state.SettingAccounts: text}}, err
	})
}

// Grant returns an access token for an assertion: see auth.Verifier.Grant.
func (d *Database) Grant(assertion string, isHere func(audience string) bool) (string, error) {
	return d.source.Verifier.Grant(assertion, d.published.Load().Settings.Credentials(d.source.Name), isHere)
}
