package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// unfinished is the directory of the files that are being written. No object has such
// a name, so lists leave it out.
const unfinished = ".unfinished"

// maxUnfinished is how long a file may be in the making. Older ones are from processes
// that were killed.
const maxUnfinished = 24 * time.Hour

// A File keeps objects as files below a directory. A file is written elsewhere in the
// directory, synced, and gets its name when it is whole.
type File struct {
	dir    string
	sweep  sync.Once   // removes what killed processes have left
	marked atomic.Bool // the marker was there
	calls  calls

	maxNames int // tests make lists of few names
}

// marker is a file in the directory of every place that was written to. Once it was
// seen, nothing is put where it is missing: there the directory is an empty one, on
// which the archive's disk is not mounted any more.
const marker = ".livetree-archive"

// Expect says that the place was written to before: its marker must be there, also if this
// process has not seen it.
func (f *File) Expect() { f.marked.Store(true) }

// OpenFile returns the place in a directory. The directory must be there: one that is
// made on the fly would fill the disk of the machine when the mount below it is gone. If
// it does not answer, that is left to be found out by who uses the place.
func OpenFile(dir string) (*File, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the directory of an archive must be absolute, not %q", dir)
	}
	f := &File{dir: filepath.Clean(dir), calls: newCalls()}
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	info, err := within(ctx, f.calls, func() (fs.FileInfo, error) { return os.Stat(dir) })
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return f, nil // a mount that hangs now may not do so later
	case err != nil:
		return nil, fmt.Errorf("open the archive: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("open the archive: %s is not a directory", dir)
	}
	return f, nil
}

// String returns the URL of the directory.
func (f *File) String() string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(f.dir)}).String()
}

// Dir returns the directory.
func (f *File) Dir() string { return f.dir }

// Put implements [Place].
func (f *File) Put(ctx context.Context, name string, content []byte, onlyNew bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	_, err := within(ctx, f.calls, func() (struct{}, error) { return struct{}{}, f.put(f.path(name), content, onlyNew) })
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = ErrExists
		}
		return fmt.Errorf("put %s: %w", name, err)
	}
	return nil
}

// put writes a file and gives it its name.
func (f *File) put(file string, content []byte, onlyNew bool) error {
	if err := f.checkMarker(); err != nil {
		return err
	}
	if onlyNew && isThere(file) {
		return ErrExists // without writing it all first
	}
	for _, dir := range []string{filepath.Join(f.dir, unfinished), filepath.Dir(file)} {
		if err := f.makeDir(dir); err != nil {
			return err
		}
	}
	temporary, err := os.CreateTemp(filepath.Join(f.dir, unfinished), "")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // It is gone if it was renamed, and swept if this fails.
	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Sync()
	}
	f.sweep.Do(func() { f.removeOld(temporary) })
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if err := giveName(temporary.Name(), file, onlyNew); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

// checkMarker looks for the marker, and makes it before the first put.
func (f *File) checkMarker() error {
	name := filepath.Join(f.dir, marker)
	if !f.marked.Load() {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Close(), syncDir(f.dir)); err != nil {
			return err
		}
		f.marked.Store(true)
	}
	return f.isHere()
}

// isHere fails if the directory is not that of the archive, at the moment.
func (f *File) isHere() error {
	name := f.dir
	if f.marked.Load() {
		name = filepath.Join(f.dir, marker)
	}
	if _, err := os.Lstat(name); err != nil {
		return fmt.Errorf("the directory of the archive is not there; is it mounted? If an archive is to begin anew there, make the file %s in it (%w)", marker, errors.New(err.Error()))
	}
	return nil
}

// giveName moves a file into its place. A new name is made by a hard link, which fails
// if the name is taken. Some file systems have no links: there two processes that take
// the same name within an instant are not told apart.
func giveName(temporary, file string, onlyNew bool) error {
	if onlyNew {
		err := os.Link(temporary, file)
		if err == nil || errors.Is(err, fs.ErrExist) || isThere(file) {
			return err
		}
	}
	return os.Rename(temporary, file)
}

func isThere(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// removeOld removes the files that killed processes have left. Their age is told by the
// clock of the file system, which may be another machine's: that of a new file is now.
func (f *File) removeOld(new *os.File) {
	now, err := new.Stat()
	if err != nil {
		return
	}
	entries, err := os.ReadDir(filepath.Dir(new.Name()))
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && now.ModTime().Sub(info.ModTime()) > maxUnfinished {
			_ = os.Remove(filepath.Join(filepath.Dir(new.Name()), entry.Name()))
		}
	}
}

// makeDir makes a directory below that of the place, and those above it, durable. It
// does not make that of the place.
func (f *File) makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil || dir == f.dir {
		return err
	}
	if err := f.makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // which cannot sync a directory
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get implements [Place].
func (f *File) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	file, err := within(ctx, f.calls, func() (*os.File, error) {
		file, err := os.Open(f.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			err = cmp.Or(f.isHere(), ErrNotFound)
		}
		return file, err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", name, err)
	}
	return &fileReader{ctx: ctx, calls: f.calls, file: file}, nil
}

// Delete implements [Place]. It leaves directories that become empty, but for
// those it can remove.
func (f *File) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	_, err := within(ctx, f.calls, func() (struct{}, error) { return struct{}{}, f.remove(f.path(name)) })
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

func (f *File) remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(file); dir != f.dir; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // others are in it
		}
	}
	return nil
}

func (f *File) path(name string) string {
	return filepath.Join(f.dir, filepath.FromSlash(name))
}
