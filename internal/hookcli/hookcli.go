// Package hookcli is the command livetree hook: it asks the admin listener of a server for what
// an operator wants of webhooks, and prints the answers.
package hookcli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/deliver"
)

// An Operator asks the admin listener.
type Operator struct {
	// Do makes a request and reads the answer into a value, which may be nil.
	Do func(ctx context.Context, method, path string, request, into any) error
	// Print prints text for people.
	Print func(format string, args ...any)
}

// Surroundings are what the command has from the program that it is part of.
type Surroundings struct {
	// Operator declares the flags by which the listener is found.
	Operator func(*pflag.FlagSet) Operator
	// Takes bounds the arguments of a command by their names.
	Takes func(names ...string) cobra.PositionalArgs
	// Long ends the long help of each command.
	Long string
}

// Commands returns the commands below livetree hook.
func Commands(s Surroundings) []*cobra.Command {
	return []*cobra.Command{s.add(), s.list(), s.show(), s.test(), s.pause(), s.resume(), s.rotate(), s.remove(), s.deliveries()}
}

// A call is one command that runs.
type call struct {
	Operator
	ctx  context.Context //nolint:containedctx // as long as the command
	db   string
	args []string
}

// path returns that of a hook on the listener, with what follows.
func (c *call) path(after string) string {
	path := "/v1/databases/" + url.PathEscape(c.db) + "/hooks"
	if len(c.args) > 0 {
		path += "/" + url.PathEscape(c.args[0])
	}
	return path + after
}

// command completes a command.
func (s Surroundings) command(c *cobra.Command, run func(*call) error, args ...string) *cobra.Command {
	c.Long += s.Long
	c.Args = s.Takes(args...)
	o := s.Operator(c.Flags())
	db := c.Flags().String("db", "default", "the `name` of the database")
	c.RunE = func(c *cobra.Command, args []string) error {
		return run(&call{Operator: o, ctx: c.Context(), db: *db, args: args})
	}
	return c
}

// maxSecretFile bounds the file with a secret.
const maxSecretFile = 4096

// readSecret returns what is in a file, nothing if none is named.
func readSecret(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := cli.ReadText(file, maxSecretFile)
	return strings.TrimSpace(text), err
}

func (s Surroundings) add() *cobra.Command {
	var path, to, file string
	var events []string
	c := &cobra.Command{
		Use:   "add NAME --path PATTERN --url URL [flags]",
		Short: "add a webhook",
		Long: `livetree hook add has every change at the locations that a pattern matches sent to a
URL, from the next write on. In the pattern $name stands for any key. Deliveries are
signed with a secret; without --secret-file one is drawn, and printed this once.`,
		Example: "  livetree hook add orders --path '/orders/$id' --url https://example.com/in\n  livetree hook add gone --path '/orders/$id' --url https://example.com/in --events delete --db shop",
	}
	c.Flags().StringVar(&path, "path", "", "the `pattern` of the locations, such as '/orders/$id'")
	c.Flags().StringVar(&to, "url", "", "the `URL` of the receiver; https, unless --hook-allow of the server lists it")
	c.Flags().StringSliceVar(&events, "events", nil, "what is sent, a `list` of create, update and delete; all of them by default")
	c.Flags().StringVar(&file, "secret-file", "", "a `file` with the secret, whsec_ and 24 to 64 bytes in base64")
	return s.command(c, func(c *call) error {
		secret, err := readSecret(file)
		if err != nil {
			return err
		}
		var added admin.Hook
		request := admin.NewHook{Name: c.args[0], Path: path, URL: to, Events: events, Secret: secret}
		c.args = nil
		if err := c.Do(c.ctx, http.MethodPost, c.path(""), request, &added); err != nil {
			return err
		}
		c.Print("added the hook %s of %q for %s\n", added.Name, c.db, cli.Visible(added.Path))
		c.printSecret(added)
		return nil
	}, "NAME")
}

func (c *call) printSecret(h admin.Hook) {
	if h.Secret != "" {
		c.Print("its secret, which is not shown again: %s\n", h.Secret)
	}
}

