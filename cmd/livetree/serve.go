package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/server"
)

const serveUsage = `livetree serve runs the server until it gets SIGINT or SIGTERM; a second signal
stops it at once.

Every flag can also be given as an environment variable: LIVETREE_ADDR for
--addr, LIVETREE_MAX_BODY for --max-body. LIVETREE_SECRET sets the app secret of
the default database when that is made; otherwise one is generated and kept in
the data directory under secrets/.

Examples:

  livetree serve --dev
  livetree serve --data /var/lib/livetree --addr :9000 --domain db.example.com

Flags:

`

// errUsage says that the flags were wrong and the flag package has said so.
var errUsage = errors.New("usage")

// serve parses the flags of the serve command and runs the server.
func serve(ctx context.Context, abort <-chan struct{}, args []string, stdout, stderr io.Writer) error {
	c := server.Config{Out: stdout, Abort: abort, Secret: os.Getenv("LIVETREE_SECRET"), HostMap: map[string]string{}}
	level := slog.LevelInfo
	var trust trust
	flags := serveFlags(&c, &trust, &level)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		say(stderr, serveUsage)
		flags.PrintDefaults()
	}
	if err := fromEnvironment(flags, os.LookupEnv); err != nil {
		return err
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return errUsage
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("serve takes no arguments, but was given %q", flags.Arg(0))
	}
	var err error
	if c.Issuers, err = trust.list(); err != nil {
		return err
	}
	c.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	return server.Run(ctx, c)
}

// serveFlags declares the flags, which fill in c.
func serveFlags(c *server.Config, trust *trust, level *slog.Level) *flag.FlagSet {
	flags := flag.NewFlagSet("livetree serve", flag.ContinueOnError)
	flags.StringVar(&c.Data, "data", "./livetree-data", "the data `directory`; made if there is none")
	flags.StringVar(&c.Addr, "addr", server.DefaultAddr, "the `host:port` for HTTPS; plain HTTP there is answered 404; port 0 picks one")
	flags.StringVar(&c.HTTPAddr, "http-addr", "", "a second `host:port` for plain HTTP: 404 unless --allow-http")
	flags.BoolVar(&c.AllowHTTP, "allow-http", false, "also serve plain HTTP: behind a proxy that ends TLS, or for SDKs in emulator mode")
	flags.StringVar(&c.TLSCert, "tls-cert", "", "a PEM `file` with the certificate, read again when it changes; without it one is made under the data directory")
	flags.StringVar(&c.TLSKey, "tls-key", "", "a PEM `file` with its key")
	flags.StringVar(&c.DefaultDatabase, "default-db", "default", "the `name` of the database for requests that name none; empty for none")
	flags.StringVar(&c.Domain, "domain", "", "databases are also named by the host: NAME.`domain`")
	flags.Var(hostMap(c.HostMap), "host-map", "a `HOST=NAME` that gives a host its database; repeatable")
	flags.Var(&trust.issuers, "issuer", "the `URL` of an identity provider whose tokens are accepted; needs --audience; repeatable")
	flags.Var(&trust.audiences, "audience", "a `name` for which the tokens of issuers must be; {database} in it stands for the database's name; repeatable")
	flags.StringVar(&trust.keys, "jwks", "", "where the keys of the one issuer are, an https: or file: `URL`, if its discovery document does not tell: a key set, or certificates by key id")
	flags.BoolVar(&c.Dev, "dev", false, "for trying out, on this machine only: new databases are open to all, a write makes its database, the credential owner is the administrator")
	c.MaxBody = server.DefaultMaxBody
	flags.Var((*byteSize)(&c.MaxBody), "max-body", "the largest body of a request, a `size` such as 256MiB")
	c.MaxBodies = server.DefaultMaxBodies
	flags.Var((*byteSize)(&c.MaxBodies), "max-bodies", "the memory that all bodies may take at a time, a `size`")
	flags.Var((*byteSize)(&c.CacheBytes), "cache", "the `size` of the block cache; 0B for the default")
	flags.TextVar(level, "log-level", *level, "what is logged: DEBUG, INFO, WARN or ERROR")
	return flags
}

// fromEnvironment sets each flag from its variable: LIVETREE_DATA for --data.
func fromEnvironment(flags *flag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *flag.Flag) {
		name := "LIVETREE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := lookup(name)
		if !ok || err != nil {
			return
		}
		if setErr := f.Value.Set(value); setErr != nil {
			err = fmt.Errorf("%s=%q: %w", name, value, setErr)
		}
	})
	return err
}

// hostMap collects HOST=NAME pairs; the environment separates them by commas.
type hostMap map[string]string

func (m hostMap) String() string { return "" }

func (m hostMap) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		host, name, ok := strings.Cut(pair, "=")
		if !ok || host == "" || name == "" {
			return errors.New("it must be HOST=NAME")
		}
		m[strings.ToLower(host)] = name
	}
	return nil
}

// trust is whose tokens are accepted, and for whom they must be.
type trust struct {
	issuers, audiences list
	keys               string
}

func (t trust) list() ([]auth.Issuer, error) {
	if t.keys != "" && len(t.issuers) != 1 {
		return nil, errors.New("--jwks is the keys of one --issuer")
	}
	var all []auth.Issuer
	for _, url := range t.issuers {
		all = append(all, auth.Issuer{URL: url, Audiences: t.audiences, JWKS: t.keys})
	}
	return all, nil
}

// list collects texts; the environment separates them by commas.
type list []string

func (l *list) String() string { return "" }

func (l *list) Set(text string) error {
	*l = append(*l, strings.Split(text, ",")...)
	return nil
}

// byteSize is a number of bytes with a unit.
type byteSize int64

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

func (s *byteSize) String() string {
	for i := len(units) - 3; s != nil && i >= 0; i-- {
		if u := units[i]; int64(*s) >= u.bytes && int64(*s)%u.bytes == 0 {
			return strconv.FormatInt(int64(*s)/u.bytes, 10) + u.suffix
		}
	}
	if s == nil {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10) + "B"
}

func (s *byteSize) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*s = byteSize(n * u.bytes)
		return nil
	}
	return errors.New("it must be a number with B, KiB, MiB or GiB")
}
