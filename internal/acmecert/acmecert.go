// Package acmecert gets certificates for public names from an authority that speaks ACME, such as Let's Encrypt, and keeps them.
//
// [Certificates] are those of one server: they are got in the background, shown to clients ([Certificates.Join]), and renewed in time. A single server leaves
// that to autocert, with files. The nodes of a cluster have the same certificates ([Certificates.Share]): account, certificates and the answers
// to challenges are notes of the cluster ([Cache]), so any node may be asked by the authority whether the domain is the cluster's. One node
// alone orders: the home of the first shard. When it has died, the next home does.
package acmecert

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/livetree/livetree/internal/pause"
)

// DefaultDirectory is that of Let's Encrypt.
const DefaultDirectory = acme.LetsEncryptURL

// A Config says which certificates are got. Without domains there are none.
type Config struct {
	Domains []string
	// Email is told to the authority; it may be empty.
	Email string
	// Directory is the URL of the authority; that of Let's Encrypt by default.
	Directory string
	// CAFile holds what to trust when the authority is asked, if the system does
	// not trust it.
	CAFile string
}

// Check fills in defaults and refuses what no authority would certify. ownCert is the file with a certificate of the operator's, if there is one.
func (a *Config) Check(ownCert string) error {
	if len(a.Domains) == 0 {
		if a.Email != "" || a.Directory != "" && a.Directory != DefaultDirectory || a.CAFile != "" {
			return errors.New("ACME is used for the names in --acme-domain: give one, or leave the other settings out")
		}
		return nil
	}
	if ownCert != "" {
		return errors.New("--tls-cert and --acme-domain are two ways to a certificate: choose one")
	}
	a.Directory = cmp.Or(a.Directory, DefaultDirectory)
	if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--acme-directory must be an https: URL, not %q", a.Directory)
	}
	domains := make([]string, len(a.Domains))
	for i, domain := range a.Domains {
		domains[i] = strings.ToLower(strings.TrimSuffix(domain, "."))
		if err := checkDomain(domains[i]); err != nil {
			return err
		}
	}
	slices.Sort(domains)
	a.Domains = slices.Compact(domains)
	return nil
}

func checkDomain(domain string) error {
	_, err := netip.ParseAddr(domain)
	isLetter := func(r rune) bool {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '.'
	}
	switch {
	case strings.HasPrefix(domain, "*."):
		return fmt.Errorf("--acme-domain %s: a wildcard cannot be proved over HTTP or TLS: give every name, or a certificate with --tls-cert", domain)
	case err == nil || strings.HasSuffix(domain, ".localhost") || !strings.Contains(strings.Trim(domain, "."), "."):
		return fmt.Errorf("--acme-domain %s: an authority certifies public names such as db.example.com; for others Livetree's own certificate is there without a flag", domain)
	case strings.ContainsFunc(domain, func(r rune) bool { return !isLetter(r) }):
		return fmt.Errorf("--acme-domain %s: give the name as DNS has it: ASCII letters, digits and dashes, without scheme, port and path", domain)
	}
	return nil
}

// Certificates are those of an authority that speaks ACME.
//
// A certificate is got in the background, and kept by autocert, which renews it
// in time. A handshake never waits for one: until it is there, clients are shown
// that of our own authority, and so are those who ask for another name.
type Certificates struct {
	// manager answers challenges, and on a single server gets and renews.
	manager *autocert.Manager
	// newManager returns one without a cache, and with a client of its own.
	newManager func() *autocert.Manager
	files      autocert.DirCache
	authority  string
	keeper     *keeper       // nil on a single server
	look       time.Duration // how often a node of a cluster looks
	http       bool          // the authority may ask over plain HTTP
	logger     *slog.Logger
	current    map[string]*atomic.Pointer[tls.Certificate] // by domain

	ctx    context.Context // of all that is asked; ends with Run
	cancel context.CancelFunc

	// firstPause follows the first failure; later ones are longer. autocert does
	// not try again within a minute.
	firstPause time.Duration
}

const (
	// longestPause is between two tries. Let's Encrypt counts five failures of a
	// name in an hour before it refuses.
	longestPause = time.Hour
	// lookEvery is how often a certificate is looked at that autocert renews.
	lookEvery = time.Hour
)

// New prepares to keep certificates below dir. Of no domains it is nil, which
// does nothing.
func New(a Config, dir, version string, logger *slog.Logger) (*Certificates, error) {
	if len(a.Domains) == 0 {
		return nil, nil
	}
	roots, err := rootsOf(a.CAFile)
	if err != nil {
		return nil, err
	}
	// An authority for trying out and the one that counts must not share files:
	// the certificate of the first would be taken for one of the second.
	authority := directoryName(a.Directory)
	cache := filepath.Join(dir, authority)
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, fmt.Errorf("the directory for certificates: %w", err)
	}
	c := &Certificates{
		logger: logger, firstPause: 2 * time.Minute, current: map[string]*atomic.Pointer[tls.Certificate]{},
		files: autocert.DirCache(cache), authority: authority,
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, domain := range a.Domains {
		c.current[domain] = &atomic.Pointer[tls.Certificate]{}
	}
	to := &transport{ctx: c.ctx, logger: logger, next: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableKeepAlives:     true, // it is asked every few weeks
	}}
	c.newManager = func() *autocert.Manager {
		return &autocert.Manager{
			Prompt:     autocert.AcceptTOS,
			HostPolicy: c.allow,
			Email:      a.Email,
			Client: &acme.Client{
				DirectoryURL: a.Directory,
				HTTPClient:   &http.Client{Transport: to, Timeout: time.Minute},
				UserAgent:    "livetree/" + version,
			},
		}
	}
	c.manager = c.newManager()
	c.manager.Cache = c.files
	return c, nil
}

