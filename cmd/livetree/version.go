package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/store"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// buildVersion returns the version of this program.
func buildVersion() string { return cli.Version(version) }

// A build is what livetree version tells.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Format   int    `json:"format"`
}

func newVersionCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version [flags]",
		Short: "print the version",
		Long: `livetree version prints the version of this program, that of the Go it was built with,
and the newest format of data directories that it reads and writes.`,
		Example: "  livetree version\n  livetree version --json",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			b := build{buildVersion(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, store.FormatVersion}
			if asJSON {
				return json.NewEncoder(a.stdout).Encode(b)
			}
			_, err := fmt.Fprintf(a.stdout, "livetree %s\n%s %s\ndata format %d\n", b.Version, b.Go, b.Platform, b.Format)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}
