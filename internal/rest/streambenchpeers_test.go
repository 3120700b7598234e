//go:build linux

package rest_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// The benchmarks of streams run their servers and their clients in processes of
// their own: what a server takes can be told from the rest only so, and a process
// has too few file descriptors for 20,000 connections. A process is this test
// binary; it takes commands from its standard input, one a line, and answers each
// with a line of JSON.

// peerRole names the environment variable that says what a process is.
const peerRole = "LIVETREE_STREAM_PEER"

// A peer is a process under command.
type peer struct {
	b     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

// startPeer starts a process, which ends with the benchmark.
func startPeer(b testing.TB, role string) *peer {
	b.Helper()
	p := &peer{b: b, cmd: exec.Command(os.Args[0], "-test.run=^TestStreamPeer$", "-test.count=1")}
	p.cmd.Env = append(os.Environ(), peerRole+"="+role)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p.in, p.lines = in, bufio.NewReader(out)
	b.Cleanup(func() {
		_ = in.Close()
		_ = p.cmd.Wait() // it leaves as it was told to
	})
	return p
}

// ask sends a command and returns its answer.
func (p *peer) ask(format string, args ...any) (answer peerAnswer) {
	p.b.Helper()
	p.tell(format, args...)
	return p.answer()
}

func (p *peer) tell(format string, args ...any) {
	p.b.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.b.Fatal(err)
	}
}

func (p *peer) answer() (answer peerAnswer) {
	p.b.Helper()
	line, err := p.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err != nil || answer.Error != "" {
		p.b.Fatalf("%s: %q, %v", p.cmd.Env[len(p.cmd.Env)-1], line, err)
	}
	return answer
}

// A peerAnswer is what a process says. All of it may be left out.
type peerAnswer struct {
	Error string
	Addr  string
	// CPU is what the process has taken so far, RSS what it has of memory, Heap and
	// Stacks what is in use after a collection.
	CPU               time.Duration
	RSS, Heap, Stacks int64
	Goroutines        int
	// Took is how long a write took.
	Took time.Duration
}

// A peerFunc carries a command out.
type peerFunc func(args []string) (peerAnswer, error)

// TestStreamPeer is no test: it is what the processes of benchmarks run.
func TestStreamPeer(t *testing.T) {
	roles := map[string]func(*testing.T) (first peerAnswer, run map[string]peerFunc){
		"livetree": liveTreePeer, "bare": barePeer, "clients": clientsPeer,
	}
	role, ok := roles[os.Getenv(peerRole)]
	if !ok {
		t.Skip("not a process of a benchmark")
	}
	first, run := role(t)
	run["stats"] = statsPeer
	run["profile"] = profilePeer
	answer := json.NewEncoder(os.Stdout)
	_ = answer.Encode(first)
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		fields := strings.Fields(commands.Text())
		result, err := run[fields[0]](fields[1:])
		if err != nil {
			result.Error = err.Error()
		}
		_ = answer.Encode(result)
	}
}

func statsPeer(args []string) (peerAnswer, error) {
	var a peerAnswer
	if len(args) > 0 { // memory, too
		debug.FreeOSMemory()
		debug.FreeOSMemory() // once more for what pools and finalizers held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		a.Heap, a.Stacks, a.Goroutines = int64(m.HeapInuse), int64(m.StackInuse), runtime.NumGoroutine()
		statm, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			return a, err
		}
		pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
		if err != nil {
			return a, err
		}
		a.RSS = pages * int64(os.Getpagesize())
	}
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	a.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return a, err
}

// profilePeer writes what a profile of some seconds, or of the heap, shows.
func profilePeer(args []string) (peerAnswer, error) {
	file, err := os.Create(args[1])
	if err != nil {
		return peerAnswer{}, err
	}
	if args[0] == "heap" {
		runtime.GC()
		return peerAnswer{}, errors.Join(pprof.WriteHeapProfile(file), file.Close())
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return peerAnswer{}, err
	}
	seconds, err := strconv.Atoi(args[0])
	time.AfterFunc(time.Duration(seconds)*time.Second, func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	})
	return peerAnswer{}, err
}

// benchFrame is what a write of a benchmark is told as.
func benchFrame(n int) string {
	return fmt.Sprintf("event: put\ndata: {\"path\":\"/\",\"data\":%d}\n\n", 1_000_000+n)
}

// listenPeer serves HTTP/1.1 over TLS, in the same way for all.
func listenPeer(t *testing.T, handler http.Handler) peerAnswer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go server.Serve(listener) //nolint:errcheck // it ends with the process
	return peerAnswer{Addr: listener.Addr().String()}
}

