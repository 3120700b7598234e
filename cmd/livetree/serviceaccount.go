package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/wholefile"
)

func newServiceAccountCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:   "service-account",
		Short: "make and revoke the key files of Admin SDKs",
		Long: `livetree service-account looks after the service accounts of a database: programs that
come with a key file in Google's format, as the Admin SDKs use it, and stand above the
rules of that one database. The key file is all there is of the private key; the server
knows only the public half. An account may have several keys, so that a new one can be
handed out before the old one is revoked.`,
		Example: `  livetree service-account create backend --url https://db.example.com
  livetree service-account list
  livetree service-account revoke backend`,
		GroupID: groupCare,
	})
	c.AddCommand(newAccountCreateCommand(a), newAccountListCommand(a), newAccountRevokeCommand(a))
	return c
}

func accountsPath(database string) string { return databasePath(database) + "/accounts" }

// keyBits is the size of keys, that of Google's.
const keyBits = 2048

func newAccountCreateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "create NAME [flags]",
		Short: "make a key file",
		Long: `livetree service-account create makes a key for a service account, which need not be
there yet, tells the server its public half, and writes the key file. It is readable
for you alone, and a file that is there is not replaced.

--url is where programs will reach the server with the key file: they get their access
tokens there.` + operatorLong,
		Example: `  livetree service-account create backend --url https://db.example.com
  livetree service-account create backend --db shop --out shop.json --url https://localhost:9000`,
		Args: takes("NAME"),
	}
	o := operatorFlags(a, c.Flags())
	var n newKeyFile
	c.Flags().StringVar(&n.database, "db", "default", "the `name` of the database")
	c.Flags().StringVar(&n.out, "out", "", "the `file` to write, - for the standard output; default NAME.json")
	c.Flags().StringVar(&n.url, "url", "https://localhost:9000", "the `URL` by which programs reach the server")
	c.RunE = func(c *cobra.Command, args []string) error {
		n.name = args[0]
		return n.create(c.Context(), o)
	}
	return c
}

// newKeyFile is what a key file is made for.
type newKeyFile struct{ name, database, out, url string }

// create makes the key file first and then tells the server: a key that the
// server does not know opens nothing.
func (n newKeyFile) create(ctx context.Context, o *operator) error {
	if err := errors.Join(auth.CheckAccountName(n.name), catalog.CheckName(n.database)); err != nil {
		return err
	}
	switch {
	case n.out == "":
		n.out = n.name + ".json"
	case n.out == "-" && o.json:
		return errors.New("--json and --out - exclude each other: both print on the standard output")
	}
	base, err := n.baseURL()
	if err != nil {
		return err
	}
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return err
	}
	text, err := n.keyFile(private, base)
	if err != nil {
		return err
	}
	if n.out != "-" {
		if err := writeNewFile(n.out, text); err != nil {
			return err
		}
	}
	var added admin.Account
	err = o.do(ctx, http.MethodPost, accountsPath(n.database), admin.NewAccount{
		Name:      n.name,
		PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		TokenURI:  tokenURI(base),
	}, &added)
	switch {
	case err != nil && n.out != "-":
		return errors.Join(err, os.Remove(n.out))
	case err != nil:
		return err
	case n.out == "-":
		_, err := o.app.stdout.Write(text)
		return err
	}
	o.print("%s is the key file of %s, with the key %s: whoever has it stands above the rules of %q\n", n.out, added.Email, added.KeyID, n.database)
	return nil
}

// baseURL returns where the server is reached, without a slash at its end.
func (n newKeyFile) baseURL() (string, error) {
	u, err := url.Parse(n.url)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--url must be like https://db.example.com or https://localhost:9000")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback.Host(u.Hostname())) {
		return "", errors.New("--url must be an https: URL, or access tokens could be read on their way")
	}
	return u.Scheme + "://" + u.Host, nil
}

func tokenURI(base string) string { return base + "/oauth2/token" }

