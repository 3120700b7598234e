package peer

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/wholefile"
)

const (
	// nameInCerts is the one name in the certificates of all nodes, so that addresses may change.
	nameInCerts = "livetree-node"
	// certLife is how long a node's certificate is good for, renewAge the age at which it gets another.
	certLife = 30 * 24 * time.Hour
	renewAge = 10 * 24 * time.Hour
	// certSlack is how much earlier a certificate begins, for nodes whose clocks are behind.
	certSlack = 24 * time.Hour
)

// An authority issues the certificates of nodes. Every node works out the same one, to the byte.
type authority struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

func newAuthority(seed [keyBytes]byte) (authority, error) {
	key := signer(seed)
	public := key.Public().(ed25519.PublicKey)
	id := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(id[:16]),
		Subject:               pkix.Name{CommonName: "livetree cluster " + hex.EncodeToString(id[:8])},
		SubjectKeyId:          id[:20],
		NotBefore:             time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return authority{cert, key}, err
}

// authorities are those of a key: the first signs, all are trusted.
func (k Key) authorities() (all []authority, err error) {
	for _, seed := range k.seeds {
		a, err := newAuthority(seed)
		if err != nil {
			return nil, fmt.Errorf("authority of the cluster's key: %w", err)
		}
		all = append(all, a)
	}
	return all, nil
}

// issue makes a certificate of a node.
func (a authority) issue(key ed25519.PrivateKey, now time.Time) (tls.Certificate, error) {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // it never fails
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      pkix.Name{CommonName: nameInCerts},
		DNSNames:     []string{nameInCerts},
		NotBefore:    now.Add(-certSlack),
		NotAfter:     now.Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate of this node: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// An identity is how a node shows that it has the key, for some time.
type identity struct {
	all  []authority
	key  ed25519.PrivateKey
	cert tls.Certificate
	at   time.Time
}

// identify makes an identity with a private key of its own.
func (k Key) identify(now time.Time) (identity, error) {
	all, err := k.authorities()
	if err != nil {
		return identity{}, err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return identity{}, err
	}
	return identity{all: all, key: key}.renewed(now)
}

// renewed is an identity with a later certificate. The private key stays: etcd reads the two files one after the other.
func (id identity) renewed(now time.Time) (identity, error) {
	var err error
	id.cert, err = id.all[0].issue(id.key, now)
	id.at = now
	return id, err
}

// trusted are the authorities whose certificates are taken.
func (id identity) trusted() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range id.all {
		pool.AddCert(a.cert)
	}
	return pool
}

// write puts the files of an identity into a directory that its owner alone may enter.
func (id identity) write(dir string) (etcdlog.TLS, error) {
	files := etcdlog.TLS{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return files, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return files, err
	}
	var authorities bytes.Buffer
	for _, a := range id.all {
		authorities.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	}
	private, err := x509.MarshalPKCS8PrivateKey(id.key)
	if err != nil {
		return files, err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{files.CA, authorities.Bytes()},
		{files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})},
		{files.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.cert.Certificate[0]})},
	} {
		if err := wholefile.Write(file.name, 0o600, file.content); err != nil {
			return files, fmt.Errorf("files for etcd: %w", err)
		}
	}
	return files, nil
}

// WriteFiles writes what etcd needs of a key into a directory: the authorities, a new certificate of this node, and its
// private key.
func (k Key) WriteFiles(dir string, now time.Time) (etcdlog.TLS, error) {
	id, err := k.identify(now)
	if err != nil {
		return etcdlog.TLS{}, err
	}
	return id.write(dir)
}
