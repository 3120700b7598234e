package client_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/client"
	"github.com/livetree/livetree/internal/server"
)

const secret = "cLiEnTcLiEnTcLiEnTcLiEnTcLiEnT"

// An instance is a running server.
type instance struct {
	url, ca string
	stop    func()
}

// announced waits for the line that says where the server is.
type announced chan string

func (a announced) Write(p []byte) (int, error) {
	if _, rest, ok := strings.Cut(string(p), "listening on "); ok {
		a <- strings.Fields(rest)[0]
	}
	return len(p), nil
}

// startServer runs a server until the test ends.
func startServer(t testing.TB, addr string) *instance {
	t.Helper()
	return startIn(t, t.TempDir(), addr)
}

// startIn runs a server in a data directory, until it is stopped or the test ends.
func startIn(t testing.TB, dir, addr string) *instance {
	t.Helper()
	ready, abort := make(announced, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Config{
			Data: dir, Addr: addr, DefaultDatabase: "default", Secret: secret,
			Logger: slog.New(slog.DiscardHandler), Out: ready, Abort: abort,
		})
	}()
	i := &instance{ca: filepath.Join(dir, "tls", "ca.pem")}
	stopped := false
	i.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		close(abort) // nobody is left to be waited for
		// Whether handlers are quick to return is not what is tested here.
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "handlers did not return") {
			t.Errorf("the server ends with: %v", err)
		}
	}
	select {
	case i.url = <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the server does not start: %v", err)
	}
	t.Cleanup(i.stop)
	return i
}

// client returns a client of the default database, with the secret.
func (i *instance) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: i.url, Auth: secret, CA: i.ca})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// put writes a text.
func put(t testing.TB, c *client.Client, path, body string) {
	t.Helper()
	at, err := client.Location(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bytes(t.Context(), client.Request{Method: "PUT", Path: at, Body: strings.NewReader(body)}); err != nil {
		t.Fatalf("PUT %s: %v", path, err)
	}
}

// exported returns what is at a path, with priorities.
func exported(t testing.TB, c *client.Client, path string) string {
	t.Helper()
	var b strings.Builder
	if _, err := c.Export(t.Context(), client.Export{Path: path, Output: &b}); err != nil {
		t.Fatalf("export %s: %v", path, err)
	}
	return b.String()
}
