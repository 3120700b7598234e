package conformance_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// A lossyProxy hands streams on, not always as they come.
type lossyProxy struct {
	server string
	client *http.Client
	fault  string
	seen   atomic.Int64
}

func (p *lossyProxy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, p.server+r.URL.RequestURI(), nil)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	req.Header = r.Header.Clone()
	answer, err := p.client.Do(req)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	rw.WriteHeader(answer.StatusCode)
	if r.Header.Get("Accept") != "text/event-stream" {
		_, _ = io.Copy(rw, answer.Body)
		return
	}
	p.spoil(r.Context(), rw, answer.Body)
}

// spoil hands frames on; every twentieth is dropped, doubled, swapped with the next,
// or followed by a cancel. The first is always right. Or it keeps the stream open
// in place of a cancel.
func (p *lossyProxy) spoil(ctx context.Context, rw http.ResponseWriter, body io.Reader) {
	s := &stream{frames: make(chan string, 1000)}
	go s.read(context.Background(), body)
	held := ""
	for n := 0; ; n++ {
		frame, ok := <-s.frames
		if !ok {
			return
		}
		if p.fault == "keep" && strings.HasPrefix(frame, "event: cancel\n") {
			<-ctx.Done()
			return
		}
		if n > 0 && p.seen.Add(1)%20 == 0 {
			switch p.fault {
			case "drop":
				continue
			case "double":
				frame += frame
			case "swap":
				held = frame
				continue
			case "cancel":
				_, _ = io.WriteString(rw, frame+"event: cancel\ndata: null\n\n")
				return
			}
		}
		_, _ = io.WriteString(rw, frame+held)
		held = ""
		rw.(http.Flusher).Flush()
	}
}
