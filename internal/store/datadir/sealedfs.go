package datadir

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A SealedFS is a file system on which nothing can be changed. Locks on it hold
// nobody off: they would be files.
type SealedFS struct{ vfs.FS }

var ErrSealed = errors.New("opened for reading only")

func (SealedFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, ErrSealed }

func (SealedFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, ErrSealed
}

func (SealedFS) ReuseForWrite(_, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, ErrSealed
}

func (SealedFS) Link(_, _ string) error { return ErrSealed }

func (SealedFS) Rename(_, _ string) error { return ErrSealed }

func (SealedFS) Remove(string) error { return ErrSealed }

func (SealedFS) RemoveAll(string) error { return ErrSealed }

func (SealedFS) MkdirAll(string, os.FileMode) error { return ErrSealed }

func (SealedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }
