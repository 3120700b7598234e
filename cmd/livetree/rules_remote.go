package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/rules"
)

func newRulesGetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "get [flags]",
		Short: "print the document of a database",
		Long:  "livetree rules get prints the rules document of a database as it was written." + remoteLong,
		Example: `  livetree rules get > rules.json
  livetree rules get --url https://db.example.com --db shop`,
		Args: takes(),
	}
	r := remoteFlags(c.Flags())
	c.RunE = r.runs(a, func(c *cobra.Command, _ []string) error {
		server, err := r.connect()
		if err != nil {
			return err
		}
		defer server.Close()
		_, err = server.Copy(c.Context(), a.stdout, client.Request{Method: http.MethodGet, Path: client.RulesPath, Repeatable: true})
		return err
	})
	return c
}

func newRulesSetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "set FILE [flags]",
		Short: "replace it",
		Long: `livetree rules set replaces the rules document of a database. If the server refuses
it, the old one stays, and what is wrong is shown.` + remoteLong,
		Example: `  livetree rules set rules.json --dry-run
  livetree rules set rules.json`,
		Args: takes("FILE"),
	}
	r := remoteFlags(c.Flags())
	dryRun := c.Flags().Bool("dry-run", false, "only ask the server whether it would take the document")
	c.RunE = r.runs(a, func(c *cobra.Command, files []string) error {
		query, done := url.Values{}, "the rules are set\n"
		if *dryRun {
			query, done = url.Values{"dryRun": {"true"}}, "the server would take the rules; nothing was changed\n"
		}
		if err := rulesSet(c.Context(), a, r, files[0], query); err != nil {
			return err
		}
		say(a.stdout, done)
		return nil
	})
	return c
}

func rulesSet(ctx context.Context, a *app, r *remote, file string, query url.Values) error {
	document, err := cli.ReadText(file, rules.MaxBytes)
	if err != nil {
		return &client.FileError{Err: err}
	}
	if len(document) > rules.MaxBytes { // it was not read to its end
		return fmt.Errorf("%s is larger than %d bytes", file, rules.MaxBytes)
	}
	server, err := r.connect()
	if err != nil {
		return err
	}
	defer server.Close()
	_, err = server.Bytes(ctx, client.Request{
		Method: http.MethodPut, Path: client.RulesPath, Query: query, Body: strings.NewReader(document), Repeatable: true,
	})
	if status, ok := errors.AsType[*client.StatusError](err); ok {
		if problems := problemsIn(status.Text); len(problems) > 0 {
			return errors.Join(explain(a.stderr, file, document, problems), err)
		}
	}
	if err == nil && query.Get("dryRun") == "" {
		say(a.stderr, "on "+server.String()+"\n")
	}
	return err
}

// problemsIn reads what a server says about a document, LINE:COLUMN: TEXT in each
// line; none if it says something else.
func problemsIn(text string) rules.Problems {
	var problems rules.Problems
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			return nil
		}
		at, err := strconv.Atoi(parts[0])
		column, columnErr := strconv.Atoi(parts[1])
		if err != nil || columnErr != nil || at < 1 || column < 1 {
			return nil
		}
		problems = append(problems, rules.Problem{Line: at, Column: column, Message: strings.TrimSpace(parts[2])})
	}
	return problems
}
