package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
)

func newRulesSimulateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "simulate OPERATION PATH [DATA] [flags]",
		Short: "say whether a request would be allowed, and why",
		Long: `livetree rules simulate judges a request that nobody makes, on the data as it is now:
by the rules in force, or by those of a file. It shows each rule that was asked, with its
line and its outcome, and stores nothing. An operation is read, put, patch, post or
delete. Exit code 1 if it is denied.` + operatorLong,
		Example: `  livetree rules simulate read /rooms/blue --as '{"uid": "eve"}'
  livetree rules simulate put /rooms/blue/topic '"mine"' --rules rules.json`,
		Args:              takes("OPERATION", "PATH", "[DATA]"),
		ValidArgsFunction: completeFirst("read", "put", "patch", "post", "delete"),
	}
	o, db := operatorFlags(a, c.Flags()), databaseFlag(c)
	as := c.Flags().String("as", "null", "what the rules see as auth, as `JSON`; nobody by default")
	file := c.Flags().String("rules", "", "the rules of this `file`, instead of those in force")
	c.RunE = func(c *cobra.Command, args []string) error {
		request := admin.SimulationRequest{Operation: args[0], Path: args[1], Auth: json.RawMessage(*as)}
		if !json.Valid(request.Auth) {
			return fmt.Errorf("--as must be JSON, such as '{\"uid\": \"ann\"}'")
		}
		if len(args) > 2 {
			request.Data = args[2]
		}
		if *file != "" {
			text, err := os.ReadFile(*file)
			if err != nil {
				return err
			}
			document := string(text)
			request.Rules = &document
		}
		var result admin.SimulationResult
		if err := o.do(c.Context(), http.MethodPost, databasePath(*db)+"/rules/simulate", request, &result); err != nil {
			return err
		}
		return o.showSimulation(result)
	}
	return c
}

// showSimulation prints what would become of a request. That it is denied is an error.
func (o *operator) showSimulation(result admin.SimulationResult) error {
	for _, step := range result.Trace {
		o.print("%d:%d %s %s: %s => %s", step.Line, step.Column, step.Path, step.Kind, step.Text, step.Outcome)
		if step.Error != "" {
			o.print(" (%s)", step.Error)
		}
		o.print("\n")
	}
	if result.More {
		o.print("and others\n")
	}
	if result.Index != "" {
		o.print("%s\n", result.Index)
	}
	if result.Allowed {
		o.print("allowed\n")
		return nil
	}
	o.print("denied\n")
	return errSaid
}
