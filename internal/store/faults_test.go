package store

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

var (
	faultStep = flag.Int("fault.step", 20, "the fault test lets every n-th operation of the disk fail; 1 for all")

	figures = proof.NewFigures()
)

// faultVariable tells a process that it is to live through a scenario on a disk
// that fails.
const faultVariable = "LIVETREE_TEST_FAULT"

// A scenario is what a child process is to do.
type scenario struct {
	// Dir is where the child leaves its notes: what it was promised, line by
	// line, and what is on its disk in the end.
	Dir string
	// The Operation-th operation that changes the disk fails with Errno, and all
	// later ones if it is Lasting.
	Operation int
	Errno     syscall.Errno
	Lasting   bool

	// Plants, for the test of the test.

	// Hasty counts a write as promised before it is committed.
	Hasty bool
	// Returns lets Options.Fatal return.
	Returns bool
}

const (
	notesFile = "notes"
	diskFile  = "disk"
	noteFault = "the disk fails"
)

// TestMain turns the test binary into the child process.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(faultVariable); ok {
		var sc scenario
		if err := json.Unmarshal([]byte(text), &sc); err != nil {
			panic(err)
		}
		newChild(sc).run()
	}
	os.Exit(m.Run())
}

// A child lives through a scenario. Its disk is in memory and forgets, when the
// process ends, what was not synced.
type child struct {
	scenario
	disk  *vfs.MemFS
	notes *os.File

	mu         sync.Mutex
	operations int
	dead       bool // the disk was saved for the last time
}

func newChild(sc scenario) *child {
	c := &child{scenario: sc, disk: vfs.NewCrashableMem()}
	c.disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 39})
	var err error
	if c.notes, err = os.Create(filepath.Join(sc.Dir, notesFile)); err != nil {
		panic(err)
	}
	return c
}

// note writes down that something was promised.
func (c *child) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		select {} // the process is about to end
	}
	c.write(what)
}

func (c *child) write(what string) {
	if _, err := c.notes.WriteString(what + "\n"); err != nil {
		panic(err)
	}
}

// save leaves the disk to the parent as the end of the process leaves it.
func (c *child) save() {
	kept := c.disk.CrashClone(vfs.CrashCloneCfg{})
	files, err := readAll(kept, "data")
	if err != nil {
		panic(err)
	}
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(files); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, diskFile), text.Bytes(), 0o600); err != nil {
		panic(err)
	}
}

// exit ends the process, in one moment for the disk and for the notes.
func (c *child) exit(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead {
		c.dead = true
		c.write(fmt.Sprintf("operations %d", c.operations))
		c.save()
	}
	if !c.Returns || code != ExitIO {
		os.Exit(code)
	}
}

func (c *child) String() string { return "fault" }

// MaybeError implements errorfs.Injector.
func (c *child) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return nil
	}
	c.operations++
	if c.Operation == 0 || c.operations < c.Operation || c.operations > c.Operation && !c.Lasting {
		return nil
	}
	if c.operations == c.Operation {
		c.write(fmt.Sprintf("%s at operation %d on %s", noteFault, op.Kind, op.Path))
	}
	return &os.PathError{Op: "write", Path: op.Path, Err: c.Errno}
}

// run is the life of the child. Its exit codes are those of the command.
func (c *child) run() {
	err := c.live()
	if err != nil {
		fmt.Fprintln(os.Stderr, "livetree:", err)
	}
	c.exit(ExitCode(err))
}

// live opens a new store, writes, flushes, drops a database, and closes; twice.
func (c *child) live() error {
	for life := range faultLives {
		s, err := Open("data", Options{
			FS: errorfs.Wrap(proof.Crashable(c.disk), c), Fatal: c.exit, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), CacheBytes: 1 << 20, BallastBytes: 1 << 20, ChunkBytes: 100,
		})
		if err != nil {
			return err
		}
		err = c.work(s, life)
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
		c.note("closed")
	}
	return nil
}

