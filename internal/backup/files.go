package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/livetree/livetree/internal/wholefile"
)

// What a backup makes is for its owner alone: it holds secrets and keys.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// ErrNotEmpty says that a directory is taken.
var ErrNotEmpty = wholefile.ErrNotEmpty

// A site is a directory that is being made: beside its place, or in it, until it is
// complete.
type site struct {
	wholefile.Place
	path string // where it is written
}

// newSite refuses a place where something is.
func newSite(place string) (*site, error) {
	p, err := wholefile.NewPlace(place, "")
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Dir(p.Path), filepath.Base(p.Path)
	if p.Filled {
		dir = p.Path
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(dir, name+".partial-")
	if err != nil {
		return nil, err
	}
	return &site{p, path}, nil
}

// open puts what was made into its place. Last is the file by which it is known.
func (s *site) open(last string) error {
	if err := syncTree(s.path); err != nil {
		return err
	}
	return s.Put(s.path, last)
}

// clear removes what was made and not opened.
func (s *site) clear() error { return os.RemoveAll(s.path) }

// syncTree makes the names below a directory durable.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncDir(path)
	})
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openPlain opens a file to be read. A link, a pipe or a device is refused: it would
// lead out of the backup, or hang.
func openPlain(path string) (*os.File, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file: a backup holds no others", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", path), err, f.Close())
	}
	return f, nil
}

// readPlain reads a small file.
func readPlain(path string, maxBytes int64) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && int64(len(text)) > maxBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxBytes)
	}
	return text, errors.Join(err, f.Close())
}

// writeFile writes a new file and returns when it is on disk.
func writeFile(path string, content io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// listFiles returns the files below a directory, by name, with slashes. Where
// there is no directory there are none.
func listFiles(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path == root {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a plain file: a backup holds no others", path)
		}
		name, err := filepath.Rel(root, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	slices.Sort(names)
	return names, err
}

// copyFile copies a file into a tree, with the directories above it, and returns
// what it has copied.
func copyFile(ctx context.Context, from, root, name string, p *pacer) (File, error) {
	f, err := openPlain(from)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	to := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return File{}, err
	}
	h := newHasher()
	err = writeFile(to, io.TeeReader(p.reader(ctx, f), h))
	return h.file(name), err
}

// linkFile puts a file that does not change any more into a tree, as a hard link
// if the file system lets it.
func linkFile(ctx context.Context, from, root, name string, p *pacer) (File, error) {
	to := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return File{}, err
	}
	if err := os.Link(from, to); err != nil {
		return copyFile(ctx, from, root, name, p)
	}
	return hashFile(ctx, root, name, p)
}

// hashFile reads a file of a tree.
func hashFile(ctx context.Context, root, name string, p *pacer) (File, error) {
	f, err := openPlain(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	h := newHasher()
	_, err = io.Copy(h, p.reader(ctx, f))
	return h.file(name), err
}

// A hasher counts and hashes what is written to it.
type hasher struct {
	hash.Hash
	bytes int64
}

func newHasher() *hasher { return &hasher{Hash: sha256.New()} }

func (h *hasher) Write(b []byte) (int, error) {
	h.bytes += int64(len(b))
	return h.Hash.Write(b)
}

func (h *hasher) hex() string { return hex.EncodeToString(h.Sum(nil)) }

func (h *hasher) file(name string) File { return File{name, h.bytes, h.hex()} }
