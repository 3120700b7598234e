package conformance_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

var command = proof.NewCommand()

func TestMain(m *testing.M) {
	proof.SideBySide(4)
	os.Exit(command.Run(m))
}

// A process is a server of its own, which can be killed. It keeps its data.
type process struct {
	t       *testing.T
	base    string // the URL at which its clients find it, wherever it is
	dir     string
	trusted *x509.CertPool
	// addr is where it is, a string: somewhere else after each start, since
	// somebody may have taken the old address.
	addr atomic.Value

	mu      sync.Mutex
	command *exec.Cmd
}

func startProcess(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, dir: t.TempDir()}
	t.Cleanup(p.kill)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	p.base = "https://" + p.addr.Load().(string)
	pem, err := os.ReadFile(filepath.Join(p.dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	p.trusted = x509.NewCertPool()
	p.trusted.AppendCertsFromPEM(pem)
	return p
}

// start starts the server and returns when it listens.
func (p *process) start() error {
	file, err := command.File()
	if err != nil {
		return err
	}
	ready := &announced{addr: make(chan string, 1)}
	c := exec.Command(file, "serve", "--dev", "--data", p.dir, "--addr", "127.0.0.1:0", "--admin-addr", "", "--log-level", "ERROR")
	c.Env = append(os.Environ(), "LIVETREE_SECRET="+secret)
	c.Stdout, c.Stderr = ready, os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.command = c
	p.mu.Unlock()
	select {
	case addr := <-ready.addr:
		p.addr.Store(addr)
		return nil
	case <-time.After(patience):
		return errors.New("the server does not start")
	}
}

// kill ends the server as a power failure would, but for the disk.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command != nil {
		_ = p.command.Process.Kill()
		_ = p.command.Wait() // it was killed
		p.command = nil
	}
}

// client returns a client of the server by one version of HTTP.
func (p *process) client(major int) *http.Client {
	i := &instance{trusted: p.trusted}
	transport := i.transport(p.t, major)
	transport.TLSClientConfig = &tls.Config{RootCAs: p.trusted}
	transport.ResponseHeaderTimeout = patience
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if "https://"+addr == p.base {
			addr = p.addr.Load().(string)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return &http.Client{Transport: transport}
}
