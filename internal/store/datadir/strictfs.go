package datadir

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A StrictFS is the file system that Pebble works on. It ends the process when a
// file of the store cannot be made, written, synced, closed or renamed, and does
// so before Pebble is told. Pebble ends some of these failures by a panic that
// unwinds through its locks; and after any of them nobody knows what is on the
// disk but the next start, which reads it. The call that failed does not return:
// nothing is acknowledged on the strength of it, and no sync is tried again.
//
// It stands above vfs.OnDiskFull, so it judges what is left of a full disk after
// the ballast was given up and the call was made once more.
//
// Failures that do the store no harm are passed on:
//
//   - No space for a table, or too many open files. Pebble throws away what there is
//     of it, and makes it again later.
//   - Removing a file. It is one that nobody needs any more.
//   - A checkpoint, but for the sync of its directory, on which Pebble panics. The
//     backup fails and says so.
//   - While the store is opened, all that is no failure of a disk: Open returns
//     what is wrong with the directory.
//
// A table that cannot be written for another reason is not passed on, though
// Pebble would make that again, too: a disk that loses one write is not trusted
// with the next.
type StrictFS struct {
	vfs.FS
	Dir    string // Pebble's
	IsOpen atomic.Bool
	// Fail ends the process.
	Fail func(what string, err error)
}

// Unwrap implements vfs.FS.
func (fs *StrictFS) Unwrap() vfs.FS { return fs.FS }

// judge ends the process if an error is one to end it for, and returns it
// otherwise.
func (fs *StrictFS) judge(what, path string, err error) error {
	if err == nil || errors.Is(err, os.ErrClosed) || fs.isHarmless(path, err) {
		return err
	}
	return fs.end(what, path, err)
}

// judgeDirectory is judge for the sync of a directory: of the store, of a
// checkpoint, or the one above.
func (fs *StrictFS) judgeDirectory(path string, err error) error {
	if err == nil || fs.isSetUp(err) {
		return err
	}
	return fs.end("sync", path, err)
}

// end ends the process. The error then names the file, which that of fdatasync
// does not.
func (fs *StrictFS) end(what, path string, err error) error {
	if _, isNamed := errors.AsType[*os.PathError](err); !isNamed {
		err = &os.PathError{Op: what, Path: path, Err: err}
	}
	fs.Fail(what, err)
	return err
}

func (fs *StrictFS) isHarmless(path string, err error) bool {
	isTable := strings.HasSuffix(path, ".sst") || strings.HasSuffix(path, ".blob")
	return fs.isSetUp(err) || fs.PathDir(path) != fs.Dir || isTable && (IsNoSpace(err) || isCrowded(err))
}

// isCrowded reports whether too many files are open in the process or the system.
func isCrowded(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// isSetUp reports whether Open can say what is wrong with the directory.
func (fs *StrictFS) isSetUp(err error) bool { return !fs.IsOpen.Load() && !IsDiskFailure(err) }

func (fs *StrictFS) file(path string, f vfs.File) vfs.File {
	if f == nil {
		return nil
	}
	return &strictFile{f, fs, path}
}

// Create implements vfs.FS.
func (fs *StrictFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.file(name, f), fs.judge("create", name, err)
}

// OpenReadWrite implements vfs.FS.
func (fs *StrictFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	return fs.file(name, f), fs.judge("open", name, err)
}

// ReuseForWrite implements vfs.FS.
func (fs *StrictFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(old, name, category)
	return fs.file(name, f), fs.judge("reuse", name, err)
}

// Rename implements vfs.FS.
func (fs *StrictFS) Rename(old, name string) error {
	return fs.judge("rename", name, fs.FS.Rename(old, name))
}

// OpenDir implements vfs.FS.
func (fs *StrictFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if f == nil {
		return nil, err
	}
	return &strictDirectory{f, fs, name}, err
}

// A strictFile is one that may be written.
type strictFile struct {
	vfs.File
	fs   *StrictFS
	path string
}

func (f *strictFile) judge(what string, err error) error { return f.fs.judge(what, f.path, err) }

// Write implements vfs.File.
func (f *strictFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.judge("write", err)
}

// WriteAt implements vfs.File.
func (f *strictFile) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(p, offset)
	return n, f.judge("write", err)
}

// Sync implements vfs.File.
func (f *strictFile) Sync() error { return f.judge("sync", f.File.Sync()) }

// SyncData implements vfs.File.
func (f *strictFile) SyncData() error { return f.judge("sync", f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *strictFile) SyncTo(length int64) (bool, error) {
	isWhole, err := f.File.SyncTo(length)
	return isWhole, f.judge("sync", err)
}

// Close implements vfs.File.
func (f *strictFile) Close() error { return f.judge("close", f.File.Close()) }

// A strictDirectory is one that is opened to be synced.
type strictDirectory struct {
	vfs.File
	fs   *StrictFS
	path string
}

// Sync implements vfs.File.
func (d *strictDirectory) Sync() error { return d.fs.judgeDirectory(d.path, d.File.Sync()) }
