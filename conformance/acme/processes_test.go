package acme

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
)

// The commands, built once.
var livetreeBinary, pebbleBinary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "livetree-acme")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	livetreeBinary, pebbleBinary = filepath.Join(dir, "livetree"), filepath.Join(dir, "pebble")
	for _, build := range []struct{ in, out, what string }{
		{filepath.Join("..", ".."), livetreeBinary, "./cmd/livetree"},
		{".", pebbleBinary, "github.com/letsencrypt/pebble/v2/cmd/pebble"},
	} {
		command := exec.Command("go", "build", "-o", build.out, build.what)
		command.Dir = build.in
		if out, err := command.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", build.what, err, out)
			return 1
		}
	}
	return m.Run()
}

// freeAddr returns an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func port(t *testing.T, addr string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A pebble is a running authority. It looks for servers on two ports of loopback,
// whatever their names are.
type pebble struct {
	directory, caFile string
	tlsAddr, httpAddr string // where it looks for the server
	issuers           *x509.CertPool
	log               safeBuffer
	stop              func()
}

func startPebble(t *testing.T) *pebble {
	t.Helper()
	return startPebbleFor(t, 90*24*time.Hour)
}

// startPebbleFor starts an authority whose certificates are good for a time.
func startPebbleFor(t *testing.T, validity time.Duration) *pebble {
	t.Helper()
	dir := t.TempDir()
	p := &pebble{tlsAddr: freeAddr(t), httpAddr: freeAddr(t), caFile: filepath.Join(dir, "cert.pem")}
	writeCertificate(t, p.caFile, filepath.Join(dir, "key.pem"))
	listen, manage := freeAddr(t), freeAddr(t)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": listen, "managementListenAddress": manage,
		"certificate": p.caFile, "privateKey": filepath.Join(dir, "key.pem"),
		"httpPort": port(t, p.httpAddr), "tlsPort": port(t, p.tlsAddr),
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "for tests", "validityPeriod": int(validity.Seconds())}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	configFile := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(configFile, config, 0o600); err != nil {
		t.Fatal(err)
	}
	// Pebble refuses a part of all nonces by default, as authorities may.
	command := exec.Command(pebbleBinary, "-config", configFile, "-dnsserver", startDNS(t))
	command.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	command.Stdout, command.Stderr = &p.log, &p.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	t.Cleanup(p.stop)
	p.directory = "https://" + listen + "/dir"
	p.issuers = fetchIssuers(t, "https://"+manage+"/roots/0", p)
	return p
}

// startDNS starts a server that knows every name, as this machine.
func startDNS(t *testing.T) string {
	t.Helper()
	addr := freeAddr(t)
	server, err := challtestsrv.New(challtestsrv.Config{DNSAddrs: []string{addr}, Log: log.New(io.Discard, "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	server.SetDefaultDNSIPv4("127.0.0.1")
	server.SetDefaultDNSIPv6("")
	go server.Run()
	t.Cleanup(server.Shutdown)
	return addr
}

// fetchIssuers waits for Pebble and returns what clients of its certificates trust.
func fetchIssuers(t *testing.T, url string, p *pebble) *x509.CertPool {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it is ours
	defer transport.CloseIdleConnections()
	deadline, tick := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := (&http.Client{Transport: transport}).Get(url)
		if err == nil {
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			pool := x509.NewCertPool()
			if err != nil || !pool.AppendCertsFromPEM(text) {
				t.Fatalf("the root of Pebble: %v, %s", err, text)
			}
			return pool
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("Pebble does not answer: %v\n%s", err, p.log.String())
		}
	}
}

// writeCertificate makes a certificate for loopback that signs itself.
func writeCertificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A server is a running Livetree.
type server struct {
	*exec.Cmd
	addr string
}

func startServer(t *testing.T, data string, flags ...string) *server {
	t.Helper()
	s, err := start(t, append([]string{"--dev", "--data", data, "--admin-addr", ""}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a server and returns when it serves.
func start(t *testing.T, flags ...string) (*server, error) {
	s := &server{Cmd: exec.Command(livetreeBinary, append([]string{"serve"}, flags...)...)}
	s.Stderr = os.Stderr
	out, err := s.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = s.Process.Kill() }) // does nothing after stop
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, addr, ok := strings.Cut(lines.Text(), "listening on https://"); ok {
			s.addr = addr
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return s, nil
		}
	}
	return nil, errors.New("the server ended before it was ready")
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// A safeBuffer is written and read at the same time.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