// rootsOf returns what to trust; nil is what the system trusts.
func rootsOf(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--acme-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--acme-ca: %s holds no certificate", file)
	}
	return roots, nil
}

// directoryName makes the URL of an authority the name of a directory.
func directoryName(text string) string {
	text = strings.TrimPrefix(text, "https://")
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '.':
			return r
		}
		return '_'
	}, text)
}

// allow has the signature of autocert.HostPolicy.
func (c *Certificates) allow(_ context.Context, host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if c.current[strings.ToLower(host)] == nil {
		return errors.New("this server has no certificate of that name")
	}
	return nil
}

// Join lets a configuration show these certificates, and answer the authority
// (TLS-ALPN-01).
func (c *Certificates) Join(config *tls.Config) {
	if c == nil {
		return
	}
	own := config.GetCertificate
	config.NextProtos = append(config.NextProtos, acme.ALPNProto)
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
			if err := c.allow(hello.Context(), hello.ServerName); err != nil {
				return nil, err // the other nodes are not asked for what anybody may name
			}
			return c.manager.GetCertificate(hello)
		}
		name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
		if current := c.current[name]; current != nil && current.Load() != nil {
			return current.Load(), nil
		}
		return own(hello)
	}
}

// Answering answers the authority over plain HTTP (HTTP-01), if there is a port
// for it, and leaves the rest to next.
func (c *Certificates) Answering(httpAddr string, next http.Handler) http.Handler {
	if c == nil || httpAddr == "" {
		return next
	}
	c.http = true
	return c.manager.HTTPHandler(next)
}

// Run keeps the certificates until ctx ends. What autocert has under way then,
// and would go on with, fails.
func (c *Certificates) Run(ctx context.Context) {
	if c == nil {
		return
	}
	defer context.AfterFunc(ctx, c.cancel)()
	var domains sync.WaitGroup
	for domain := range c.current {
		if c.keeper != nil {
			domains.Go(func() { c.keepShared(ctx, domain) })
		} else {
			domains.Go(func() { c.keep(ctx, domain) })
		}
	}
	domains.Wait()
}

// keep has a certificate for a domain until ctx ends.
func (c *Certificates) keep(ctx context.Context, domain string) {
	retry := c.firstPause
	for ctx.Err() == nil {
		err := c.refresh(domain)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			retry = c.firstPause
			_ = pause.For(ctx, lookEvery)
		default:
			c.complain(domain, err, retry)
			_ = pause.For(ctx, retry)
			retry = min(2*retry, longestPause)
		}
	}
}

// complain logs why there is no certificate.
func (c *Certificates) complain(domain string, err error, retry time.Duration) {
	c.logger.Error("no certificate could be got; clients see that of Livetree's own authority until then: "+
		"port 443 of the domain must reach --addr from the internet, or its port 80 --http-addr",
		"domain", domain, "error", err, "retry_in", retry.String())
}

// refresh takes over the certificate that autocert has, after getting one if
// there is none.
func (c *Certificates) refresh(domain string) error {
	// Which keys a client knows must not start an order: all that speak TLS 1.2
	// know this one.
	next, err := c.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName:   domain,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
	if err != nil {
		return err
	}
	c.show(domain, next)
	return nil
}

// show has clients see a certificate.
func (c *Certificates) show(domain string, next *tls.Certificate) {
	was := c.current[domain].Swap(next)
	if was == nil || !was.Leaf.Equal(next.Leaf) {
		c.logger.Info("there is a certificate", "domain", domain, "issuer", next.Leaf.Issuer.String(), "expires", next.Leaf.NotAfter)
	}
	lifetime := next.Leaf.NotAfter.Sub(next.Leaf.NotBefore)
	if left := time.Until(next.Leaf.NotAfter); left < lifetime/6 {
		c.logger.Error("the certificate is not renewed: port 443 of the domain must reach --addr from the internet, or its port 80 --http-addr",
			"domain", domain, "expires", next.Leaf.NotAfter)
	}
}

// Ends returns the domains that there are certificates for, and when those end.
func (c *Certificates) Ends() map[string]time.Time {
	ends := map[string]time.Time{}
	if c == nil {
		return ends
	}
	for domain, current := range c.current {
		if cert := current.Load(); cert != nil {
			ends[domain] = cert.Leaf.NotAfter
		}
	}
	return ends
}
