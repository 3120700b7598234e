package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
)

// An app is what a command has around it. Tests give it other surroundings.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// lookup finds an environment variable.
	lookup func(name string) (string, bool)
	// isTerminal reports whether a person sits at one of the streams.
	isTerminal func(stream any) bool
	// abort is closed when the command has been asked twice to stop.
	abort <-chan struct{}
}

// newApp returns the surroundings of the process.
func newApp() *app {
	return &app{
		stdin:      os.Stdin,
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		lookup:     os.LookupEnv,
		isTerminal: cli.IsTerminal,
	}
}

// usageTemplate is cobra's, shorter, and with flags that fit a screen.
const usageTemplate = `Usage:
  {{if or .DisableFlagsInUseLine (not .HasAvailableSubCommands)}}{{.UseLine}}{{else}}{{.UseLine}}
  {{.CommandPath}} COMMAND{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableSubCommands}}{{$all := .Commands}}
{{- range $group := .Groups}}

{{$group.Title}}{{range $all}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}
{{- if not .AllChildCommandsHaveGroup}}

{{if .Groups}}More commands:{{else}}Commands:{{end}}{{range $all}}{{if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}

{{.CommandPath}} COMMAND --help says more about a command.{{end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}
`

// group makes a command that only has commands below it. Alone it shows them, as
// an error.
func group(a *app, c *cobra.Command) *cobra.Command {
	c.Use, c.DisableFlagsInUseLine = c.Use+" COMMAND", true
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		unknown := strings.TrimPrefix(c.CommandPath()+" "+args[0], "livetree ")
		hint := ""
		if similar := similarCommand(c, args[0]); similar != "" {
			hint = fmt.Sprintf(": did you mean %q?", similar)
		}
		return fmt.Errorf("unknown command %q%s; %s --help lists the commands", unknown, hint, c.CommandPath())
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		c.SetOut(a.stderr)
		return errors.Join(c.Help(), errSaid)
	}
	return c
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = strconv.Quote(text)
	}
	return out
}

// takes returns a check that a command was given these arguments. A name in
// brackets may be left out, one that ends in dots may be repeated; both stand at
// the end.
func takes(names ...string) cobra.PositionalArgs {
	least, most := 0, len(names)
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
		if strings.HasSuffix(strings.TrimSuffix(name, "]"), "...") {
			most = int(^uint(0) >> 1)
		}
	}
	wanted := "no arguments"
	if len(names) > 0 {
		wanted = strings.Join(names, " ")
	}
	return func(c *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		given := "nothing"
		if len(args) > 0 {
			given = strings.Join(quoted(args), " ")
		}
		return fmt.Errorf("%s takes %s, but was given %s; see %s --help",
			strings.TrimPrefix(c.CommandPath(), "livetree "), wanted, given, c.CommandPath())
	}
}

// similarCommand returns the command below c that is most like a name, or "".
func similarCommand(c *cobra.Command, name string) string {
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(append(names, below.Name()), below.Aliases...)
		}
	}
	return cli.Similar(names, name)
}

// newHelpCommand replaces cobra's, which takes a wrong name for success.
func newHelpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND...]",
		Short:             "say what a command does",
		Long:              "livetree help shows the help of a command, as its flag --help does.",
		Example:           "  livetree help serve\n  livetree help rules test",
		ValidArgsFunction: completeCommand,
		RunE: func(c *cobra.Command, args []string) error {
			topic := commandNamed(c.Root(), args)
			if topic == nil {
				return fmt.Errorf("unknown command %q; livetree --help lists the commands", strings.Join(args, " "))
			}
			topic.InitDefaultHelpFlag()
			topic.InitDefaultVersionFlag()
			topic.SetOut(a.stdout)
			return topic.Help()
		},
	}
}
