// Command livetree-bench measures what a Livetree server takes, next to a bare one.
//
// The server is inside this program: the command starts itself again as that, as
// the bare server, and as the clients of many streams (bench.Peer), so that what the
// system counts for each of them is theirs alone. It is a command apart from livetree
// because no server needs it.
//
// The measuring is in internal/bench; here are the flags, what is printed, and the
// files that are written. An error is one line; the exit codes are those of livetree.
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

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/bench/report"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/owneronly"
)

const usage = `livetree-bench measures what a Livetree server takes. It starts one of its own version
in a temporary directory, and next to it a bare server of Go's net/http, which answers
as much over TLS, and syncs as much, without a database. Their rounds take turns. The
figure to look at is CPU/BARE: the processor time of the server per request, as a
multiple of that of the bare one in the same round. It hardly depends on the machine,
nor on what else that does; rates and times do. Of some scenarios with clients of the
SDKs, by websockets, the other server is a second Livetree that is used in another way.

--scenario users runs all with users who sign in, with the app secret, with a token that
is signed with it (hs256) or with one of an identity provider (rs256), under the rules of
a chat, on 64 connections to a database that is five times the cache. Those that are
called a best case have none of that.

With --url it measures a server that is running, without a bare one: it puts it under
full load, and writes below one new key, which it removes again.

--growth measures how cost grows with the data and the number of databases instead;
--stalls how long requests wait while something large is under way, or only while one
of calm, index, backup, export, rules, compact, put, delete, busy, expiry, hooks and archive
is that --scenario names; --writers where the time of writes goes, with more and more
writers, on the disk and on disks whose syncs take 0.1 and 2 milliseconds; --memory what a
server takes that may use only so much memory, with less data than that and with more.

It ends by itself, and leaves nothing behind, also when it is interrupted.
livetree docs performance says how to read the results.

Every flag can also be given as an environment variable: LIVETREE_AUTH for --auth.

Usage:
  livetree-bench [flags]

Examples:
  livetree-bench --quick
  livetree-bench --scenario users --json users.json
  livetree-bench --scenario 'leaf-get-*,*-rs256'
  livetree-bench --scenario leaf-get,leaf-put-64 --json now.json --chart now.html
  livetree-bench --growth --leaves 10000000 --databases 10000
  livetree-bench --memory 512MiB
  livetree-bench --url https://localhost:9000 --pid 4711

Flags:
`

// name is what the command is called, in its messages.
const name = "livetree-bench"

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// streams are what the command reads and prints to. Tests give it others.
type streams struct {
	in         io.Reader
	out, err   io.Writer
	lookup     func(name string) (string, bool) // finds an environment variable
	isTerminal func(stream any) bool
}

func main() {
	owneronly.Umask() // the data directory of a server holds its secrets
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, streams{os.Stdin, os.Stdout, os.Stderr, os.LookupEnv, cli.IsTerminal}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run runs the command, or one of the processes that it starts, and returns the exit
// code.
func run(ctx context.Context, s streams, args []string) int {
	defer cli.Guard(s.isTerminal, &s.out, &s.err)()
	var err error
	if len(args) > 0 && args[0] == bench.PeerArgument {
		err = bench.Peer(ctx, args[1:], s.in, s.out)
	} else {
		err = measure(ctx, s, args)
	}
	if err == nil {
		return 0
	}
	cli.Say(s.err, name+": "+strings.Join(strings.Fields(err.Error()), " ")+"\n")
	return client.ExitCode(err)
}

// measure does what the flags say.
func measure(ctx context.Context, s streams, args []string) error {
	o := &settings{}
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	o.declare(flags)
	if err := flags.Parse(args); err != nil {
		return cli.FlagError(name, flags, err)
	}
	switch {
	case o.help:
		cli.Say(s.out, usage+flags.FlagUsagesWrapped(100))
		return nil
	case o.version:
		cli.Say(s.out, name+" "+cli.Version(version)+"\n")
		return nil
	case flags.NArg() > 0:
		return fmt.Errorf("%s takes no arguments, but was given %q; see %s --help", name, flags.Arg(0), name)
	}
	isSetting := func(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }
	if err := cli.Settle(flags, s.lookup, isSetting); err != nil {
		return err
	}
	if o.list {
		for _, sc := range bench.Scenarios() {
			about := sc.About
			if sc.IsBestCase() {
				about += " (best case)"
			}
			cli.Say(s.out, fmt.Sprintf("%-28s %s\n", sc.Name, about))
		}
		return nil
	}
	if err := o.settle(flags); err != nil {
		return err
	}
	return show(ctx, s, o)
}

// show measures, prints the results as they come, and writes the files.
func show(ctx context.Context, s streams, o *settings) error {
	line := cli.NewLine(s.err)
	defer line.Clear()
	if s.isTerminal(s.err) {
		o.Progress = line.Draw
	}
	o.Row = func(text string) {
		line.Clear()
		cli.Say(s.out, text)
	}
	head := report.TableHead()
	o.Done = func(r bench.Result) {
		o.Row(head + r.Row())
		head = ""
	}
	found, err := o.run(ctx)
	if len(found.Results) > 0 {
		o.Row(found.Sentence())
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted: there are only the results so far")
	}
	return errors.Join(err, write(o.jsonFile, found.WriteJSON), write(o.chart, drawing(found, o.chart)))
}

// drawing returns what draws a report: a page, or a picture if that is what the file's name says.
func drawing(r bench.Report, file string) func(io.Writer) error {
	if strings.HasSuffix(file, ".svg") {
		return r.WritePicture
	}
	return r.WriteChart
}

// write writes a file, if there is to be one.
func write(name string, content func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(content(file), file.Close())
}
