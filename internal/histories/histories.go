// Package histories runs tests that are written as text.
//
// A history is a file of commands, each with the output that is expected under it:
//
//	put /users/ann
//	{"name":"Ann"}
//	----
//	ok
//
//	get /users
//	----
//	{"ann":{"name":"Ann"}}
//
// A command is one line: a name and arguments, of which some may be key=value. The
// lines up to the four dashes are its input, those after them, up to an empty line,
// its output. Lines that begin with # are comments and belong to the command below.
// An output with an empty line in it stands between two lines of four dashes, and one
// more ends it.
//
// With the flag -rewrite the outputs in the files are replaced by what the commands
// print, for a person to review as a change of the files.
package histories

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands of histories print into their files")

// A Command is one command of a history.
type Command struct {
	Name  string
	Args  []string          // those without a =
	Named map[string]string // the others, by what comes before the =
	Input string

	comment, line, want string
	at                  int // the line in the file
}

// Arg returns an argument by its place, "" if there are fewer.
func (c *Command) Arg(i int) string {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

// A Run is called with each command of one file in order, and returns what it prints.
type Run func(t *testing.T, c *Command) string

// RunFiles runs all files that match a pattern, each as a subtest. Start is called for
// each file.
func RunFiles(t *testing.T, pattern string, start func(t *testing.T) Run) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			after, err := runText(t, file, string(source), start(t))
			if err != nil {
				t.Fatal(err)
			}
			if *rewrite && after != string(source) {
				if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// runText runs a history and returns its text with the outputs that the commands
// printed. Unless they are to be rewritten, outputs that differ are reported.
func runText(t *testing.T, file, source string, run Run) (string, error) {
	t.Helper()
	commands, err := Parse(source)
	if err != nil {
		return "", fmt.Errorf("%s:%w", file, err)
	}
	var after strings.Builder
	for i, c := range commands {
		got := strings.TrimSuffix(run(t, c), "\n")
		if got != c.want && !*rewrite {
			t.Errorf("%s:%d: %s\ngot\n%s\nwant\n%s", file, c.at, c.line, got, c.want)
		}
		if i > 0 {
			after.WriteString("\n")
		}
		c.print(&after, got)
	}
	return after.String(), nil
}
