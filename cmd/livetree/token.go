package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cli"
)

func newTokenCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:   "token",
		Short: "make and look at tokens",
		Long: `livetree token makes tokens that are signed with the secret of a database, and shows
what is in one. It asks no server.`,
		Example: "  livetree token mint --uid ann\n  livetree token inspect < token",
		GroupID: groupCare,
	})
	c.AddCommand(newTokenMintCommand(a), newTokenInspectCommand(a))
	return c
}

// A signer is where the secret for tokens is.
type signer struct{ data, database string }

func signerFlags(flags *pflag.FlagSet) *signer {
	s := &signer{}
	dataFlag(flags, &s.data)
	flags.StringVar(&s.database, "db", "default", "the `name` of the database")
	return s
}

// secrets returns those of the database: that of the environment, or all in its
// file.
func (s *signer) secrets(a *app) ([]string, error) {
	if secret, ok := a.lookup(secretVariable); ok && secret != "" {
		return []string{secret}, nil
	}
	if err := catalog.CheckName(s.database); err != nil {
		return nil, err
	}
	file := filepath.Join(s.data, "secrets", s.database)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no secret in %s: say where it is with --data and --db, or give it in %s, as livetree secret show prints it: %w", file, secretVariable, err)
	}
	return strings.Fields(string(text)), err
}

// newClaims are the claims of a token to be made.
type newClaims struct {
	uid                    string
	claims                 []string
	lifetime               time.Duration
	admin, debug, simulate bool
}

func newTokenMintCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mint [flags]",
		Short: "make a token",
		Long: `livetree token mint prints a token that is signed with the newest secret of a database,
which it takes from ` + secretVariable + ` or from the data directory. Rules see its claims
as auth: --uid as auth.uid, --claim role='"editor"' as auth.role.`,
		Example: `  livetree token mint --uid ann
  livetree token mint --uid ann --claim role='"editor"' --claim level=3 --expires 15m
  livetree token mint --admin --db shop`,
		Args: takes(),
	}
	s := signerFlags(c.Flags())
	var n newClaims
	flags := c.Flags()
	flags.StringVar(&n.uid, "uid", "", "the `id` of the user; needed unless --admin")
	flags.StringArrayVar(&n.claims, "claim", nil, "a `NAME=JSON` that rules see as auth.NAME; repeatable")
	flags.DurationVar(&n.lifetime, "expires", time.Hour, "the `time` until it expires; 0 for never")
	flags.BoolVar(&n.admin, "admin", false, "let its holder stand above the rules")
	flags.BoolVar(&n.debug, "debug", false, "show its holder how rules were judged")
	flags.BoolVar(&n.simulate, "simulate", false, "judge its writes, but do not make them")
	asJSON := flags.Bool("json", false, "print JSON")
	c.RunE = func(*cobra.Command, []string) error {
		secrets, err := s.secrets(a)
		if err != nil {
			return err
		}
		if len(secrets) == 0 {
			return errors.New("the file of secrets holds none")
		}
		claims, err := n.claimsAt(time.Now())
		if err != nil {
			return err
		}
		token, err := auth.Mint(secrets[len(secrets)-1], claims)
		if err != nil {
			return err
		}
		if *asJSON {
			printJSON(a.stdout, struct {
				Token   string    `json:"token"`
				Expires time.Time `json:"expires,omitzero"`
			}{token, claims.Expires.UTC()})
			return nil
		}
		say(a.stdout, token+"\n")
		return nil
	}
	return c
}

// claimsAt returns the claims of a token that is made now.
func (n newClaims) claimsAt(now time.Time) (auth.Claims, error) {
	c := auth.Claims{IssuedAt: now, Admin: n.admin, Debug: n.debug, Simulate: n.simulate}
	switch {
	case n.lifetime < 0:
		return c, errors.New("--expires must not be negative")
	case n.lifetime > 0:
		c.Expires = now.Add(n.lifetime).Truncate(time.Second)
	}
	if n.uid == "" && !n.admin {
		return c, errors.New("a token needs a user: give --uid, or --admin")
	}
	data := map[string]any{}
	for _, claim := range n.claims {
		name, text, ok := strings.Cut(claim, "=")
		var value any
		if !ok || name == "" || json.Unmarshal([]byte(text), &value) != nil {
			return c, fmt.Errorf(`--claim %s: it must be NAME=JSON, such as level=3 or role='"editor"'`, name)
		}
		data[name] = value
	}
	if n.uid != "" {
		data["uid"] = n.uid
	}
	if len(data) > 0 {
		c.Data = data
	}
	return c, nil
}

func newTokenInspectCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect [TOKEN] [flags]",
		Short: "show what is in a token, and what is wrong with it",
		Long: `livetree token inspect takes a token apart, which it reads from the input if it is not
given, and says for what it would be refused. Others on this machine can see
arguments, so the input is the better place for a token that is in use. If the
secret of the database is at hand, in ` + secretVariable + ` or in the data directory,
the signature is also checked. That of an identity provider is not: this command asks no
server.

It ends with exit code 1 if the token would be refused.`,
		Example: "  livetree token mint --uid ann | livetree token inspect\n  livetree token inspect --json < token",
		Args:    takes("[TOKEN]"),
	}
	s := signerFlags(c.Flags())
	asJSON := c.Flags().Bool("json", false, "print JSON")
	c.RunE = func(_ *cobra.Command, args []string) error {
		text := strings.Join(args, "")
		if text == "" {
			const longest = 64 << 10
			read, err := io.ReadAll(io.LimitReader(a.stdin, longest))
			if err != nil {
				return err
			}
			text = string(read)
		}
		secrets, err := s.secrets(a)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		inspection := auth.Inspect(strings.TrimSpace(text), time.Now(), secrets)
		if *asJSON {
			printJSON(a.stdout, inspection)
		} else {
			printInspection(a.stdout, inspection, time.Now())
		}
		if len(inspection.Problems) > 0 {
			return errSaid
		}
		return nil
	}
	return c
}

func printInspection(w io.Writer, i auth.Inspection, now time.Time) {
	for _, part := range []struct {
		name string
		text json.RawMessage
	}{{"header", i.Header}, {"claims", i.Claims}} {
		if part.text != nil {
			fmt.Fprintf(w, "%s: %s\n", part.name, cli.Visible(string(part.text)))
		}
	}
	fmt.Fprintf(w, "signature: %s\n", i.Signature)
	switch {
	case i.Claims == nil: // nobody knows
	case i.Expires.IsZero():
		fmt.Fprintln(w, "expires: never")
	default:
		fmt.Fprintf(w, "expires: %s (%s)\n", i.Expires.UTC().Format(time.RFC3339), fromNow(i.Expires.Sub(now)))
	}
	for _, problem := range i.Problems {
		fmt.Fprintf(w, "problem: %s\n", problem)
	}
}

// fromNow says how far away a time is.
func fromNow(d time.Duration) string {
	if d < 0 {
		return cli.ShortDuration(-d.Truncate(time.Second)) + " ago"
	}
	return "in " + cli.ShortDuration(d.Truncate(time.Second))
}
