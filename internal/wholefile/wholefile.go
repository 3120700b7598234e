// Package wholefile writes files, and directories, that are whole or not there.
//
// A File is written beside its place, under the name with .tmp added, and is
// renamed when it is on disk: a reader of the name sees the old file or the whole
// new one, also after a crash. The temporary file is always made new, for its owner
// alone: a link, or a file of another mode, that lies in its place is removed and
// never written to. It has one name, so crashes leave at most one behind.
//
// The store does not use this package: its files go through its own file system.
package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// suffix is what the name of a file gets while it is written.
const suffix = ".tmp"

// A File is being written. Either Commit or Discard must be called.
type File struct {
	*os.File
	name string
}

// Create begins a file that will be called name.
func Create(name string) (*File, error) {
	file, err := New(name + suffix)
	if errors.Is(err, fs.ErrExist) {
		// It is from a command that was killed, or somebody has put it there.
		if err := os.Remove(name + suffix); err != nil {
			return nil, err
		}
		file, err = New(name + suffix)
	}
	if err != nil {
		return nil, err
	}
	return &File{file, name}, nil
}

// New makes and opens a file, which must not be there yet, for its owner alone. It
// follows no link.
func New(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Commit puts the file into its place. When it returns nil, the file and its name
// are on disk. Otherwise there is no new file.
func (f *File) Commit() error {
	err := f.Sync()
	if err == nil {
		err = f.isOurs()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.File.Name(), f.name)
	}
	if err != nil {
		return errors.Join(err, f.remove())
	}
	return syncDir(filepath.Dir(f.name))
}

// isOurs fails if another process has taken the temporary name meanwhile: its file
// may not be whole.
func (f *File) isOurs() error {
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(f.File.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(ours, there) {
		return fmt.Errorf("%s is being written by another process", f.name)
	}
	return nil
}

// Discard removes what was written.
func (f *File) Discard() error {
	return errors.Join(f.Close(), f.remove())
}

func (f *File) remove() error {
	if err := os.Remove(f.File.Name()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write puts content into a file of a mode.
func Write(name string, mode fs.FileMode, content []byte) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	if err = f.Chmod(mode); err == nil { // whatever the umask says
		_, err = f.Write(content)
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // which cannot sync a directory
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
