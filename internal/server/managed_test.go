package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
)

// A lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A managed server is a whole one, with its admin listener.
type managed struct {
	t      *testing.T
	data   string
	public string // the URL of the data
	url    string // of the admin listener
	token  string
	out    *lockedBuffer
	log    *lockedBuffer
	client *http.Client
	cancel context.CancelFunc
	result chan error
}

// startManaged runs a server in a directory until the test ends, or stop.
func startManaged(t *testing.T, data string, change func(*Config)) *managed {
	t.Helper()
	m := &managed{t: t, data: data, out: &lockedBuffer{}, log: &lockedBuffer{}, result: make(chan error, 1)}
	c := Config{
		Data:            data,
		Addr:            ownHost() + ":0",
		AdminAddr:       "127.0.0.1:0",
		Version:         "v0.0.0-test",
		DefaultDatabase: "default",
		Limits:          Limits{DrainAccept: time.Millisecond, DrainRequests: patience, HeadTimeout: patience},
		Logger:          slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Out:             m.out,
	}
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() { m.result <- Run(ctx, c) }()
	t.Cleanup(m.stop)
	const ready = "listening on "
	wait(t, "the server to be ready", func() bool {
		select {
		case err := <-m.result:
			m.result <- err
			t.Fatalf("the server ended: %v\n%s", err, m.log)
		default:
		}
		return strings.Contains(m.out.String(), ready)
	})
	_, line, _ := strings.Cut(m.out.String(), ready)
	m.public, _, _ = strings.Cut(line, "\n")
	m.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: m.authority()}}}
	if c.AdminAddr != "" {
		m.url, m.token = m.file(admin.Dir, admin.AddrFile), m.file(admin.Dir, admin.TokenFile)
	}
	return m
}

func (m *managed) authority() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(m.file("tls", "ca.pem")))
	return pool
}

// file returns what is in a file of the data directory.
func (m *managed) file(names ...string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{m.data}, names...)...))
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// stop ends the server.
func (m *managed) stop() {
	m.t.Helper()
	m.cancel()
	if m.client != nil { // else it has not started
		m.client.CloseIdleConnections()
	}
	if err := <-m.result; err != nil {
		m.t.Errorf("the server ended with %v", err)
	}
	m.result <- nil
}

// patience is how long a test waits for what should come at once, on a machine
// that has much else to do.
const patience = 3 * time.Minute

// wait returns when a condition holds.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// send makes a request and returns the status and the body.
func (m *managed) send(method, address, credential, body string) (int, string) {
	m.t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	answer, err := m.client.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// admin makes a request to the admin listener with its credential.
func (m *managed) admin(method, path, body string) (int, string) {
	m.t.Helper()
	return m.send(method, m.url+path, m.token, body)
}

// want is admin for an answer that is known.
func (m *managed) want(status int, method, path, body string) string {
	m.t.Helper()
	got, text := m.admin(method, path, body)
	if got != status {
		m.t.Fatalf("%s %s = %d %s, want %d", method, path, got, text, status)
	}
	return text
}

// data makes a request for data.
func (m *managed) wantData(status int, method, path, secret, body string) {
	m.t.Helper()
	if got, text := m.send(method, m.public+path, secret, body); got != status {
		m.t.Fatalf("%s %s = %d %s, want %d", method, path, got, text, status)
	}
}
