package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// An extra is something that a server does beside answering requests. What it takes is
// what the server takes more than its twin, which does not do it.
type extra interface {
	// settings returns what the server is started with; dir is for files.
	settings(dir string) ([]string, error)
	prepare(ctx context.Context, s *side) error
	// await returns when all is done that so many further requests set off.
	await(ctx context.Context, s *side, requests int) error
	close()
}

func extraScenarios() []Scenario {
	return []Scenario{
		{Name: "archive-put-64", About: "durable PUT of a leaf, 64 connections, with an archive, against the same without",
			Goal: Goal{CPU: [2]float64{1.1, 1.05}}, connections: 64, cost: 1, prepare: putUsers(users), ask: leafPut, extra: archived{}},
		{Name: "archive-put-10mb", About: "PUT of 10 MB with an archive, against the same without",
			Goal: Goal{P50: [2]float64{1.3, 1.15}}, connections: 1, cost: 2000, prepare: putUsers(1), ask: largePut(), extra: archived{}},
		{Name: "hook-put-16", About: "PUT of a leaf that one of 50 webhooks delivers, until it is delivered, against the same without",
			Goal: Goal{ExtraCPU: [2]float64{1000, 500}}, connections: 16, cost: 4, ask: orderPut, extra: &hooked{}},
	}
}

// archived is a server that archives in a directory.
type archived struct{}

func (archived) settings(dir string) ([]string, error) {
	dir = filepath.Join(dir, "archive")
	return []string{archiveSetting + "file://" + filepath.ToSlash(dir)}, os.Mkdir(dir, 0o700)
}

func (archived) prepare(context.Context, *side) error { return nil }

func (archived) await(ctx context.Context, s *side, _ int) error {
	return s.awaitMetric(ctx, "livetree_archive_lag_seconds", func(lag float64) bool { return lag == 0 })
}

func (archived) close() {}

// awaitMetric returns when a number that the server exports is as it should be.
func (s *side) awaitMetric(ctx context.Context, name string, good func(float64) bool) error {
	late := time.After(requestTime)
	for {
		value, err := s.process.Metric(ctx, name)
		if err != nil || good(value) {
			return err
		}
		select {
		case <-late:
			return fmt.Errorf("%s stays at %g", name, value)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// hookCount is how many webhooks there are. Each is for some of the orders.
const hookCount = 50

// orderPut writes an order, which is one webhook's. The same one comes again after many others.
func orderPut(r *request, i int) {
	r.set("PUT", "/orders/shop%d/order%d/state.json", i%hookCount, pick(i, 10_000))
	r.body = fmt.Appendf(r.body, "%d", i)
}

// hooked is a server with webhooks, and their receiver.
type hooked struct {
	receiver *http.Server
	addr     string
	received atomic.Int64
	sent     int64 // how many are to be received so far
}

func (h *hooked) settings(string) ([]string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.addr = l.Addr().String()
	h.receiver = &http.Server{ReadHeaderTimeout: requestTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what is left of it is not delivered
		h.received.Add(1)
	})}
	go func() { _ = h.receiver.Serve(l) }() // it ends with close
	return []string{allowSetting + h.addr}, nil
}

func (h *hooked) prepare(ctx context.Context, s *side) error {
	for i := range hookCount {
		body, err := json.Marshal(map[string]string{"name": fmt.Sprintf("shop%d", i), "path": fmt.Sprintf("/orders/shop%d/$order/state", i), "url": "http://" + h.addr})
		if err != nil {
			return err
		}
		if _, err := s.process.Ask(ctx, http.MethodPost, s.process.Control+"/v1/databases/default/hooks", body); err != nil {
			return err
		}
	}
	return nil
}

func (h *hooked) await(ctx context.Context, _ *side, requests int) error {
	h.sent += int64(requests)
	for deadline := now().Add(requestTime); h.received.Load() < h.sent; {
		if now().After(deadline) {
			return fmt.Errorf("%d of %d deliveries came", h.received.Load(), h.sent)
		}
		if err := pause.For(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (h *hooked) close() {
	if h.receiver != nil {
		_ = h.receiver.Close() // nothing is to be done if that fails
	}
}
