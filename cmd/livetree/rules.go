package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/rules"
)

func newRulesCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:   "rules",
		Short: "check, test, simulate, get and set rules documents",
		Long: `livetree rules works with rules documents: who may read and write what. livetree docs
rules describes the cases.`,
		Example: `  livetree rules check rules.json
  livetree rules set rules.json --url https://localhost:9000`,
		GroupID: groupData,
	})
	c.AddCommand(newRulesCheckCommand(a), newRulesTestCommand(a), newRulesSimulateCommand(a), newRulesGetCommand(a), newRulesSetCommand(a))
	return c
}

const rulesTestLong = `livetree rules test runs the cases of a file against a rules document. For a case
that fails it shows the rules that were tried; at the end, which rules were asked
at all, and whether they were ever true and ever false. It needs no server. Exit
code 1 if a case fails.

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

A line now MILLIS sets the clock of the cases after it; what .expireOn says is over by
then is gone. livetree docs rules has the rest.`

func newRulesCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "say what is wrong with a document",
		Long: `livetree rules check compiles a rules document and shows all that is wrong with
it or doubtful, each with its line. It needs no server. Exit code 1 if it is wrong.`,
		Example: "  livetree rules check rules.json",
		Args:    takes("FILE"),
		RunE: func(_ *cobra.Command, files []string) error {
			ruleset, err := compileFile(files[0], a.stderr)
			if err == nil {
				say(a.stdout, ruleset.Warnings(files[0])+files[0]+": ok\n")
			}
			return err
		},
	}
}

// compileFile compiles a document, or shows what is wrong with it.
func compileFile(name string, stderr io.Writer) (*rules.Ruleset, error) {
	source, err := cli.ReadText(name, rules.MaxBytes)
	if err != nil {
		return nil, err
	}
	ruleset, err := rules.Compile(source)
	if err != nil {
		return nil, explain(stderr, name, source, err)
	}
	return ruleset, nil
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

func newRulesTestCommand(a *app) *cobra.Command {
	var page string
	c := &cobra.Command{
		Use:   "test FILE CASES [flags]",
		Short: "run cases of requests that a document should allow or deny",
		Long:  rulesTestLong,
		Example: `  livetree rules test rules.json cases.txt
  livetree rules test rules.json cases.txt --html coverage.html`,
		Args: takes("FILE", "CASES"),
		RunE: func(_ *cobra.Command, files []string) error {
			return rulesTest(a, files, page)
		},
	}
	c.Flags().StringVar(&page, "html", "", "write the document with its coverage to this `file`")
	return c
}

// rulesTest runs the cases of the second file against the document in the first.
// The coverage is written to page, if that names a file.
func rulesTest(a *app, files []string, page string) error {
	ruleset, err := compileFile(files[0], a.stderr)
	if err != nil {
		return err
	}
	text, err := cli.ReadText(files[1], maxCases)
	if err != nil {
		return err
	}
	if len(text) > maxCases {
		return fmt.Errorf("%s is larger than %d bytes", files[1], maxCases)
	}
	suite, err := rules.ParseSuite(text)
	if err != nil {
		return explain(a.stderr, files[1], text, err)
	}
	results, coverage := suite.Run(ruleset)
	failed := false
	for _, r := range results {
		if !r.Passed {
			failed = true
			say(a.stdout, failure(files[1], r))
		}
	}
	say(a.stdout, fmt.Sprintf("%s\n\n%s: %s\n%s", rules.Tally(results), files[0], coverage.Summary(), coverage.Text()))
	if page != "" {
		if err := os.WriteFile(page, []byte(coverage.Page(files[0], results)), 0o666); err != nil {
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
