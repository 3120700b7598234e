//go:build unix

package trust_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/wiretest"
)

// An attack holds up a server from many connections.
type attack struct {
	name string
	// open begins one connection of the attack; it returns what is to be closed
	// in the end.
	open func(h *hostile) (net.Conn, error)
	// share is by how much fewer connections there are, as each does more.
	share int
}

// hostile is who attacks.
type hostile struct {
	addr    string
	trusted *x509.CertPool
	from    net.Addr // nil for that of ordinary clients
}

func (h *hostile) dialer() *net.Dialer {
	return &net.Dialer{Timeout: patience, LocalAddr: h.from}
}

func (h *hostile) dial() (net.Conn, error) {
	return h.dialer().Dial("tcp", h.addr)
}

// speak opens a TLS connection and sends something over it.
func (h *hostile) speak(text string) (net.Conn, error) {
	conn, err := tls.DialWithDialer(h.dialer(), "tcp", h.addr, &tls.Config{RootCAs: h.trusted})
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, text)
	return conn, err
}

var attacks = []attack{
	{name: "connections that do nothing", open: (*hostile).dial},
	{name: "half of a TLS hello", open: func(h *hostile) (net.Conn, error) {
		conn, err := h.dial()
		if err == nil {
			_, err = conn.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3})
		}
		return conn, err
	}},
	{name: "connections that come and go", open: func(h *hostile) (net.Conn, error) {
		conn, err := h.speak("")
		if err == nil {
			conn.Close()
		}
		return nil, err
	}},
	{name: "heads that do not end", open: func(h *hostile) (net.Conn, error) { return h.speak("GET /a.json HTTP/1.1\r\nHost: h\r\nX: ") }},
	{name: "bodies that do not end", open: func(h *hostile) (net.Conn, error) {
		return h.speak("PUT /slow.json HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n\"")
	}},
	{name: "bodies of unknown length", open: func(h *hostile) (net.Conn, error) {
		return h.speak("PUT /slow.json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n\"" + strings.Repeat("x", 10_000))
	}},
	{name: "answers that nobody reads", open: func(h *hostile) (net.Conn, error) {
		return h.speak(strings.Repeat("GET /large.json HTTP/1.1\r\nHost: h\r\n\r\n", 10))
	}},
	{name: "a long string that nobody reads", open: func(h *hostile) (net.Conn, error) {
		return h.speak("GET /long.json HTTP/1.1\r\nHost: h\r\n\r\n")
	}},
	{name: "idle connections", open: func(h *hostile) (net.Conn, error) { return h.speak("GET /a.json HTTP/1.1\r\nHost: h\r\n\r\n") }},
	{name: "streams that nobody reads", open: func(h *hostile) (net.Conn, error) {
		return h.speak("GET /busy.json HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n")
	}},
}

// attacksByWebsocket are those over the front of the SDKs.
var attacksByWebsocket = []attack{
	{name: "websockets that do nothing", open: func(h *hostile) (net.Conn, error) { return h.upgrade() }},
	{name: "websocket messages that do not end", open: func(h *hostile) (net.Conn, error) {
		return h.upgrade(wiretest.Text("1000"), wiretest.Text(strings.Repeat("x", 16<<10)), wiretest.Text(strings.Repeat("x", 16<<10)))
	}},
	{name: "websocket counts that lie", open: func(h *hostile) (net.Conn, error) {
		return h.upgrade(wiretest.Text("3"), wiretest.Text("{"), wiretest.Text("}"), wiretest.Text("{}"), wiretest.Text("-1"))
	}},
	{name: "frames that break the rules", open: func(h *hostile) (net.Conn, error) {
		conn, err := h.upgrade(wiretest.Frame{Op: wiretest.OpText, Masked: true, Payload: []byte("{\"t\":\"\xff\"}")})
		if err == nil {
			conn.Close()
			conn, err = h.upgrade(wiretest.Frame{Op: wiretest.OpText, Payload: []byte("{}")})
		}
		return conn, err
	}},
	{name: "deep messages", open: func(h *hostile) (net.Conn, error) {
		deep := strings.Repeat(`{"a":`, 7000) + "1" + strings.Repeat("}", 7000)
		var frames []wiretest.Frame
		for _, text := range wiretest.Segments(`{"t":"d","d":{"r":1,"a":"p","b":{"p":"/deep","d":` + deep + `}}}`) {
			frames = append(frames, wiretest.Text(text))
		}
		return h.upgrade(frames...)
	}},
	{name: "websockets that nobody reads", open: func(h *hostile) (net.Conn, error) {
		frames := []wiretest.Frame{wiretest.Text(`{"t":"d","d":{"r":1,"a":"q","b":{"p":"/busy","h":""}}}`)}
		for r := range 10 {
			frames = append(frames, wiretest.Text(fmt.Sprintf(`{"t":"d","d":{"r":%d,"a":"g","b":{"p":"/large","q":{}}}}`, 2+r)))
		}
		return h.upgrade(frames...)
	}},
	{name: "websockets that read a kilobyte a second", open: func(h *hostile) (net.Conn, error) {
		conn, err := h.upgrade(wiretest.Text(`{"t":"d","d":{"r":1,"a":"q","b":{"p":"/large","h":""}}}`))
		if err != nil {
			return conn, err
		}
		go func() {
			piece := make([]byte, 1<<10)
			for {
				if _, err := conn.Read(piece); err != nil {
					return
				}
				<-time.After(time.Second)
			}
		}()
		return conn, nil
	}},
	{name: "upgrades that come and go", open: func(h *hostile) (net.Conn, error) {
		conn, err := h.upgrade(wiretest.Text(`{"t":"d","d":{"r":1,"a":"q","b":{"p":"/busy","h":""}}}`))
		if err == nil {
			conn.Close()
		}
		return nil, err
	}},
}

