package fulldisk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// BallastFile is a file in the data directory that takes space, to be given back when there is none: so what has begun can end.
	BallastFile  = "cluster.ballast"
	ballastBytes = 128 << 20
)

// A ballast is the one of a data directory.
type ballast struct {
	path string
	is   bool // it was made, or there was one
}

// make makes the ballast, if there is space.
func (b *ballast) make(free uint64) error {
	if b.is || free < Enough+ballastBytes {
		return nil
	}
	b.is = true // it is not tried again and again
	if info, err := os.Stat(b.path); err == nil && info.Size() == ballastBytes {
		return nil
	}
	file, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(take(file, ballastBytes), file.Close()); err != nil {
		return errors.Join(err, os.Remove(b.path))
	}
	return nil
}

// RemoveBallast gives back the space of the ballast in a data directory. It does nothing if there is none.
func RemoveBallast(data string) error {
	err := os.Remove(filepath.Join(data, BallastFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
