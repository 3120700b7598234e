package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/loopback"
)

// operatorLong is what the commands that use the admin listener have in common.
const operatorLong = `

It asks the admin listener of the server that runs on --data, and so needs to be run
on its machine, by a user who can read its files. For another machine there is
--admin-url, with the listener's credential in LIVETREE_ADMIN_TOKEN.`

// tokenVariable holds the credential of the admin listener. It has no flag: others
// on the machine can see those.
const tokenVariable = "LIVETREE_ADMIN_TOKEN"

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 64 << 20

// An operator is somebody who looks after a server.
type operator struct {
	app      *app
	data     string
	adminURL string
	ca       string
	json     bool
}

// operatorFlags declares the flags by which the admin listener is found.
func operatorFlags(a *app, flags *pflag.FlagSet) *operator {
	o := &operator{app: a}
	dataFlag(flags, &o.data)
	flags.StringVar(&o.adminURL, "admin-url", "", "the `URL` of the admin listener, if it is not that of --data")
	flags.StringVar(&o.ca, "ca", "", "a PEM `file` with a certificate to trust; default tls/ca.pem of --data if there is one")
	flags.BoolVar(&o.json, "json", false, "print JSON, errors too")
	return o
}

// dataFlag declares the flag for the data directory of a server.
func dataFlag(flags *pflag.FlagSet, data *string) {
	flags.StringVar(data, "data", "./livetree-data", "the data `directory` of the server")
}

// base returns where the admin listener is.
func (o *operator) base() (*url.URL, error) {
	text := o.adminURL
	if text == "" {
		noted, err := o.file(admin.Dir, admin.AddrFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no server with an admin listener runs on %s: start it, or say where it is with --data or --admin-url", o.data)
		}
		if err != nil {
			return nil, err
		}
		text = noted
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("the URL of the admin listener must be like http://127.0.0.1:9001")
	}
	if base.Scheme == "http" && !loopback.Host(base.Hostname()) {
		return nil, errors.New("the admin listener of another machine needs an https: URL, or the credential could be read on its way")
	}
	return base, nil
}

// file reads a file of the data directory.
func (o *operator) file(names ...string) (string, error) {
	text, err := os.ReadFile(filepath.Join(append([]string{o.data}, names...)...))
	return strings.TrimSpace(string(text)), err
}

// credential returns that of the admin listener.
func (o *operator) credential() (string, error) {
	if token, ok := o.app.lookup(tokenVariable); ok {
		return token, nil
	}
	token, err := o.file(admin.Dir, admin.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the credential of the admin listener, which can also be in %s: %w", tokenVariable, err)
	}
	return token, nil
}

// transport trusts what the system does, and the server's own authority. It uses
// no proxy: that would see the credential.
func (o *operator) transport() (*http.Transport, error) {
	file := o.ca
	if file == "" {
		file = filepath.Join(o.data, "tls", "ca.pem")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		if o.ca == "" {
			return &http.Transport{}, nil
		}
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}, nil
}

// do makes a request and reads the answer into a value, which may be nil. With
// --json the answer is printed as it is, too.
func (o *operator) do(ctx context.Context, method, path string, request, into any) error {
	text, err := o.ask(ctx, method, path, request)
	if err != nil {
		return err
	}
	if o.json {
		say(o.app.stdout, string(text))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer of the admin listener makes no sense: %w", err)
	}
	return nil
}

// ask is do that returns the answer.
func (o *operator) ask(ctx context.Context, method, path string, request any) ([]byte, error) {
	base, err := o.base()
	if err != nil {
		return nil, err
	}
	credential, err := o.credential()
	if err != nil {
		return nil, err
	}
	transport, err := o.transport()
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base.String(), "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+credential)
	asker := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := asker.Do(r)
	if err != nil {
		return nil, unanswered(ctx, base, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	if err != nil {
		return nil, unanswered(ctx, base, err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return nil, refusal(answer.StatusCode, text)
	}
	return text, nil
}

// unanswered returns why there is no answer: the user did not wait for it, or the
// server did not give it.
func unanswered(ctx context.Context, base *url.URL, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return client.ErrInterrupted
	}
	if failure, ok := errors.AsType[*url.Error](err); ok {
		err = failure.Err
	}
	return fmt.Errorf("the admin listener at %s does not answer, is the server running? %w", base.Host, err)
}

// refusal returns the error in an answer.
func refusal(status int, text []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Error == "" {
		return fmt.Errorf("the admin listener answers %d %s", status, http.StatusText(status))
	}
	return errors.New(answer.Error)
}

// print prints text, unless the answer was printed as JSON.
func (o *operator) print(format string, args ...any) {
	if !o.json {
		fmt.Fprintf(o.app.stdout, format, args...)
	}
}
