package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/tree"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// free makes a disk of a size say that so much of it is free, and lets the store
// look.
func (s *stand) free(disk *vfs.MemFS, total, avail uint64) {
	disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: total, AvailBytes: avail, UsedBytes: total - avail})
	s.health.checkSpace()
}

// admits compares what the store lets in.
func (s *stand) admits(wantWrites, wantDeletes error) {
	s.Helper()
	deletes := []tree.Write{tree.Put(parsePath(s, "a"), tree.Node{}), patchWrite(s, `{"a":null,"b/c":null}`)}
	writes := []tree.Write{putWrite(s, "a", "1"), patchWrite(s, `{"a":null,"b/c":0}`)}
	for _, w := range deletes {
		if err := s.Admit(w); !errors.Is(err, wantDeletes) {
			s.Errorf("Admit of a delete (PATCH: %t) = %v, want %v", w.Patch, err, wantDeletes)
		}
	}
	for _, w := range writes {
		if err := s.Admit(w); !errors.Is(err, wantWrites) {
			s.Errorf("Admit of a write (PATCH: %t) = %v, want %v", w.Patch, err, wantWrites)
		}
	}
}

func patchWrite(t testing.TB, body string) tree.Write {
	t.Helper()
	w, err := tree.DecodePatch(strings.NewReader(body), tree.Path{}, tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestLowSpace: below the mark only deletes are let in, until half as much again
// is free.
func TestLowSpace(t *testing.T) {
	tests := []struct {
		name        string
		total, mark uint64
	}{
		{"small disk", gibibyte, 512 * mebibyte},
		{"large disk", 100 * gibibyte, 5 * gibibyte},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			disk := vfs.NewMem()
			s := newStand(t, Options{FS: disk})
			s.put("a", "1")
			steps := []struct {
				free uint64
				want error
			}{
				{test.total, nil},
				{test.mark + 1, nil},
				{test.mark - 1, ErrNoSpace},
				{0, ErrNoSpace},
				{test.mark + 1, ErrNoSpace},
				{test.mark / 2 * 3, ErrNoSpace},
				{test.mark/2*3 + 1, nil},
				{test.mark + 1, nil},
			}
			for _, step := range steps {
				s.free(disk, test.total, step.free)
				s.admits(step.want, nil)
				if t.Failed() {
					t.Fatalf("with %d of %d bytes free", step.free, test.total)
				}
			}
			s.expect("/", `{"a":1}`)
		})
	}
}

// TestLowSpaceAtTheStart: what is let in is right from the first moment.
func TestLowSpaceAtTheStart(t *testing.T) {
	disk := vfs.NewMem()
	disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: gibibyte, AvailBytes: mebibyte})
	s := newStand(t, Options{FS: disk, BallastBytes: mebibyte})
	s.admits(ErrNoSpace, nil)
	if _, err := disk.Stat("data/" + datadir.BallastFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ballast takes the last space: %v", err)
	}
}

func TestDiskThatTellsNothing(t *testing.T) {
	s := newStand(t, Options{}) // a MemFS does not know its size
	s.health.checkSpace()
	s.admits(nil, nil)
}

// A transcript is all that a logger was told.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) logger() *slog.Logger { return slog.New(slog.NewTextHandler(t, nil)) }

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// A fullDisk has no space for some operations while it is full.
type fullDisk struct {
	*vfs.MemFS
	vfs.FS  // the same, when it is full
	full    atomic.Bool
	refused atomic.Int64
}

