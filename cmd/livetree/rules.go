package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/livetree/livetree/internal/rules"
)

const rulesUsage = `livetree rules works with rules documents: who may read and write what.

Usage:

  livetree rules check FILE          say what is wrong with a document
  livetree rules test FILE CASES     run cases of requests that it should allow or deny
  livetree rules get --url URL       print the document of a database
  livetree rules set FILE --url URL  replace it

livetree rules COMMAND --help says more. docs/rules.md describes the cases.
`

const rulesCheckUsage = `livetree rules check compiles a rules document and shows all that is wrong with
it, each with its line. It needs no server. Exit code 1 if something is.

Usage:

  livetree rules check FILE

Example:

  livetree rules check rules.json
`

const rulesTestUsage = `livetree rules test runs the cases of a file against a rules document. For a case
that fails it shows the rules that were tried; at the end, which rules were asked
at all, and whether they were ever true and ever false. It needs no server. Exit
code 1 if a case fails.

Usage:

  livetree rules test FILE CASES [flags]

A file of cases:

  data
  {"rooms": {"blue": {"members": {"ann": true}}}}

  # a member reads the room
  read /rooms/blue as={"uid": "ann"}
  ----
  allowed

  # a stranger writes into it
  put /rooms/blue/topic as={"uid": "eve"}
  "mine"
  ----
  denied

Examples:

  livetree rules test rules.json cases.txt
  livetree rules test rules.json cases.txt --html coverage.html

Flags:

`

// errSaid says that the command failed and has said all there is to say.
var errSaid = errors.New("said")

// rulesCommand runs one of the commands about rules.
func rulesCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		say(stderr, rulesUsage)
		return errSaid
	}
	switch args[0] {
	case "check":
		return rulesCheck(args[1:], stdout, stderr)
	case "test":
		return rulesTest(args[1:], stdout, stderr)
	case "get":
		return rulesGet(ctx, args[1:], stdout, stderr)
	case "set":
		return rulesSet(ctx, args[1:], stdout, stderr)
	case "help", "--help", "-h":
		say(stdout, rulesUsage)
		return nil
	}
	return fmt.Errorf("unknown command %q; livetree rules --help lists the commands", "rules "+args[0])
}

// A rulesFlags is the flags of one of the commands.
type rulesFlags struct {
	*flag.FlagSet
	names []string // of its arguments
}

func newRulesFlags(name, usage string, stderr io.Writer, arguments ...string) rulesFlags {
	f := rulesFlags{flag.NewFlagSet("livetree rules "+name, flag.ContinueOnError), arguments}
	f.SetOutput(stderr)
	f.Usage = func() {
		say(stderr, usage)
		f.PrintDefaults()
	}
	return f
}

// parse returns the arguments, which may stand before, between and behind flags.
func (f rulesFlags) parse(args []string) ([]string, error) {
	var found []string
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, errUsage
		}
		if f.NArg() == 0 {
			break
		}
		found, args = append(found, f.Arg(0)), f.Args()[1:]
	}
	if len(found) != len(f.names) {
		takes := cmp.Or(strings.Join(f.names, " "), "no arguments")
		return nil, fmt.Errorf("%s takes %s, but was given %q; see %s --help",
			strings.TrimPrefix(f.Name(), "livetree "), takes, found, f.Name())
	}
	return found, nil
}

// given turns the request for help into success.
func given(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}

func rulesCheck(args []string, stdout, stderr io.Writer) error {
	files, err := newRulesFlags("check", rulesCheckUsage, stderr, "FILE").parse(args)
	if err != nil {
		return given(err)
	}
	if _, err := compileFile(files[0], stderr); err != nil {
		return err
	}
	say(stdout, files[0]+": ok\n")
	return nil
}

// compileFile compiles a document, or shows what is wrong with it.
func compileFile(name string, stderr io.Writer) (*rules.Ruleset, error) {
	source, err := readText(name, rules.MaxBytes)
	if err != nil {
		return nil, err
	}
	ruleset, err := rules.Compile(source)
	if err != nil {
		return nil, explain(stderr, name, source, err)
	}
	return ruleset, nil
}

// readText reads a file, but of one that is too large only as much as it takes
// to know.
func readText(name string, maxBytes int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// explain shows the problems of a text, each as FILE:LINE:COLUMN with its line
// and a caret. An error of another type is returned.
func explain(stderr io.Writer, name, source string, err error) error {
	problems, ok := errors.AsType[rules.Problems](err)
	if !ok {
		return err
	}
	for _, p := range problems {
		say(stderr, name+":"+rules.Problems{p}.Explain(source))
	}
	return errSaid
}

// maxCases bounds a file of cases.
const maxCases = 64 << 20

func rulesTest(args []string, stdout, stderr io.Writer) error {
	flags := newRulesFlags("test", rulesTestUsage, stderr, "FILE", "CASES")
	page := flags.String("html", "", "write the document with its coverage to this `file`")
	files, err := flags.parse(args)
	if err != nil {
		return given(err)
	}
	ruleset, err := compileFile(files[0], stderr)
	if err != nil {
		return err
	}
	text, err := readText(files[1], maxCases)
	if err != nil {
		return err
	}
	if len(text) > maxCases {
		return fmt.Errorf("%s is larger than %d bytes", files[1], maxCases)
	}
	suite, err := rules.ParseSuite(text)
	if err != nil {
		return explain(stderr, files[1], text, err)
	}
	results, coverage := suite.Run(ruleset)
	failed := false
	for _, r := range results {
		if !r.Passed {
			failed = true
			say(stdout, failure(files[1], r))
		}
	}
	say(stdout, fmt.Sprintf("%s\n\n%s: %s\n%s", rules.Tally(results), files[0], coverage.Summary(), coverage.Text()))
	if *page != "" {
		if err := os.WriteFile(*page, []byte(coverage.Page(files[0], results)), 0o666); err != nil {
			return err
		}
	}
	if failed {
		return errSaid
	}
	return nil
}

// failure tells of a case that failed, with the rules that were tried.
func failure(file string, r rules.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "FAIL %s:%d: %s\n", file, r.Line, r.Name)
	if r.Name != r.Command {
		fmt.Fprintf(&b, "  %s\n", r.Command)
	}
	fmt.Fprintf(&b, "  want %s\n  got  %s\n", r.Want, r.Got)
	for _, rule := range r.Tried {
		fmt.Fprintf(&b, "    %s\n", rule)
	}
	if len(r.Tried) == 0 {
		b.WriteString("    no rule was asked\n")
	}
	return b.String() + "\n"
}
