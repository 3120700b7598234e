package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/acmecert"
	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/local"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/serverflags"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/supervisor"
)

const serveLong = `livetree serve runs the server until it gets SIGINT or SIGTERM; a second signal
stops it at once.

Every flag can also be given as an environment variable, LIVETREE_MAX_BODY for
--max-body, or in the TOML file that --config names, as max-body = "64MiB". A flag
wins over a variable, and that over the file. --print-config shows the result.

systemd may hold its ports, so that no client is refused while it restarts, and is
told when it is ready: livetree docs operations.

LIVETREE_SECRET sets the app secret of the default database when that is made;
otherwise one is generated and kept in the data directory under secrets/.

With --acme-domain it gets certificates from Let's Encrypt, or from the authority that
--acme-directory names, and renews them. With that you accept the authority's terms of
service.
The authority must be able to reach this server by the name: port 443 of the name has
to lead to --addr (TLS-ALPN-01) or, if --http-addr is given, its port 80 to that
(HTTP-01). A proxy in between that ends TLS must pass on /.well-known/acme-challenge/
of port 80; else let the proxy have the certificate. Names without --acme-domain, such
as localhost, are shown a certificate of Livetree's own authority, tls/ca.pem in the
data directory.`

// printConfigFlag is the flag that shows the settings instead of serving.
const printConfigFlag = "print-config"

// secretVariable holds the app secret. It has no flag: others on the machine can
// see those.
const secretVariable = "LIVETREE_SECRET"

// serveSettings is what the flags of serve fill in.
type serveSettings struct {
	config      server.Config
	trust       serverflags.Trust
	acmeDomains cli.List
	logLevel    slog.Level
	logFormat   cli.Choice
	lane        bool
	console     bool
	configFile  string
	printConfig cli.Choice
}

func newServeCommand(a *app) *cobra.Command {
	s := &serveSettings{
		config:      server.Config{HostMap: map[string]string{}},
		logFormat:   cli.Choice{Word: logAuto, Words: []string{logAuto, logText, logJSON}},
		printConfig: cli.Choice{Words: []string{"text", "json"}},
	}
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "run the server",
		Long:  serveLong,
		Example: `  livetree serve --dev
  livetree serve --data /var/lib/livetree --addr :9000 --domain db.example.com
  livetree serve --addr :443 --http-addr :80 --acme-domain db.example.com
  livetree serve --config /etc/livetree.toml --print-config`,
		GroupID: groupServer,
		Args:    takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(a, c, s)
		},
	}
	s.declare(c.Flags())
	s.declareLimits(c.Flags())
	s.complete(c)
	return c
}

// serve runs the server, or shows with what it would.
func serve(a *app, c *cobra.Command, s *serveSettings) error {
	secret, hasSecret := a.lookup(secretVariable)
	var err error
	if s.config.Issuers, err = s.trust.List(); err != nil {
		return err
	}
	if s.config.ClockOffset, err = serverflags.ClockOffset(a.lookup); err != nil {
		return err
	}
	if err := serverflags.CheckJoin(c.Flags(), s.config.Cluster); err != nil {
		return err
	}
	s.config.ACME.Domains, s.config.NoLane, s.config.Console.Off = s.acmeDomains, !s.lane, !s.console
	all := settings(c.Flags())
	if hasSecret {
		all = append(all, admin.Setting{Name: "secret", Value: "(hidden)", Origin: cli.OriginEnvironment, Place: secretVariable})
	}
	s.config.Settings, s.config.Terminal = all, a.isTerminal(a.stdout)
	if s.printConfig.Word != "" {
		return printSettings(a.stdout, all, s.printConfig.Word == "json")
	}
	asText := s.logFormat.Word == logText || s.logFormat.Word == logAuto && a.isTerminal(a.stderr)
	level := s.logLevel
	if origin, _ := cli.Origin(c.Flags().Lookup("log-level")); origin == cli.OriginDefault && a.isTerminal(a.stderr) && !s.config.AccessLog {
		level = slog.LevelWarn // a person reads where the server is, and what is wrong
	}
	s.config.Logger, s.config.Try = newLogger(a.stderr, level, asText), logins(a).TryLine(a.lookup, s.config.Data)
	s.config.Secret, s.config.Version = secret, buildVersion()
	s.config.Out, s.config.Abort = a.stdout, a.abort
	s.config.OpenFiles, _ = openFiles() // 0 where it is not known
	if s.config.Supervisor, err = supervisor.FromEnvironment(a.lookup, os.Getpid(), s.config.Logger); err != nil {
		return err
	}
	return server.Run(c.Context(), s.config)
}