// liveTreePeer serves a database in memory.
func liveTreePeer(t *testing.T) (peerAnswer, map[string]peerFunc) {
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis())})
	d, err := c.Create("default")
	if err == nil {
		_, err = d.SetRules(t.Context(), state.OpenRules)
	}
	if err != nil {
		t.Fatal(err)
	}
	// No keep-alives: the bare server has none.
	streams := outbox.New(outbox.Options{KeepAlive: time.Hour})
	handler := rest.New(rest.Options{Catalog: c, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Hosts: hosts.Hosts{DefaultDatabase: "default"}, MaxBody: 1 << 20, MaxBodies: 4 << 20, Streams: streams})
	write := func(args []string) (peerAnswer, error) {
		at, err := tree.ParsePath(args[0])
		if err != nil {
			return peerAnswer{}, err
		}
		n, _ := strconv.Atoi(args[1])
		node, err := tree.DecodeBytes([]byte(strconv.Itoa(1_000_000+n)), tree.DecodeOptions{})
		if err != nil {
			return peerAnswer{}, err
		}
		began := time.Now()
		_, err = d.Write(t.Context(), engine.Request{Write: tree.Put(at, node)})
		return peerAnswer{Took: time.Since(began)}, err
	}
	// writes makes some writes after each other, and tells the middle time.
	writes := func(args []string) (peerAnswer, error) {
		n, err := strconv.Atoi(args[1])
		times := make([]time.Duration, n)
		for i := range times {
			one, failed := write([]string{args[0], strconv.Itoa(i)})
			times[i], err = one.Took, errors.Join(err, failed)
		}
		return peerAnswer{Took: middle(times)}, err
	}
	return listenPeer(t, handler), map[string]peerFunc{"publish": write, "writes": writes}
}

// barePeer serves streams as one would with net/http and nothing else: each has
// its handler, which waits for frames.
func barePeer(t *testing.T) (peerAnswer, map[string]peerFunc) {
	var mu sync.Mutex
	streams := make(map[chan []byte]struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		frames := make(chan []byte, 4)
		mu.Lock()
		streams[frames] = struct{}{}
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		control := http.NewResponseController(w)
		frame := []byte("event: put\ndata: {\"path\":\"/\",\"data\":null}\n\n")
		for {
			_, err := w.Write(frame)
			if err = errors.Join(err, control.Flush()); err != nil {
				return
			}
			select {
			case frame = <-frames:
			case <-r.Context().Done():
				return
			}
		}
	})
	publish := func(args []string) (peerAnswer, error) {
		n, err := strconv.Atoi(args[1])
		frame := []byte(benchFrame(n))
		mu.Lock()
		defer mu.Unlock()
		for frames := range streams {
			frames <- frame
		}
		return peerAnswer{}, err
	}
	return listenPeer(t, handler), map[string]peerFunc{"publish": publish}
}

// clientsPeer opens streams and counts the events that they get.
func clientsPeer(t *testing.T) (peerAnswer, map[string]peerFunc) {
	var got atomic.Int64
	var streams int64
	all := make(chan struct{}, 1) // all have got an event
	open := func(args []string) (peerAnswer, error) {
		n, err := strconv.Atoi(args[2])
		var dialers sync.WaitGroup
		turns := make(chan struct{}, 8)
		streams = int64(n)
		for i := range n {
			turns <- struct{}{}
			dialers.Go(func() {
				defer func() { <-turns }()
				conn, err := openStream(args[0], strings.ReplaceAll(args[1], "*", strconv.Itoa(i)))
				if err != nil {
					t.Error(err)
					return
				}
				go countFrames(conn, func() {
					if got.Add(1)%streams == 0 {
						all <- struct{}{}
					}
				})
			})
		}
		dialers.Wait()
		<-all // the first event
		return peerAnswer{}, err
	}
	await := func([]string) (peerAnswer, error) {
		select {
		case <-all:
			return peerAnswer{}, nil
		case <-time.After(time.Minute):
			return peerAnswer{}, fmt.Errorf("only %d of %d streams have an event", got.Load()%streams, streams)
		}
	}
	return peerAnswer{}, map[string]peerFunc{"open": open, "await": await}
}

// openStream asks for a stream on a connection of its own, without a client that
// would take more than the server.
func openStream(addr, target string) (net.Conn, error) {
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) // our own, on this machine
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", target)
	return conn, err
}

// countFrames calls got for each frame that comes.
func countFrames(conn net.Conn, got func()) {
	buffer := make([]byte, 512)
	last := byte(0)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		text := buffer[:n]
		if last == '\n' && text[0] == '\n' {
			got()
		}
		for range bytes.Count(text, []byte("\n\n")) {
			got()
		}
		last = text[n-1]
	}
}
