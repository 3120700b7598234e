// Package owneronly keeps a data directory for its owner alone.
//
// A data directory holds secrets in more places than one: in secrets/, in tls/, and
// in the rows of the store, so in every file of it. Umask makes that so for what the
// process makes from then on, Tighten for what is there. Both do nothing where files
// have no such modes, on Windows.
package owneronly

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// others are the permissions of everybody but the owner.
const others = 0o077

// public are the files of a data directory that are for others to have: a directory
// above each is not, so an operator has to hand them out.
var public = map[string]bool{filepath.Join("tls", "ca.pem"): true}

// LostAndFound is a directory that many file systems have at their root, which may be a data directory. It is the system's.
const LostAndFound = "lost+found"

// Loose returns the names of what is in a directory, and of the directory itself as
// ".", that others may read, write or enter. Links are not followed, and what the file system has found is left out.
func Loose(dir string) ([]string, error) {
	if runtime.GOOS == "windows" {
		return nil, nil
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	var loose []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a running server deletes files
		}
		if err != nil {
			return err
		}
		if entry.IsDir() && path == filepath.Join(root, LostAndFound) {
			return fs.SkipDir
		}
		if !entry.IsDir() && !entry.Type().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil || public[name] {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && info.Mode().Perm()&others != 0 {
			loose = append(loose, name)
		}
		return err
	})
	return loose, err
}

// Tighten takes the permissions of others away from all that is in a directory, and
// returns the names of what had some. It goes on after an error.
func Tighten(dir string) ([]string, error) {
	loose, err := Loose(dir)
	for _, name := range loose {
		path := filepath.Join(dir, name)
		info, statErr := os.Lstat(path)
		if name == "." {
			info, statErr = os.Stat(path) // it may be a link itself
		}
		if statErr == nil {
			statErr = os.Chmod(path, info.Mode().Perm()&^others)
		}
		if !errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, statErr)
		}
	}
	return loose, err
}
