package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/hookcli"
)

func newHookCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:     "hook",
		Short:   "have changes sent to other systems: webhooks",
		Long:    "livetree hook looks after the webhooks of a database: see livetree docs triggers.",
		Example: "  livetree hook add orders --path '/orders/$id' --url https://example.com/in\n  livetree hook list",
		GroupID: groupCare,
	})
	c.AddCommand(hookcli.Commands(hookcli.Surroundings{Takes: takes, Long: operatorLong, Operator: func(flags *pflag.FlagSet) hookcli.Operator {
		o := operatorFlags(a, flags)
		return hookcli.Operator{Do: o.do, Print: o.print}
	}})...)
	return c
}
