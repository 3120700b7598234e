package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/manualcli"
)

func newDocsCommand(a *app) *cobra.Command {
	return manualcli.Surroundings{
		Takes:      takes,
		Out:        func() io.Writer { return a.stdout },
		Err:        func() io.Writer { return a.stderr },
		Lookup:     a.lookup,
		IsTerminal: a.isTerminal,
		Version:    buildVersion(),
	}.Command()
}
