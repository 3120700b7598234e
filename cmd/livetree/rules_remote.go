package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/rules"
)

const rulesGetUsage = `livetree rules get prints the rules document of a database as it was written.

Usage:

  livetree rules get --url URL [flags]

Every flag can also be given as an environment variable: LIVETREE_URL for --url.
Others on this machine can see flags, so LIVETREE_AUTH is the better place for
the secret.

Examples:

  export LIVETREE_AUTH=$(cat livetree-data/secrets/default)
  livetree rules get --url https://localhost:9000 > rules.json
  livetree rules get --url https://db.example.com --db shop

Flags:

`

const rulesSetUsage = `livetree rules set replaces the rules document of a database. If the server refuses
it, the old one stays, and what is wrong is shown.

Usage:

  livetree rules set FILE --url URL [flags]

Every flag can also be given as an environment variable: LIVETREE_URL for --url.
Others on this machine can see flags, so LIVETREE_AUTH is the better place for
the secret.

Examples:

  export LIVETREE_AUTH=$(cat livetree-data/secrets/default)
  livetree rules set rules.json --url https://localhost:9000 --dry-run
  livetree rules set rules.json --url https://localhost:9000

Flags:

`

const (
	// ownAuthority is where a server that was started here keeps the certificate
	// of its authority.
	ownAuthority = "livetree-data/tls/ca.pem"
	// remoteTimeout bounds a request.
	remoteTimeout = 30 * time.Second
	// maxAnswer bounds an answer: a document in an error text at most.
	maxAnswer = 4 << 20
)

// A remote is the rules document of a database on a server.
type remote struct{ url, database, auth, ca string }

// remoteFlags declares the flags that say which one.
func remoteFlags(f rulesFlags) *remote {
	r := &remote{}
	f.StringVar(&r.url, "url", "", "the `URL` of the server, such as https://localhost:9000")
	f.StringVar(&r.database, "db", "", "the `name` of the database; the server has a default")
	f.StringVar(&r.auth, "auth", "", "the `secret` of the database; better in LIVETREE_AUTH")
	f.StringVar(&r.ca, "ca", "", "a PEM `file` with a certificate to trust; default "+ownAuthority+" if there is one")
	return r
}

func rulesGet(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newRulesFlags("get", rulesGetUsage, stderr)
	r := remoteFlags(flags)
	if err := fromEnvironment(flags.FlagSet, os.LookupEnv); err != nil {
		return err
	}
	if _, err := flags.parse(args); err != nil {
		return given(err)
	}
	status, document, err := r.do(ctx, http.MethodGet, "", nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return r.refusal(status, document)
	}
	_, err = stdout.Write(document)
	return err
}

func rulesSet(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newRulesFlags("set", rulesSetUsage, stderr, "FILE")
	r := remoteFlags(flags)
	dryRun := flags.Bool("dry-run", false, "only ask the server whether it would take the document")
	if err := fromEnvironment(flags.FlagSet, os.LookupEnv); err != nil {
		return err
	}
	files, err := flags.parse(args)
	if err != nil {
		return given(err)
	}
	document, err := readText(files[0], rules.MaxBytes)
	if err != nil {
		return err
	}
	if len(document) > rules.MaxBytes { // it was not read to its end
		return fmt.Errorf("%s is larger than %d bytes", files[0], rules.MaxBytes)
	}
	query, done := "", "the rules are set\n"
	if *dryRun {
		query, done = "dryRun=true", "the server would take the rules; nothing was changed\n"
	}
	status, answer, err := r.do(ctx, http.MethodPut, query, []byte(document))
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		if problems := problemsIn(errorText(answer)); len(problems) > 0 {
			return explain(stderr, files[0], document, problems)
		}
		return r.refusal(status, answer)
	}
	say(stdout, done)
	return nil
}

// do sends a request and returns the answer.
func (r *remote) do(ctx context.Context, method, query string, body []byte) (status int, answer []byte, err error) {
	target, err := r.target(query)
	if err != nil {
		return 0, nil, err
	}
	roots, err := r.roots()
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil, r.hide(err)
	}
	if r.auth != "" { // in a header: addresses end up in logs and error texts
		req.Header.Set("Authorization", "Bearer "+r.auth)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport: transport,
		Timeout:   remoteTimeout,
		// Nobody else is told the secret, or believed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, r.hide(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, r.hide(err)
}

// target returns the address of the document. Errors do not show the address: it
// may hold a secret where none belongs.
func (r *remote) target(query string) (string, error) {
	if r.url == "" {
		return "", errors.New("--url must say where the server is, such as https://localhost:9000")
	}
	u, err := url.Parse(r.url)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("--url must be like https://localhost:9000")
	}
	values := u.Query()
	database := cmp.Or(r.database, values.Get("ns"))
	values.Del("ns")
	if len(values) > 0 || u.User != nil || strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return "", errors.New("--url must name a server and nothing else; the secret belongs into LIVETREE_AUTH, the database into --db")
	}
	if u.Scheme == "http" && r.auth != "" && !isLoopback(u.Hostname()) {
		return "", errors.New("--url must be https: the secret would be sent in the clear")
	}
	values, err = url.ParseQuery(query)
	if err != nil {
		return "", err
	}
	if database != "" {
		values.Set("ns", database)
	}
	u.Path, u.RawPath, u.RawQuery = "/.settings/rules.json", "", values.Encode()
	return u.String(), nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// roots returns whom to trust: the authorities of the system, and the one of --ca
// or of the data directory here.
func (r *remote) roots() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	name := cmp.Or(r.ca, filepath.FromSlash(ownAuthority))
	pem, err := os.ReadFile(name)
	switch {
	case r.ca == "" && errors.Is(err, fs.ErrNotExist):
		return pool, nil
	case err != nil:
		return nil, err
	case !pool.AppendCertsFromPEM(pem):
		return nil, fmt.Errorf("%s holds no certificate", name)
	}
	return pool, nil
}

// hide takes the secret out of an error.
func (r *remote) hide(err error) error {
	if err == nil || r.auth == "" || !strings.Contains(err.Error(), r.auth) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), r.auth, "(secret)"))
}

// refusal is an answer that is not what was asked for.
func (r *remote) refusal(status int, answer []byte) error {
	text := strings.TrimSpace(errorText(answer))
	if text == "" || len(text) > 1000 {
		text = http.StatusText(status)
	}
	hint := ""
	if (status == http.StatusUnauthorized || status == http.StatusForbidden) && r.auth == "" {
		hint = "; set LIVETREE_AUTH to the secret of the database"
	}
	return r.hide(fmt.Errorf("the server answered %d: %s%s", status, text, hint))
}

// errorText returns the text of {"error": "…"}, or the answer itself.
func errorText(answer []byte) string {
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &body) == nil && body.Error != "" {
		return body.Error
	}
	return string(answer)
}

// problemsIn reads what a server says about a document, LINE:COLUMN: TEXT in each
// line; none if it says something else.
func problemsIn(text string) rules.Problems {
	var problems rules.Problems
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			return nil
		}
		at, err := strconv.Atoi(parts[0])
		column, columnErr := strconv.Atoi(parts[1])
		if err != nil || columnErr != nil || at < 1 || column < 1 {
			return nil
		}
		problems = append(problems, rules.Problem{Line: at, Column: column, Message: strings.TrimSpace(parts[2])})
	}
	return problems
}
