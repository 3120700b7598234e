package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/wholefile"
)

// createNew makes a database for the operator, who is told where its secret is. Where that was cut short, as by a home that did not answer, it goes on: the operator
// asks again, and on a node of a cluster nobody else ends it.
func (f *founder) createNew(ctx context.Context, name string) (secretFile string, err error) {
	database, err := f.Database(name)
	if err == nil {
		err = engine.AwaitWithin(ctx, database, agreeTime) // another node may have made it to the end
	}
	switch {
	case err == nil && !database.HasSecrets() && database.Published().Position == 0: // nothing was ever committed to it
	case err == nil:
		return "", fault.New(fault.Conflict, "the database %q exists already", name)
	case fault.KindOf(err) != fault.NotFound:
		return "", err
	}
	if _, err := f.found(ctx, name, ""); err != nil {
		return "", err
	}
	return f.secretFile(name), nil
}

// drop removes a database, and then the file of its secrets, which open nothing
// any more.
func (f *founder) drop(_ context.Context, name string) error {
	defer f.names.lock(name)()
	if err := f.Drop(name); err != nil {
		return err
	}
	return f.removeSecretFile(name)
}

func (f *founder) removeSecretFile(name string) error {
	if err := os.Remove(f.secretFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the secrets of %s: %w", name, err)
	}
	return nil
}

// replaceSecrets makes the secrets of a database those, at once. The file comes
// first: after a crash in between, the next start takes them from there. If the database was
// dropped since it was found, another of its name does not get them.
func (f *founder) replaceSecrets(ctx context.Context, database *engine.Database, name string, secrets []string) error {
	defer f.names.lock(name)()
	current, err := f.Database(name)
	if err != nil {
		return err
	}
	if current != database {
		return state.NoDatabase(name)
	}
	if len(secrets) == 0 {
		err = f.removeSecretFile(name)
	} else if err = os.MkdirAll(f.secretsDir, 0o700); err == nil {
		err = wholefile.Write(f.secretFile(name), 0o600, []byte(strings.Join(secrets, "\n")+"\n"))
	}
	if err != nil {
		return fmt.Errorf("write the secrets of %s: %w", name, err)
	}
	return database.SetSecrets(ctx, secrets...)
}
