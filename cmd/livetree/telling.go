package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/cli"
)

const tellingLong = `

With --data or --admin-url the server whose backup or archive it is, and which must be
running, is told that it is good. Its metric livetree_restore_verified_age_seconds counts
from there. On a machine that cannot reach the admin listener no server can be told.`

// telling is how a server is told that a backup of it is good.
type telling struct{ operator }

func (t *telling) declare(a *app, flags *pflag.FlagSet) {
	t.app, t.Lookup = a, a.lookup
	flags.StringVar(&t.Data, "data", "", "the data `directory` of the running server to tell of it")
	flags.StringVar(&t.URL, "admin-url", "", "the `URL` of its admin listener, with the credential in LIVETREE_ADMIN_TOKEN")
	flags.StringVar(&t.CA, "ca", "", "a PEM `file` with a certificate to trust; default tls/ca.pem of --data if there is one")
}

// wanted reports whether a server is to be told: by a flag, and not by a variable,
// which may be there for the server that is restored.
func (t *telling) wanted(flags *pflag.FlagSet) bool {
	return cli.IsTyped(flags, "data") || cli.IsTyped(flags, "admin-url")
}

// tell tells the server, if it is to be, of a backup that was verified.
func (t *telling) tell(c *cobra.Command, dir string) error {
	if !t.wanted(c.Flags()) {
		return nil
	}
	m, err := backup.ReadManifest(dir)
	if err != nil {
		return fmt.Errorf("the backup is good, but the server was not told of it: %w", err)
	}
	return t.tellEpoch(c, m.Epoch)
}

// tellEpoch tells the server, if it is to be, that what its store of an epoch has written can
// be restored.
func (t *telling) tellEpoch(c *cobra.Command, epoch string) error {
	if !t.wanted(c.Flags()) {
		return nil
	}
	if err := t.do(c.Context(), http.MethodPost, "/v1/verified", map[string]string{"epoch": epoch}, nil); err != nil {
		return fmt.Errorf("the backup is good, but the server was not told of it: %w", err)
	}
	return nil
}
