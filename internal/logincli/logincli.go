// Package logincli is the commands livetree login and livetree logout: they keep the servers that a user works
// with, so that other commands need nothing but a name, or not even that.
package logincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/local"
	"github.com/livetree/livetree/internal/login"
)

// Surroundings are what the commands have from the program that they are part of.
type Surroundings struct {
	// Secret asks for a secret.
	Secret func(ctx context.Context, question string) (string, error)
	// Takes bounds the arguments of a command by their names.
	Takes func(names ...string) cobra.PositionalArgs
	// Out is where results are printed.
	Out func() io.Writer
	// File is where the servers are kept.
	File string
	// GroupID is the group of the commands in the help.
	GroupID string
}

const loginLong = `livetree login keeps the address of a server and the secret of a database under a name.
The client commands then go to that server without further flags, wherever they run:

  --url, or else LIVETREE_URL         names a server by its address
  --server, or else LIVETREE_SERVER   names one that you have logged in to
  the login that is the default       the newest one, or that of --use
  --data, or else LIVETREE_DATA       the server that runs on a data directory

The first of these that is given counts, but --server or --data on the command line count
before any variable, and before the default login. A write says on the standard error
which server it went to.

The secret is asked for on a terminal, without being shown, or is the first line of the
standard input. The server is asked once whether it takes it. The secret, with the
certificate of the server's authority, is kept in livetree/servers.json in your directory
for settings, which only you can read.

Exit codes are those of the client commands: 77 says that the server refuses the secret,
76 that its certificate is not trusted: name its authority with --ca.`

// flags are those of livetree login.
type flags struct {
	name, database, ca, use string
	list                    bool
}

// Login returns the command livetree login.
func (s Surroundings) Login() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "login [URL] [flags]",
		Short: "keep the address and the secret of a server under a name",
		Long:  loginLong,
		Example: `  livetree login https://db.example.com
  livetree login https://db.example.com --db shop --name shop < secret.txt
  livetree login --list
  livetree get /rooms --server shop`,
		GroupID: s.GroupID,
		Args:    s.Takes("[URL]"),
	}
	c.Flags().StringVar(&f.name, "name", "", "the `name` of the server for --server; default the host of its URL")
	c.Flags().StringVar(&f.database, "db", "", "the `name` of the database; the server has a default")
	c.Flags().StringVar(&f.ca, "ca", "", "a PEM `file` with a certificate to trust, which is kept; default tls/ca.pem of ./livetree-data if there is one and the server is on this machine")
	c.Flags().BoolVar(&f.list, "list", false, "list the servers that you have logged in to, the default one with a star")
	c.Flags().StringVar(&f.use, "use", "", "make the server of this `name` the default one, without logging in")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case f.list && f.use == "" && len(args) == 0:
			return s.list()
		case f.use != "" && !f.list && len(args) == 0:
			return s.makeDefault(f.use)
		case len(args) == 1 && !f.list && f.use == "":
			return s.login(c.Context(), args[0], f)
		}
		return errors.New("login takes either the URL of a server, such as https://db.example.com, or --list, or --use NAME")
	}
	return c
}

func (s Surroundings) say(format string, args ...any) {
	cli.Say(s.Out(), fmt.Sprintf(format, args...))
}

// list prints the servers, without their secrets.
func (s Surroundings) list() error {
	book, err := login.Read(s.File)
	if err != nil {
		return err
	}
	for _, name := range book.Names() {
		star, server := " ", book.Servers[name]
		if name == book.Default {
			star = "*"
		}
		s.say("%s %s  %s\n", star, name, place(server))
	}
	return nil
}

// place returns where a server is, for people.
func place(server login.Server) string {
	if server.Database == "" {
		return server.URL
	}
	return server.URL + " (database " + server.Database + ")"
}

func (s Surroundings) makeDefault(name string) error {
	book, err := login.Read(s.File)
	if err != nil {
		return err
	}
	server, _, err := book.Find(name)
	if err != nil {
		return err
	}
	book.Default = name
	if err := book.Write(s.File); err != nil {
		return err
	}
	s.say("%s is the default server now: %s\n", name, place(server))
	return nil
}

