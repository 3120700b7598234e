package engine

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// maxAccounts bounds the keys of all service accounts of a database.
const maxAccounts = 100

// An accountRow is an auth.Account as it is stored.
type accountRow struct {
	Name     string `json:"name"`
	Key      []byte `json:"key"` // PKIX
	TokenURI string `json:"token_uri"`
	Created  int64  `json:"created"` // in milliseconds
}

func decodeAccounts(text []byte) ([]auth.Account, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var rows []accountRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, err
	}
	list := make([]auth.Account, 0, len(rows))
	for _, row := range rows {
		public, err := x509.ParsePKIXPublicKey(row.Key)
		if err != nil {
			return nil, err
		}
		key, ok := public.(*rsa.PublicKey)
		if !ok {
			return nil, errors.New("the key of an account is not an RSA key")
		}
		id, err := auth.AccountKeyID(key)
		if err != nil {
			return nil, err
		}
		list = append(list, auth.Account{
			Name: row.Name, KeyID: id, Key: key, TokenURI: row.TokenURI, Created: time.UnixMilli(row.Created)})
	}
	return list, nil
}

func encodeAccounts(list []auth.Account) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil // which removes the row
	}
	rows := make([]accountRow, 0, len(list))
	for _, a := range list {
		key, err := x509.MarshalPKIXPublicKey(a.Key)
		if err != nil {
			return nil, err
		}
		rows = append(rows, accountRow{Name: a.Name, Key: key, TokenURI: a.TokenURI, Created: a.Created.UnixMilli()})
	}
	return json.Marshal(rows)
}

// Accounts returns the keys of the service accounts, in the order in which they
// were added.
func (d *Database) Accounts() []auth.Account {
	return slices.Clone(d.published.Load().settings.accounts)
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
	a.Created = time.UnixMilli(d.opts.Clock.Millis())
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
func (d *Database) RevokeAccount(ctx context.Context, nameOrKeyID string) (revoked int, err error) {
	err = d.reviseAccounts(ctx, func(list []auth.Account) ([]auth.Account, error) {
		left := slices.DeleteFunc(list, func(a auth.Account) bool {
			return a.KeyID == nameOrKeyID || a.Name == nameOrKeyID
		})
		if revoked = len(list) - len(left); revoked == 0 {
			return nil, fault.New(fault.NotFound, "the database has no account and no key of one that is called %.60q", nameOrKeyID)
		}
		return left, nil
	})
	return revoked, err
}

// reviseAccounts changes the list, a copy of which change is given, at its turn
// in the order of commits.
func (d *Database) reviseAccounts(ctx context.Context, change func([]auth.Account) ([]auth.Account, error)) error {
	return d.revise(ctx, func(s *settings) (revision, error) {
		list, err := change(slices.Clone(s.accounts))
		if err != nil {
			return revision{}, err
		}
		text, err := encodeAccounts(list)
		return revision{rows: store.Settings{settingAccounts: text}}, err
	})
}

// Grant returns an access token for an assertion: see auth.Verifier.Grant.
func (d *Database) Grant(assertion string, isHere func(audience string) bool) (string, error) {
	return d.opts.Verifier.Grant(assertion, d.published.Load().settings.credentials(d.opts.Name), isHere)
}