// A keyFile is what Google calls a service account key, with its names.
type keyFile struct {
	Type         string `json:"type"`
	ProjectID    string `json:"project_id"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	ClientEmail  string `json:"client_email"`
	ClientID     string `json:"client_id"`
	TokenURI     string `json:"token_uri"`
	// Some libraries want these to be there. Nothing answers at them.
	AuthURI                 string `json:"auth_uri"`
	AuthProviderX509CertURL string `json:"auth_provider_x509_cert_url"`
	ClientX509CertURL       string `json:"client_x509_cert_url"`
}

func (n newKeyFile) keyFile(private *rsa.PrivateKey, base string) ([]byte, error) {
	id, err := auth.AccountKeyID(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	email := auth.AccountEmail(n.name, n.database)
	text, err := json.MarshalIndent(keyFile{
		Type:                    "service_account",
		ProjectID:               n.database,
		PrivateKeyID:            id,
		PrivateKey:              string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		ClientEmail:             email,
		ClientID:                clientID(id),
		TokenURI:                tokenURI(base),
		AuthURI:                 base + "/oauth2/auth",
		AuthProviderX509CertURL: base + "/oauth2/certs",
		ClientX509CertURL:       base + "/oauth2/certs/" + url.PathEscape(email),
	}, "", "  ")
	return append(text, '\n'), err
}

// clientID returns a number of 21 digits, which is the form that libraries know.
func clientID(keyID string) string {
	n, _ := new(big.Int).SetString(keyID, 16)
	if n == nil {
		n = new(big.Int) // no id is malformed
	}
	digits := new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)
	return "1" + fmt.Sprintf("%020d", n.Mod(n, digits))
}

// writeNewFile writes a file that must not be there yet, for its owner alone.
func writeNewFile(name string, text []byte) error {
	file, err := wholefile.New(name)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and is not replaced: give another --out, or remove it", name)
	}
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func newAccountListCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "list [flags]",
		Short:   "list the accounts of a database with their keys",
		Long:    "livetree service-account list prints the keys of all service accounts of a database." + operatorLong,
		Example: "  livetree service-account list\n  livetree service-account list --db shop --json",
		Args:    takes(),
	}
	o := operatorFlags(a, c.Flags())
	database := c.Flags().String("db", "default", "the `name` of the database")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var answer struct {
			Accounts []admin.Account `json:"accounts"`
		}
		if err := o.do(c.Context(), http.MethodGet, accountsPath(*database), nil, &answer); err != nil {
			return err
		}
		if o.json {
			return nil
		}
		table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tKEY\tMADE\tTOKEN URI")
		for _, account := range answer.Accounts {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", account.Name, account.KeyID, account.Created.Format(time.RFC3339), account.TokenURI)
		}
		return table.Flush()
	}
	return c
}

func newAccountRevokeCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke NAME|KEY [flags]",
		Short: "revoke an account, or one of its keys",
		Long: `livetree service-account revoke takes all keys of an account away, or the one whose id is
given. Access tokens that were got with them are refused from then on, and streams that
rest on them end.` + operatorLong,
		Example: `  livetree service-account revoke backend
  livetree service-account revoke 0123456789abcdef0123456789abcdef01234567 --db shop`,
		Args: takes("NAME|KEY"),
	}
	o := operatorFlags(a, c.Flags())
	database := c.Flags().String("db", "default", "the `name` of the database")
	c.RunE = func(c *cobra.Command, args []string) error {
		var answer struct {
			Revoked int `json:"revoked"`
		}
		path := accountsPath(*database) + "/" + url.PathEscape(args[0])
		if err := o.do(c.Context(), http.MethodDelete, path, nil, &answer); err != nil {
			return err
		}
		keys := "keys"
		if answer.Revoked == 1 {
			keys = "key"
		}
		o.print("revoked %d %s of %q\n", answer.Revoked, keys, *database)
		return nil
	}
	return c
}
