package client

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/local"
	"github.com/livetree/livetree/internal/login"
	"github.com/livetree/livetree/internal/loopback"
)

// An address is a server and the name of a database on it.
type address struct {
	url      *url.URL // scheme and host alone
	database string
}

// find looks for the server if its URL was not given: one that the user has logged in to, or that on the data
// directory. A credential that was given is kept.
func (o *Options) find() error {
	if o.URL != "" || o.Source {
		return nil
	}
	if found, err := o.FindLogin(); found || err != nil || o.Data == "" {
		return err
	}
	found, err := local.Find(o.Data)
	if errors.Is(err, local.ErrNone) {
		return usage("no server runs on %s: start one with livetree serve, or say where it is with --url, --data or livetree login", o.Data)
	}
	if err != nil {
		return &FileError{err}
	}
	o.URL = found.URL
	o.CA = cmp.Or(o.CA, found.CA)
	if o.Auth != "" {
		return o.mayLeave()
	}
	if o.Auth, err = found.Secret(o.Database); err != nil {
		return &FileError{fmt.Errorf("the app secret, which can also be in LIVETREE_AUTH: %w", err)}
	}
	if o.Auth == "" {
		o.Auth = askSecret(o.Data, cmp.Or(o.Database, found.Database))
	}
	return nil
}

// mayLeave returns an error unless a credential that was given may be sent where the note of a data directory says.
func (o *Options) mayLeave() error {
	u, err := url.Parse(o.URL)
	if err == nil {
		err = local.CheckNoted(o.Data, u.Hostname(), "--url")
	}
	if err != nil {
		return &FileError{err}
	}
	return nil
}

// SecretsPath is where the admin listener has the secrets of a database.
func SecretsPath(database string) string {
	return "/v1/databases/" + url.PathEscape(database) + "/secrets"
}

// secretPatience bounds how long the admin listener is asked for a secret.
const secretPatience = 5 * time.Second

// askSecret asks the admin listener of the server on a data directory for the app secret of a database: the nodes of a cluster, for one, keep secrets
// among their data and not in files. Without an answer there is none, and the server says what is missing.
func askSecret(data, database string) string {
	if database == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretPatience)
	defer cancel()
	o := Operator{Data: data, Lookup: func(string) (string, bool) { return "", false }}
	text, err := o.Ask(ctx, http.MethodGet, SecretsPath(database)+"?show=true", nil)
	var answer struct {
		Secrets []admin.Secret `json:"secrets"`
	}
	if err != nil || json.Unmarshal(text, &answer) != nil || len(answer.Secrets) == 0 {
		return ""
	}
	return answer.Secrets[0].Value
}

// FindLogin fills in what the user has logged in to, if there is no URL yet, and reports whether there is such a
// server. What was given beside it is kept.
func (o *Options) FindLogin() (found bool, err error) {
	if o.URL != "" || o.Logins == "" && o.Server == "" {
		return false, nil
	}
	book, err := login.Read(o.Logins)
	if err != nil {
		return false, &FileError{err}
	}
	s, found, err := book.Find(o.Server)
	if err != nil {
		return false, usage("--server=%v", err)
	}
	if !found {
		return false, nil
	}
	o.URL, o.Authority, o.loggedIn = s.URL, s.Authority, true
	o.Database, o.Auth = cmp.Or(o.Database, s.Database), cmp.Or(o.Auth, s.Secret)
	return true, nil
}

// address reads where the server is, and refuses to send a secret there in the clear. Errors
// have the names of the flags that were given.
func (o *Options) address() (address, error) {
	a, err := parseAddress(o.URL, o.Database)
	if err == nil && a.url.Scheme == "http" && o.Auth != "" && !loopback.Host(a.url.Hostname()) {
		err = usage("--url must be https: the secret would be sent in the clear")
	}
	if err != nil {
		return address{}, usage("%s", named(err.Error(), o.Source))
	}
	return a, nil
}

// parseAddress reads --url and --db. Errors do not show the URL: it may hold a
// secret where none belongs.
func parseAddress(text, database string) (address, error) {
	if text == "" {
		return address{}, usage("--url must say where the server is, such as https://localhost:9000")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return address{}, usage("--url must be like https://localhost:9000")
	}
	values := u.Query()
	database = cmp.Or(database, values.Get("ns"))
	values.Del("ns")
	if len(values) > 0 || u.User != nil || strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return address{}, usage("--url must name a server and nothing else; the secret belongs in LIVETREE_AUTH, the database in --db")
	}
	return address{&url.URL{Scheme: u.Scheme, Host: u.Host}, database}, nil
}

// target returns the URL of a request.
func (a address) target(path string, query url.Values) *url.URL {
	values := url.Values{}
	for name, list := range query {
		values[name] = list
	}
	if a.database != "" {
		values.Set("ns", a.database)
	}
	u := *a.url
	u.RawPath, u.RawQuery = path, values.Encode()
	// The path was escaped by us, so it can be read again.
	u.Path, _ = url.PathUnescape(path)
	return &u
}

// same reports whether two addresses are surely the same database. All names of
// this machine are one.
func (a address) same(b address) bool {
	return a.database == b.database && a.endpoint() == b.endpoint()
}

func (a address) endpoint() string {
	host, port := strings.ToLower(a.url.Hostname()), a.url.Port()
	if loopback.Host(host) {
		host = "localhost"
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[a.url.Scheme]
	}
	return net.JoinHostPort(host, port)
}

// String returns the address for people.
func (a address) String() string {
	if a.database == "" {
		return a.url.String()
	}
	return a.url.String() + " (database " + a.database + ")"
}

// wantsParameter reports whether the credential must be a parameter: the original
// service takes only its access tokens, which begin like this, in a header.
func (a address) wantsParameter(auth string) bool {
	host := a.url.Hostname()
	original := strings.HasSuffix(host, ".firebaseio.com") || strings.HasSuffix(host, ".firebasedatabase.app")
	return original && !strings.HasPrefix(auth, "ya29.")
}

// trusted returns whom to trust at a host: the authorities of the system, and that of --ca, of the login or of the data
// directory, as far as local.Authority goes. The last one is not trusted with what the user has logged in to, which can
// be anywhere.
func (o *Options) trusted(host string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	name, pem := o.CA, []byte(o.Authority)
	if name == "" && !o.loggedIn && o.Authority == "" {
		name = local.Authority(cmp.Or(o.Data, local.DefaultData), host)
	}
	if name != "" {
		pem, err = os.ReadFile(name)
	}
	switch {
	case name != "" && err != nil:
		return nil, &FileError{fmt.Errorf("a certificate to trust: %w", err)}
	case len(pem) == 0 && name == "":
		return pool, nil
	case !pool.AppendCertsFromPEM(pem):
		return nil, usage("%s holds no certificate", cmp.Or(name, "the login"))
	}
	return pool, nil
}
