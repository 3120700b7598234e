package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/client"
)

func newSecretCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:   "secret",
		Short: "show, add and remove the secrets of a database",
		Long: `livetree secret looks after the app secrets of a database, whose holders stand above
its rules. All of them are valid at the same time: to replace one, add another, hand
it out, and remove the first. Tokens that were signed with it end with it.`,
		Example: "  livetree secret show default\n  livetree secret add default",
		GroupID: groupCare,
	})
	c.AddCommand(newSecretShowCommand(a), newSecretAddCommand(a), newSecretRemoveCommand(a))
	return c
}

func newSecretShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show NAME [flags]",
		Short: "print them",
		Long: `livetree secret show prints the secrets of a database, each on its line. With --ids it
prints their ids instead, which tell nothing about them and which livetree secret
remove takes; they are in the same order.` + operatorLong,
		Example: "  livetree secret show default\n  livetree secret show default --ids",
		Args:    takes("NAME"),
	}
	o := operatorFlags(a, c.Flags())
	ids := c.Flags().Bool("ids", false, "print the ids instead of the secrets")
	c.RunE = func(c *cobra.Command, args []string) error {
		path := client.SecretsPath(args[0])
		if !*ids {
			path += "?show=true"
		}
		var answer struct {
			Secrets []admin.Secret `json:"secrets"`
		}
		if err := o.do(c.Context(), http.MethodGet, path, nil, &answer); err != nil {
			return err
		}
		for _, secret := range answer.Secrets {
			if *ids {
				o.print("%s\n", secret.ID)
			} else {
				o.print("%s\n", secret.Value)
			}
		}
		return nil
	}
	return c
}

func newSecretAddCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "add NAME [flags]",
		Short: "add a secret",
		Long: `livetree secret add adds a secret to a database: one that it draws or, with --stdin,
the one that it reads. It prints the id of the secret, not the secret.` + operatorLong,
		Example: "  livetree secret add default\n  livetree secret add default --stdin < new-secret",
		Args:    takes("NAME"),
	}
	o := operatorFlags(a, c.Flags())
	stdin := c.Flags().Bool("stdin", false, "read the secret from the input")
	c.RunE = func(c *cobra.Command, args []string) error {
		request := map[string]string{}
		if *stdin {
			secret, err := readSecret(a.stdin)
			if err != nil {
				return err
			}
			request["value"] = secret
		}
		var added admin.Secret
		if err := o.do(c.Context(), http.MethodPost, client.SecretsPath(args[0]), request, &added); err != nil {
			return err
		}
		o.print("added the secret %s to %q; livetree secret show %s prints it\n", added.ID, args[0], args[0])
		return nil
	}
	return c
}

// readSecret reads one line.
func readSecret(r io.Reader) (string, error) {
	const longest = 4096
	text, err := io.ReadAll(io.LimitReader(r, longest))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", errors.New("the input holds no secret")
	}
	if err := auth.CheckSecret(secret); err != nil {
		return "", fmt.Errorf("the input is %w", err)
	}
	return secret, nil
}

func newSecretRemoveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "remove NAME ID [flags]",
		Short: "remove a secret",
		Long: `livetree secret remove takes a secret away: it is refused from then on, and so is every
token that was signed with it. The last one stays unless --force; without any, the
rules cannot be changed until one is added.` + operatorLong,
		Example: "  livetree secret show default --ids\n  livetree secret remove default 1f2e3d4c",
		Args:    takes("NAME", "ID"),
	}
	o := operatorFlags(a, c.Flags())
	force := c.Flags().Bool("force", false, "remove even the last one")
	c.RunE = func(c *cobra.Command, args []string) error {
		path := client.SecretsPath(args[0]) + "/" + url.PathEscape(args[1])
		if *force {
			path += "?force=true"
		}
		if err := o.do(c.Context(), http.MethodDelete, path, nil, nil); err != nil {
			return err
		}
		o.print("removed the secret %s of %q\n", args[1], args[0])
		return nil
	}
	return c
}
