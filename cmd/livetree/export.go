package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/client"
)

func newExportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "export PATH FILE [flags]",
		Short: "write what is at a path to a file",
		Long: `livetree export writes what is at a path to a JSON file, with priorities, in the form
that livetree import and other services of this interface read. A name that ends in
.gz or .zst is compressed; - is the standard output.

The file appears when it is whole. Until then it is FILE.tmp, which is removed if the
export fails.` + remoteLong,
		Example: `  livetree export / backup.json.zst
  livetree export /users - | jq length`,
		GroupID: groupData,
		Args:    takes("PATH", "FILE"),
	}
	r := remoteFlags(c.Flags())
	r.jsonFlag(c.Flags())
	c.RunE = r.runs(a, func(c *cobra.Command, args []string) error {
		server, err := r.connect()
		if err != nil {
			return err
		}
		defer server.Close()
		p := newProgress(a, r.json)
		p.begin("exporting", -1)
		opts := client.Export{Path: args[0], File: args[1], Done: p.at}
		out := &lineWriter{Writer: a.stdout}
		if args[1] == "-" {
			opts.Output = out
		}
		bytes, err := server.Export(c.Context(), opts)
		p.end()
		if out.last != 0 {
			out.end()
		}
		if err != nil || opts.Output != nil {
			return err
		}
		if r.json {
			printJSON(a.stdout, struct {
				File  string `json:"file"`
				Bytes int64  `json:"bytes"`
			}{args[1], bytes})
			return nil
		}
		say(a.stdout, fmt.Sprintf("exported %s to %s: %s of JSON\n", tidy(args[0]), args[1], size(bytes)))
		return nil
	})
	return c
}
