package state

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

// An accountRow is an auth.Account as it is stored.
type accountRow struct {
	Name     string `json:"name"`
	Key      []byte `json:"key"` // PKIX
	TokenURI string `json:"token_uri"`
	Created  int64  `json:"created"` // in milliseconds
}

// DecodeAccounts reads what EncodeAccounts has written.
func DecodeAccounts(text []byte) ([]auth.Account, error) {
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

// EncodeAccounts returns the setting that has the accounts, nil for none.
func EncodeAccounts(list []auth.Account) ([]byte, error) {
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
