package datadir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A strictDisk is a StrictFS on a disk that fails, which says whether it would
// have ended the process.
type strictDisk struct {
	StrictFS
	err  error    // of every operation that changes the disk
	said []string // by fail
}

func newStrictDisk(t *testing.T, isOpen bool) *strictDisk {
	t.Helper()
	disk := vfs.NewMem()
	for _, dir := range []string{"data/store", "data/checkpoint.tmp/store"} {
		if err := disk.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := &strictDisk{}
	d.FS = errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return d.err
		}
		return nil
	}))
	d.Dir = "data/store"
	d.IsOpen.Store(isOpen)
	d.Fail = func(what string, err error) { d.said = append(d.said, fmt.Sprintf("%s: %v", what, err)) }
	return d
}

// operations do one thing each to a file, all of which can fail.
var operations = map[string]func(fs vfs.FS, f vfs.File, path string) error{
	"create": func(fs vfs.FS, _ vfs.File, path string) error {
		_, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		return err
	},
	"reuse": func(fs vfs.FS, _ vfs.File, path string) error {
		_, err := fs.ReuseForWrite(path, path, vfs.WriteCategoryUnspecified)
		return err
	},
	"rename": func(fs vfs.FS, _ vfs.File, path string) error { return fs.Rename(path, path) },
	"remove": func(fs vfs.FS, _ vfs.File, path string) error { return fs.Remove(path) },
	"write": func(_ vfs.FS, f vfs.File, _ string) error {
		_, err := f.Write([]byte("x"))
		return err
	},
	"sync":      func(_ vfs.FS, f vfs.File, _ string) error { return f.Sync() },
	"sync data": func(_ vfs.FS, f vfs.File, _ string) error { return f.SyncData() },
	"sync to": func(_ vfs.FS, f vfs.File, _ string) error {
		_, err := f.SyncTo(1)
		return err
	},
	"sync directory": func(fs vfs.FS, _ vfs.File, path string) error {
		dir, err := fs.OpenDir(fs.PathDir(path))
		if err != nil {
			return err
		}
		return dir.Sync()
	},
}

// TestStrictFS: the process ends for what the store does not survive, and for
// nothing else.
func TestStrictFS(t *testing.T) {
	const log, table, checkpoint = "data/store/000004.log", "data/store/000005.sst", "data/checkpoint.tmp/store/000005.sst"
	tests := []struct {
		path    string
		isOpen  bool
		errno   syscall.Errno
		goesOn  string // the operations after which the store goes on, or * for all
		wantEnd string // one after which the process ends, if it is not all others
	}{
		{path: log, isOpen: true, errno: syscall.EIO, goesOn: "remove"},
		{path: log, isOpen: true, errno: syscall.ENOSPC, goesOn: "remove"},
		{path: log, isOpen: true, errno: syscall.ENOENT, goesOn: "remove"}, // somebody took the directory away
		{path: log, isOpen: true, errno: syscall.EACCES, goesOn: "remove"},
		{path: log, errno: syscall.EIO, goesOn: "remove"},
		{path: log, errno: syscall.ENOSPC, goesOn: "remove"},
		{path: log, errno: syscall.EACCES, goesOn: "*"}, // Open says so
		{path: table, isOpen: true, errno: syscall.EIO, goesOn: "remove"},
		{path: table, isOpen: true, errno: syscall.ENOSPC, goesOn: "*", wantEnd: "sync directory"},
		{path: table, isOpen: true, errno: syscall.EDQUOT, goesOn: "*", wantEnd: "sync directory"},
		{path: checkpoint, isOpen: true, errno: syscall.EIO, goesOn: "*", wantEnd: "sync directory"},
		{path: checkpoint, isOpen: true, errno: syscall.ENOSPC, goesOn: "*", wantEnd: "sync directory"},
	}
	for _, test := range tests {
		for name, operation := range operations {
			d := newStrictDisk(t, test.isOpen)
			f, err := d.Create(test.path, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			d.err = test.errno
			if err := operation(d, f, test.path); !errors.Is(err, test.errno) {
				t.Errorf("%s %s = %v, want %v", name, test.path, err, test.errno)
			}
			goesOn := name == test.goesOn || test.goesOn == "*" && name != test.wantEnd
			if goesOn != (len(d.said) == 0) {
				t.Errorf("%s %s, open: %t, with %v: the process ends with %q, want that it goes on: %t", name, test.path, test.isOpen, test.errno, d.said, goesOn)
			}
			if !goesOn && (len(d.said) != 1 || !strings.Contains(d.said[0], d.PathDir(test.path)) || !strings.Contains(d.said[0], test.errno.Error())) {
				t.Errorf("%s %s with %v: the operator is told %q, want the file and the reason", name, test.path, test.errno, d.said)
			}
		}
	}
}

// TestStrictFileThatCannotBeClosed: some file systems tell only then that a
// write failed. That a file is closed already is no failure.
func TestStrictFileThatCannotBeClosed(t *testing.T) {
	d := newStrictDisk(t, true)
	for err, ends := range map[error]bool{os.ErrClosed: false, syscall.EIO: true} {
		d.said = nil
		f := &strictFile{unclosable{err: err}, &d.StrictFS, "data/store/000004.log"}
		if got := f.Close(); !errors.Is(got, err) || ends != (len(d.said) == 1) {
			t.Errorf("Close = %v, want %v; and the process ends with %q, want that it does: %t", got, err, d.said, ends)
		}
	}
}

type unclosable struct {
	vfs.File
	err error
}

func (f unclosable) Close() error { return f.err }
