//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store"
)

// faultVariable makes a process of the test binary a faultyServer.
const faultVariable = "LIVETREE_TRUST_FAULT"

// A faultScenario says what happens to the disk of a server.
type faultScenario struct {
	// Dir is where the server has its data, and leaves what was on its disk.
	Dir string
	// The Operation-th operation that changes the disk fails with Errno, and all
	// later ones if it is Lasting. 0 for none.
	Operation int
	Errno     syscall.Errno
	Lasting   bool
	// IsHasty lets writes be acknowledged that are not synced: a planted bug.
	IsHasty bool
}

func (sc faultScenario) String() string {
	return fmt.Sprintf("operation %d fails with %v (lasting: %t)", sc.Operation, sc.Errno, sc.Lasting)
}

func (sc faultScenario) diskFile() string  { return filepath.Join(sc.Dir, "disk") }
func (sc faultScenario) faultFile() string { return filepath.Join(sc.Dir, "fault") }
func (sc faultScenario) countFile() string { return filepath.Join(sc.Dir, "operations") }
func (sc faultScenario) data() string      { return filepath.Join(sc.Dir, "data") }

// faultLives is how often a faultyServer serves: it is asked to end in between.
const faultLives = 2

// A faultyServer is the whole server in a process of its own, because it has to
// end when its disk fails. When it does, the disk forgets what was not synced.
type faultyServer struct {
	faultScenario
	*machine

	mu         sync.Mutex
	operations int
	isOver     bool
}

func runFaultyServer(text string) {
	var s faultyServer
	err := json.Unmarshal([]byte(text), &s.faultScenario)
	if err == nil {
		s.machine, err = newMachine(s.data())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	s.adminAddr = "127.0.0.1:0"
	s.disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 39})
	err = s.live()
	if err != nil {
		fmt.Fprintln(os.Stderr, saidAtEnd, strings.Join(strings.Fields(err.Error()), " "))
	}
	s.exit(store.ExitCode(err))
}

// saidAtEnd is what a line on the standard error begins with that says why the
// process ends, as in the command.
const saidAtEnd = "livetree:"

func (s *faultyServer) live() error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	for range faultLives {
		err := s.start(func(o *store.Options) {
			disk := proof.Crashable(s.disk)
			if s.IsHasty {
				disk = proof.Lying(disk)
			}
			o.FS, o.Fatal, o.BallastBytes, o.MemTableBytes = errorfs.Wrap(disk, s), s.exit, 1<<20, 0
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "listening on https://%s\n", s.addr)
		<-asked
		if err := s.drain(); err != nil {
			return err
		}
	}
	return nil
}

func (s *faultyServer) String() string { return "fault" }

// MaybeError implements errorfs.Injector.
func (s *faultyServer) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return nil
	}
	s.operations++
	if s.Operation == 0 || s.operations < s.Operation || s.operations > s.Operation && !s.Lasting {
		return nil
	}
	if s.operations == s.Operation {
		s.leave(s.faultFile(), fmt.Sprintf("operation %d%s%s", op.Kind, onFile, op.Path))
	}
	return &os.PathError{Op: "write", Path: op.Path, Err: s.Errno}
}

// onFile stands before the file in the note of what failed.
const onFile = " on "

func (s *faultyServer) leave(file, text string) {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err)
	}
}

// save leaves the disk as the end of the machine would.
func (s *faultyServer) save() {
	if err := saveDisk(s.disk.CrashClone(vfs.CrashCloneCfg{}), s.data(), s.diskFile()); err != nil {
		panic(err)
	}
}

// exit ends the process.
func (s *faultyServer) exit(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isOver = true
	s.save()
	s.leave(s.countFile(), fmt.Sprint(s.operations))
	fmt.Fprint(os.Stderr, s.log.String())
	os.Exit(code)
}