// upgrade opens a websocket and sends frames over it, without looking at what comes back.
func (h *hostile) upgrade(frames ...wiretest.Frame) (net.Conn, error) {
	text := []byte("GET /.ws?v=5&ns=default HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	for _, f := range frames {
		text = f.Append(text)
	}
	return h.speak(string(text))
}

// memoryLimit returns the setting of a server with small caches for so many
// connections.
func memoryLimit(connections int) int {
	return 256<<20 + connections*(256<<10)
}

// TestHostileClients attacks a server while an ordinary client goes about its
// business: all its requests are answered, and memory stays bounded.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	connections, peak := length(60, 500, 5000), 0
	limit := memoryLimit(connections)
	p := startProcess(t, "--dev", "--dev-host", "h", "--cache", "16MiB", "--max-bodies", "64MiB", "--max-connections", "6000", "--max-connections-per-address", "6000", "--head-timeout", fmt.Sprint(length(30, 2, 2), "s"),
		"--memory-limit", fmt.Sprintf("%dMiB", limit>>20))
	c := newClient(t, p, 1)
	c.must(t, request{method: "PUT", target: "/long.json", body: `"` + strings.Repeat("long", 1<<18) + `"`})
	c.must(t, request{method: "PUT", target: "/large.json", body: `[1` + strings.Repeat(`,{"a":"of many small nodes"}`, 1<<16) + `]`})
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	idle, problem := work(c, "idle")
	if problem != "" {
		t.Fatal(problem)
	}
	slowdown, all := 0, slices.Concat(attacks, attacksOverHTTP2, attacksByWebsocket)
	for _, a := range all {
		resident, times, problem := a.run(&hostile{addr: p.address(), trusted: trusted}, c, p, connections)
		peak = max(peak, resident)
		if problem != "" {
			t.Errorf("%s: %s", a.name, problem)
			continue
		}
		slowdown = max(slowdown, int(100*median(times)/median(idle)))
		t.Logf("%s: requests take %v, at most %v (idle %v, %v); up to %d MiB so far", a.name,
			median(times), slices.Max(times), median(idle), slices.Max(idle), resident>>20)
	}
	if peak > limit+limit/5 {
		t.Errorf("the server took %d MiB, want at most a fifth more than its limit of %d MiB", peak>>20, limit>>20)
	}
	// No bound is set to the time: it says as much of the machine, on which the
	// attackers run, too.
	figures.Report(t, "hostile", proof.Count("attacks", len(all)), proof.Count("connections", len(all)*connections),
		proof.Count("most_resident_mib", peak>>20), proof.Count("most_slowdown_percent", slowdown))
}

// median returns the one in the middle.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// run attacks with many connections and lets an ordinary client work meanwhile.
func (a attack) run(h *hostile, ordinary *client, p *process, connections int) (resident int, times []time.Duration, problem string) {
	s := a.besiege(h, connections)
	defer s.end()
	times, problem = work(ordinary, a.name)
	s.opening.Wait()
	if problem == "" {
		var more []time.Duration
		more, problem = work(ordinary, a.name)
		times = append(times, more...)
	}
	return residentBytes(p.pid()), times, problem
}

// A siege is an attack that is under way.
type siege struct {
	opening sync.WaitGroup
	mu      sync.Mutex
	open    []net.Conn
}

// besiege begins an attack. When it returns, the last connections are being opened.
func (a attack) besiege(h *hostile, connections int) *siege {
	s := &siege{}
	turns := make(chan struct{}, 50) // at a time, so that the test itself is not the bottleneck
	for range connections / max(a.share, 1) {
		turns <- struct{}{}
		s.opening.Go(func() {
			defer func() { <-turns }()
			conn, _ := a.open(h)
			if conn == nil {
				return // the server may refuse; it is the ordinary client who counts
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open = append(s.open, conn)
		})
	}
	return s
}

// end closes the connections.
func (s *siege) end() {
	s.opening.Wait()
	for _, conn := range s.open {
		conn.Close()
	}
}

// work does what an ordinary client does, and returns how long each request took.
// Each has minutes, which is no measure of speed, but nobody may be shut out. In a
// short run it may try again: on a busy machine, where the attackers take the test's
// own time, a handshake can take longer than the server waits for it.
func work(c *client, what string) (times []time.Duration, problem string) {
	for i := range 20 {
		body := fmt.Sprintf(`{"n":%d,"of":%q,"pad":%q}`, i, what, strings.Repeat("x", 20_000))
		for _, r := range []request{{method: "PUT", target: "/busy.json", body: body}, {method: "GET", target: "/busy/n.json"}} {
			began := time.Now()
			a, _, err := c.send(r)
			for tries := 1; err != nil && tries < length(3, 1, 1); tries++ {
				a, _, err = c.send(r)
			}
			times = append(times, time.Since(began))
			if err != nil || a.status != http.StatusOK || r.method == "GET" && a.body != strconv.Itoa(i) {
				return times, fmt.Sprintf("an ordinary %s is answered %d %.100s, %v after %v", r.method, a.status, a.body, err, time.Since(began))
			}
		}
	}
	return times, ""
}

// residentBytes returns the most memory that a process has ever taken, 0 where the
// system does not tell.
func residentBytes(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	_, _ = fmt.Sscan(after, &kib)
	return kib << 10
}
