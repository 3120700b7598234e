package trust_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A realDisk is a file system of its own, ext4 in a file, whose power can be cut and which can stand still below real processes.
//
// A power cut is the system's own way to try one: the file system is shut down without writing anything more, neither data nor journal,
// and mounted again, which replays the journal up to what had reached the disk. So all is gone that was written and not synced,
// data and names, unless the system had written it by itself. What is not modelled: a disk that reorders or tears what it was given, below
// the blocks of 4 KiB that ext4 writes, and one that says that it has synced what it has not.
type realDisk struct {
	image, mount string
}

// The calls of the system that this needs, from its header linux/fs.h.
const (
	ioctlFreeze   = 0xC0045877
	ioctlThaw     = 0xC0045878
	ioctlShutdown = 0x8004587D
	// withoutJournal has a shutdown write nothing more.
	withoutJournal = 2
)

// newRealDisk makes and mounts a disk until the test ends, or skips the test where that is not possible.
func newRealDisk(t *testing.T, bytes int64) *realDisk {
	t.Helper()
	dir := t.TempDir()
	d := &realDisk{image: filepath.Join(dir, "image"), mount: filepath.Join(dir, "mount")}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Truncate(d.image, bytes), os.Mkdir(d.mount, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("a real disk is NOT tested: mkfs.ext4: %v %s", err, out)
	}
	if err := d.open(); err != nil {
		t.Skipf("a real disk is NOT tested: it takes the right to mount, and a loop device: %v", err)
	}
	t.Cleanup(func() {
		_ = d.control(ioctlThaw, nil) // it may stand still
		if err := syscall.Unmount(d.mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// open mounts the disk.
func (d *realDisk) open() error {
	out, err := exec.Command("mount", "-o", "loop,noatime", d.image, d.mount).CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

// control makes a call of the file system.
func (d *realDisk) control(call uintptr, argument *uint32) error {
	dir, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), call, uintptr(unsafe.Pointer(argument))); errno != 0 { //nolint:gosec // the system takes an address
		return errno
	}
	return nil
}

// cut takes the power from the disk, and gives it back. No process may have a file open.
func (d *realDisk) cut() error {
	flags := uint32(withoutJournal)
	if err := d.control(ioctlShutdown, &flags); err != nil {
		return err
	}
	if err := syscall.Unmount(d.mount, 0); err != nil {
		return err
	}
	return d.open()
}

// scatter has the system write some of what was not synced, at random, as it may do at any time.
func (d *realDisk) scatter(rng *rand.Rand) error {
	const page = 4 << 10
	return filepath.WalkDir(d.mount, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || rng.IntN(3) > 0 {
			return err
		}
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		from := rng.Int64N(info.Size()/page+1) * page
		return unix.SyncFileRange(int(file.Fd()), from, rng.Int64N(64)*page, unix.SYNC_FILE_RANGE_WRITE)
	})
}
