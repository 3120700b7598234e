// Package bare is the server that Livetree is measured next to.
//
// It is one of Go's net/http with TLS that does the input and output of a database, and
// nothing else. Run serves; its Log is what a write-ahead log costs at least. What the
// benchmark asks of it, it asks at a control listener of its own: what is to be the answer
// to reads, how many groups its log has written, and what its runtime says of itself.
package bare

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what a server has.
type Options struct {
	CertFile, KeyFile string
	// LogFile is where writes go. With a SyncTime a sync takes so long, and does nothing.
	LogFile  string
	SyncTime time.Duration
}

// maxBody bounds what it can be told to answer.
const maxBody = 256 << 20

// A server does the input and output of a database, and nothing else.
//
//	GET                 the bytes that it was given
//	GET of a stream     a goroutine for each, with a channel of frames
//	PUT, PATCH          path and body are appended to the log, and the body is echoed when
//	                    that is synced
//	POST                the same, and a key is the answer
//	PUT below /fan      all streams and websockets are told, too
//	a websocket         each request is answered with a yes
type server struct {
	body atomic.Pointer[[]byte]
	log  *Log

	mu      sync.Mutex
	streams map[chan []byte]struct{}
	sockets map[net.Conn]struct{}
}

// Run serves until ctx ends. It tells where it listens, and where it is controlled.
func Run(ctx context.Context, o Options, out io.Writer) error {
	certificate, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return err
	}
	log, err := OpenLog(o.LogFile, o.SyncTime)
	if err != nil {
		return err
	}
	defer log.Close()
	b := &server{log: log, streams: make(map[chan []byte]struct{}), sockets: make(map[net.Conn]struct{})}
	b.body.Store(&[]byte{})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	front := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	controller := &http.Server{Handler: b.control(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = errors.Join(front.Close(), controller.Close()) })()
	var serving sync.WaitGroup
	serving.Go(func() { _ = controller.Serve(control) }) // it ends with the other
	defer serving.Wait()
	if _, err := fmt.Fprintf(out, "listening on https://%s\ncontrol at http://%s\n", listener.Addr(), control.Addr()); err != nil {
		return errors.Join(err, listener.Close(), controller.Close())
	}
	if err := front.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, controller.Close())
	}
	return nil
}

// control returns what the run asks, on a port of its own.
func (b *server) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("PUT /body", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.body.Store(&body)
	})
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, _ *http.Request) {
		writes, groups := b.log.Counts()
		_, _ = fmt.Fprintf(w, "%d %d\n", writes, groups) // who asked has left
	})
	return mux
}

// ServeHTTP implements http.Handler.
func (b *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if r.Header.Get("Upgrade") != "" {
			b.openSocket(w, r)
			return
		}
		if r.Header.Get("Accept") == "text/event-stream" {
			b.stream(w, r)
			return
		}
		b.answer(w, *b.body.Load())
		return
	}
	body := make([]byte, max(r.ContentLength, 0))
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := b.log.Append(r.URL.Path, body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	const fan = "/fan"
	if len(r.URL.Path) > len(fan) && r.URL.Path[:len(fan)] == fan {
		b.publish(r.URL.Path, body)
	}
	if r.Method == http.MethodPost {
		body = []byte(`{"name":"-OabcdefghijklmnopqR"}`)
	}
	b.answer(w, body)
}

func (b *server) answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that has left is no concern of ours
}

// stream tells a client all that is published, until it leaves.
func (b *server) stream(w http.ResponseWriter, r *http.Request) {
	frames := make(chan []byte, 4)
	b.mu.Lock()
	b.streams[frames] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.streams, frames)
	}()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	control := http.NewResponseController(w)
	frame := eventFrame([]byte("null"))
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
}

// publish tells all streams. One that does not keep up misses it: the run waits
// for all, and notices.
func (b *server) publish(path string, body []byte) {
	frame, push := eventFrame(body), pushFrame(strings.TrimSuffix(path, ".json"), body)
	b.mu.Lock()
	defer b.mu.Unlock()
	for frames := range b.streams {
		select {
		case frames <- frame:
		default:
		}
	}
	for c := range b.sockets {
		_, _ = c.Write(push)
	}
}

func eventFrame(body []byte) []byte {
	frame := append([]byte(nil), "event: put\ndata: {\"path\":\"/\",\"data\":"...)
	return append(append(frame, body...), "}\n\n"...)
}