func (s Surroundings) list() *cobra.Command {
	c := &cobra.Command{
		Use:     "list [flags]",
		Short:   "list the webhooks of a database",
		Long:    "livetree hook list prints the webhooks of a database: the name, the state, how old the\noldest change is that is not delivered, the path and the URL.",
		Example: "  livetree hook list --db shop",
	}
	return s.command(c, func(c *call) error {
		var answer struct {
			Hooks []admin.Hook `json:"hooks"`
		}
		if err := c.Do(c.ctx, http.MethodGet, c.path(""), nil, &answer); err != nil {
			return err
		}
		for _, h := range answer.Hooks {
			c.Print("%-20s %-8s %8.1f s  %-30s %s\n", h.Name, stateOf(h), lagOf(h), cli.Visible(h.Path), cli.Visible(h.URL))
		}
		return nil
	})
}

// stateOf says in a word how a hook is.
func stateOf(h admin.Hook) string {
	switch {
	case h.Paused != "":
		return "paused"
	case h.Secrets == 0:
		return "secret?"
	case h.Stat != nil && h.Stat.Failing:
		return "failing"
	}
	return "running"
}

// lagOf returns how far a hook is behind, in seconds.
func lagOf(h admin.Hook) float64 {
	if h.Stat == nil {
		return 0
	}
	return h.Stat.Lag
}

func (s Surroundings) show() *cobra.Command {
	c := &cobra.Command{
		Use:     "show NAME [flags]",
		Short:   "show a webhook",
		Long:    "livetree hook show prints what a webhook is for, what it has delivered and what waits.",
		Example: "  livetree hook show orders",
	}
	return s.command(c, func(c *call) error {
		var h admin.Hook
		if err := c.Do(c.ctx, http.MethodGet, c.path(""), nil, &h); err != nil {
			return err
		}
		c.Print("path       %s\nurl        %s\nevents     %s\nstate      %s\ncreated    %s\n", cli.Visible(h.Path), cli.Visible(h.URL),
			strings.Join(h.Events, ","), strings.TrimSpace(stateOf(h)+" "+cli.Visible(h.Paused)), h.Created.Format(time.RFC3339))
		if st := h.Stat; st != nil {
			c.Print("delivered  %d since the server was started, %d given up, %d tried again, %d skipped\nwaiting    %d deliveries or more, the oldest for %.1f s\non disk    %d bytes, with the last deliveries, which can be replayed\n",
				st.Delivered, st.Failed, st.Retried, st.Skipped, st.Pending, st.Lag, st.Bytes)
		}
		return nil
	}, "NAME")
}

func (s Surroundings) test() *cobra.Command {
	c := &cobra.Command{
		Use:     "test NAME [flags]",
		Short:   "send a delivery that says it is a test",
		Long:    "livetree hook test sends one delivery with the event test, and prints what the receiver\nanswers.",
		Example: "  livetree hook test orders",
	}
	return s.command(c, func(c *call) error {
		var record deliver.Record
		if err := c.Do(c.ctx, http.MethodPost, c.path("/test"), struct{}{}, &record); err != nil {
			return err
		}
		c.Print("%s\n", describe(record))
		if record.Status < 200 || record.Status > 299 {
			return fmt.Errorf("the receiver did not take it")
		}
		return nil
	}, "NAME")
}

// describe returns an attempt as a line.
func describe(r deliver.Record) string {
	became := fmt.Sprint(r.Status)
	if r.Status == 0 {
		became = "no answer: " + r.Problem
	}
	return cli.Visible(strings.TrimSpace(fmt.Sprintf("%s %s %s try %d %.1f ms %s %.120s", r.At.Format(time.RFC3339), r.ID, strings.TrimSpace(r.Event+" "+r.Path), r.Try, r.Millis, became, r.Answer)))
}

