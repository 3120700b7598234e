package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/wholefile"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	// certificateLife is the longest that Apple's clients accept.
	certificateLife = 397 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
	// backdated makes a new certificate good for clients whose clocks are late.
	backdated = time.Hour
)

// The files of an authority.
const (
	authorityCert = "ca.pem"
	authorityKey  = "ca-key.pem"
	serverCert    = "cert.pem"
	serverKey     = "key.pem"
)

// An authority makes certificates for a server whose operator has none.
//
// Clients trust ca.pem once, and every certificate after that. So the authority
// is only made anew when it has ended or was removed, never because it cannot be
// read. Its key is read when something is to be signed, and is not kept in
// memory; without it a server starts as long as its certificate is good.
//
// People import ca.pem into browsers. Whoever gets hold of the key must not be able
// to be any other site to them: see constrain.
type authority struct {
	dir     string
	names   []string // DNS names, also with a leading *, and IP addresses
	machine string   // one of them that may be left out, or empty
	now     func() time.Time
	logger  *slog.Logger
	ca      *x509.Certificate // of ca.pem; nil until next was called
}

// newAuthority returns an authority that has not looked at its directory yet.
// It writes names as certificates do: an address that could be spelt in two ways
// would never be found covered.
func newAuthority(dir string, names certNames, now func() time.Time, logger *slog.Logger) *authority {
	a := &authority{dir: dir, now: now, logger: logger}
	for _, name := range names.needed {
		a.addName(name)
	}
	if names.machine != "" && a.addName(names.machine) {
		a.machine = a.names[len(a.names)-1]
	}
	return a
}

// addName adds a name unless it is there already.
func (a *authority) addName(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip := net.ParseIP(name); ip != nil {
		name = ip.String()
	}
	if slices.Contains(a.names, name) {
		return false
	}
	a.names = append(a.names, name)
	return true
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) next(current *tls.Certificate) (*tls.Certificate, error) {
	if current != nil {
		if why := a.flaw(current.Leaf); why != "" {
			return a.issue(why)
		}
		return nil, nil
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	stored, err := readPair(a.file(serverCert), a.file(serverKey))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.issue("there is none yet")
	case err != nil:
		// Perhaps a crash came between writing the key and the certificate.
		return a.issue(err.Error())
	}
	why := a.flaw(stored.Leaf)
	if why == "" {
		return stored, nil
	}
	next, err := a.issue(why)
	if errors.Is(err, fs.ErrNotExist) && a.isValid(stored.Leaf) {
		// It comes from a backup, which does not hold the key, and may be on a
		// machine of another name. Clients by the other names are served.
		a.logger.Warn("the certificate stays though it should be replaced: the key of its authority is missing", "because", why, "error", err)
		return stored, nil
	}
	return next, err
}

// isValid reports whether a certificate is one of this authority and good now.
func (a *authority) isValid(leaf *x509.Certificate) bool {
	now := a.now()
	return leaf.CheckSignatureFrom(a.ca) == nil && !now.Before(leaf.NotBefore) && now.Before(leaf.NotAfter)
}

// flaw says why a certificate of this authority has to be replaced, or "".
func (a *authority) flaw(leaf *x509.Certificate) string {
	now := a.now()
	switch {
	case leaf.CheckSignatureFrom(a.ca) != nil:
		return "the old one is from another authority"
	case now.Before(leaf.NotBefore) || !now.Before(leaf.NotAfter):
		return "the old one is not valid now"
	case leaf.NotAfter.Sub(now) < renewBefore && leaf.NotAfter.Before(a.ca.NotAfter):
		return "the old one expires soon" // and a new one could last longer
	}
	covered := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		covered = append(covered, ip.String())
	}
	for _, name := range a.names {
		if !slices.Contains(covered, name) {
			return "the old one does not cover " + name
		}
	}
	return ""
}

// open reads the authority, and makes one where none is.
func (a *authority) open() error {
	text, err := os.ReadFile(a.file(authorityCert))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.found()
	case err != nil:
		return fmt.Errorf("certificate authority: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return a.broken(authorityCert, errors.New("it holds no PEM block"))
	}
	if a.ca, err = x509.ParseCertificate(block.Bytes); err != nil {
		return a.broken(authorityCert, err)
	}
	if !a.now().Before(a.ca.NotAfter) {
		a.logger.Warn("the certificate authority has expired, and a new one is made: clients must be given the new file", "file", a.file(authorityCert))
		return a.found()
	}
	if a.machine != "" && !permits(a.ca, a.machine) {
		a.logger.Info("the certificate does not cover the name of the machine, for which its authority may not sign", "name", a.machine)
		a.names = slices.DeleteFunc(a.names, func(name string) bool { return name == a.machine })
		a.machine = ""
	}
	for _, name := range a.names {
		if !permits(a.ca, name) {
			return fmt.Errorf("the certificate authority %s may not sign for %s: run livetree dev-cert --renew --data %s to have one made that may, and give clients the new file",
				a.file(authorityCert), name, filepath.Dir(a.dir))
		}
	}
	return nil
}

