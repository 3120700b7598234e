package places

import (
	"fmt"
	"path/filepath"

	"github.com/livetree/livetree/internal/archive/place"
)

// CheckApart refuses an archive that is in a data directory. It would be lost together with
// the data, and the server removes directories there that have names of its own. It goes by the
// name of the archive alone: a mount that hangs would not answer.
func CheckApart(p place.Place, data string) error {
	file, ok := p.(*place.File)
	if !ok {
		return nil
	}
	absolute, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	for _, dir := range []string{absolute, resolved(absolute)} {
		if name, err := filepath.Rel(dir, file.Dir()); err == nil && filepath.IsLocal(name) {
			return fmt.Errorf("%s is in the data directory, and would be lost with it: name a directory on another disk", file.Dir())
		}
	}
	return nil
}

// resolved returns a path without links, or as it is if that cannot be told.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
