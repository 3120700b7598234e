package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The files of a data directory, beside those that other packages keep there.
const (
	markerFile  = "LIVETREE"
	lockFile    = "LOCK"
	durableFile = "durable"
	ballastFile = "ballast"
	pebbleDir   = "store"

	markerText = "livetree data directory, format "
	// formatVersion is the version of FORMAT.md.
	formatVersion = 1
)

// FormatVersion is the newest format of a data directory that is read, and the one
// that is written.
const FormatVersion = formatVersion

// A directory is a data directory that this process has locked.
type directory struct {
	fs   vfs.FS
	path string
	lock io.Closer
	// durable is the group number that was in the durable file.
	durable uint64
}

// openDirectory locks the data directory at path, and makes one where nothing
// is. It refuses directories of others.
func openDirectory(fs vfs.FS, path string) (*directory, error) {
	d := &directory{fs: fs, path: path}
	names, err := fs.List(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := makeDirectory(fs, path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case isForeign(names):
		return nil, fmt.Errorf("%w: it holds files but no %s", ErrForeign, markerFile)
	}
	if d.lock, err = fs.Lock(d.join(lockFile)); err != nil {
		return nil, lockError(err)
	}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

// makeDirectory makes a directory, and those above it where there are none, such
// that a power cut leaves it there.
func makeDirectory(fs vfs.FS, path string) error {
	if parent := fs.PathDir(path); parent != path {
		if _, err := fs.Stat(parent); errors.Is(err, os.ErrNotExist) {
			if err := makeDirectory(fs, parent); err != nil {
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

// isForeign reports whether a directory with these files is somebody else's.
func isForeign(names []string) bool {
	strangers := 0
	for _, name := range names {
		switch {
		case name == markerFile:
			return false
		case name != lockFile && !strings.HasSuffix(name, temporarySuffix):
			strangers++
		}
	}
	return strangers > 0
}

// lockError tells a directory that is in use from one in which no lock can be
// made.
func lockError(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInUse, err)
}

// prepare checks or writes the marker, and reads the durable group number.
func (d *directory) prepare() error {
	text, err := d.read(markerFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text = markerText + strconv.Itoa(formatVersion) + "\n"
		if err := d.write(markerFile, text); err != nil {
			return err
		}
		// The directory itself may have been made a moment ago.
		if err := syncParent(d.fs, d.path); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	version, err := parseNumber(text, markerText)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, markerFile, err)
	}
	if version > formatVersion {
		return fmt.Errorf("%w: its format is %d, this version reads up to %d", ErrNewer, version, formatVersion)
	}
	text, err = d.read(durableFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.durable, err = parseNumber(text, durableText); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, durableFile, err)
	}
	return nil
}

const durableText = "durable group "

// writeDurable notes that everything up to group is on disk.
func (d *directory) writeDurable(group uint64) error {
	if group == d.durable {
		return nil
	}
	if err := d.write(durableFile, durableText+strconv.FormatUint(group, 10)+"\n"); err != nil {
		return err
	}
	d.durable = group
	return nil
}

func parseNumber(text, prefix string) (uint64, error) {
	digits, ok := strings.CutPrefix(text, prefix)
	line, rest, ended := strings.Cut(digits, "\n")
	number, err := strconv.ParseUint(line, 10, 64)
	if !ok || !ended || rest != "" || err != nil {
		return 0, fmt.Errorf("%.60q is not %q and a number", text, prefix)
	}
	return number, nil
}

func (d *directory) join(name string) string { return d.fs.PathJoin(d.path, name) }

func (d *directory) pebblePath() string { return d.join(pebbleDir) }

func (d *directory) read(name string) (string, error) {
	f, err := d.fs.Open(d.join(name))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	return string(text), errors.Join(err, f.Close())
}

const temporarySuffix = ".tmp"

// write replaces a file such that a crash leaves the old one or the new one.
func (d *directory) write(name, text string) error {
	temporary := d.join(name + temporarySuffix)
	f, err := d.fs.Create(temporary, vfs.WriteCategoryUnspecified)
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
	if err := d.fs.Rename(temporary, d.join(name)); err != nil {
		return err
	}
	return d.sync()
}

// sync makes the names in the directory durable.
func (d *directory) sync() error { return syncDirectory(d.fs, d.path) }

// makeBallast takes up space that can be given back when the disk is full.
func (d *directory) makeBallast(bytes int64) error {
	if _, err := d.fs.Stat(d.join(ballastFile)); err == nil {
		return nil
	}
	f, err := d.fs.Create(d.join(ballastFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, bytes)
	return errors.Join(err, f.Close(), d.sync())
}

func (d *directory) dropBallast() error {
	err := d.fs.Remove(d.join(ballastFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (d *directory) close() error { return d.lock.Close() }
