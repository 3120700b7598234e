package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/local"
	"github.com/livetree/livetree/internal/login"
)

// remoteLong is what the commands that talk to a server have in common.
const remoteLong = `

Without --url it asks the server that you have logged in to (livetree login) or else the
one that runs on --data, with the secret that is there.

Every flag can also be given as an environment variable: LIVETREE_URL for --url.
Others on this machine can see flags, so LIVETREE_AUTH is the better place for
the secret.

Exit codes: 0 done; 1 wrong usage, or what has no code of its own; 65 the data is
wrong; 69 the server cannot be reached or is busy; 74 a file cannot be read or
written; 75 interrupted, the same command goes on; 76 the certificate is refused or
the answer makes no sense; 77 the credential is missing, wrong or not enough.`

// A remote is a database on a server, and how to print what comes of it.
type remote struct {
	client.Options
	json  bool
	flags *pflag.FlagSet
}

// remoteFlags declares the flags that say which one.
func remoteFlags(f *pflag.FlagSet) *remote {
	r := &remote{flags: f, Options: client.Options{Logins: login.File()}}
	f.StringVar(&r.URL, "url", "", "the `URL` of the server, such as https://db.example.com; default the one of livetree login, or that runs on --data")
	f.StringVar(&r.Server, "server", "", "the `name` of a server that you have logged in to with livetree login; default the newest, or that of login --use")
	f.StringVar(&r.Data, "data", local.DefaultData, "the data `directory` of a server on this machine, which tells its address, authority and secret")
	f.StringVar(&r.Database, "db", "", "the `name` of the database; the server has a default")
	f.StringVar(&r.Auth, "auth", "", "the `secret` of the database; better in LIVETREE_AUTH")
	f.StringVar(&r.CA, "ca", "", "a PEM `file` with a certificate to trust; default tls/ca.pem of --data if there is one")
	return r
}

// jsonFlag declares --json, for what the command prints otherwise as text.
func (r *remote) jsonFlag(f *pflag.FlagSet) {
	f.BoolVar(&r.json, "json", false, "print JSON, errors too")
}

// runs makes fn what the command does. Its errors get a hint, and are JSON if that
// was asked for.
func (r *remote) runs(a *app, fn func(c *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		err := fn(c, args)
		if err == nil || errors.Is(err, errSaid) {
			return err
		}
		if err == context.Canceled { //nolint:errorlint // one that says more is kept
			err = client.ErrInterrupted
		}
		if !r.json {
			return hinted(err)
		}
		failure := failureJSON{Error: err.Error(), Hint: client.Hint(err), Exit: client.ExitCode(err)}
		if status, ok := errors.AsType[*client.StatusError](err); ok {
			failure.Error, failure.Status = status.Text, status.Status
		}
		printJSON(a.stderr, failure)
		return errors.Join(errSaid, err)
	}
}

// failureJSON is how --json shows an error.
type failureJSON struct {
	Error  string `json:"error"`
	Status int    `json:"status,omitempty"`
	Hint   string `json:"hint,omitempty"`
	Exit   int    `json:"exit"`
}

// printJSON prints a value on one line.
func printJSON(w io.Writer, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return // none of our types fails
	}
	say(w, b.String())
}

// hinted adds to an error what to do about it.
func hinted(err error) error {
	if hint := client.Hint(err); hint != "" {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// choose heeds which server the command line names: that counts before what variables and logins say.
func (r *remote) choose() error {
	if r.flags == nil {
		return nil
	}
	url, server, data := cli.IsTyped(r.flags, "url"), cli.IsTyped(r.flags, "server"), cli.IsTyped(r.flags, "data")
	switch {
	case server && (url || data):
		return errors.New("--server, --url and --data each name a server: give --server alone")
	case server:
		r.URL = ""
	case data && !url:
		r.URL, r.Server, r.Logins = "", "", ""
	}
	return nil
}

// connect returns a client of the database.
func (r *remote) connect() (*client.Client, error) {
	if err := r.choose(); err != nil {
		return nil, err
	}
	return client.New(r.Options)
}

// connectTo returns a client of the database, and the location that an argument names.
func (r *remote) connectTo(path string) (at string, server *client.Client, err error) {
	if at, err = client.Location(path); err != nil {
		return "", nil, err
	}
	server, err = r.connect()
	return at, server, err
}

// confirm asks a person a question, unless the answer was given as --yes or nobody
// sits there.
func (a *app) confirm(yes bool, question string) error {
	if yes || !a.isTerminal(a.stdin) || !a.isTerminal(a.stderr) {
		return nil
	}
	return a.ask(question)
}

// ask asks a question, and fails unless the answer is yes.
func (a *app) ask(question string) error {
	say(a.stderr, question+" [y/N] ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was changed: the answer was not yes")
}

// A body is JSON that is sent: an argument, a file, or the standard input.
type body struct {
	io.Reader
	size  int64
	close func()
}

// openBody finds the body of a request.
func openBody(a *app, args []string, file string) (*body, error) {
	switch {
	case len(args) > 0 && file != "":
		return nil, errors.New("the data is either an argument or in --file, not both")
	case len(args) > 0 && args[0] != "-":
		return &body{bytes.NewReader([]byte(args[0])), int64(len(args[0])), func() {}}, nil
	case file != "" && file != "-":
		f, err := os.Open(file)
		if err != nil {
			return nil, &client.FileError{Err: err}
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory", file)
		}
		if err != nil {
			_ = f.Close() // it was only read
			return nil, &client.FileError{Err: err}
		}
		return &body{f, info.Size(), func() { _ = f.Close() }}, nil
	case len(args) == 0 && file == "" && a.isTerminal(a.stdin):
		return nil, errors.New("there is no data: give it as an argument, with --file, or on the standard input")
	}
	return &body{a.stdin, 0, func() {}}, nil
}

// A lineWriter ends what is written to it with a line feed.
type lineWriter struct {
	io.Writer
	last byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if n > 0 {
		w.last = p[n-1]
	}
	return n, err
}

func (w *lineWriter) end() {
	if w.last != '\n' {
		say(w.Writer, "\n")
	}
}
