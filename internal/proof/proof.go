// Package proof is what tests of several packages need to prove something about the
// whole server. Only tests use it.
//
// A Command builds the livetree command, for suites that run it as a process. Figures
// collects the numbers that long tests arrive at, in one form that adds up over runs.
// Crashable is a disk whose power can be cut, Lying one with a planted bug that a test
// must find, and a MachineClock a clock that is set. Canary is a bug on purpose, by
// which a check of the fuzzing finds out that it looks.
//
// It imports nothing of the module, so that a mistake there cannot hide here.
package proof

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A Command is the livetree command under test.
type Command struct {
	given *string

	once sync.Once
	dir  string // what was built is in there; empty if nothing was
	file string
	err  error
}

// NewCommand returns the command that is built from this module, or the one that
// the flag -binary names. It must be called before flags are parsed.
func NewCommand() *Command {
	return &Command{given: flag.String("binary", "", "the livetree command to test, in place of one that is built")}
}

// File returns the path of the command, which is built at the first call.
func (c *Command) File() (string, error) {
	c.once.Do(func() {
		if *c.given != "" {
			c.file, c.err = filepath.Abs(*c.given)
			return
		}
		c.file, c.err = c.build()
	})
	return c.file, c.err
}

func (c *Command) build() (string, error) {
	var err error
	if c.dir, err = os.MkdirTemp("", "livetree-command-"); err != nil {
		return "", err
	}
	file := filepath.Join(c.dir, "livetree")
	out, err := exec.Command("go", "build", "-o", file, "github.com/livetree/livetree/cmd/livetree").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return file, nil
}

// Run runs the tests and removes what was built. It returns the exit code.
func (c *Command) Run(m *testing.M) int {
	code := m.Run()
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
	return code
}
