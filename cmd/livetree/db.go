package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cli"
)

func newDBCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:     "db",
		Short:   "make, list and drop databases",
		Long:    "livetree db looks after the databases of a server that is running.",
		Example: "  livetree db list\n  livetree db create shop",
		GroupID: groupCare,
	})
	c.AddCommand(newDBCreateCommand(a), newDBListCommand(a), newDBStatsCommand(a), newDBDropCommand(a))
	return c
}

const databasesPath = "/v1/databases"

func databasePath(name string) string { return databasesPath + "/" + url.PathEscape(name) }

func newDBCreateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "create NAME [flags]",
		Short: "make a database",
		Long: `livetree db create makes a database with a new secret, and says in which file of the
data directory that is. Without --dev on the server its rules let nobody in but the
holder of the secret.` + operatorLong,
		Example: "  livetree db create shop\n  livetree secret show shop",
		Args:    takes("NAME"),
	}
	o := operatorFlags(a, c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		var made struct {
			File string `json:"secret_file"`
		}
		if err := o.do(c.Context(), http.MethodPost, databasesPath, map[string]string{"name": args[0]}, &made); err != nil {
			return err
		}
		o.print("made the database %q; its secret is in %s\n", args[0], made.File)
		return nil
	}
	return c
}

func newDBListCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "list [flags]",
		Short:   "list all databases",
		Long:    "livetree db list prints the databases with their commits and their sizes on disk." + operatorLong,
		Example: "  livetree db list\n  livetree db list --json",
		Args:    takes(),
	}
	o := operatorFlags(a, c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		var answer struct {
			Databases []admin.Database `json:"databases"`
		}
		if err := o.do(c.Context(), http.MethodGet, databasesPath, nil, &answer); err != nil || o.json {
			return err
		}
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tCOMMITS\tDATA\tINDEXES\tLOG")
		for _, d := range answer.Databases {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", d.Name, d.Position, cli.Size(d.DataBytes), cli.Size(d.IndexBytes), cli.Size(d.LogBytes))
		}
		return w.Flush()
	}
	return c
}

func newDBStatsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "stats NAME [flags]",
		Short: "tell more about one",
		Long: `livetree db stats prints what a database takes on disk, how many secrets it has, and
whether its rules let everybody in. Sizes are estimates; what is only in the
write-ahead log does not count.` + operatorLong,
		Example: "  livetree db stats default",
		Args:    takes("NAME"),
	}
	o := operatorFlags(a, c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		var d admin.Database
		if err := o.do(c.Context(), http.MethodGet, databasePath(args[0]), nil, &d); err != nil || o.json {
			return err
		}
		rules := "closed to strangers"
		if d.Open != nil && *d.Open {
			rules = "open: everybody can read or write everything"
		}
		secrets := 0
		if d.Secrets != nil {
			secrets = *d.Secrets
		}
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "name\t%s\ncommits\t%d\ndata\t%s\nindexes\t%s\nchange log\t%s\nsecrets\t%d\nrules\t%s\n",
			d.Name, d.Position, cli.Size(d.DataBytes), cli.Size(d.IndexBytes), cli.Size(d.LogBytes), secrets, rules)
		return w.Flush()
	}
	return c
}

func newDBDropCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "drop NAME [flags]",
		Short: "remove a database with all it holds",
		Long: `livetree db drop removes a database: its tree, its rules, its indexes, its log and its
secrets. Only a backup brings it back. It asks for the name once more, unless --yes.
The default database is made again, empty, when the server starts the next time.` + operatorLong,
		Example: "  livetree db drop shop\n  livetree db drop shop --yes",
		Args:    takes("NAME"),
	}
	o := operatorFlags(a, c.Flags())
	yes := c.Flags().Bool("yes", false, "do not ask")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !*yes {
			if err := confirm(a, args[0]); err != nil {
				return err
			}
		}
		if err := o.do(c.Context(), http.MethodDelete, databasePath(args[0]), nil, nil); err != nil {
			return err
		}
		o.print("dropped the database %q\n", args[0])
		return nil
	}
	return c
}

// confirm has a person type a name again.
func confirm(a *app, name string) error {
	if !a.isTerminal(a.stdin) {
		return errors.New("there is no terminal to ask on: give --yes to drop it all the same")
	}
	say(a.stderr, fmt.Sprintf("This removes %q with all it holds. Type its name to go on: ", name))
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != name {
		return errors.New("that is another name: nothing was dropped")
	}
	return nil
}
