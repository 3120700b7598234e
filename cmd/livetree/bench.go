package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/client"
)

const benchLong = `livetree bench measures what a server takes. It starts one of its own in a temporary
directory, and next to it a bare server of Go's net/http, which answers as much over
TLS, and syncs as much, without a database. Their rounds take turns. The figure to look
at is CPU/BARE: the processor time of the server per request, as a multiple of that of
the bare one in the same round. It hardly depends on the machine, nor on what else
that does; rates and times do.

With --url it measures a server that is running, without a bare one: it puts it under
full load, and writes below one new key, which it removes again.

--growth measures how cost grows with the data and the number of databases instead;
--stalls how long requests wait while something large is under way, or only while one
of calm, index, backup, export, compact, put and delete is that --scenario names.

It ends by itself, and leaves nothing behind, also when it is interrupted.
livetree docs performance says how to read the results.`

// benchSettings are what the flags of bench fill in.
type benchSettings struct {
	bench.Options
	bench.Growth
	bench.Stalls
	scenarios        list
	jsonFile, chart  string
	quick, list      bool
	growing, stalled bool
}

func newBenchCommand(a *app) *cobra.Command {
	s := &benchSettings{}
	c := &cobra.Command{
		Use:   "bench [flags]",
		Short: "measure what a server takes, next to a bare one",
		Long:  benchLong,
		Example: `  livetree bench --quick
  livetree bench --scenario leaf-get,leaf-put-64 --json now.json --chart now.html
  livetree bench --growth --leaves 10000000 --databases 10000
  livetree bench --url https://localhost:9000 --pid 4711`,
		GroupID: groupCare,
		Args:    takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			return runBench(c.Context(), a, c.Flags(), s)
		},
	}
	s.declare(c.Flags())
	return c
}

func (s *benchSettings) declare(f *pflag.FlagSet) {
	f.Var(&s.scenarios, "scenario", "a `name` of --list, or of what gets in the way with --stalls, or all; several with commas, or the flag several times")
	f.BoolVar(&s.list, "list", false, "list the scenarios")
	s.Rounds, s.Requests, s.Connections = bench.DefaultRounds, bench.DefaultRequests, bench.DefaultConnections
	f.Var((*count)(&s.Rounds), "rounds", "how often each server has its turn")
	f.Var((*count)(&s.Requests), "requests", "requests of a round; where each does more, a part of that")
	f.Var((*count)(&s.Connections), "connections", "connections that send them, where the scenario does not say")
	f.BoolVar(&s.quick, "quick", false, "only see that all works, in some seconds: the figures say little")
	f.StringVar(&s.jsonFile, "json", "", "write the results as JSON to a `file`")
	f.StringVar(&s.chart, "chart", "", "draw the results in an HTML `file`")
	f.StringVar(&s.Options.Dir, "dir", "", "a `directory` on the disk to be measured; default that for temporary files")
	f.StringVar(&s.Target.URL, "url", "", "the `URL` of a server that is running, to be put under load")
	f.StringVar(&s.Target.Database, "db", "", "the `name` of its database")
	f.StringVar(&s.Target.Auth, "auth", "", "the `secret` of that; better in LIVETREE_AUTH")
	f.StringVar(&s.Target.CA, "ca", "", "a PEM `file` with a certificate to trust; default "+client.OwnAuthority+" if there is one")
	f.IntVar(&s.Target.PID, "pid", 0, "the `process` of that server, if it is on this machine, to tell what it takes")
	f.BoolVar(&s.growing, "growth", false, "measure how cost grows with the data, and with databases")
	f.IntVar(&s.MaxLeaves, "leaves", 1_000_000, "with --growth: up to so many leaves; 0 for none")
	f.IntVar(&s.Growth.Databases, "databases", 1000, "with --growth: so many databases; 0 for none")
	f.BoolVar(&s.stalled, "stalls", false, "measure how long requests wait while something large is under way")
	f.IntVar(&s.Stalls.Leaves, "stall-leaves", 1_000_000, "with --stalls: so many leaves are deleted, and children indexed")
	f.IntVar(&s.BodyBytes, "stall-body", 100_000_000, "with --stalls: a PUT of so many bytes comes in")
	f.DurationVar(&s.Calm, "calm", 5*time.Second, "with --stalls: how long nothing gets in the way, to compare with")
}