func (c *child) work(s *Store, life int) error {
	main, err := c.database(s, "main")
	if err != nil {
		return err
	}
	other, err := c.database(s, fmt.Sprintf("other%d", life))
	if err != nil {
		return err
	}
	writes := faultWrites(life)
	for i, w := range writes {
		if err := c.commit(s, main, w); err != nil {
			return err
		}
		switch i {
		case len(writes) / 3:
			err = errors.Join(c.commit(s, other, faultWrites(0)[0]), s.flush())
		case faultDrop:
			if err = s.Drop(other.name); err == nil {
				c.note("dropped " + other.name)
			}
		case len(writes) * 2 / 3:
			s.log.Trim()
			s.askFlush()
		case len(writes) * 4 / 5:
			// A checkpoint that fails does the store no harm.
			if copied, err := s.Checkpoint(); err == nil {
				_ = copied.Remove()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// An opened database is one that the child writes to.
type opened struct {
	name     string
	id       layout.ID
	position uint64
}

func (c *child) database(s *Store, name string) (*opened, error) {
	id, found, err := s.Find(name)
	if !found && err == nil {
		if id, err = s.Create(name); err == nil {
			c.note("created " + name)
		}
	}
	if err != nil {
		return nil, err
	}
	view := s.View()
	defer view.Release()
	position, err := view.Tree(id).Position()
	return &opened{name, id, position}, err
}

func (c *child) commit(s *Store, db *opened, w faultWrite) error {
	request, err := w.request()
	if err != nil {
		return err
	}
	change := tree.Change{Write: request, Position: db.position + 1, Millis: int64(db.position)}
	batch, err := s.Build(s.Live(db.id), change, nil, nil, nil)
	if err != nil {
		return err
	}
	promise := fmt.Sprintf("committed %d to %s", change.Position, db.name)
	if c.Hasty {
		c.note(promise)
	}
	done := make(visible)
	if err := s.Commit(batch, done); err != nil {
		return err
	}
	db.position++
	<-done
	if !c.Hasty {
		c.note(promise)
	}
	return nil
}

const (
	faultLives = 2
	faultCount = 50 // writes in a life
	// faultDrop is the write of a life after which a database is dropped.
	faultDrop = 25
)

// A testament is what a child left.
type testament struct {
	scenario
	exit  int
	text  string   // of its standard error
	notes []string // all lines
	disk  *vfs.MemFS
	fault string // what failed
}

// run starts a child and waits for its end.
func (sc scenario) run(t *testing.T) testament {
	t.Helper()
	sc.Dir = t.TempDir()
	text, err := json.Marshal(sc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), faultVariable+"="+string(text))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	err = command.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s: the process hangs\n%s", sc, stderr.String())
	}
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	will := testament{scenario: sc, exit: command.ProcessState.ExitCode(), text: stderr.String()}
	will.read(t)
	return will
}

func (sc scenario) String() string {
	return fmt.Sprintf("operation %d fails with %v (lasting: %t)", sc.Operation, sc.Errno, sc.Lasting)
}

func (w *testament) read(t *testing.T) {
	t.Helper()
	notes, err := os.ReadFile(filepath.Join(w.Dir, notesFile))
	if err != nil {
		t.Fatal(err)
	}
	w.notes = strings.Split(strings.TrimSpace(string(notes)), "\n")
	text, err := os.ReadFile(filepath.Join(w.Dir, diskFile))
	if err != nil {
		t.Fatalf("%s: the child left no disk: exit %d\n%s", w, w.exit, w.text)
	}
	var files map[string]string
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&files); err != nil {
		t.Fatal(err)
	}
	w.disk = vfs.NewMem()
	makeDirs(t, w.disk, "data")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			makeDirs(t, w.disk, dir)
		} else {
			writeFile(t, w.disk, name, files[name])
		}
	}
}

// check opens what the child left on a disk that works, and holds it against
// the notes.
func (w *testament) check() error {
	databases, unsure := map[string]uint64{}, map[string]bool{}
	for _, note := range w.notes {
		if text, ok := strings.CutPrefix(note, noteFault); ok {
			w.fault = text
			continue
		}
		var name string
		var position uint64
		switch {
		case scan(note, "created %s", &name):
			databases[name] = 0
		case scan(note, "dropped %s", &name):
			delete(databases, name)
			unsure[name] = true // nothing may be left of it
		case scan(note, "committed %d to %s", &position, &name):
			databases[name] = position
		}
	}
	s, err := Open("data", Options{FS: w.disk, BallastBytes: -1})
	if err != nil {
		return err
	}
	defer s.Close()
	view := s.View()
	defer view.Release()
	for name, promised := range databases {
		id, found, err := s.Find(name)
		switch {
		case err != nil:
			return err
		case !found && beingDropped(name, databases["main"]):
			continue
		case !found:
			return fmt.Errorf("the database %s is gone", name)
		}
		if err := checkDatabase(view.Tree(id), promised); err != nil {
			return fmt.Errorf("database %s: %w", name, err)
		}
	}
	for name := range unsure {
		if _, found, err := s.Find(name); found || err != nil {
			return fmt.Errorf("the dropped database %s is there: %t, %w", name, found, err)
		}
	}
	return nil
}

// beingDropped reports whether the end may have come when the database was being
// dropped, because main was at the position after which that is done.
func beingDropped(name string, position uint64) bool {
	var life uint64
	return scan(name, "other%d", &life) && position == life*faultCount+faultDrop+1
}

func scan(text, format string, into ...any) bool {
	_, err := fmt.Sscanf(text, format, into...)
	return err == nil
}

