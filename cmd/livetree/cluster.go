package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/clustercli"
	"github.com/livetree/livetree/internal/local"
)

func newClusterCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:     "cluster",
		Short:   "look after a cluster: several nodes with the same databases",
		Long:    "livetree cluster looks after the nodes of a cluster: see livetree docs cluster.",
		Example: "  livetree cluster status\n  livetree cluster remove 10.0.0.3:9100",
		GroupID: groupCare,
	})
	c.AddCommand(clustercli.Commands(clustercli.Surroundings{Takes: takes, Long: operatorLong, Out: a.stdout, Err: a.stderr, Data: local.DefaultData, Logger: func() *slog.Logger { return newLogger(a.stderr, slog.LevelError, true) }, Operator: func(flags *pflag.FlagSet) clustercli.Operator {
		o := operatorFlags(a, flags)
		return clustercli.Operator{Do: o.do, Out: func() io.Writer {
			if o.json {
				return io.Discard
			}
			return a.stdout
		}}
	}})...)
	return c
}