func runBench(ctx context.Context, a *app, flags *pflag.FlagSet, s *benchSettings) error {
	if s.list {
		for _, sc := range bench.Scenarios() {
			say(a.stdout, fmt.Sprintf("%-14s %s\n", sc.Name, sc.About))
		}
		return nil
	}
	if err := s.settle(flags); err != nil {
		return err
	}
	p := newProgress(a, false)
	defer p.end()
	s.Progress = p.text
	head := bench.TableHead()
	s.Done = func(r bench.Result) {
		p.end()
		say(a.stdout, head+r.Row())
		head = ""
	}
	s.Row = func(text string) {
		p.end()
		say(a.stdout, text)
	}
	report, err := s.run(ctx)
	p.end()
	if len(report.Results) > 0 {
		say(a.stdout, report.Sentence())
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted: there are only the results so far")
	}
	return errors.Join(err, writeReport(s.jsonFile, report.WriteJSON), writeReport(s.chart, report.WriteChart))
}

// settle makes options of the flags.
func (s *benchSettings) settle(flags *pflag.FlagSet) error {
	origin := flags.Lookup("url").Annotations[originKey]
	switch {
	case s.Target.URL != "" && len(origin) > 0 && origin[0] != originFlag:
		// It is set for other commands: nobody wants their server under load for that.
		return fmt.Errorf("%s is set: give --url to put that server under load, or --url '' to start one", variable("url"))
	case s.Target.URL != "" && (s.growing || s.stalled):
		return errors.New("--growth and --stalls need a server of their own: leave --url out")
	case s.Target.URL == "" && s.Target.PID != 0:
		return errors.New("--pid is the process of the server at --url: give both")
	case s.growing && s.stalled:
		return errors.New("--growth and --stalls are two runs: give one")
	}
	if s.Target.CA == "" && s.Target.URL != "" {
		if _, err := os.Stat(client.OwnAuthority); err == nil {
			s.Target.CA = client.OwnAuthority
		}
	}
	if s.quick {
		s.beQuick(flags)
	}
	var err error
	s.Executable, err = os.Executable()
	s.Scenarios, s.Version = s.scenarios, buildVersion()
	return err
}

// beQuick makes everything small that was not given.
func (s *benchSettings) beQuick(flags *pflag.FlagSet) {
	for name, set := range map[string]func(){
		"rounds":       func() { s.Rounds = bench.QuickRounds },
		"requests":     func() { s.Requests = bench.QuickRequests },
		"scenario":     func() { s.scenarios = bench.QuickScenarios() },
		"leaves":       func() { s.MaxLeaves = 10_000 },
		"databases":    func() { s.Growth.Databases = 50 },
		"stall-leaves": func() { s.Stalls.Leaves = 10_000 },
		"stall-body":   func() { s.BodyBytes = 1_000_000 },
		"calm":         func() { s.Calm = 500 * time.Millisecond },
	} {
		if !flags.Changed(name) && (name != "scenario" || s.Target.URL == "" && !s.stalled) {
			set()
		}
	}
}

func (s *benchSettings) run(ctx context.Context) (bench.Report, error) {
	switch {
	case s.growing:
		return bench.Grow(ctx, s.Options, s.Growth)
	case s.stalled:
		return bench.Stall(ctx, s.Options, s.Stalls)
	}
	return bench.Run(ctx, s.Options)
}

// writeReport writes a file, if there is to be one.
func writeReport(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// newBenchPeerCommand is for bench alone, which starts it.
func newBenchPeerCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "bench-peer ROLE [ARGUMENT...]",
		Short:   "a process of livetree bench",
		Long:    "livetree bench-peer is a bare server, or clients of streams. livetree bench starts it.",
		Example: "  livetree bench --quick",
		Hidden:  true,
		Args:    takes("ROLE", "[ARGUMENT...]"),
		RunE: func(c *cobra.Command, args []string) error {
			return bench.Peer(c.Context(), args, a.stdin, a.stdout)
		},
	}
}
