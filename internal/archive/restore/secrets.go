package restore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/transfer"
	"github.com/livetree/livetree/internal/wholefile"
)

// secretsDir is where a server keeps the files of secrets, in its data directory.
const secretsDir = "secrets"

// drawSecret returns the setting with a new secret: where the archive has only a hash.
func drawSecret() []byte { return []byte(auth.DrawSecret()) }

// writeSecrets writes the files with the secrets of all databases, as a server has them.
func writeSecrets(s *store.Store, data string) error {
	dir := filepath.Join(data, secretsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	view := s.View()
	defer view.Release()
	var failed error
	err := s.Names(func(name string, id store.ID) bool {
		failed = writeSecret(view.Tree(id), filepath.Join(dir, name))
		return failed == nil
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("write the files of secrets: %w", err)
	}
	return nil
}

func writeSecret(t store.Tree, path string) error {
	settings, err := t.Settings()
	if err != nil {
		return err
	}
	secrets := bytes.TrimSpace(settings[state.SettingSecrets])
	if len(secrets) == 0 {
		return nil
	}
	return wholefile.Write(path, 0o600, append(bytes.Clone(secrets), '\n'))
}

// isSecrets reports whether a row of a base is that of the secrets of a database.
func isSecrets(key []byte) bool {
	return len(key) > layout.RootBytes && bytes.Equal(key, layout.SettingKey(transfer.DatabaseOf(key), state.SettingSecrets))
}
