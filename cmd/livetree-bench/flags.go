package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/bench"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/local"
)

// settings are what the flags fill in.
type settings struct {
	bench.Options
	bench.Growth
	bench.Stalls
	scenarios        cli.List
	jsonFile, chart  string
	quick, list      bool
	help, version    bool
	growing, stalled bool
	writing          bool
	memory           int64
}

func (s *settings) declare(f *pflag.FlagSet) {
	f.BoolVarP(&s.help, "help", "h", false, "say what the command does")
	f.BoolVar(&s.version, "version", false, "print the version")
	f.Var(&s.scenarios, "scenario", "a `name` of --list or a pattern such as leaf-*, or of what gets in the way with --stalls; users, or all; several with commas, or the flag several times")
	f.BoolVar(&s.list, "list", false, "list the scenarios")
	s.Rounds, s.Requests, s.Connections, s.Records = bench.DefaultRounds, bench.DefaultRequests, bench.DefaultConnections, bench.DefaultRecords
	f.Var((*cli.Count)(&s.Rounds), "rounds", "how often each server has its turn")
	f.Var((*cli.Count)(&s.Requests), "requests", "requests of a round; where each does more, a part of that")
	f.Var((*cli.Count)(&s.Connections), "connections", "connections that send them, where the scenario does not say")
	f.Var((*cli.Count)(&s.Records), "records", "with scenarios of users: so many are in the database, five times as much as its cache holds")
	f.BoolVar(&s.quick, "quick", false, "only see that all works, in some seconds: the figures say little")
	f.StringVar(&s.jsonFile, "json", "", "write the results as JSON to a `file`")
	f.StringVar(&s.chart, "chart", "", "draw the results in an HTML `file`; with --growth also as a picture, if it ends in .svg")
	f.StringVar(&s.Options.Dir, "dir", "", "a `directory` on the disk to be measured; default that for temporary files")
	f.StringVar(&s.Target.URL, "url", "", "the `URL` of a server that is running, to be put under load")
	f.StringVar(&s.Target.Database, "db", "", "the `name` of its database")
	f.StringVar(&s.Target.Auth, "auth", "", "the `secret` of that; better in LIVETREE_AUTH")
	f.StringVar(&s.Target.CA, "ca", "", "a PEM `file` with a certificate to trust; default livetree-data/tls/ca.pem if there is one and the server is on this machine")
	f.IntVar(&s.Target.PID, "pid", 0, "the `process` of that server, if it is on this machine, to tell what it takes")
	f.BoolVar(&s.growing, "growth", false, "measure how cost grows with the data, and with databases")
	f.IntVar(&s.MaxLeaves, "leaves", 1_000_000, "with --growth: up to so many leaves; 0 for none")
	f.IntVar(&s.Growth.Databases, "databases", 1000, "with --growth: so many databases; 0 for none")
	f.BoolVar(&s.writing, "writers", false, "measure writes by 1, 16, 64 and 256 connections, on the disk and on two that are made up")
	f.Var((*cli.ByteSize)(&s.memory), "memory", "measure a server that may use only so much memory, such as 512MiB, with data of 0.5, 2 and 10 times that; takes root, and control groups of Linux")
	f.BoolVar(&s.stalled, "stalls", false, "measure how long requests wait while something large is under way")
	f.IntVar(&s.Stalls.Leaves, "stall-leaves", 1_000_000, "with --stalls: so many leaves are deleted, and children indexed")
	f.IntVar(&s.BodyBytes, "stall-body", 100_000_000, "with --stalls: a PUT of so many bytes comes in")
	f.DurationVar(&s.Calm, "calm", 5*time.Second, "with --stalls: how long nothing gets in the way, to compare with")
}

// settle makes options of the flags.
func (s *settings) settle(flags *pflag.FlagSet) error {
	origin, _ := cli.Origin(flags.Lookup("url"))
	switch {
	case s.Target.URL != "" && origin != cli.OriginFlag:
		// It is set for other commands: nobody wants their server under load for that.
		return fmt.Errorf("%s is set: give --url to put that server under load, or --url '' to start one", cli.Variable("url"))
	case s.Target.URL != "" && s.modes() > 0:
		return errors.New("--growth, --stalls, --writers and --memory need a server of their own: leave --url out")
	case s.Target.URL == "" && s.Target.PID != 0:
		return errors.New("--pid is the process of the server at --url: give both")
	case s.modes() > 1:
		return errors.New("--growth, --stalls, --writers and --memory are runs of their own: give one")
	}
	if u, err := url.Parse(s.Target.URL); err == nil && s.Target.URL != "" {
		s.Target.CA = cmp.Or(s.Target.CA, local.Authority(local.DefaultData, u.Hostname()))
	}
	if s.quick {
		s.beQuick(flags)
	}
	var err error
	s.Executable, err = os.Executable()
	s.Scenarios, s.Version = s.scenarios, cli.Version(version)
	return err
}

// modes returns how many runs were asked for that are not of scenarios.
func (s *settings) modes() (n int) {
	for _, asked := range []bool{s.growing, s.stalled, s.writing, s.memory != 0} {
		if asked {
			n++
		}
	}
	return n
}

// beQuick makes everything small that was not given.
func (s *settings) beQuick(flags *pflag.FlagSet) {
	for name, set := range map[string]func(){
		"rounds":       func() { s.Rounds = bench.QuickRounds },
		"requests":     func() { s.Requests = bench.QuickRequests },
		"records":      func() { s.Records = bench.QuickRecords },
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

func (s *settings) run(ctx context.Context) (bench.Report, error) {
	switch {
	case s.growing:
		return bench.Grow(ctx, s.Options, s.Growth)
	case s.stalled:
		return bench.Stall(ctx, s.Options, s.Stalls)
	case s.writing:
		return bench.Write(ctx, s.Options)
	case s.memory != 0:
		return bench.Tighten(ctx, s.Options, s.memory)
	}
	return bench.Run(ctx, s.Options)
}