// declare declares the flags that say what is served, and how.
func (s *serveSettings) declare(flags *pflag.FlagSet) {
	c, trust := &s.config, &s.trust
	flags.StringVar(&c.Data, "data", local.DefaultData, "the data `directory`; made if there is none")
	c.Addr, c.AdminAddr = server.DefaultAddr, server.DefaultAdminAddr
	flags.Var((*cli.HostPort)(&c.Addr), "addr", "the `host:port` for HTTPS; plain HTTP there is answered 404; port 0 picks one")
	flags.Var((*cli.HostPort)(&c.AdminAddr), "admin-addr", "the `host:port` of the admin listener: health, metrics, and what livetree db, secret, backup, top and profile use; with TLS unless it is on this machine alone; empty for none")
	flags.BoolVar(&s.console, "console", true, "serve the web console on the admin listener, below /console/")
	flags.StringVar(&c.Console.Dir, "console-dir", "", "a `directory` with the files of the console, such as internal/console/web, read for each request, for work on it; without it those in the binary are served")
	flags.Var(&c.Console.Label, "console-label", "a `text,colour` that names this server in the console, such as PRODUCTION,red; the colour is red, orange, yellow, green, blue, purple or grey")
	flags.Var((*cli.HostPort)(&c.HTTPAddr), "http-addr", "a second `host:port` for plain HTTP: 404 unless --allow-http")
	flags.BoolVar(&c.AllowHTTP, "allow-http", false, "also serve plain HTTP: behind a proxy that ends TLS, or for SDKs in emulator mode")
	flags.Var((*serverflags.Proxies)(&c.TrustedProxies), "trusted-proxy", "the `network` of a proxy in front of the server, such as 10.1.0.0/16, or its address: its connections are not limited by --max-connections-per-address, and X-Forwarded-For says which client a request comes from; else that header is ignored; repeatable")
	flags.StringVar(&c.TLSCert, "tls-cert", "", "a PEM `file` with the certificate, read again when it changes; without it one is made under the data directory")
	flags.StringVar(&c.TLSKey, "tls-key", "", "a PEM `file` with its key")
	flags.Var(&s.acmeDomains, "acme-domain", "a public `name` of this server to get a certificate for by ACME; its port 443 must lead to --addr, or its port 80 to --http-addr; repeatable")
	flags.StringVar(&c.ACME.Email, "acme-email", "", "an `address` for the ACME authority to write to")
	flags.StringVar(&c.ACME.Directory, "acme-directory", acmecert.DefaultDirectory, "the `URL` of the ACME authority")
	flags.StringVar(&c.ACME.CAFile, "acme-ca", "", "a PEM `file` with a certificate to trust when the ACME authority is asked, if the system does not trust it")
	c.DefaultDatabase, c.Dialect = "default", rest.SpecDialect
	flags.Var((*serverflags.DatabaseName)(&c.DefaultDatabase), "default-db", "the `name` of the database for requests that name none; empty for none")
	flags.StringVar(&c.Domain, "domain", "", "databases are also named by the host: NAME.`domain`")
	flags.Var(serverflags.HostMap(c.HostMap), "host-map", "a `HOST=NAME` that gives a host its database; repeatable")
	flags.Var(&trust.Issuers, "issuer", "the `URL` of an identity provider whose tokens are accepted; needs --audience; repeatable")
	flags.Var(&trust.Audiences, "audience", "a `name` that tokens of issuers may be for; {database} in it stands for the database's name; repeatable")
	flags.StringVar(&trust.Keys, "jwks", "", "where the keys of the one issuer are, an https: or file: `URL`, if its discovery document does not say: a key set, or certificates by key id")
	flags.Var((*serverflags.Dialect)(&c.Dialect), "dialect", "how the interface is spoken where they differ, a `name`: spec, or firebase for clients of today's hosted service")
	flags.BoolVar(&c.Dev, "dev", false, "for trying out, on this machine only: new databases are open to all, a write makes its database, the credential owner is the administrator")
	flags.Var((*cli.List)(&c.DevHosts), "dev-host", "a `name` of the server, beside localhost and IP addresses, that --dev answers to; repeatable")
	flags.Var((*cli.List)(&c.DevOrigins), "dev-origin", "the `origin` of web pages, such as https://app.example.com, that may use a server with --dev; those of localhost and of private addresses may anyway; repeatable")

	flags.BoolVar(&s.lane, "lane", true, "serve the ordinary requests of HTTP/1.1 by a way of our own, which takes less processor time; without it net/http of Go serves them all, to find out which of the two a problem is in")
	flags.Var((*serverflags.Level)(&s.logLevel), "log-level", "what is logged from this `level` on: DEBUG, INFO, WARN or ERROR; where it is not given and a terminal shows the log, WARN, unless --access-log")
	flags.Var(&s.logFormat, "log-format", "how it is logged; auto is text on a terminal and JSON otherwise")
	serverflags.Archive(flags, &c.Archive)
	serverflags.Hooks(flags, &c.Hooks)
	serverflags.Cluster(flags, &c.Cluster)
	flags.BoolVar(&c.AccessLog, "access-log", false, "log every request, at the level INFO")

	flags.StringVar(&s.configFile, configFlag, "", "a TOML `file` with settings; its keys are the names of flags")
	flags.Var(&s.printConfig, printConfigFlag, "print all settings and where they come from, as text or as json, and exit")
	flags.Lookup(printConfigFlag).NoOptDefVal = "text"
}

