package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/livetree/livetree/internal/acmecert"
)

// A fakeACME is an authority that speaks as much of ACME as a server needs. It
// believes what requests say, but proves that the domain is the server's.
type fakeACME struct {
	*httptest.Server
	t      *testing.T
	caFile string // to trust the authority itself
	offers string // the challenge that it offers
	known  chan struct{}
	// Where the server is, when known is closed.
	httpsAddr, httpAddr string

	key  *ecdsa.PrivateKey
	root *x509.Certificate

	mu      sync.Mutex
	domain  string // of the newest order
	status  string // of its authorization
	failure string
	chain   []byte
	orders  int
}

func newFakeACME(t *testing.T, offers string) *fakeACME {
	t.Helper()
	f := &fakeACME{t: t, offers: offers, known: make(chan struct{}), caFile: filepath.Join(t.TempDir(), "ca.pem")}
	f.key, f.root = newRoot(t)
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	writeFile(t, f.caFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})))
	return f
}

func newRoot(t *testing.T) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fake authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * day),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, root
}

// config is what a server is told to use the authority.
func (f *fakeACME) config(domains ...string) acmecert.Config {
	return acmecert.Config{Domains: domains, Email: "op@example.com", Directory: f.URL + "/directory", CAFile: f.caFile}
}

// reach tells the authority where the domains lead.
func (f *fakeACME) reach(httpsAddr, httpAddr string) {
	f.httpsAddr, f.httpAddr = httpsAddr, httpAddr
	close(f.known)
}

// count returns how many certificates were ordered.
func (f *fakeACME) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.orders
}

func (f *fakeACME) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	<-f.known
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Replay-Nonce", rand.Text())
	var request struct{ Payload string }
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			f.t.Errorf("the request to %s: %v", r.URL.Path, err)
		}
	}
	payload, err := base64.RawURLEncoding.DecodeString(request.Payload)
	if err != nil {
		f.t.Errorf("the payload to %s: %v", r.URL.Path, err)
	}
	switch r.URL.Path {
	case "/directory":
		f.say(w, map[string]any{"newNonce": f.URL + "/nonce", "newAccount": f.URL + "/account", "newOrder": f.URL + "/new"})
	case "/nonce":
	case "/account":
		w.Header().Set("Location", f.URL+"/account/1")
		w.WriteHeader(http.StatusCreated)
		f.say(w, map[string]any{"status": "valid"})
	case "/new":
		f.begin(w, payload)
	case "/order":
		f.say(w, f.order())
	case "/authorization":
		f.say(w, f.authorization())
	case "/challenge":
		if string(payload) == "{}" {
			f.prove()
		}
		f.say(w, f.challenge())
	case "/finalize":
		f.issue(payload)
		w.Header().Set("Location", f.URL+"/order")
		f.say(w, f.order())
	case "/certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(f.chain)
	default:
		http.NotFound(w, r)
	}
}

func (f *fakeACME) say(w io.Writer, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		f.t.Error(err)
	}
}

// begin takes an order.
func (f *fakeACME) begin(w http.ResponseWriter, payload []byte) {
	var request struct {
		Identifiers []struct{ Value string }
	}
	if err := json.Unmarshal(payload, &request); err != nil || len(request.Identifiers) != 1 {
		f.t.Errorf("the order %s is not for one domain", payload)
		return
	}
	f.domain, f.status, f.failure, f.chain = request.Identifiers[0].Value, "pending", "", nil
	f.orders++
	w.Header().Set("Location", f.URL+"/order")
	w.WriteHeader(http.StatusCreated)
	f.say(w, f.order())
}

func (f *fakeACME) order() map[string]any {
	status := f.status
	switch {
	case f.chain != nil:
		status = "valid"
	case status == "valid":
		status = "ready"
	}
	return map[string]any{
		"status": status, "authorizations": []string{f.URL + "/authorization"},
		"finalize": f.URL + "/finalize", "certificate": f.URL + "/certificate",
	}
}

func (f *fakeACME) authorization() map[string]any {
	return map[string]any{
		"status": f.status, "identifier": map[string]string{"type": "dns", "value": f.domain},
		"challenges": []any{f.challenge()},
	}
}

func (f *fakeACME) challenge() map[string]any {
	c := map[string]any{"type": f.offers, "url": f.URL + "/challenge", "token": "the-token", "status": f.status}
	if f.failure != "" {
		c["error"] = map[string]string{"type": "urn:ietf:params:acme:error:unauthorized", "detail": f.failure}
	}
	return c
}

// prove looks whether the server can answer for the domain.
func (f *fakeACME) prove() {
	try := f.proveByTLS
	if f.offers == "http-01" {
		try = f.proveByHTTP
	}
	f.status = "valid"
	if err := try(); err != nil {
		f.status, f.failure = "invalid", err.Error()
	}
}

func (f *fakeACME) proveByTLS() error {
	conn, err := tls.Dial("tcp", f.httpsAddr, &tls.Config{
		ServerName: f.domain, NextProtos: []string{acme.ALPNProto},
		InsecureSkipVerify: true, // the certificate is the answer
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	leaf := state.PeerCertificates[0]
	proof := slices.ContainsFunc(leaf.Extensions, func(e pkix.Extension) bool { return e.Id.String() == "1.3.6.1.5.5.7.1.31" })
	if !proof || !slices.Equal(leaf.DNSNames, []string{f.domain}) || state.NegotiatedProtocol != acme.ALPNProto {
		return errors.New("the certificate is no answer to the challenge")
	}
	return nil
}

func (f *fakeACME) proveByHTTP() error {
	r, err := http.NewRequest(http.MethodGet, "http://"+f.httpAddr+"/.well-known/acme-challenge/the-token", nil)
	if err != nil {
		return err
	}
	r.Host = f.domain
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.HasPrefix(string(text), "the-token.")) {
		err = fmt.Errorf("%d %s is no answer to the challenge", answer.StatusCode, text)
	}
	return err
}

// issue makes the certificate that was asked for.
func (f *fakeACME) issue(payload []byte) {
	var request struct{ CSR string }
	if err := json.Unmarshal(payload, &request); err != nil {
		f.t.Error(err)
	}
	der, err := base64.RawURLEncoding.DecodeString(request.CSR)
	if err != nil {
		f.t.Error(err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		f.t.Error(err)
		return
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(f.orders + 1)), DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * day),
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, f.root, csr.PublicKey, f.key)
	if err != nil {
		f.t.Error(err)
	}
	for _, der := range [][]byte{leaf, f.root.Raw} {
		f.chain = append(f.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
}
