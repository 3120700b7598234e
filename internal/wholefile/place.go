package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// ErrNotEmpty says that a directory is taken.
var ErrNotEmpty = errors.New("the directory is not empty")

// lostAndFound is what many file systems have at their root. It is no content.
const lostAndFound = "lost+found"

// A Place is where a directory is to be that is whole or not there. It is made beside the place, and renamed when it is on disk.
//
// A place that is there, and that cannot be replaced, is filled instead: the root of a file system, such as the volume of a container, or a
// directory in one that is not ours. The directory is made in it then, and what is in that is moved up, last what says that it is whole.
type Place struct {
	Path   string // absolute; of a link, which says on which disk the directory is to be, what it leads to
	Filled bool
}

// NewPlace returns a place. It refuses one where something is, other than begun: that is what was begun in it, if it is filled.
func NewPlace(path, begun string) (p Place, err error) {
	if p.Path, err = follow(path); err != nil {
		return p, err
	}
	entries, err := os.ReadDir(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return p, fmt.Errorf("%s: it is a file, or below one: name a directory that is empty, or that does not exist", p.Path)
	case err != nil:
		return p, err
	}
	for _, e := range entries {
		switch e.Name() {
		case lostAndFound, begun:
			p.Filled = true
		default:
			return p, fmt.Errorf("%s: %w: name a directory that is empty, or that does not exist", p.Path, ErrNotEmpty)
		}
	}
	if !p.Filled {
		p.Filled, err = isFixed(p.Path)
	}
	return p, err
}

// follow returns where a path leads to. A link that leads nowhere is refused: perhaps its disk is not mounted.
func follow(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return path, err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return path, nil
	}
	to, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, fmt.Errorf("%s: it is a link that leads nowhere: mount the disk that it leads to, or name another directory", path)
	}
	return to, err
}

// isFixed reports whether an empty directory cannot be replaced: whether it cannot be renamed, which is tried.
func isFixed(path string) (bool, error) {
	aside := path + suffix
	if os.Rename(path, aside) != nil {
		return true, nil
	}
	return false, os.Rename(aside, path)
}

// Put moves a directory that is on disk to its place. Last are the names in it that say that it is whole.
func (p Place) Put(dir string, last ...string) error {
	if p.Filled {
		return p.fill(dir, last)
	}
	// This fails if somebody has put something there meanwhile.
	if err := os.Remove(p.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: %w", p.Path, ErrNotEmpty, err)
	}
	if err := os.Rename(dir, p.Path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(p.Path))
}

// fill moves what is in a directory to the place.
func (p Place) fill(dir string, last []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if !slices.Contains(last, e.Name()) {
			names = append(names, e.Name())
		}
	}
	for _, list := range [][]string{names, last} {
		for _, name := range list {
			to := filepath.Join(p.Path, name)
			if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
				return errors.Join(fmt.Errorf("%s: %w: %s is there", p.Path, ErrNotEmpty, name), err)
			}
			if err := os.Rename(filepath.Join(dir, name), to); err != nil {
				return err
			}
		}
		if err := syncDir(p.Path); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}
