package proof

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Figure is a number that a test arrived at.
type Figure struct {
	name  string
	count int
}

// Count returns a figure.
func Count(name string, count int) Figure { return Figure{name, count} }

// Figures is where long tests leave what they arrived at, in one form, so that
// the lines of runs that were stopped and continued add up: see `make figures`.
type Figures struct {
	file *string
	mu   sync.Mutex
}

// NewFigures returns the figures of a test binary, which go to the file that the
// flag -figures names. It must be called before flags are parsed.
func NewFigures() *Figures {
	return &Figures{file: flag.String("figures", "", "a file to append the figures of each test to")}
}

// Report prints the figures of a test in one line and appends the line, behind
// the time, to the file that was asked for.
func (f *Figures) Report(t testing.TB, name string, all ...Figure) {
	t.Helper()
	var line strings.Builder
	line.WriteString(name)
	for _, n := range all {
		fmt.Fprintf(&line, " %s=%d", n.name, n.count)
	}
	t.Log(line.String())
	if *f.file == "" {
		return
	}
	now := time.Now().UTC().Format(time.RFC3339) //nolint:forbidigo // when the test was run
	if err := f.append(now + " " + line.String() + "\n"); err != nil {
		t.Error(err)
	}
}

func (f *Figures) append(line string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.OpenFile(*f.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(line); err != nil {
		_ = file.Close() // what went wrong is known
		return err
	}
	return file.Close()
}