// declareLimits declares the flags that bound what clients, and the server itself,
// can take.
func (s *serveSettings) declareLimits(flags *pflag.FlagSet) {
	c := &s.config
	c.MaxBody = server.DefaultMaxBody
	c.Scrub = store.Scrub{Every: server.DefaultScrubEvery, BytesPerSecond: server.DefaultScrubRate}
	c.Limits = server.Limits{
		MaxConnections: server.DefaultMaxConnections,
		MaxStreams:     server.DefaultMaxStreams,
		MaxClients:     server.DefaultMaxClients,
		KeepAlive:      server.DefaultKeepAlive,
		HeadTimeout:    server.DefaultHeadTimeout,
		IdleTimeout:    server.DefaultIdleTimeout,
		DrainAccept:    server.DefaultDrainAccept,
		DrainRequests:  server.DefaultDrainRequests,
		LogKeep:        store.LogKeep{Age: server.DefaultLogAge, DatabaseBytes: server.DefaultLogBytes},
	}
	flags.Var((*cli.ByteSize)(&c.MaxBody), "max-body", "the largest body of a request, a `size` such as 256MiB")
	flags.Var((*cli.ByteSize)(&c.MaxBodies), "max-bodies", "the memory that all bodies may take at a time, a `size`; 0B for a quarter of what the process may use, from 256MiB to 512MiB")
	flags.Var((*cli.ByteSize)(&c.CacheBytes), "cache", "the `size` of the cache of blocks, rows and answers; 0B for a quarter of the memory that the process may use, from 64MiB to 4GiB")
	flags.Var((*cli.ByteSize)(&c.MemoryLimit), "memory-limit", "the `size` that the garbage collector tries to keep to; 0B for that of GOMEMLIMIT or, without it, what the other limits add up to, four fifths of the memory at most")
	flags.Var((*cli.Interval)(&c.Scrub.Every), "scrub-every", "the `time` from one reading of all tables to the next, in which they are compared with their checksums in the background; 0 for never")
	flags.Var((*cli.ByteSize)(&c.Scrub.BytesPerSecond), "scrub-rate", "the `size` that is read for that in a second at most; 0B for never")
	flags.Var((*serverflags.LogKeep)(&c.LogKeep), "log-keep", "how long and how large the change log of a database may get, a `time,size`")
	flags.Var((*cli.Count)(&c.MaxConnections), "max-connections", "the `number` of connections at a time; more are cut")
	flags.Var((*serverflags.Share)(&c.MaxConnectionsPerAddress), "max-connections-per-address", "the `number` of connections that one address gets when more than half of --max-connections are open; more are cut, and idle ones above it are closed when others need their place; 0 for an eighth of --max-connections, and as many as --max-connections for no such limit")
	flags.Var((*cli.Count)(&c.MaxStreams), "max-streams", "the `number` of streams at a time")
	flags.Var((*cli.Count)(&c.MaxClients), "max-clients", "the `number` of clients of the SDKs that are connected at a time; a quarter of it for those that have neither logged in nor were allowed anything")
	flags.Var((*cli.Duration)(&c.KeepAlive), "keep-alive", "the `time` between two keep-alive events of a stream")
	flags.Var((*serverflags.RateLimit)(&c.RateLimit), "rate-limit", "the `rate` of requests for each credential, or address without one, such as 100/s, with a burst 100/s,500; more are answered 429")
	flags.Var((*cli.Duration)(&c.HeadTimeout), "head-timeout", "the `time` in which the headers of a request must arrive")
	flags.Var((*cli.Duration)(&c.IdleTimeout), "idle-timeout", "the `time` that a connection is kept without a request")
	flags.Var((*cli.Duration)(&c.DrainAccept), "drain-accept", "the `time` that a server which stops still accepts connections")
	flags.Var((*cli.Duration)(&c.DrainRequests), "drain-requests", "the `time` that running requests then have to end")
}

// complete tells shells what the values of some flags are.
func (s *serveSettings) complete(c *cobra.Command) {
	words := map[string][]string{
		"log-level":     {"DEBUG", "INFO", "WARN", "ERROR"},
		"log-format":    s.logFormat.Words,
		"dialect":       {rest.SpecDialect, rest.FirebaseDialect},
		"reads":         {string(rest.Linearizable), string(rest.Local)},
		printConfigFlag: s.printConfig.Words,
	}
	// These fail only for a flag that is not there.
	for name, list := range words {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = c.MarkFlagDirname("data")
	_ = c.MarkFlagDirname("console-dir")
	for _, name := range []string{"tls-cert", "tls-key", "acme-ca"} {
		_ = c.MarkFlagFilename(name, "pem", "crt", "key")
	}
	_ = c.MarkFlagFilename(configFlag, "toml")
}