func newFullDisk(noSpace func(disk *vfs.MemFS, op errorfs.Op) bool) *fullDisk {
	d := &fullDisk{MemFS: vfs.NewMem()}
	d.FS = errorfs.Wrap(d.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() && noSpace(d.MemFS, op) {
			d.refused.Add(1)
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	return d
}

func writesTable(op errorfs.Op) bool {
	return strings.HasSuffix(op.Path, ".sst") && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite)
}

func hasBallast(disk *vfs.MemFS) bool {
	_, err := disk.Stat("data/" + datadir.BallastFile)
	return err == nil
}

// TestFullDisk: the ballast is given up, so that what has begun can end, nothing
// is let in, reads go on; and when there is space, all is as it was.
func TestFullDisk(t *testing.T) {
	disk := newFullDisk(func(disk *vfs.MemFS, op errorfs.Op) bool { return writesTable(op) && hasBallast(disk) })
	told := &transcript{}
	s := newStand(t, Options{FS: disk.FS, BallastBytes: mebibyte, Logger: told.logger()})
	s.free(disk.MemFS, 10*gibibyte, 9*gibibyte)
	if !hasBallast(disk.MemFS) {
		t.Fatal("there is no ballast")
	}
	s.put("a", `"before"`)
	s.free(disk.MemFS, 10*gibibyte, mebibyte) // or the keeper makes another ballast
	disk.full.Store(true)
	if err := s.db.Flush(); err != nil { // it succeeds with what the ballast gave
		t.Fatal(err)
	}
	if hasBallast(disk.MemFS) || disk.refused.Load() == 0 {
		t.Errorf("the ballast is there: %t, after %d refused operations", hasBallast(disk.MemFS), disk.refused.Load())
	}
	s.admits(ErrNoSpace, ErrNoSpace)
	s.expect("/", `{"a":"before"}`)
	if n := strings.Count(told.String(), "all writes are refused"); n != 1 {
		t.Errorf("the operator was told %d times: %s", n, told.String())
	}

	disk.full.Store(false)
	s.health.checkSpace() // still nearly nothing
	s.admits(ErrNoSpace, ErrNoSpace)
	s.free(disk.MemFS, 10*gibibyte, 600*mebibyte) // more than the mark
	s.admits(ErrNoSpace, nil)
	if hasBallast(disk.MemFS) {
		t.Error("there is ballast again, too early")
	}
	s.free(disk.MemFS, 10*gibibyte, 9*gibibyte)
	s.admits(nil, nil)
	if !hasBallast(disk.MemFS) {
		t.Error("there is no ballast again")
	}
	s.put("a", `"after"`)
	s.expect("/", `{"a":"after"}`)
}

// TestCloseOnAFullDisk: Pebble would try to flush for ever. What is not flushed
// is in the log.
func TestCloseOnAFullDisk(t *testing.T) {
	disk := newFullDisk(func(_ *vfs.MemFS, op errorfs.Op) bool {
		return writesTable(op) || op.Kind == errorfs.OpCreate && strings.Contains(op.Path, datadir.DurableFile)
	})
	s := openStand(t, Options{FS: disk.FS})
	s.put("a", `"before"`)
	disk.full.Store(true)
	s.put("b", `"written to the log"`)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("Close = %v", err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("Close does not return")
	}
	disk.full.Store(false)
	newStand(t, Options{FS: disk.FS}).expect("/", `{"a":"before","b":"written to the log"}`)
}

// TestStalledWrites: after five seconds in which Pebble held writes up, new ones
// are refused; when it goes on, they are let in.
func TestStalledWrites(t *testing.T) {
	now := newClock()
	s := newStand(t, Options{Now: now.now})
	events := s.health.eventListener()
	s.admits(nil, nil)
	events.WriteStallBegin(pebble.WriteStallBeginInfo{Reason: "memtable count limit reached"})
	s.admits(nil, nil)
	now.advance(4 * time.Second)
	events.WriteStallBegin(pebble.WriteStallBeginInfo{}) // still the same stall
	now.advance(time.Second)
	s.admits(nil, nil)
	now.advance(time.Millisecond)
	s.admits(ErrStalled, ErrStalled)
	events.WriteStallEnd()
	s.admits(nil, nil)
	now.advance(time.Hour)
	s.admits(nil, nil)
	events.WriteStallBegin(pebble.WriteStallBeginInfo{})
	s.admits(nil, nil)
	now.advance(6 * time.Second)
	s.admits(ErrStalled, ErrStalled)
	s.expect("/", "null") // reads go on
	events.WriteStallEnd()
}

// TestStallWhileTheClockIsSet: how long a stall lasts does not depend on what the
// clock shows.
func TestStallWhileTheClockIsSet(t *testing.T) {
	clock := proof.NewMachineClock()
	s := newStand(t, Options{Now: clock.Now})
	events := s.health.eventListener()
	events.WriteStallBegin(pebble.WriteStallBeginInfo{})
	clock.Set(time.Hour)
	clock.Pass(time.Second)
	s.admits(nil, nil)
	clock.Set(-2 * time.Hour)
	clock.Pass(5 * time.Second)
	s.admits(ErrStalled, ErrStalled)
	if stalled := s.Health().Stalled; stalled != 6*time.Second {
		t.Errorf("a stall has lasted %v, want 6s", stalled)
	}
	events.WriteStallEnd()
	s.admits(nil, nil)
}

// TestBackgroundErrors: a full disk is waited out, damage is noted, and any other
// disk that fails ends the process.
func TestBackgroundErrors(t *testing.T) {
	s := newStand(t, Options{Fatal: func(code int) { panic(code) }})
	s.health.backgroundError(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	s.admits(ErrNoSpace, ErrNoSpace)
	s.health.backgroundError(&os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT})
	func() {
		defer func() {
			if code := recover(); code != ExitIO {
				t.Errorf("after EIO the process ended with %v, want %d", code, ExitIO)
			}
		}()
		s.health.backgroundError(&os.PathError{Op: "write", Path: "x", Err: syscall.EIO})
		t.Error("after EIO the store went on")
	}()
	s.health.backgroundError(damage.AtRow([]byte("key"), errors.New("nonsense")))
	s.admits(ErrDamaged, ErrDamaged)
}

// TestNewDatabaseOnAFullDisk: it is refused as writes are. On a disk that is nearly
// full it is made, as other settings are.
func TestNewDatabaseOnAFullDisk(t *testing.T) {
	disk := vfs.NewMem()
	s := newStand(t, Options{FS: disk})
	s.free(disk, 10*gibibyte, mebibyte)
	if _, err := s.Create("low"); err != nil {
		t.Errorf("Create on a disk that is nearly full = %v", err)
	}
	s.health.backgroundError(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if _, err := s.Create("full"); !errors.Is(err, ErrNoSpace) {
		t.Errorf("Create on a disk that is full = %v, want %v", err, ErrNoSpace)
	}
	if _, found, err := s.Find("full"); found || err != nil {
		t.Errorf("Find of what was refused = %t, %v", found, err)
	}
	if _, err := s.Create("low"); !errors.Is(err, ErrExists) {
		t.Errorf("Create of what is there = %v, want %v", err, ErrExists)
	}
}

// TestStepsOnALowDisk: what adds rows waits, what drops them does not.
func TestStepsOnALowDisk(t *testing.T) {
	disk := vfs.NewMem()
	s := newStand(t, Options{FS: disk})
	s.free(disk, 10*gibibyte, mebibyte)
	admits := func(wantAdds, want error) {
		t.Helper()
		adds, drops, settings := s.AdmitStep(true), s.AdmitStep(false), s.AdmitSettings()
		if !errors.Is(adds, wantAdds) || !errors.Is(drops, want) || !errors.Is(settings, want) {
			t.Errorf("a step that adds: %v, one that drops: %v, settings: %v; want %v, and %v for the others", adds, drops, settings, wantAdds, want)
		}
	}
	admits(ErrNoSpace, nil)
	s.health.backgroundError(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	admits(ErrNoSpace, ErrNoSpace)
	s.free(disk, 10*gibibyte, 9*gibibyte)
	admits(nil, nil)
}
