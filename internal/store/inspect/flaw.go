package inspect

import (
	"errors"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// A Flaw is something in a store that no store writes.
type Flaw struct {
	// File is the file that is damaged, if that is known, in the data directory.
	File string
	// Path is where in its tree a row belongs, empty if that is not known.
	Path string
	Err  error
}

// flawAt says that a row is wrong, and where it belongs as far as its key tells.
func flawAt(key []byte, err error) Flaw {
	if !errors.Is(err, damage.ErrDamaged) {
		err = damage.AtRow(key, err)
	}
	return Flaw{Path: layout.PathOf(key).String(), Err: err}
}
