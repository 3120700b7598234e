package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
)

// A founder makes databases: it gives them their first secret and rules.
type founder struct {
	*catalog.Catalog
	secretsDir string
	open       bool // new databases let everybody in

	// secrets is held from looking at a file of secrets to having its database take
	// them, and by whoever changes both: else a file that was read before a change
	// would bring back, for a moment, what the change has taken away.
	secrets sync.Mutex
}

// found returns a database, which it makes if there is none. The secret is that
// which is given, or else a new one that is kept in a file for the operator.
func (f *founder) found(ctx context.Context, name, secret string) (*engine.Database, error) {
	database, err := f.Create(name)
	if fault.KindOf(err) == fault.Conflict {
		database, err = f.Database(name)
	}
	if err != nil {
		return nil, err
	}
	if database.HasSecrets() {
		return database, nil
	}
	// It is new, or its founding was cut short, by a fault or a kill: the secret
	// comes last.
	if f.open && database.Rules() == engine.ClosedRules {
		if err := database.SetRules(ctx, engine.OpenRules); err != nil {
			return nil, err
		}
	}
	if secret == "" {
		// The file comes first: a secret that nobody knows opens nothing.
		if secret, err = f.newSecret(name); err != nil {
			return nil, err
		}
	}
	return database, database.SetSecrets(ctx, secret)
}

// create makes a database for a client that writes to it.
func (f *founder) create(ctx context.Context, name string) (*engine.Database, error) {
	return f.found(ctx, name, "")
}

func (f *founder) secretFile(name string) string { return filepath.Join(f.secretsDir, name) }

// newSecret draws a secret and writes it to the database's file.
func (f *founder) newSecret(name string) (string, error) {
	secret, err := drawSecret(rand.Reader)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(f.secretsDir, 0o700); err != nil {
		return "", fmt.Errorf("write the secret of %s: %w", name, err)
	}
	if err := writeSynced(f.secretFile(name), 0o600, []byte(secret+"\n")); err != nil {
		return "", fmt.Errorf("write the secret of %s: %w", name, err)
	}
	return secret, nil
}

// secretLength is that of the original service: clients take a credential of
// this length for a secret.
const secretLength = 40

// drawSecret returns random letters and digits.
func drawSecret(random io.Reader) (string, error) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	secret := make([]byte, 0, secretLength)
	buf := make([]byte, secretLength)
	for len(secret) < secretLength {
		if _, err := io.ReadFull(random, buf); err != nil {
			return "", fmt.Errorf("draw a secret: %w", err)
		}
		for _, b := range buf {
			// Bytes that would make some letters likelier are thrown away.
			if limit := 256 / len(alphabet) * len(alphabet); int(b) < limit && len(secret) < secretLength {
				secret = append(secret, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(secret), nil
}
