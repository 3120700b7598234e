package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/livetree/livetree/internal/fault"
)

// createNew makes a database for the operator, who is told where its secret is.
func (f *founder) createNew(ctx context.Context, name string) (secretFile string, err error) {
	_, err = f.Database(name)
	switch {
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
// first: after a crash in between, the next start takes them from there.
func (f *founder) replaceSecrets(ctx context.Context, name string, secrets []string) error {
	database, err := f.Database(name)
	if err != nil {
		return err
	}
	f.secrets.Lock()
	defer f.secrets.Unlock()
	if len(secrets) == 0 {
		err = f.removeSecretFile(name)
	} else if err = os.MkdirAll(f.secretsDir, 0o700); err == nil {
		err = replaceSynced(f.secretFile(name), strings.Join(secrets, "\n")+"\n")
	}
	if err != nil {
		return fmt.Errorf("write the secrets of %s: %w", name, err)
	}
	return database.SetSecrets(ctx, secrets...)
}

// replaceSynced puts a file in the place of another in one step: whoever watches
// it never sees half of it. The name on the way is none of a database.
func replaceSynced(name, text string) error {
	temporary := name + ".new"
	if err := writeSynced(temporary, 0o600, []byte(text)); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
