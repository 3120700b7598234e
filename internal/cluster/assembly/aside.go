package assembly

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/store/layout"
)

// SetStoreAside moves the store of a data directory away, which nobody may have open. The time of where it is then says when.
func SetStoreAside(data, aside string) error {
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(data, layout.PebbleDir), aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	now := time.Now()                                    //nolint:forbidigo // the time of a file
	for _, name := range []string{"durable", "damage"} { // what is said of the store
		if err := os.Remove(filepath.Join(data, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Chtimes(aside, now, now)
}
