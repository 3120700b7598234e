//go:build linux

package trust_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// elsewhere is the address of attackers, which is not that of ordinary clients.
var elsewhere = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}

// newHostile returns one that attacks from elsewhere.
func newHostile(t *testing.T, p *process) *hostile {
	t.Helper()
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	return &hostile{p.address(), trusted, elsewhere}
}

// percentile99 returns the time that one in a hundred exceeds.
func percentile99(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)*99/100]
}

// workLarge does what a client with large bodies does, and returns how long each
// request took. Every one must be answered 200.
func workLarge(t *testing.T, c *client, what string, count int) []time.Duration {
	t.Helper()
	var times []time.Duration
	body := `{"text":"` + strings.Repeat("large ", 40_000) + `","of":"` + what + `"}`
	for range count {
		for _, r := range []request{{method: "PUT", target: "/mine.json", body: body}, {method: "GET", target: "/mine.json"}} {
			began := time.Now()
			a, _, err := c.send(r)
			times = append(times, time.Since(began))
			if err != nil || a.status != http.StatusOK {
				t.Fatalf("%s: an ordinary %s of 240 KB is answered %d %.200s, %v", what, r.method, a.status, a.body, err)
			}
		}
	}
	return times
}

// TestBodiesThatTrickle: clients that announce much and send it as slowly as they may
// take a part of the memory for bodies, and no more.
func TestBodiesThatTrickle(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--dev", "--dev-host", "h")
	h, c := newHostile(t, p), newClient(t, p, 1)
	count := length(20, 200, 1000)
	calm := workLarge(t, c, "calm", count)
	ctx, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer stop()
	for range 8 {
		conn, err := h.speak("PUT /theirs.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 268435456\r\n\r\n\"" + strings.Repeat("x", 100_000))
		if err != nil {
			t.Fatal(err)
		}
		attackers.Go(func() { trickle(ctx, conn) })
	}
	during := workLarge(t, c, "during", count)
	t.Logf("the 99th of 100 requests takes %v, %v without attack", percentile99(during), percentile99(calm))
	figures.Report(t, "trickle", proof.Count("requests", len(during)), proof.Count("p99_us", int(percentile99(during).Microseconds())),
		proof.Count("calm_p99_us", int(percentile99(calm).Microseconds())))
}

// trickle sends 20 kB a second until the context ends or the server closes.
func trickle(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := io.WriteString(conn, strings.Repeat("x", 2000)); err != nil {
				return
			}
		}
	}
}

// TestBodiesThatStop: a body that is not sent is given up, with a word to the client,
// whatever it announced.
func TestBodiesThatStop(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--dev", "--dev-host", "h")
	h := newHostile(t, p)
	var wait sync.WaitGroup
	for _, framing := range []string{"Content-Length: 2", "Content-Length: 5000", "Content-Length: 268435456", "Transfer-Encoding: chunked"} {
		wait.Go(func() {
			conn, err := h.speak(fmt.Sprintf("PUT /a.json HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n1", framing))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			in := bufio.NewReader(conn)
			answer, err := http.ReadResponse(in, nil)
			if err != nil || answer.StatusCode != http.StatusRequestTimeout || !answer.Close {
				t.Errorf("%s: a body that stops is answered %v, %v, want 408 and the end of the connection", framing, answer, err)
				return
			}
			if _, err := io.Copy(io.Discard, in); err != nil {
				t.Errorf("%s: the connection is not closed: %v", framing, err)
			}
		})
	}
	wait.Wait()
}
