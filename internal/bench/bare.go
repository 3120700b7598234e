package bench

import (
	"context"
	"crypto/tls"
	"errors"
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

type bareOptions struct{ certFile, keyFile, logFile string }

// A bareServer does the input and output of a database, and nothing else.
//
//	GET                 the bytes that it was given
//	GET of a stream     a goroutine for each, with a channel of frames
//	PUT, PATCH          path and body are appended to the log, and the body is echoed when
//	                    that is synced
//	POST                the same, and a key is the answer
//	PUT below /fan      all streams and websockets are told, too
//	a websocket         each request is answered with a yes
type bareServer struct {
	body atomic.Pointer[[]byte]
	log  *groupLog

	mu      sync.Mutex
	streams map[chan []byte]struct{}
	sockets map[net.Conn]struct{}
}

// runBare serves until ctx ends.
func runBare(ctx context.Context, o bareOptions, out io.Writer) error {
	certificate, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return err
	}
	log, err := openGroupLog(o.logFile)
	if err != nil {
		return err
	}
	defer log.close()
	b := &bareServer{log: log, streams: make(map[chan []byte]struct{}), sockets: make(map[net.Conn]struct{})}
	b.body.Store(&[]byte{})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	controller := &http.Server{Handler: b.control(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = errors.Join(server.Close(), controller.Close()) })()
	var serving sync.WaitGroup
	serving.Go(func() { _ = controller.Serve(control) }) // it ends with the other
	defer serving.Wait()
	if err := readyLine(out, listener.Addr().String(), control.Addr().String()); err != nil {
		return errors.Join(err, listener.Close(), controller.Close())
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, controller.Close())
	}
	return nil
}

// control returns what the run asks, on a port of its own.
func (b *bareServer) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("PUT /body", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.body.Store(&body)
	})
	return mux
}

// ServeHTTP implements http.Handler.
func (b *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	if err := b.log.append(r.URL.Path, body); err != nil {
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

func (b *bareServer) answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that has left is no concern of ours
}

// stream tells a client all that is published, until it leaves.
func (b *bareServer) stream(w http.ResponseWriter, r *http.Request) {
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
func (b *bareServer) publish(path string, body []byte) {
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
