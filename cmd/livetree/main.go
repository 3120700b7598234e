// Command livetree runs the server: see livetree --help.
//
// It turns flags and environment variables into a server.Config, and errors
// into one line and an exit code: 1 for a command or a data directory that
// cannot be used, 65 for damaged data, 74 for a disk that fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/store"
)

const usage = `livetree stores JSON trees and serves them live.

Usage:

  livetree serve [flags]     run the server; livetree serve --help lists the flags

Exit codes: 0 stopped on request, 1 cannot start as asked, 65 the stored data is
damaged, 74 the disk failed.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with its surroundings as parameters.
func run(ctx context.Context, args []string, out, errors io.Writer) int {
	if len(args) == 0 {
		say(errors, usage)
		return 1
	}
	switch args[0] {
	case "serve":
		return report(errors, serve(ctx, args[1:], out, errors))
	case "help", "--help", "-h":
		say(out, usage)
		return 0
	}
	say(errors, fmt.Sprintf("livetree: unknown command %q; livetree --help lists the commands\n", args[0]))
	return 1
}

// serve parses the flags of the serve command and runs the server.
func serve(ctx context.Context, args []string, out, stderr io.Writer) error {
	var c server.Config
	level := slog.LevelInfo
	flags := flag.NewFlagSet("livetree serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.Data, "data", "./livetree-data", "the data `directory`; made if there is none")
	flags.StringVar(&c.DefaultDatabase, "default-db", "default", "the `name` of the database for requests that name none; empty for none")
	flags.BoolVar(&c.Dev, "dev", false, "for trying out: new databases start with open rules")
	flags.Int64Var(&c.CacheBytes, "cache", 0, "the size of the block cache in `bytes`; 0 for the default")
	flags.TextVar(&level, "log-level", level, "debug, info, warn or error")
	if err := fromEnvironment(flags, os.LookupEnv); err != nil {
		return err
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return errUsage
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("serve takes no arguments, but was given %q", flags.Arg(0))
	}
	c.Out = out
	c.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	return server.Run(ctx, c)
}

// errUsage says that the flags were wrong and the flag package has said so.
var errUsage = errors.New("usage")

// fromEnvironment sets each flag from its variable: LIVETREE_DATA for --data.
func fromEnvironment(flags *flag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *flag.Flag) {
		name := "LIVETREE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := lookup(name)
		if !ok || err != nil {
			return
		}
		if setErr := f.Value.Set(value); setErr != nil {
			err = fmt.Errorf("%s=%q: %w", name, value, setErr)
		}
	})
	return err
}

// report prints an error as one line and returns its exit code.
func report(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return 1
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	say(stderr, "livetree: "+line+"\n")
	if errors.Is(err, store.ErrDamaged) {
		return store.ExitDamaged
	}
	return 1
}

// say writes to the terminal, where nobody can be told of a failure.
func say(w io.Writer, text string) { _, _ = io.WriteString(w, text) }
