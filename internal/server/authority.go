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
type authority struct {
	dir    string
	names  []string // DNS names, also with a leading *, and IP addresses
	now    func() time.Time
	logger *slog.Logger
	ca     *x509.Certificate // of ca.pem; nil until next was called
}

// newAuthority returns an authority that has not looked at its directory yet.
// It writes names as certificates do: an address that could be spelt in two ways
// would never be found covered.
func newAuthority(dir string, names []string, now func() time.Time, logger *slog.Logger) *authority {
	a := &authority{dir: dir, now: now, logger: logger}
	for _, name := range names {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if ip := net.ParseIP(name); ip != nil {
			name = ip.String()
		}
		if !slices.Contains(a.names, name) {
			a.names = append(a.names, name)
		}
	}
	return a
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
	if why := a.flaw(stored.Leaf); why != "" {
		return a.issue(why)
	}
	return stored, nil
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
		return nil, fmt.Errorf("a new certificate cannot be signed: %w", err)
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
	if err := replaceFile(a.file(keyName), 0o600, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if certName == authorityCert {
		mode = 0o644 // the one file that is for others
	}
	return replaceFile(a.file(certName), mode, &pem.Block{Type: "CERTIFICATE", Bytes: cert})
}

// replaceFile puts a PEM block into a file: after a crash the file is either the
// old one or the whole new one.
func replaceFile(name string, mode fs.FileMode, block *pem.Block) error {
	temporary := name + ".new" // always the same, so that crashes leave one at most
	if err := writeSynced(temporary, mode, pem.EncodeToMemory(block)); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), os.RemoveAll(temporary))
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// writeSynced returns when the text is on disk.
func writeSynced(name string, mode fs.FileMode, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	// The mode of a file that was there, or the umask, may differ.
	err = file.Chmod(mode)
	if err == nil {
		_, err = file.Write(text)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
