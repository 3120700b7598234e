package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
)

func newImportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "import FILE PATH [flags]",
		Short: "write a JSON file of any size to a path",
		Long: `livetree import writes a JSON file to a path, in many requests of about 1 MiB. The
file may be of any size, plain or compressed with gzip or zstd, and is read twice:
before anything is written it is checked. - reads the standard input, once.

Where there is data already it must be told what to do with it: --merge leaves what
the file does not name (a null in the file deletes), --replace deletes all that is
there first.

An import that was interrupted goes on when the same command is run again; until it
is done there is a journal beside the file, FILE` + client.JournalSuffix + `. Readers see the data
grow meanwhile: only a file that fits one request appears at once.` + remoteLong,
		Example: `  livetree import backup.json.gz / --replace
  livetree import users.json /users --merge
  livetree import users.json /users --dry-run`,
		GroupID: groupData,
		Args:    takes("FILE", "PATH"),
	}
	r := remoteFlags(c.Flags())
	r.jsonFlag(c.Flags())
	merge := c.Flags().Bool("merge", false, "leave what the file does not name")
	replace := c.Flags().Bool("replace", false, "delete what is there first")
	yes := c.Flags().Bool("yes", false, "do not ask before deleting")
	dryRun := c.Flags().Bool("dry-run", false, "only check the file: its size, its depth, and every bad key; needs no server")
	request := cli.ByteSize(client.DefaultRequestBytes)
	c.Flags().Var(&request, "request-size", "the `size` of a request")
	parallel := c.Flags().Int("parallel", client.DefaultParallel, "the `number` of requests at a time")
	c.RunE = r.runs(a, func(c *cobra.Command, args []string) error {
		opts := client.Import{File: args[0], Path: args[1], Mode: client.ModeFill, RequestBytes: int(request), Parallel: *parallel}
		switch {
		case *merge && *replace:
			return errors.New("--merge and --replace exclude each other")
		case *merge:
			opts.Mode = client.ModeMerge
		case *replace:
			opts.Mode = client.ModeReplace
		}
		if request < 1<<10 || request > 64<<20 {
			return errors.New("--request-size must be from 1KiB to 64MiB")
		}
		if *parallel < 1 || *parallel > 64 {
			return errors.New("--parallel must be from 1 to 64")
		}
		if args[0] == "-" {
			opts.Input = a.stdin
		}
		opts.Confirm = func() error {
			return a.confirm(*yes || args[0] == "-", fmt.Sprintf("Delete what is at %s before the import?", tidy(args[1])))
		}
		if *dryRun {
			return runDryRun(c.Context(), a, r, opts)
		}
		return runImport(c.Context(), a, r, opts)
	})
	return c
}

// importAttempts is how often a request of an import is sent: a server that is
// restarted in the meantime should not end it.
const importAttempts = 8

func runImport(ctx context.Context, a *app, r *remote, opts client.Import) error {
	p := newProgress(a, r.json)
	defer p.end()
	opts.Phase, opts.Done = p.begin, p.at
	ask := opts.Confirm
	opts.Confirm = func() error { p.end(); return ask() }
	opts.Warn = func(text string) { p.end(); say(a.stderr, "livetree: "+text+"\n") }
	r.Attempts = importAttempts
	server, err := r.connect()
	if err != nil {
		return err
	}
	defer server.Close()
	report, err := server.Import(ctx, opts)
	p.end()
	if err != nil {
		return err
	}
	if r.json {
		printJSON(a.stdout, report)
		return nil
	}
	say(a.stderr, "on "+server.String()+"\n")
	resumed := ""
	if report.Resumed > 0 {
		resumed = fmt.Sprintf("; %d of them in an earlier run", report.Resumed)
	}
	say(a.stdout, fmt.Sprintf("imported %s to %s: %s in %s%s\n", counted(report.Leaves, "leaf"), tidy(opts.Path), size(report.Bytes), counted(report.Requests, "request"), resumed))
	return nil
}

// runDryRun prints what is to be said about a file before it is imported.
func runDryRun(ctx context.Context, a *app, r *remote, opts client.Import) error {
	p := newProgress(a, r.json)
	opts.Phase, opts.Done = p.begin, p.at
	report, err := client.CheckImport(ctx, opts)
	p.end()
	if len(report.Found) == 0 && err != nil {
		return err
	}
	if r.json {
		printJSON(a.stdout, report)
	} else {
		for _, p := range report.Found {
			say(a.stdout, opts.File+":"+p.String()+"\n")
		}
		if more := report.Problems - int64(len(report.Found)); more > 0 {
			say(a.stdout, fmt.Sprintf("and %d more\n", more))
		}
		say(a.stdout, fmt.Sprintf("%s: %s, %s, %s deep below the root, %s; %s\n",
			opts.File, size(report.Bytes), counted(report.Leaves, "leaf"), counted(report.Depth, "level"),
			counted(report.Requests, "request"), counted(report.Problems, "problem")))
	}
	if err != nil {
		return errors.Join(errSaid, err)
	}
	return nil
}
