package store

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
)

// SetAside moves the rows of a data directory, which nobody may have open, to another one, and forgets what was said of them. The time
// of the other directory says when.
func SetAside(path, aside string, now time.Time) error {
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(path, layout.PebbleDir), aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range []string{datadir.DurableFile, damageFile} {
		if err := os.Remove(filepath.Join(path, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Chtimes(aside, now, now)
}
