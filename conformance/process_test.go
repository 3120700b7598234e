package conformance_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

var command = proof.NewCommand()

func TestMain(m *testing.M) { os.Exit(command.Run(m)) }

// A process is a server of its own, which can be killed. It keeps its address and
// its data.
type process struct {
	t       *testing.T
	addr    string
	dir     string
	trusted *x509.CertPool

	mu      sync.Mutex
	command *exec.Cmd
}

func startProcess(t *testing.T) *process {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, addr: addr, dir: t.TempDir()}
	t.Cleanup(p.kill)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
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
	c := exec.Command(file, "serve", "--dev", "--data", p.dir, "--addr", p.addr, "--admin-addr", "", "--log-level", "ERROR")
	c.Env = append(os.Environ(), "LIVETREE_SECRET="+secret)
	c.Stdout, c.Stderr = ready, os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.command = c
	p.mu.Unlock()
	select {
	case <-ready.addr:
		return nil
	case <-time.After(time.Minute):
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
	return &http.Client{Transport: transport}
}