// RemoveAuthority removes the authority of a data directory, with the certificate that
// it signed. The next start makes another, which clients must be told to trust. It
// fails with store.ErrInUse while a server has the directory open.
func RemoveAuthority(data string) (err error) {
	lock, err := store.LockDirectory(data, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	// The authority goes last: without it, what it signed would be made anew anyway.
	for _, name := range []string{serverCert, serverKey, authorityKey, authorityCert} {
		if err := os.Remove(filepath.Join(data, "tls", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// broken describes a file that must not be replaced unasked.
func (a *authority) broken(name string, err error) error {
	return fmt.Errorf("certificate authority %s: %w: restore the file, or remove %s to make an authority that clients must be told to trust", a.file(name), err, a.dir)
}

// found makes a new authority. The key is written first, so that ca.pem is
// never there without it.
func (a *authority) found() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	from := a.now().Add(-backdated)
	ca := &x509.Certificate{
		// Two servers' authorities must not look alike in a list of trusted ones.
		Subject:               pkix.Name{CommonName: "Livetree authority " + rand.Text()[:8]},
		NotBefore:             from,
		NotAfter:              from.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true, // it signs servers, not other authorities
	}
	constrain(ca, a.names)
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make a certificate authority: %w", err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	if err := a.write(authorityKey, key, authorityCert, der); err != nil {
		return err
	}
	a.ca = made
	a.logger.Info("made a certificate authority", "file", a.file(authorityCert), "expires", a.ca.NotAfter)
	return nil
}

// issue makes a certificate for the names, and stores it.
func (a *authority) issue(why string) (*tls.Certificate, error) {
	if !a.now().Before(a.ca.NotAfter) {
		if err := a.open(); err != nil {
			return nil, err
		}
	}
	signer, err := a.key()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := a.template()
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.ca, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", strings.Join(a.names, ", "), err)
	}
	if err := a.write(serverKey, key, serverCert, der); err != nil {
		return nil, err
	}
	pair, err := readPair(a.file(serverCert), a.file(serverKey))
	if err != nil {
		return nil, err
	}
	a.logger.Info("made a certificate", "because", why, "names", strings.Join(a.names, " "), "expires", leaf.NotAfter)
	return pair, nil
}

// template says what a certificate made now is for, and how long.
func (a *authority) template() *x509.Certificate {
	from := a.now().Add(-backdated)
	leaf := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "Livetree"}, // clients look at the names below
		NotBefore:   from,
		NotAfter:    from.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if leaf.NotAfter.After(a.ca.NotAfter) {
		leaf.NotAfter = a.ca.NotAfter
	}
	for _, name := range a.names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	return leaf
}

// key reads the key of the authority.
func (a *authority) key() (crypto.Signer, error) {
	text, err := os.ReadFile(a.file(authorityKey))
	if err != nil {
		return nil, fmt.Errorf("a new certificate cannot be signed: %w: restore the file, or run livetree dev-cert --renew --data %s to have an authority made that clients must be told to trust", err, filepath.Dir(a.dir))
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, a.broken(authorityKey, errors.New("it holds no PEM block"))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, a.broken(authorityKey, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(a.ca.PublicKey) {
		return nil, a.broken(authorityKey, errors.New("it is not the key of "+authorityCert))
	}
	return key, nil
}

// write stores a key and then the certificate for it.
func (a *authority) write(keyName string, key *ecdsa.PrivateKey, certName string, cert []byte) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory for certificates: %w", err)
	}
	if err := writePEM(a.file(keyName), 0o600, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if certName == authorityCert {
		mode = 0o644 // the one file that is for others
	}
	return writePEM(a.file(certName), mode, &pem.Block{Type: "CERTIFICATE", Bytes: cert})
}

func writePEM(name string, mode fs.FileMode, block *pem.Block) error {
	if err := wholefile.Write(name, mode, pem.EncodeToMemory(block)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
