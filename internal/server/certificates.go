package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/acmecert"
)

// certFiles names the PEM files of an operator's own certificate. Both are set
// or none.
type certFiles struct {
	cert, key string
}

// certificates gives every TLS handshake the certificate of the moment.
//
// It comes from the operator's files, and is read again when they change, or
// from an authority of our own, and is replaced before it ends. There is no
// goroutine that looks after it: a handshake does, once in a while, and the
// others go on with what there is. If looking fails, the old certificate stays.
type certificates struct {
	source  certSource
	every   time.Duration // how often a handshake looks
	now     func() time.Time
	logger  *slog.Logger
	current atomic.Pointer[tls.Certificate]

	lookedNanos atomic.Int64 // when a handshake last looked
	looking     atomic.Bool  // guards the source and what is below
	complaint   string       // the last error that was logged
}

// A certSource knows where a certificate comes from.
type certSource interface {
	// next returns the certificate to use instead of current, or nil if that is
	// still the one. The first time, current is nil. It is never called twice at
	// a time.
	next(current *tls.Certificate) (*tls.Certificate, error)
}

// newCertificates reads the given files. If none are given, it reads or makes an
// authority, and a certificate that covers names, in dir, which nobody else may
// use: the tls directory of a data directory that this process has locked.
func newCertificates(dir string, files certFiles, names certNames, now func() time.Time, logger *slog.Logger) (*certificates, error) {
	c := &certificates{now: now, logger: logger}
	switch {
	case files.cert == "" && files.key == "":
		c.source, c.every = newAuthority(dir, names, now, logger), time.Minute
	case files.cert == "" || files.key == "":
		return nil, errors.New("a certificate and its key go together: give both --tls-cert and --tls-key, or none")
	default:
		c.source, c.every = &givenFiles{certFiles: files}, time.Second
	}
	first, err := c.source.next(nil)
	if err != nil {
		return nil, err
	}
	if !now().Before(first.Leaf.NotAfter) {
		logger.Warn("the certificate has expired", "at", first.Leaf.NotAfter)
	}
	c.current.Store(first)
	c.lookedNanos.Store(now().UnixNano())
	return c, nil
}

// tlsConfig returns a configuration that all connections should share, so that
// they share the keys of session tickets.
func (c *certificates) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: c.certificate,
	}
}

// caFile returns the file that clients have to trust, or "" if the certificate
// is the operator's own.
func (c *certificates) caFile() string {
	if a, ok := c.source.(*authority); ok {
		return a.file(authorityCert)
	}
	return ""
}

// certificate has the signature of tls.Config.GetCertificate.
func (c *certificates) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	// A clock that was set back must not put off looking, hence "since >= 0".
	nowNanos := c.now().UnixNano()
	since := time.Duration(nowNanos - c.lookedNanos.Load())
	if since >= 0 && since < c.every {
		return c.current.Load(), nil
	}
	if c.looking.CompareAndSwap(false, true) {
		c.look()
		c.lookedNanos.Store(nowNanos)
		c.looking.Store(false)
	}
	return c.current.Load(), nil
}

// look asks the source for a newer certificate. An error is logged when it is
// first seen, not with every try.
func (c *certificates) look() {
	next, err := c.source.next(c.current.Load())
	switch {
	case err != nil:
		if c.complaint != err.Error() {
			c.logger.Error("the certificate could not be replaced; the old one stays", "error", err)
			c.complaint = err.Error()
		}
		return
	case next != nil:
		c.current.Store(next)
		c.logger.Info("the certificate was replaced", "expires", next.Leaf.NotAfter)
	}
	c.complaint = ""
}

// certNames are what a made certificate has to cover.
type certNames struct {
	// needed are names of which none may be left out.
	needed []string
	// machine is the name of the machine, or empty. It must not keep the server from
	// starting: a container has another with each start.
	machine string
}

// certificateNames returns the names that every machine has for itself, the host of
// the address that is listened on, and the domain below which databases are named;
// and the name of the machine.
func certificateNames(addr, domain, machine string) certNames {
	names := certNames{needed: []string{"localhost", "127.0.0.1", "::1"}}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	host, _, _ = strings.Cut(host, "%") // the zone of an IPv6 address
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		names.needed = append(names.needed, host)
	}
	// What the operator gave is judged when the certificate is made.
	if !strings.ContainsFunc(machine, func(r rune) bool { return r <= ' ' || r > '~' }) {
		names.machine = machine
	}
	if domain != "" {
		names.needed = append(names.needed, domain, "*."+domain)
	}
	return names
}

// givenFiles are an operator's files. They are read again when one of them is
// another file than before, or has another time or size.
type givenFiles struct {
	certFiles
	seen [2]fs.FileInfo
}

func (g *givenFiles) next(current *tls.Certificate) (*tls.Certificate, error) {
	cert, err := os.Stat(g.cert)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	key, err := os.Stat(g.key)
	if err != nil {
		return nil, fmt.Errorf("key of the certificate: %w", err)
	}
	if current != nil && sameFile(g.seen[0], cert) && sameFile(g.seen[1], key) {
		return nil, nil
	}
	pair, err := readPair(g.cert, g.key)
	if err != nil {
		// Not noted as seen: it may be half written, and is tried again.
		return nil, err
	}
	// The files were looked at before they were read: if they changed in between,
	// they will seem changed the next time, and be read once more.
	g.seen = [2]fs.FileInfo{cert, key}
	return pair, nil
}

func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// readPair reads a certificate with its key, and checks that they belong
// together.
func readPair(certFile, keyFile string) (*tls.Certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("key of the certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return &pair, nil
}

// newTLS returns how TLS is spoken, the file that clients have to trust, and the
// certificates that somebody has to keep.
func newTLS(c Config) (*tls.Config, string, *acmecert.Certificates, error) {
	machine, _ := os.Hostname() // only one of the names in the certificate
	names := certificateNames(c.Addr, c.Domain, machine)
	names.needed = append(names.needed, adminNames(c.AdminAddr)...)
	names.needed = append(names.needed, c.Cluster.hosts()...)
	certs, err := newCertificates(filepath.Join(c.Data, "tls"), certFiles{c.TLSCert, c.TLSKey}, names, c.now, c.Logger)
	if err != nil {
		return nil, "", nil, err
	}
	acme, err := acmecert.New(c.ACME, filepath.Join(c.Data, "acme"), c.Version, c.Logger)
	if err != nil {
		return nil, "", nil, err
	}
	if c.node != nil {
		acme.Share(acmecert.Cluster{Notes: c.node.Notes(), IsHome: c.node.IsHome, Now: time.Now})
	}
	config := certs.tlsConfig()
	acme.Join(config)
	return config, certs.caFile(), acme, nil
}
