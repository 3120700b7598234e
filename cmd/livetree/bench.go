package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// errMoved says that a command is another program now.
var errMoved = errors.New("bench is a program of its own: livetree-bench, in the release beside livetree, or in the source by go run ./cmd/livetree-bench")

// newBenchCommand tells where bench went, whatever it is given. It is hidden.
func newBenchCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use:     "bench",
		Short:   "tells where bench went",
		Long:    "livetree bench is a program of its own now, livetree-bench: see livetree docs performance.",
		Example: "  livetree-bench --quick",
		Hidden:  true,

		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return errMoved },
	}
}
