// Package proof is what tests of several packages need to prove something about the
// whole server. Only tests use it.
//
// A Command builds the livetree command, for suites that run it as a process. Figures
// collects the numbers that long tests arrive at, in one form that adds up over runs.
// Crashable is a disk whose power can be cut, Lying one with a planted bug that a test
// must find, and a MachineClock a clock that is set. Canary is a bug on purpose, by
// which a check of the fuzzing finds out that it looks. SideBySide is for packages whose
// tests wait more than they work.
//
// It imports nothing of the module, so that a mistake there cannot hide here.
package proof

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// A Command is the livetree command under test.
type Command struct {
	given, givenNext *string

	once, onceNext sync.Once
	dir, dirNext   string // what was built is in there; empty if nothing was
	file, fileNext string
	err, errNext   error
}

// NewCommand returns the command that is built from this module, or the one that
// the flag -binary names. It must be called before flags are parsed.
func NewCommand() *Command {
	return &Command{
		given:     flag.String("binary", "", "the livetree command to test, in place of one that is built"),
		givenNext: flag.String("binary-next", "", "the same of the next level of records, in place of one that is built with the tag level_next"),
	}
}

// File returns the path of the command, which is built at the first call.
func (c *Command) File() (string, error) {
	c.once.Do(func() {
		if *c.given != "" {
			c.file, c.err = filepath.Abs(*c.given)
			return
		}
		c.dir, c.file, c.err = build()
	})
	return c.file, c.err
}

// Next returns the path of a command that knows the next level of records, for drills of upgrades.
func (c *Command) Next() (string, error) {
	c.onceNext.Do(func() {
		if *c.givenNext != "" {
			c.fileNext, c.errNext = filepath.Abs(*c.givenNext)
			return
		}
		c.dirNext, c.fileNext, c.errNext = build("-tags", "level_next")
	})
	return c.fileNext, c.errNext
}

// build builds the command in a directory of its own. Unlike go build, go run keeps what it has linked: when several packages test the command
// it is linked once, and the others have cp copy it.
func build(flags ...string) (dir, file string, err error) {
	if dir, err = os.MkdirTemp("", "livetree-command-"); err != nil {
		return "", "", err
	}
	file = filepath.Join(dir, "livetree")
	args := append([]string{"run", "-exec", "cp"}, flags...)
	out, err := exec.Command("go", append(args, "github.com/livetree/livetree/cmd/livetree", file)...).CombinedOutput()
	if err != nil {
		return dir, "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return dir, file, nil
}

// Run runs the tests and removes what was built. It returns the exit code.
func (c *Command) Run(m *testing.M) int {
	code := m.Run()
	for _, dir := range []string{c.dir, c.dirNext} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	return code
}

// SideBySide lets up to so many tests of a package run at a time, however few processors there are: those of
// packages that call it in TestMain wait for clocks, disks and other processes more than they work. What -parallel
// says goes before.
func SideBySide(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}
