package acmecert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"github.com/livetree/livetree/internal/cluster/databases"
)

// Notes keep what all nodes have alike: see [databases.Notes].
type Notes interface {
	Local(name string) ([]byte, error)
	Get(ctx context.Context, name string) ([]byte, error)
	Swap(ctx context.Context, name string, was, now []byte) error
}

const (
	// lookTime bounds how long the other nodes are waited for when a challenge is to be answered.
	lookTime = 5 * time.Second
	// tries is how often a note is changed again that another node has changed.
	tries = 4
	// maxName is how long the name of what is kept may be; a stranger may ask for anything.
	maxName = 150
	// accountKey is autocert's name for the key of the account.
	accountKey = "acme_account+key"
)

// A Cache is an [autocert.Cache] that all nodes share.
type Cache struct {
	Notes Notes
	// Authority is the name of the authority, so that what one has issued is not taken for what another has.
	Authority string
}

func (c Cache) note(name string) string { return "acme/" + c.Authority + "/" + name }

// Get implements [autocert.Cache].
func (c Cache) Get(ctx context.Context, name string) ([]byte, error) {
	if len(name) > maxName {
		return nil, autocert.ErrCacheMiss
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	value, err := c.Notes.Local(c.note(name))
	if err == nil && value == nil {
		// Another node may have put it there before it told the authority to ask.
		value, err = c.Notes.Get(ctx, c.note(name))
	}
	if err == nil && value == nil {
		err = autocert.ErrCacheMiss
	}
	return value, err
}

// Put implements [autocert.Cache].
func (c Cache) Put(ctx context.Context, name string, value []byte) error {
	return c.swap(ctx, name, append([]byte{}, value...))
}

// Delete implements [autocert.Cache].
func (c Cache) Delete(ctx context.Context, name string) error { return c.swap(ctx, name, nil) }

func (c Cache) swap(ctx context.Context, name string, value []byte) (err error) {
	if len(name) > maxName {
		return errors.New("the name of a certificate is too long")
	}
	for range tries {
		was, getErr := c.Notes.Get(ctx, c.note(name))
		if getErr != nil {
			return getErr
		}
		if was == nil && value == nil {
			return nil
		}
		if err = c.Notes.Swap(ctx, c.note(name), was, value); !errors.Is(err, databases.ErrChanged) {
			return err
		}
	}
	return err
}

// A keeper has the certificates of a cluster as one node sees them. It looks what there is, and orders when nothing is there or when it is time to
// renew.
//
// Each order has an autocert.Manager of its own, which sees no certificate of the domain, and after the order can ask the authority for nothing
// more: autocert would otherwise renew by itself, on every node that has ever ordered.
type keeper struct {
	cache Cache
	// files are those of a server that is, or was, none of a cluster: what they have is taken over, and they have what is current.
	files autocert.Cache
	// isHome says that this node is the one that orders.
	isHome func() bool
	// manager returns a new manager without a cache.
	manager func() *autocert.Manager
	// http says that the authority may ask over plain HTTP.
	http func() bool
	now  func() time.Time
}

// errNone says that there is no certificate, and that another node is to order it.
var errNone = errors.New("there is no certificate yet, and another node orders it")

// certificate returns the certificate of a domain. If there is none, or it is to be renewed, and this node is the home, it is ordered, unless
// order is false. With a certificate there may also be an error: why it is not renewed.
func (k *keeper) certificate(ctx context.Context, domain string, order bool) (*tls.Certificate, error) {
	cert, err := k.current(ctx, domain)
	if err != nil {
		return nil, err
	}
	if cert != nil && !k.isDue(cert) {
		return cert, nil
	}
	if !k.isHome() || !order {
		if cert == nil {
			err = errNone
		}
		return cert, err
	}
	next, err := k.order(domain)
	if next != nil {
		cert = next
	}
	return cert, err
}

// current returns the certificate that there is, nil if none is good now.
func (k *keeper) current(ctx context.Context, domain string) (*tls.Certificate, error) {
	text, err := k.cache.Get(ctx, domain)
	if errors.Is(err, autocert.ErrCacheMiss) {
		text, err = k.takeOver(ctx, domain)
	}
	if err != nil || text == nil {
		return nil, err
	}
	cert := k.parse(domain, text)
	if cert != nil {
		k.mirror(ctx, domain, text)
	}
	return cert, nil
}

// mirror keeps the files equal: a node that becomes a single server goes on with them. That it fails is no harm here.
func (k *keeper) mirror(ctx context.Context, domain string, text []byte) {
	if was, err := k.files.Get(ctx, domain); err == nil && string(was) == string(text) {
		return
	}
	_ = k.files.Put(ctx, domain, text)
	if account, err := k.cache.Get(ctx, accountKey); err == nil {
		_ = k.files.Put(ctx, accountKey, account)
	}
}

// takeOver has the cluster take over what the home had as a single server.
func (k *keeper) takeOver(ctx context.Context, domain string) ([]byte, error) {
	if !k.isHome() {
		return nil, nil
	}
	text, err := k.files.Get(ctx, domain)
	if err != nil || k.parse(domain, text) == nil {
		return nil, nil // there is none that could be used
	}
	if account, err := k.files.Get(ctx, accountKey); err == nil {
		if err := k.cache.Put(ctx, accountKey, account); err != nil {
			return nil, err
		}
	}
	return text, k.cache.Put(ctx, domain, text)
}

// parse reads a certificate and its key as autocert writes them, and returns nil unless it is good for the domain now.
func (k *keeper) parse(domain string, text []byte) *tls.Certificate {
	cert, err := tls.X509KeyPair(text, text)
	if err != nil || cert.Leaf.VerifyHostname(domain) != nil {
		return nil
	}
	if now := k.now(); now.Before(cert.Leaf.NotBefore) || !now.Before(cert.Leaf.NotAfter) {
		return nil
	}
	return &cert
}

// isDue says that a third of a certificate's time is left.
func (k *keeper) isDue(cert *tls.Certificate) bool {
	lifetime := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore)
	return cert.Leaf.NotAfter.Sub(k.now()) < lifetime/3
}

