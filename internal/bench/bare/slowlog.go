package bare

import (
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LogFS is the real file system with another disk for the logs of a Pebble store: to
// sync one takes SyncTime, and does nothing. Tables are synced as ever.
type LogFS struct {
	vfs.FS
	SyncTime time.Duration
}

// Unwrap implements vfs.FS.
func (fs LogFS) Unwrap() vfs.FS { return fs.FS }

// Create implements vfs.FS.
func (fs LogFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.slow(name, f), err
}

// ReuseForWrite implements vfs.FS.
func (fs LogFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, category)
	return fs.slow(to, f), err
}

func (fs LogFS) slow(name string, f vfs.File) vfs.File {
	if f == nil || filepath.Ext(name) != ".log" {
		return f
	}
	return logFile{f, fs.SyncTime}
}

type logFile struct {
	vfs.File
	syncTime time.Duration
}

// Sync implements vfs.File.
func (f logFile) Sync() error {
	Stand(f.syncTime)
	return nil
}

// SyncData implements vfs.File.
func (f logFile) SyncData() error { return f.Sync() }

// SyncTo implements vfs.File: it only begins, which takes no time here.
func (f logFile) SyncTo(int64) (fullSync bool, err error) { return false, nil }
