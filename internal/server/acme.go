package server

import (
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

// DefaultACMEDirectory is that of Let's Encrypt.
const DefaultACMEDirectory = acme.LetsEncryptURL

// ACME says which certificates are got from an authority that speaks ACME, such
// as Let's Encrypt. Without domains there are none.
type ACME struct {
	Domains []string
	// Email is told to the authority; it may be empty.
	Email string
	// Directory is the URL of the authority; that of Let's Encrypt by default.
	Directory string
	// CAFile holds what to trust when the authority is asked, if the system does
	// not trust it.
	CAFile string
}

// check fills in defaults and refuses what no authority would certify.
func (a *ACME) check(c *Config) error {
	if len(a.Domains) == 0 {
		if a.Email != "" || a.Directory != "" && a.Directory != DefaultACMEDirectory || a.CAFile != "" {
			return errors.New("ACME is used for the names in --acme-domain: give one, or leave the other settings out")
		}
		return nil
	}
	if c.TLSCert != "" {
		return errors.New("--tls-cert and --acme-domain are two ways to a certificate: choose one")
	}
	setDefault(&a.Directory, DefaultACMEDirectory)
	if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--acme-directory must be an https: URL, not %q", a.Directory)
	}
	domains := make([]string, len(a.Domains))
	for i, domain := range a.Domains {
		domains[i] = strings.ToLower(strings.TrimSuffix(domain, "."))
		if err := checkACMEDomain(domains[i]); err != nil {
			return err
		}
	}
	slices.Sort(domains)
	a.Domains = slices.Compact(domains)
	return nil
}

func checkACMEDomain(domain string) error {
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

// acmeCertificates are those of an authority that speaks ACME.
//
// A certificate is got in the background, and kept by autocert, which renews it
// in time. A handshake never waits for one: until it is there, clients are shown
// that of our own authority, and so are those who ask for another name.
type acmeCertificates struct {
	manager *autocert.Manager
	logger  *slog.Logger
	current map[string]*atomic.Pointer[tls.Certificate] // by domain

	ctx    context.Context // of all that is asked; ends with run
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

// newACME prepares to keep certificates below dir. Of no domains it is nil, which
// does nothing.
func newACME(a ACME, dir, version string, logger *slog.Logger) (*acmeCertificates, error) {
	if len(a.Domains) == 0 {
		return nil, nil
	}
	roots, err := acmeRoots(a.CAFile)
	if err != nil {
		return nil, err
	}
	// An authority for trying out and the one that counts must not share files:
	// the certificate of the first would be taken for one of the second.
	cache := filepath.Join(dir, directoryName(a.Directory))
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, fmt.Errorf("the directory for certificates: %w", err)
	}
	c := &acmeCertificates{logger: logger, firstPause: 2 * time.Minute, current: map[string]*atomic.Pointer[tls.Certificate]{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, domain := range a.Domains {
		c.current[domain] = &atomic.Pointer[tls.Certificate]{}
	}
	transport := &acmeTransport{ctx: c.ctx, logger: logger, next: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableKeepAlives:     true, // it is asked every few weeks
	}}
	c.manager = &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache(cache),
		HostPolicy: c.allow,
		Email:      a.Email,
		Client: &acme.Client{
			DirectoryURL: a.Directory,
			HTTPClient:   &http.Client{Transport: transport, Timeout: time.Minute},
			UserAgent:    "livetree/" + version,
		},
	}
	return c, nil
}

// acmeRoots returns what to trust; nil is what the system trusts.
func acmeRoots(file string) (*x509.CertPool, error) {
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
func (c *acmeCertificates) allow(_ context.Context, host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if c.current[strings.ToLower(host)] == nil {
		return errors.New("this server has no certificate of that name")
	}
	return nil
}

// join lets a configuration show these certificates, and answer the authority
// (TLS-ALPN-01).
func (c *acmeCertificates) join(config *tls.Config) {
	if c == nil {
		return
	}
	own := config.GetCertificate
	config.NextProtos = append(config.NextProtos, acme.ALPNProto)
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
			return c.manager.GetCertificate(hello)
		}
		name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
		if current := c.current[name]; current != nil && current.Load() != nil {
			return current.Load(), nil
		}
		return own(hello)
	}
}

// answering answers the authority over plain HTTP (HTTP-01), if there is a port
// for it, and leaves the rest to next.
func (c *acmeCertificates) answering(httpAddr string, next http.Handler) http.Handler {
	if c == nil || httpAddr == "" {
		return next
	}
	return c.manager.HTTPHandler(next)
}

// run keeps the certificates until ctx ends. What autocert has under way then,
// and would go on with, fails.
func (c *acmeCertificates) run(ctx context.Context) {
	if c == nil {
		return
	}
	defer context.AfterFunc(ctx, c.cancel)()
	var domains sync.WaitGroup
	for domain := range c.current {
		domains.Go(func() { c.keep(ctx, domain) })
	}
	domains.Wait()
}

// keep has a certificate for a domain until ctx ends.
func (c *acmeCertificates) keep(ctx context.Context, domain string) {
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
			c.logger.Error("no certificate could be got; clients see that of Livetree's own authority until then: "+
				"port 443 of the domain must reach --addr from the internet, or its port 80 --http-addr",
				"domain", domain, "error", err, "retry_in", retry)
			_ = pause.For(ctx, retry)
			retry = min(2*retry, longestPause)
		}
	}
}

// refresh takes over the certificate that autocert has, after getting one if
// there is none.
func (c *acmeCertificates) refresh(domain string) error {
	// Which keys a client knows must not start an order: all that speak TLS 1.2
	// know this one.
	next, err := c.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName:   domain,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
	if err != nil {
		return err
	}
	was := c.current[domain].Swap(next)
	if was == nil || !was.Leaf.Equal(next.Leaf) {
		c.logger.Info("there is a certificate", "domain", domain, "issuer", next.Leaf.Issuer.String(), "expires", next.Leaf.NotAfter)
	}
	lifetime := next.Leaf.NotAfter.Sub(next.Leaf.NotBefore)
	if left := time.Until(next.Leaf.NotAfter); left < lifetime/6 {
		c.logger.Error("the certificate is not renewed: port 443 of the domain must reach --addr from the internet, or its port 80 --http-addr",
			"domain", domain, "expires", next.Leaf.NotAfter)
	}
	return nil
}
