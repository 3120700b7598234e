package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/wholefile"
)

// A founder makes databases: it gives them their first secret and rules.
type founder struct {
	*catalog.Catalog
	secretsDir string
	open       bool // new databases let everybody in

	// names are held while a database and its file of secrets are made, changed or removed
	// together, and from looking at a file to having its database take the secrets: else a
	// file that was read before a change would bring back, for a moment, what the change has
	// taken away, and a drop would remove the file of a new database of that name.
	names nameLocks
}

// agreeTime is how long the nodes of a cluster may take to agree on what there is of a database.
const agreeTime = 10 * time.Second

// found returns a database, which it makes if there is none. The secret is that
// which is given, or else a new one that is kept in a file for the operator.
func (f *founder) found(ctx context.Context, name, secret string) (*engine.Database, error) {
	defer f.names.lock(name)()
	database, err := f.Create(name)
	if fault.KindOf(err) == fault.Conflict {
		if database, err = f.Database(name); err == nil {
			err = engine.AwaitWithin(ctx, database, agreeTime) // another node may have given it its secrets
		}
	}
	if err != nil {
		return nil, err
	}
	if database.HasSecrets() {
		return database, nil
	}
	// It is new, or its founding was cut short, by a fault or a kill: the secret
	// comes last.
	if err := f.openRules(ctx, database); err != nil {
		return nil, err
	}
	if secret == "" {
		// The file comes first: a secret that nobody knows opens nothing.
		if secret, err = f.newSecret(name); err != nil {
			return nil, err
		}
	}
	err = database.SetSecrets(ctx, secret)
	if fault.KindOf(err) == fault.Unknown { // once more it does nothing, or what it has not done: as where the home of a shard has changed
		err = database.SetSecrets(ctx, secret)
	}
	return database, err
}

// openRules gives a new database the rules that let everybody in, if new ones have them.
func (f *founder) openRules(ctx context.Context, database *engine.Database) error {
	if !f.open || database.Rules() != state.ClosedRules {
		return nil
	}
	_, err := database.SetRules(ctx, state.OpenRules)
	return err
}

// create makes a database for a client that writes to it.
func (f *founder) create(ctx context.Context, name string) (*engine.Database, error) {
	return f.found(ctx, name, "")
}

func (f *founder) secretFile(name string) string { return filepath.Join(f.secretsDir, name) }

// newSecret draws a secret and writes it to the database's file.
func (f *founder) newSecret(name string) (string, error) {
	secret := auth.DrawSecret()
	if err := os.MkdirAll(f.secretsDir, 0o700); err != nil {
		return "", fmt.Errorf("write the secret of %s: %w", name, err)
	}
	if err := wholefile.Write(f.secretFile(name), 0o600, []byte(secret+"\n")); err != nil {
		return "", fmt.Errorf("write the secret of %s: %w", name, err)
	}
	return secret, nil
}

// foundDefault makes the default database.
func (f *founder) foundDefault(ctx context.Context, c Config) error {
	if c.DefaultDatabase == "" {
		return nil
	}
	if err := f.checkSecret(c); err != nil {
		return err
	}
	database, err := f.found(ctx, c.DefaultDatabase, c.Secret)
	if err != nil {
		return fmt.Errorf("open the database %s in %s: %w", c.DefaultDatabase, c.Data, err)
	}
	if database.IsOpen() && !c.Dev {
		c.Logger.Warn("the rules let everybody read and write everything", "database", c.DefaultDatabase)
	}
	if database.HasWeakSecret() {
		c.Logger.Warn("a secret is short enough to be guessed: replace it by livetree secret add and remove", "database", c.DefaultDatabase)
	}
	if c.Secret != "" && !database.HasSecret(c.Secret) {
		c.Logger.Warn("LIVETREE_SECRET is not used: it counts when the database is made, and this one has other secrets; livetree secret add and remove change them", "database", c.DefaultDatabase)
	}
	return nil
}

// checkSecret refuses a secret that is not fit for a new database. One that the
// database has already is from an older version, and works on.
func (f *founder) checkSecret(c Config) error {
	if c.Secret == "" {
		return nil
	}
	err := auth.CheckSecret(c.Secret)
	if err == nil {
		return nil
	}
	if database, openErr := f.Database(c.DefaultDatabase); openErr == nil && database.HasSecret(c.Secret) {
		return nil
	}
	return fmt.Errorf("LIVETREE_SECRET is %w; leave it out to have one drawn", err)
}
