// Command livetree runs the server and works with rules: see livetree --help.
//
// It turns flags and environment variables into a server.Config, and errors
// into one line and an exit code: 1 for a command or a data directory that
// cannot be used, 65 for damaged data, 74 for a disk that fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/livetree/livetree/internal/store"
)

const usage = `livetree stores JSON trees and serves them live.

Usage:

  livetree serve [flags]     run the server; livetree serve --help lists the flags
  livetree rules COMMAND     check, test, get and set security rules; see livetree rules --help

Exit codes: 0 stopped on request, 1 cannot start as asked, 65 the stored data is
damaged, 74 the disk failed.
`

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(signals, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings as parameters. The first signal stops the
// server, the second one at once.
func run(signals <-chan os.Signal, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		say(stderr, usage)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	abort, ended := make(chan struct{}), make(chan struct{})
	defer close(ended)
	go func() {
		for _, act := range []func(){stop, func() { close(abort) }} {
			select {
			case <-signals:
				act()
			case <-ended:
				stop()
				return
			}
		}
	}()
	switch args[0] {
	case "serve":
		return report(stderr, serve(ctx, abort, args[1:], stdout, stderr))
	case "rules":
		return report(stderr, rulesCommand(ctx, args[1:], stdout, stderr))
	case "help", "--help", "-h":
		say(stdout, usage)
		return 0
	}
	say(stderr, fmt.Sprintf("livetree: unknown command %q; livetree --help lists the commands\n", args[0]))
	return 1
}

// report prints an error as one line and returns its exit code.
func report(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage), errors.Is(err, errSaid):
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