// checkDatabase compares a database with the writes that were to be made: those
// that were promised, and perhaps the next.
func checkDatabase(t Tree, promised uint64) error {
	position, err := t.Position()
	if err != nil {
		return err
	}
	if position < promised || position > promised+1 {
		return fmt.Errorf("it is at position %d, but %d was promised", position, promised)
	}
	var writes []faultWrite
	for life := range faultLives {
		writes = append(writes, faultWrites(life)...)
	}
	want := model.New()
	for _, w := range writes[:position] {
		if err := w.apply(want); err != nil {
			return err
		}
	}
	var got bytes.Buffer
	if err := t.Print(&got, tree.Path{}, tree.Export); err != nil {
		return err
	}
	if text := want.Export(nil); got.String() != text {
		return fmt.Errorf("at position %d it is\n%s\nwant\n%s", position, got.String(), text)
	}
	return checkData(t)
}

// TestDiskFaults lets one operation of the disk after the other fail, each in a
// process of its own, as the process has to end. Whatever was promised must be
// on the disk, without what was not synced.
func TestDiskFaults(t *testing.T) {
	t.Parallel()
	step := *faultStep
	if testing.Short() || raceEnabled {
		step = max(step, 150)
	}
	whole := scenario{}.run(t)
	if err := whole.check(); err != nil || whole.exit != 0 {
		t.Fatalf("without a fault: exit %d, %v\n%s", whole.exit, err, whole.text)
	}
	var operations int
	if !scan(whole.notes[len(whole.notes)-1], "operations %d", &operations) {
		t.Fatalf("the child did not count: %q", whole.notes)
	}
	first := 1 + rand.IntN(step)
	t.Logf("%d operations, every %d. from %d on", operations, step, first)
	var mu sync.Mutex
	runs, lost, outcomes := 0, 0, map[string]int{}
	t.Run("operation", func(t *testing.T) {
		for n := first; n <= operations; n += step {
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
				for _, lasting := range []bool{false, true} {
					sc := scenario{Operation: n, Errno: errno, Lasting: lasting}
					t.Run(fmt.Sprintf("%d/%s/%t", n, errno, lasting), func(t *testing.T) {
						t.Parallel()
						will := sc.run(t)
						err := will.check()
						outcome := will.outcome(t)
						mu.Lock()
						defer mu.Unlock()
						runs++
						if err != nil {
							lost++
							t.Errorf("%s%s: exit %d: %v", sc, will.fault, will.exit, err)
						}
						outcomes[fmt.Sprintf("%s, lasting %t: %s", errno, lasting, outcome)]++
					})
				}
			}
		}
	})
	for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%3d x %s", outcomes[outcome], outcome)
	}
	figures.Report(t, "storefaults", proof.Count("operations", runs/4), proof.Count("runs", runs), proof.Count("lost", lost))
}

// outcome says how the process ended, and fails the test if that is no good way.
func (w *testament) outcome(t *testing.T) string {
	t.Helper()
	switch w.exit {
	case 0:
		return "goes on"
	case ExitIO:
		if w.Errno == syscall.ENOSPC && strings.HasSuffix(w.text, "livetree: "+ErrNoSpace.Error()+"\n") {
			// The disk did not fail: what the child cannot do without was refused.
			if !strings.Contains(w.text, "the disk is full: all writes are refused; free some space") {
				t.Errorf("%s%s: the operator was told %q, want that space must be freed", w, w.fault, w.text)
			}
			return "refused, exit 74"
		}
		file := ""
		if !w.Lasting { // otherwise it may be a later one
			_, file, _ = strings.Cut(w.fault, " on ")
		}
		if strings.Count(w.text, "the disk failed") != 1 || !strings.Contains(w.text, file+": "+w.Errno.Error()) {
			t.Errorf("%s%s: the operator was told %q, want one line with the file and the reason", w, w.fault, w.text)
		}
		return "exit 74"
	}
	t.Errorf("%s%s: exit %d, want 0 or %d\n%s", w, w.fault, w.exit, ExitIO, w.text)
	return "other"
}

// TestHastyPromisesAreNoticed plants a bug: the child counts writes as promised
// before they are stored. The checker must not believe it.
func TestHastyPromisesAreNoticed(t *testing.T) {
	t.Parallel()
	const attempts = 1000 // few are needed
	for range attempts {
		sc := scenario{Operation: 60 + rand.IntN(150), Errno: syscall.EIO, Lasting: true, Hasty: true}
		will := sc.run(t)
		if err := will.check(); err != nil {
			if !strings.Contains(err.Error(), "was promised") {
				t.Errorf("%s: %v, want that more was promised", sc, err)
			}
			return
		}
	}
	t.Errorf("in %d attempts nothing promised was missing", attempts)
}
