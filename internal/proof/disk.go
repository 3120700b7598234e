package proof

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Crashable returns a disk in memory whose power can be cut while it is used. The
// one of Pebble takes a lock for reading twice when a file is used again, and
// waits for ever if it is cloned in between.
func Crashable(disk *vfs.MemFS) vfs.FS { return crashable{disk} }

type crashable struct{ *vfs.MemFS }

// ReuseForWrite implements vfs.FS by two steps, either of which can be the last.
func (c crashable) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.Rename(old, name); err != nil {
		return nil, err
	}
	return c.OpenReadWrite(name, category)
}

// Lying returns a disk that does not sync the write-ahead log: a bug that a test of
// power cuts must find.
func Lying(disk vfs.FS) vfs.FS { return lyingDisk{disk} }

type lyingDisk struct{ vfs.FS }

// Create implements vfs.FS.
func (d lyingDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return lie(name)(d.FS.Create(name, category))
}

// ReuseForWrite implements vfs.FS.
func (d lyingDisk) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return lie(name)(d.FS.ReuseForWrite(old, name, category))
}

func lie(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err == nil && strings.HasSuffix(name, ".log") {
			f = lyingFile{f}
		}
		return f, err
	}
}

type lyingFile struct{ vfs.File }

func (lyingFile) Sync() error     { return nil }
func (lyingFile) SyncData() error { return nil }
