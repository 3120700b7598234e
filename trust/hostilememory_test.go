//go:build linux

package trust_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

// mostGrowth is by how much an attack may make the server grow.
const mostGrowth = 256 << 20

// A flood is an attack on the memory of a server.
type flood struct {
	figure string
	// begin does what the server is to hold, and returns when that is on its way. The
	// function that it returns ends it.
	begin func(h *hostile) (end func())
}

// run measures how much a server grows by an attack, while an ordinary client goes
// on, and what that client notices of it.
func (f flood) run(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--dev", "--dev-host", "h")
	c := newClient(t, p, 2)
	c.must(t, request{method: "PUT", target: "/middle.json", body: `[1` + strings.Repeat(`,{"a":"of many small nodes"}`, 1500) + `]`})
	c.must(t, request{method: "PUT", target: "/large.json", body: `[1` + strings.Repeat(`,{"a":"of many small nodes"}`, 1<<16) + `]`})
	count := length(20, 200, 1000)
	calm := workLarge(t, c, "calm", count)
	before := residentBytes(p.pid())
	end := f.begin(newHostile(t, p))
	defer end()
	during := workLarge(t, c, "during", count)
	growth := residentBytes(p.pid()) - before
	t.Logf("the server grows by %d MiB; the 99th of 100 requests takes %v, %v without attack", growth>>20, percentile99(during), percentile99(calm))
	if growth > mostGrowth {
		t.Errorf("the server grows by %d MiB, want at most %d", growth>>20, mostGrowth>>20)
	}
	figures.Report(t, f.figure, proof.Count("growth_mib", growth>>20), proof.Count("requests", len(during)),
		proof.Count("p99_us", int(percentile99(during).Microseconds())), proof.Count("calm_p99_us", int(percentile99(calm).Microseconds())))
}

// manyStreams is how many requests an attacker sends on one connection, if it may.
const manyStreams = 250

// TestUnreadAnswersOverHTTP2: clients that let no answer out of the server.
func TestUnreadAnswersOverHTTP2(t *testing.T) {
	for name, target := range map[string]string{"middle": "/middle.json", "large": "/large.json", "small": "/middle/0.json"} {
		t.Run(name, func(t *testing.T) {
			flood{"unread_" + name, func(h *hostile) func() { return h.unread(20, target, "") }}.run(t)
		})
	}
	t.Run("compressed", func(t *testing.T) {
		flood{"unread_compressed", func(h *hostile) func() { return h.unread(20, "/large.json", acceptZstd) }}.run(t)
	})
}

// acceptZstd is a header that asks for an answer in zstd.
const acceptZstd = "\x00\x0faccept-encoding\x04zstd"

// unread opens connections on each of which many answers are not read. The server may
// cut them.
func (h *hostile) unread(connections int, target, header string) (end func()) {
	var open []net.Conn
	for range connections {
		conn, _ := h.speakTwo(noWindow, eachStream(manyStreams, func(id uint32) string {
			return frame(frameHeaders, endStream|endHeaders, id, getHeaders(target)+header)
		}))
		if conn != nil {
			open = append(open, conn)
		}
	}
	return func() {
		for _, conn := range open {
			conn.Close()
		}
	}
}

// TestUnfinishedBodiesOverHTTP2: clients that send small bodies up to their end, and
// not that. A byte of a body may be 16 in memory.
func TestUnfinishedBodiesOverHTTP2(t *testing.T) {
	flood{"unfinished", func(h *hostile) func() { return h.unfinished(6) }}.run(t)
}

// unfinished sends bodies that do not end, over so many connections and, if those
// carry fewer, more.
func (h *hostile) unfinished(connections int) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var requests, sent sync.WaitGroup
	for range connections {
		transport := h.transport(2)
		for i := range manyStreams {
			body := &unfinishedBody{text: strings.NewReader("[1" + strings.Repeat(",1", 30_000)), ctx: ctx}
			sent.Add(1)
			body.sent = sync.OnceFunc(sent.Done)
			requests.Go(func() {
				defer body.sent()
				r, err := http.NewRequestWithContext(ctx, "PUT", fmt.Sprintf("https://%s/a%d.json", h.addr, i), body)
				if err != nil {
					return
				}
				r.ContentLength = 64 << 10
				if answer, err := transport.RoundTrip(r); err == nil {
					answer.Body.Close()
				}
			})
		}
	}
	sent.Wait()
	return func() {
		cancel()
		requests.Wait()
	}
}

// transport returns one for one version of HTTP.
func (h *hostile) transport(major int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(major == 1)
	protocols.SetHTTP2(major == 2)
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: h.trusted}, Protocols: &protocols, DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return h.dialer().DialContext(ctx, network, addr)
		},
	}
}

// An unfinishedBody waits at the end of its text.
type unfinishedBody struct {
	text *strings.Reader
	ctx  context.Context
	sent func()
}

func (b *unfinishedBody) Read(p []byte) (int, error) {
	if n, err := b.text.Read(p); err == nil {
		return n, nil
	}
	b.sent()
	<-b.ctx.Done()
	return 0, io.ErrUnexpectedEOF
}

func (b *unfinishedBody) Close() error { return nil }
