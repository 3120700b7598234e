package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/clienttrust"
	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/store"
)

func newDevCertCommand(a *app) *cobra.Command {
	var data, url string
	var asC, asJSON, renew bool
	c := &cobra.Command{
		Use:   "dev-cert [flags]",
		Short: "print how clients come to trust a server's own authority",
		Long: `livetree dev-cert prints what makes curl, Go, Node, Python, Ruby and browsers trust the
certificate authority that a server made for itself, tls/ca.pem in its data directory.
The output can be read by a shell: then the programs that are started from it trust the
server.

With --c it prints the authority's certificate as a C string, for devices. A server with
a certificate of a public authority needs none of this.

The authority may sign for localhost, private addresses, and the names that the server
had when it made the authority. With --renew the authority of a server that is stopped
is removed, and the next start makes another for the names that it has then. Clients
must be told to trust that one.`,
		Example: `  livetree dev-cert
  source <(livetree dev-cert --data /var/lib/livetree --url https://db.example.com)
  livetree dev-cert --c > livetree_ca.h
  livetree dev-cert --renew --data /var/lib/livetree`,
		GroupID: groupServer,
		Args:    takes(),
	}
	dataFlag(c.Flags(), &data)
	c.Flags().StringVar(&url, "url", "https://localhost:9000", "the `URL` of the server, for the lines that name it")
	c.Flags().BoolVar(&asC, "c", false, "print the certificate as a C string")
	c.Flags().BoolVar(&asJSON, "json", false, "print what there is to know as JSON")
	c.Flags().BoolVar(&renew, "renew", false, "remove the authority, so that the next start makes another")
	c.RunE = func(*cobra.Command, []string) error {
		switch {
		case renew && (asC || asJSON):
			return errors.New("--renew prints no certificate: leave --c and --json out, and run the command again after the next start")
		case asC && asJSON:
			return errors.New("--c and --json exclude each other")
		case renew:
			return renewAuthority(a, data)
		}
		t, err := clienttrust.Read(data)
		if err != nil {
			return err
		}
		t.URL = strings.TrimSuffix(url, "/")
		switch {
		case asC:
			_, err = fmt.Fprint(a.stdout, t.CString())
		case asJSON:
			printJSON(a.stdout, t)
		default:
			err = t.Print(a.stdout)
		}
		return err
	}
	return c
}

// renewAuthority removes the authority of a data directory.
func renewAuthority(a *app, data string) error {
	if _, err := clienttrust.Read(data); err != nil {
		return err
	}
	err := server.RemoveAuthority(data)
	if errors.Is(err, store.ErrInUse) {
		return fmt.Errorf("%w: stop the server first", err)
	}
	if err != nil {
		return err
	}
	say(a.stdout, "removed the authority: the next start of the server makes another\nthen give clients the new file: livetree dev-cert --data "+cli.QuoteShell(data)+"\n")
	return nil
}
