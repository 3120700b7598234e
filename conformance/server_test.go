package conformance_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/server"
)

const secret = "cOnFoRmAnCeCoNfOrMaNcEcOnFoRmAnCeCoNfOrM"

// An instance is a running server.
type instance struct {
	addr      string // of HTTPS
	plainAddr string // of the port for plain HTTP, empty if there is none
	trusted   *x509.CertPool
	isDefault bool // there is a default database
	config    server.Config
	drain     func() // ends it in order
	stop      func() // ends it at once
}

// configure turns the options of a script into a configuration.
func configure(options []string) (server.Config, error) {
	c := server.Config{Addr: "127.0.0.1:0", DefaultDatabase: "default", Secret: secret, HostMap: map[string]string{}}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		var err error
		switch name {
		case "dev":
			c.Dev = true
			// The names and the page that scripts send, as an operator would allow them.
			c.DevOrigins = []string{"https://example.com"}
			c.DevHosts = []string{"h", "db.example.com", "default.example", "elsewhere.example", "missing.example", "other.example",
				"bylabel.other.example"}
		case "no-lane":
			c.NoLane = true
		case "allow-http":
			c.AllowHTTP = true
		case "plain-port":
			c.HTTPAddr, err = freeAddr()
		case "default-db":
			c.DefaultDatabase = value
		case "domain":
			c.Domain = value
		case "host-map":
			host, database, _ := strings.Cut(value, "=")
			c.HostMap[host] = database
		case "max-body":
			c.MaxBody, err = strconv.ParseInt(value, 10, 64)
		case "max-bodies":
			c.MaxBodies, err = strconv.ParseInt(value, 10, 64)
		case "dialect":
			c.Dialect = value
		case "max-streams":
			c.MaxStreams, err = strconv.Atoi(value)
		case "keep-alive":
			c.KeepAlive, err = time.ParseDuration(value)
		default:
			err = errors.New("it is not known")
		}
		if err != nil {
			return c, fmt.Errorf("server option %s: %w", option, err)
		}
	}
	return c, nil
}

// freeAddr returns an address at which nobody listens at the moment: the server
// does not tell which plain port it has picked.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start runs a server until the test ends.
func start(t *testing.T, options []string) *instance {
	t.Helper()
	config, err := configure(options)
	if err != nil {
		t.Fatal(err)
	}
	config.Data, config.Logger = t.TempDir(), slog.New(slog.DiscardHandler)
	i := &instance{config: config, isDefault: config.DefaultDatabase != "", stop: func() {}}
	t.Cleanup(func() { i.stop() })
	err = i.run(t)
	for tries := 0; err != nil && strings.Contains(err.Error(), "the port is in use") && tries < 100; tries++ {
		// Somebody was faster to take the address.
		if i.config.HTTPAddr, err = freeAddr(); err == nil {
			err = i.run(t)
		}
	}
	if err != nil {
		t.Fatalf("the server does not start: %v", err)
	}
	i.plainAddr = i.config.HTTPAddr
	pem, err := os.ReadFile(filepath.Join(config.Data, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	i.trusted = x509.NewCertPool()
	if !i.trusted.AppendCertsFromPEM(pem) {
		t.Fatal("ca.pem holds no certificate")
	}
	return i
}

// run starts the server on its data directory, at another address than before:
// somebody may have taken that.
func (i *instance) run(t *testing.T) error {
	t.Helper()
	ready := &announced{addr: make(chan string, 1)}
	abort := make(chan struct{})
	i.config.Out, i.config.Abort = ready, abort
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, i.config) }()
	i.drain = func() {
		cancel()
		// Whether handlers are quick to return is not what is tested here.
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "handlers did not return") {
			t.Errorf("the server ends with: %v", err)
		}
		i.stop = func() {}
	}
	i.stop = func() {
		cancel()
		close(abort) // nobody is left to be waited for
		i.drain()
	}
	select {
	case i.addr = <-ready.addr:
		return nil
	case err := <-ended:
		cancel()
		i.stop = func() {}
		return err
	}
}

// announced waits for the line that says where the server is.
type announced struct {
	mu   sync.Mutex
	text strings.Builder
	addr chan string
}

var listening = regexp.MustCompile(`listening on https://(\S+)\n`)

func (a *announced) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(p)
	if found := listening.FindStringSubmatch(a.text.String()); found != nil {
		select {
		case a.addr <- found[1]:
		default: // it was told already
		}
	}
	return len(p), nil
}

// transport returns a transport of one version of HTTP, which trusts the server.
func (i *instance) transport(t *testing.T, major int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(major == 1)
	protocols.SetHTTP2(major == 2)
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: i.trusted},
		Protocols:          &protocols,
		DisableCompression: true, // requests say themselves what they accept
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}
