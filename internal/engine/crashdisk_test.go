package engine_test

import (
	"errors"
	"math/rand/v2"
	slashpath "path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/proof"
)

// A powerSwitch is a disk that is copied, as a power cut would leave it, right
// before one of its operations. Those who write go on for a moment: the machine
// that they write to is no longer there, but what they are told tells the
// witness what the operations under way would have been.
type powerSwitch struct {
	machine     *machine
	rng         *rand.Rand
	keepPercent int

	left atomic.Int64 // operations until the cut
	once sync.Once
	gone atomic.Bool
	kept *vfs.MemFS // what the cut left
}

func (p *powerSwitch) cutAfter(operations int) { p.left.Store(int64(operations)) }

func (p *powerSwitch) isCut() bool { return p.gone.Load() }

// fileSystem returns the file system on which the power can be cut.
func (p *powerSwitch) fileSystem(disk *vfs.MemFS) vfs.FS {
	fs := proof.Crashable(disk)
	if p.machine.plant == lyingDisk {
		fs = proof.Lying(fs)
	}
	return errorfs.Wrap(fs, p)
}

// MaybeError implements errorfs.Injector: it never fails, it counts.
//
// A cut keeps some new names of a directory and loses others, in any
// combination. That is harder than ext4, xfs and btrfs, which keep them in
// order, and Pebble relies on it in one place: a MANIFEST is there if the marker
// that names it is.
func (p *powerSwitch) MaybeError(op errorfs.Op) error {
	if dir, name := slashpath.Split(op.Path); op.Kind == errorfs.OpCreate && strings.HasPrefix(name, "marker.manifest.") {
		if err := syncDirectory(p.machine.disk, dir); err != nil {
			return err
		}
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && p.left.Add(-1) == 0 {
		for range 200 { // the disk is slow: others may go on meanwhile
			runtime.Gosched()
		}
		p.cut()
	}
	return nil
}

func syncDirectory(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (p *powerSwitch) String() string { return "power switch" }

// cut takes the copy. What was promised before it must be in it.
func (p *powerSwitch) cut() {
	p.once.Do(func() {
		if p.kept != nil {
			return
		}
		for _, w := range p.machine.trees {
			w.noteCut()
		}
		p.kept = p.machine.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.keepPercent, RNG: p.rng})
		p.gone.Store(true)
	})
}