// login asks for the secret, tries it, and keeps it.
func (s Surroundings) login(ctx context.Context, address string, f flags) error {
	book, err := login.Read(s.File)
	if err != nil {
		return err
	}
	server, err := f.server(address)
	if err != nil {
		return err
	}
	name, err := f.nameFor(book, server)
	if err != nil {
		return err
	}
	if server.Secret, err = s.Secret(ctx, "Secret of "+cli.Visible(place(server))+": "); err != nil {
		return err
	}
	if server.Secret == "" {
		return errors.New("there is no secret: type it, or give it as the first line of the standard input")
	}
	readsRoot, err := try(ctx, server)
	if err != nil {
		return err
	}
	book.Servers[name], book.Default = server, name
	if err := book.Write(s.File); err != nil {
		return err
	}
	s.say("logged in to %s as %s, which is the default server now\n", place(server), name)
	if !readsRoot {
		s.say("the credential is good, but may not read all of the database\n")
	}
	return nil
}

// server returns the server without its secret.
func (f flags) server(address string) (login.Server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return login.Server{}, errors.New("the URL must be like https://db.example.com") // it may hold a secret
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return login.Server{}, errors.New("the URL must name a server and nothing else: the secret is asked for, the database belongs in --db")
	}
	authority, err := readAuthority(cmp.Or(f.ca, local.Authority(local.DefaultData, u.Hostname())))
	return login.Server{URL: u.Scheme + "://" + u.Host, Database: f.database, Authority: authority}, err
}

// readAuthority returns the certificate to keep, none if there is no file.
func readAuthority(name string) (string, error) {
	const maxCertificates = 1 << 20
	if name == "" {
		return "", nil
	}
	text, err := cli.ReadText(name, maxCertificates)
	if err == nil && len(text) > maxCertificates {
		err = fmt.Errorf("%s is too large for a certificate", name)
	}
	if err != nil {
		return "", &client.FileError{Err: fmt.Errorf("a certificate to trust: %w", err)}
	}
	return text, nil
}

// nameFor returns the name to keep a server under, which must not be that of another.
func (f flags) nameFor(book *login.Book, server login.Server) (string, error) {
	name := f.name
	if name == "" {
		u, err := url.Parse(server.URL)
		if err != nil {
			return "", err
		}
		if name = u.Hostname(); login.CheckName(name) != nil {
			return "", errors.New("the address has no name to keep the server under: give one with --name")
		}
	}
	if err := login.CheckName(name); err != nil {
		return "", err
	}
	if old, ok := book.Servers[name]; ok && (old.URL != server.URL || old.Database != server.Database) {
		return "", fmt.Errorf("%s is the name of %s already: choose another with --name, or run livetree logout %s first", name, place(old), name)
	}
	return name, nil
}

// try asks the server whether it takes the secret.
func try(ctx context.Context, server login.Server) (readsRoot bool, err error) {
	asker, err := client.New(client.Options{
		URL: server.URL, Database: server.Database, Auth: server.Secret, Authority: server.Authority, Attempts: 1,
	})
	if err != nil {
		return false, err
	}
	defer asker.Close()
	readsRoot, err = asker.TryCredential(ctx)
	if hint := client.Hint(err); err != nil && hint != "" {
		return false, fmt.Errorf("nothing was kept: %w; %s", err, strings.ReplaceAll(hint, "look at LIVETREE_AUTH, or log in again with livetree login", "type it again"))
	}
	return readsRoot, err
}

// Logout returns the command livetree logout.
func (s Surroundings) Logout() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "logout [NAME] [flags]",
		Short: "forget a server that you have logged in to",
		Long: `livetree logout forgets the address and the secret of a server, the default one if it is
given no name. The secret stays valid: livetree secret remove ends it.`,
		Example: "  livetree logout\n  livetree logout shop\n  livetree logout --all",
		GroupID: s.GroupID,
		Args:    s.Takes("[NAME]"),
	}
	c.Flags().BoolVar(&all, "all", false, "forget all of them")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if all {
			if len(args) > 0 {
				return errors.New("--all forgets all servers, so name none")
			}
			return s.forgetAll()
		}
		return s.logout(strings.Join(args, ""))
	}
	return c
}

func (s Surroundings) logout(name string) error {
	book, err := login.Read(s.File)
	if err != nil {
		return err
	}
	if name == "" {
		if name = book.Default; name == "" {
			return errors.New("no server is the default: say which one to forget; livetree login --list lists them")
		}
	}
	server, _, err := book.Find(name)
	if err != nil {
		return err
	}
	wasDefault := book.Remove(name)
	if err := book.Write(s.File); err != nil {
		return err
	}
	s.say("logged out of %s: %s\n", name, place(server))
	if wasDefault && len(book.Servers) > 0 {
		s.say("no server is the default now: livetree login --use NAME makes one the default; there are %s\n", strings.Join(book.Names(), ", "))
	}
	return nil
}

// forgetAll removes the file, also one that cannot be read.
func (s Surroundings) forgetAll() error {
	if err := os.Remove(s.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.say("logged out of all servers\n")
	return nil
}