// revision returns a command that changes a hook.
func (s Surroundings) revision(use, short, long, did string, paused bool) *cobra.Command {
	c := &cobra.Command{Use: use + " NAME [flags]", Short: short, Long: long, Example: "  livetree hook " + use + " orders"}
	return s.command(c, func(c *call) error {
		if err := c.Do(c.ctx, http.MethodPatch, c.path(""), admin.HookRevision{Paused: &paused}, nil); err != nil {
			return err
		}
		c.Print("%s the hook %s of %q\n", did, c.args[0], c.db)
		return nil
	}, "NAME")
}

func (s Surroundings) pause() *cobra.Command {
	return s.revision("pause", "send nothing for now",
		`livetree hook pause has a webhook send nothing. What it is to deliver waits on disk, as
far as --hook-spool of the server allows.`, "paused", true)
}

func (s Surroundings) resume() *cobra.Command {
	return s.revision("resume", "send again",
		"livetree hook resume has a webhook that was paused deliver what waits, and go on.", "resumed", false)
}

func (s Surroundings) rotate() *cobra.Command {
	var file string
	var dropOld bool
	c := &cobra.Command{
		Use:   "rotate NAME [flags]",
		Short: "replace the secret",
		Long: `livetree hook rotate gives a webhook a new secret, which it prints unless it is from a
file. Deliveries are signed with the new one and with the one before it, until
--drop-old: in between, give the receiver the new one.`,
		Example: "  livetree hook rotate orders\n  livetree hook rotate orders --drop-old",
	}
	c.Flags().StringVar(&file, "secret-file", "", "a `file` with the new secret")
	c.Flags().BoolVar(&dropOld, "drop-old", false, "draw none, but sign with the newest alone from now on")
	return s.command(c, func(c *call) error {
		secret, err := readSecret(file)
		if err != nil {
			return err
		}
		var h admin.Hook
		if err := c.Do(c.ctx, http.MethodPost, c.path("/rotate"), map[string]any{"secret": secret, "drop_old": dropOld}, &h); err != nil {
			return err
		}
		word := "secrets"
		if h.Secrets == 1 {
			word = "secret"
		}
		c.Print("the hook %s of %q signs with %d %s\n", c.args[0], c.db, h.Secrets, word)
		c.printSecret(h)
		return nil
	}, "NAME")
}

func (s Surroundings) remove() *cobra.Command {
	c := &cobra.Command{
		Use:     "remove NAME [flags]",
		Short:   "remove a webhook",
		Long:    "livetree hook remove removes a webhook. What it has not delivered is not delivered any\nmore.",
		Example: "  livetree hook remove orders",
	}
	return s.command(c, func(c *call) error {
		if err := c.Do(c.ctx, http.MethodDelete, c.path(""), nil, nil); err != nil {
			return err
		}
		c.Print("removed the hook %s of %q\n", c.args[0], c.db)
		return nil
	}, "NAME")
}

func (s Surroundings) deliveries() *cobra.Command {
	var replay string
	c := &cobra.Command{
		Use:   "deliveries NAME [flags]",
		Short: "list the last deliveries, or repeat one",
		Long: `livetree hook deliveries prints the last 200 attempts of a webhook since the server was
started, the newest first. With --replay it has one of them made again.`,
		Example: "  livetree hook deliveries orders\n  livetree hook deliveries orders --replay msg_5f-1-42-0",
	}
	c.Flags().StringVar(&replay, "replay", "", "the `id` of a delivery to be made again")
	return s.command(c, func(c *call) error {
		if replay != "" {
			if err := c.Do(c.ctx, http.MethodPost, c.path("/deliveries/"+url.PathEscape(replay)+"/replay"), struct{}{}, nil); err != nil {
				return err
			}
			c.Print("the delivery %s is made again\n", replay)
			return nil
		}
		var answer struct {
			Deliveries []deliver.Record `json:"deliveries"`
		}
		if err := c.Do(c.ctx, http.MethodGet, c.path("/deliveries"), nil, &answer); err != nil {
			return err
		}
		for _, record := range answer.Deliveries {
			c.Print("%s\n", describe(record))
		}
		return nil
	}, "NAME")
}
