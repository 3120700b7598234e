package conformance_test

import (
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

var (
	long        = flag.Bool("long", false, "run the tests that take minutes and gigabytes")
	streamsTime = flag.Duration("streams.time", 0, "how long TestStreamsOutside runs; 0 for what the length says")

	figures = proof.NewFigures()
)

// client returns a client of a server, with the app secret in every request.
func (i *instance) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: i.trusted}, MaxIdleConnsPerHost: 64,
	}}
}

func (i *instance) url(target string) string {
	return "https://" + i.addr + target + "auth=" + secret
}

func send(client *http.Client, method, url string, body []byte) (int, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode, err
}

// records returns about megabytes of JSON.
func records(megabytes int) []byte {
	var b bytes.Buffer
	for n := 0; b.Len() < megabytes<<20; n++ {
		fmt.Fprintf(&b, `,"r%08d":{"name":"record %d","text":%q,"n":%d}`, n, n, strings.Repeat("x", 600), n)
	}
	text := append(b.Bytes(), '}')
	text[0] = '{'
	return text
}

// A peak watches how much memory the process has from the system.
type peak struct {
	most atomic.Uint64
	stop chan struct{}
	done sync.WaitGroup
}

func watch() *peak {
	p := &peak{stop: make(chan struct{})}
	runtime.GC()
	p.done.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			p.most.Store(max(p.most.Load(), m.HeapAlloc))
			select {
			case <-ticker.C:
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func (p *peak) end() uint64 {
	close(p.stop)
	p.done.Wait()
	return p.most.Load()
}

// fill writes a gigabyte.
func (i *instance) fill(t *testing.T, client *http.Client) {
	t.Helper()
	part := records(100)
	for n := range 10 {
		if status, err := send(client, "PUT", i.url(fmt.Sprintf("/part%d.json?print=silent&", n)), part); status != http.StatusNoContent || err != nil {
			t.Fatalf("part %d: %d, %v", n, status, err)
		}
	}
}

// TestLongReadOfAGigabyte: a read streams, whatever its size.
func TestLongReadOfAGigabyte(t *testing.T) {
	if !*long {
		t.Skip("-long runs it")
	}
	i := start(t, nil)
	client := i.client()
	i.fill(t, client)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	p := watch()
	answer, err := client.Get(i.url("/.json?"))
	if err != nil {
		t.Fatal(err)
	}
	size, err := io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	most := p.end()
	if err != nil || size < 1000<<20 {
		t.Fatalf("read %d bytes, %v", size, err)
	}
	if growth := int64(most) - int64(before.HeapAlloc); growth > 32<<20 {
		t.Errorf("the heap grew by %d MiB while %d MiB were read", growth>>20, size>>20)
	}
	t.Logf("read %d MiB, the heap went from %d to %d MiB", size>>20, before.HeapAlloc>>20, most>>20)
}

// TestLongManyLargeBodies: 64 bodies of 16 MiB at once are served or told to come
// back, and take no more memory than they may.
func TestLongManyLargeBodies(t *testing.T) {
	if !*long {
		t.Skip("-long runs it")
	}
	i := start(t, nil)
	client := i.client()
	body := records(16)
	p := watch()
	var mu sync.Mutex
	answers := map[int]int{}
	var wait sync.WaitGroup
	for n := range 64 {
		wait.Go(func() {
			status, err := send(client, "PUT", i.url(fmt.Sprintf("/body%d.json?print=silent&", n)), body)
			if err != nil {
				t.Errorf("body %d: %v", n, err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
	}
	wait.Wait()
	most := p.end()
	if answers[http.StatusNoContent] == 0 || answers[http.StatusNoContent]+answers[http.StatusServiceUnavailable] != 64 {
		t.Errorf("the answers are %v", answers)
	}
	if most > 900<<20 {
		t.Errorf("the heap grew to %d MiB", most>>20)
	}
	t.Logf("answers %v, heap up to %d MiB", answers, most>>20)
}
