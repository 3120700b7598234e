// Command livetree is the server, and all that a person or a script does with one:
// clients of its data and rules, commands for its operator, work on a data directory
// while no server has it, and the manual. livetree help lists the commands.
//
// It turns flags, environment variables and a file into a server.Config or the
// options of a client, and errors into one line and an exit code: 1 for a command or a data directory
// that cannot be used, 2 for a secret that is not fit to be one or a command that is
// another program now, 65 for damaged data, 74 for a disk that fails.
//
// # Adding a command
//
// Each group of commands has a file, with a constructor that commands lists:
//
//	func newPruneCommand(a *app) *cobra.Command {
//		var dryRun bool
//		c := &cobra.Command{
//			Use:     "prune PATH [flags]",
//			Short:   "delete what is old",
//			Long:    "...",
//			Example: "  livetree prune /rooms",
//			GroupID: groupData,
//			Args:    takes("PATH"),
//			RunE: func(c *cobra.Command, args []string) error {
//				return prune(c.Context(), a, args[0], dryRun)
//			},
//		}
//		c.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would go")
//		return c
//	}
//
// It has Short, Long and Example, which a test holds. It prints to the streams of
// the app, reads the environment through it, and returns its error: run prints
// that as one line. An error that was shown already is errSaid. Every flag has an
// environment variable (--dry-run: LIVETREE_DRY_RUN), which is looked up when the
// flag is not given; the command need not do anything for it. A command that has
// only commands below it is made by group.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/store"
)

// The groups of commands in the help, in their order.
const (
	groupServer = "server"
	groupData   = "data"
	groupCare   = "care"
)

var groups = []*cobra.Group{
	{ID: groupServer, Title: "Run a server:"},
	{ID: groupData, Title: "Work with data and rules:"},
	{ID: groupCare, Title: "Look after a server:"},
}

// commands are all commands: the list to add a new one to.
var commands = []func(*app) *cobra.Command{
	newServeCommand,
	newDemoCommand,
	newDevCertCommand,
	newLoginCommand,
	newLogoutCommand,
	newGetCommand,
	newListCommand,
	newSetCommand,
	newUpdateCommand,
	newPushCommand,
	newRemoveCommand,
	newWatchCommand,
	newImportCommand,
	newExportCommand,
	newMigrateCommand,
	newRulesCommand,
	newDBCommand,
	newSecretCommand,
	newHookCommand,
	newClusterCommand,
	newTokenCommand,
	newServiceAccountCommand,
	newBackupCommand,
	newRestoreCommand,
	newArchiveCommand,
	newCheckCommand,
	newAcceptLossCommand,
	newReadyCommand,
	newConsoleCommand,
	newFindCommand,
	newCopyCommand,
	newHistoryCommand,
	newRevertCommand,
	newTopCommand,
	newProfileCommand,
	newDoctorCommand,
	newBenchCommand,
	newDocsCommand,
	newCompletionCommand,
	newVersionCommand,
	newManCommand,
}

func main() {
	owneronly.Umask() // whatever a command makes may hold secrets
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(signals, newApp(), os.Args[1:]))
}

// run runs a command and returns its exit code. The first signal ends the
// context of the command, the second one closes abort and ends the command soon, whatever it does.
func run(signals <-chan os.Signal, a *app, args []string) int {
	ctx, abort, ended := cli.Heed(signals)
	defer ended()
	a.abort = abort
	defer cli.Guard(a.isTerminal, &a.stdout, &a.stderr)()
	code := make(chan int, 1)
	go func() {
		root := newRootCommand(a)
		root.SetArgs(args)
		ran, err := root.ExecuteContextC(ctx)
		code <- report(a.stderr, wantsJSON(ran), err)
	}()
	if code, ended := cli.Await(code, abort); ended {
		return code
	}
	return report(a.stderr, false, cli.ErrHangs)
}

// newRootCommand returns the tree of all commands.
func newRootCommand(a *app) *cobra.Command {
	root := group(a, &cobra.Command{
		Use:   "livetree",
		Short: "store JSON trees and serve them live",
		Long: `livetree stores JSON trees and serves them live.

Every flag can also be given as an environment variable: LIVETREE_DATA for --data,
LIVETREE_MAX_BODY for --max-body.

Exit codes: 0 done, or stopped on request; 1 cannot do as asked; 2 a new secret is not
fit to be one, or the command is another program now; 65 the stored data is damaged;
74 the disk failed. Commands that talk to a server have more, which their help lists.`,
		Example: `  livetree serve --dev
  livetree rules check rules.json`,
		Version:       buildVersion(),
		SilenceErrors: true, // report prints them
		SilenceUsage:  true,
		// The only one: cobra runs that of the nearest command alone.
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return settle(c.Flags(), a.lookup)
		},
	})
	root.CompletionOptions.DisableDefaultCmd = true // we have our own
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			return c.ValidateArgs(args) // the flags are those of a command that there is not
		}
		return cli.FlagError(c.CommandPath(), c.Flags(), err)
	})
	root.SetVersionTemplate("livetree {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpCommand(newHelpCommand(a))
	for _, newCommand := range commands {
		root.AddCommand(newCommand(a))
	}
	complete(root)
	for _, g := range groups {
		if slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.GroupID == g.ID }) {
			root.AddGroup(g)
		}
	}
	return root
}

// exitRefused is the exit code for a secret that is refused because it is too short,
// and for a command that is another program now.
const exitRefused = 2

// errSaid says that the command failed and has said all there is to say.
var errSaid = errors.New("said")

// wantsJSON reports whether a command was given --json, the switch.
func wantsJSON(c *cobra.Command) bool {
	f := c.Flags().Lookup("json")
	return f != nil && f.Value.Type() == "bool" && f.Value.String() == "true"
}

// report prints an error as one line, or as JSON, and returns its exit code.
func report(stderr io.Writer, asJSON bool, err error) int {
	if err == nil {
		return 0
	}
	exit := client.ExitCode(err)
	if code := store.ExitCode(err); code != client.ExitOther {
		exit = code
	}
	if _, ok := errors.AsType[*archive.Damage](err); ok && !errors.Is(err, archive.ErrNewer) {
		exit = store.ExitCode(store.ErrDamaged)
	}
	if errors.Is(err, auth.ErrSecret) || errors.Is(err, errMoved) {
		exit = exitRefused
	}
	if errors.Is(err, errSaid) {
		return exit
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	if errors.Is(err, context.Canceled) {
		line = strings.ReplaceAll(line, context.Canceled.Error(), client.ErrInterrupted.Error())
	}
	if asJSON {
		printJSON(stderr, failureJSON{Error: line, Exit: exit})
	} else {
		say(stderr, "livetree: "+line+"\n")
	}
	return exit
}

// say writes to a stream where a failure could be reported to nobody.
func say(w io.Writer, text string) { cli.Say(w, text) }
