package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// The files of a data directory, beside those that other packages keep there.
const (
	MarkerFile  = "LIVETREE"
	LockFile    = "LOCK"
	DurableFile = "durable"
	BallastFile = "ballast"

	MarkerText = "livetree data directory, format "
)

// A Directory is a data directory that this process has locked.
type Directory struct {
	FS   vfs.FS
	Path string
	lock io.Closer
	// Durable is the group number that was in the durable file.
	Durable uint64
	format  uint64 // what the marker says
}

// At returns the directory at path for what needs no lock.
func At(fs vfs.FS, path string) *Directory { return &Directory{FS: fs, Path: path} }

// Open locks the data directory at path, and makes one where nothing
// is. It refuses directories of others.
func Open(fs vfs.FS, path string) (*Directory, error) {
	d := At(fs, path)
	names, err := fs.List(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := MakeDirectory(fs, path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case isForeign(names):
		return nil, fmt.Errorf("%w: it holds files but no %s", ErrForeign, MarkerFile)
	}
	if d.lock, err = fs.Lock(d.Join(LockFile)); err != nil {
		return nil, LockError(err)
	}
	if err := d.Prepare(); err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

// MakeDirectory makes a directory, and those above it where there are none, such
// that a power cut leaves it there.
func MakeDirectory(fs vfs.FS, path string) error {
	if parent := fs.PathDir(path); parent != path {
		if _, err := fs.Stat(parent); errors.Is(err, os.ErrNotExist) {
			if err := MakeDirectory(fs, parent); err != nil {
				return err
			}
		}
	}
	if err := fs.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return syncParent(fs, path)
}

// syncParent makes the name of a directory durable.
func syncParent(fs vfs.FS, path string) error {
	err := syncDirectory(fs, fs.PathDir(path))
	if errors.Is(err, os.ErrPermission) {
		return nil // somebody else made the directory in a place that we cannot read
	}
	return err
}

func syncDirectory(fs vfs.FS, path string) error {
	f, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// nodeFiles are there before the store, if that is of a node which founds a cluster.
var nodeFiles = []string{"cluster.json", "cluster-key", "cluster-list", "cluster-tls", "etcd"}

// IsForeign reports whether a directory is somebody else's, so that Open refuses it. One that is not there is not.
func IsForeign(path string) (bool, error) {
	names, err := vfs.Default.List(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && isForeign(names), err
}

// isForeign reports whether a directory with these files is somebody else's.
func isForeign(names []string) bool {
	strangers := 0
	for _, name := range names {
		switch {
		case name == MarkerFile:
			return false
		case name != LockFile && name != owneronly.LostAndFound && !strings.HasSuffix(name, temporarySuffix) && !slices.Contains(nodeFiles, name):
			strangers++
		}
	}
	return strangers > 0
}

// LockError tells a directory that is in use from one in which no lock can be
// made.
func LockError(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInUse, err)
}

// Prepare checks or writes the marker, and reads the durable group number.
func (d *Directory) Prepare() error {
	text, err := d.Read(MarkerFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text = MarkerText + strconv.Itoa(layout.FormatFirst) + "\n"
		if err := d.Write(MarkerFile, text); err != nil {
			return err
		}
		// The directory itself may have been made a moment ago.
		if err := syncParent(d.FS, d.Path); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	version, err := ParseNumber(text, MarkerText)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", damage.ErrDamaged, MarkerFile, err)
	}
	if version > layout.FormatVersion {
		return fmt.Errorf("%w: its format is %d, this version reads up to %d", ErrNewer, version, layout.FormatVersion)
	}
	d.format = version
	text, err = d.Read(DurableFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.Durable, err = ParseNumber(text, durableText); err != nil {
		return fmt.Errorf("%w: %s: %w", damage.ErrDamaged, DurableFile, err)
	}
	return nil
}

// Raise has the marker say that the directory needs a format version, if it needs a lower one yet. It is called
// before a row of that version is stored: versions that cannot read such rows then refuse the directory by its marker,
// without opening Pebble, which would change files.
func (d *Directory) Raise(format uint32) error {
	if uint64(format) <= d.format {
		return nil
	}
	if err := d.Write(MarkerFile, MarkerText+strconv.Itoa(int(format))+"\n"); err != nil {
		return err
	}
	d.format = uint64(format)
	return nil
}

const durableText = "durable group "

// WriteDurable notes that everything up to group is on disk.
func (d *Directory) WriteDurable(group uint64) error {
	if group == d.Durable {
		return nil
	}
	if err := d.Write(DurableFile, durableText+strconv.FormatUint(group, 10)+"\n"); err != nil {
		return err
	}
	d.Durable = group
	return nil
}

// ParseNumber reads a line of a prefix and a number.
func ParseNumber(text, prefix string) (uint64, error) {
	digits, ok := strings.CutPrefix(text, prefix)
	line, rest, ended := strings.Cut(digits, "\n")
	number, err := strconv.ParseUint(line, 10, 64)
	if !ok || !ended || rest != "" || err != nil {
		return 0, fmt.Errorf("%.60q is not %q and a number", text, prefix)
	}
	return number, nil
}

// Join returns the path of a file in the directory.
func (d *Directory) Join(name string) string { return d.FS.PathJoin(d.Path, name) }

// PebblePath returns the path of Pebble's directory.
func (d *Directory) PebblePath() string { return d.Join(layout.PebbleDir) }

// Read returns the text of a small file.
func (d *Directory) Read(name string) (string, error) {
	f, err := d.FS.Open(d.Join(name))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	return string(text), errors.Join(err, f.Close())
}

const temporarySuffix = ".tmp"

// Write replaces a file such that a crash leaves the old one or the new one.
func (d *Directory) Write(name, text string) error {
	temporary := d.Join(name + temporarySuffix)
	f, err := d.FS.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.FS.Rename(temporary, d.Join(name)); err != nil {
		return err
	}
	return d.sync()
}

// Remove removes a file for good.
func (d *Directory) Remove(name string) error {
	return errors.Join(d.FS.Remove(d.Join(name)), d.sync())
}

// sync makes the names in the directory durable.
func (d *Directory) sync() error { return syncDirectory(d.FS, d.Path) }

// MakeBallast takes up space that can be given back when the disk is full.
func (d *Directory) MakeBallast(bytes int64) error {
	if _, err := d.FS.Stat(d.Join(BallastFile)); err == nil {
		return nil
	}
	f, err := d.FS.Create(d.Join(BallastFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, bytes)
	return errors.Join(err, f.Close(), d.sync())
}

// DropBallast gives the space of the ballast back.
func (d *Directory) DropBallast() error {
	err := d.FS.Remove(d.Join(BallastFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Close gives up the lock.
func (d *Directory) Close() error { return d.lock.Close() }

// CheckpointDir is where a checkpoint is made: in the data directory, so that it
// can be of hard links wherever the backup goes.
const CheckpointDir = "checkpoint" + temporarySuffix

// DropCheckpoint removes what was left of a checkpoint when a process ended.
func (d *Directory) DropCheckpoint() error {
	path := d.Join(CheckpointDir)
	if _, err := d.FS.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return d.FS.RemoveAll(path)
}

// FileName is that of a file in the data directory, as seen from there.
func (d *Directory) FileName(path string) string {
	name, ok := strings.CutPrefix(path, d.Path)
	if !ok {
		return path
	}
	return strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/")
}