// order gets a certificate from the authority.
func (k *keeper) order(domain string) (*tls.Certificate, error) {
	a := &attempt{k: k, domain: domain}
	a.under.Store(true)
	defer a.under.Store(false)
	m := k.manager()
	m.Cache = a
	m.Client.HTTPClient.Transport = gate{a, m.Client.HTTPClient.Transport}
	if k.http() {
		m.HTTPHandler(nil)
	}
	// Which keys a client knows must not start an order: all that speak TLS 1.2 know this one.
	cert, err := m.GetCertificate(&tls.ClientHelloInfo{ServerName: domain, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
	if err != nil {
		return nil, err
	}
	if a.unshared != nil {
		return cert, fmt.Errorf("there is a certificate, which the other nodes have not got: %w", a.unshared)
	}
	return cert, nil
}

// An attempt is one order. As a cache it has what all nodes share, but for the certificate of its domain.
type attempt struct {
	k      *keeper
	domain string
	under  atomic.Bool // until the order has ended
	// unshared is why the certificate was not put into the cache: autocert keeps that to itself.
	unshared error
}

// Get implements [autocert.Cache].
func (a *attempt) Get(ctx context.Context, name string) ([]byte, error) {
	if name == a.domain && a.under.Load() {
		return nil, autocert.ErrCacheMiss
	}
	return a.k.cache.Get(ctx, name)
}

// Put implements [autocert.Cache].
func (a *attempt) Put(ctx context.Context, name string, value []byte) error {
	err := a.k.cache.Put(ctx, name, value)
	if name == a.domain && a.under.Load() {
		a.unshared = err
	}
	return err
}

// Delete implements [autocert.Cache].
func (a *attempt) Delete(ctx context.Context, name string) error { return a.k.cache.Delete(ctx, name) }

// A gate lets requests to the authority through while an order is under way and this node is the one that orders.
type gate struct {
	a    *attempt
	next http.RoundTripper
}

var errNotHome = errors.New("another node of the cluster orders certificates")

// RoundTrip implements [http.RoundTripper].
func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if !g.a.under.Load() || !g.a.k.isHome() {
		return nil, errNotHome
	}
	return g.next.RoundTrip(r)
}
