package bench

import (
	"context"
	"encoding/json"
	"errors"
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
		value, err := s.metric(ctx, name)
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
		if _, err := s.process.ask(ctx, http.MethodPost, s.process.control+"/v1/databases/default/hooks", body); err != nil {
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

// beside are disturbances that a server makes by itself. Each is to be compared with busy.
func (st Stalls) beside() []disturbance {
	rest := func(ctx context.Context, _ *side) error { return pause.For(ctx, st.Calm) }
	window := time.Duration(st.Leaves) * time.Minute / 1_000_000
	due := &dueChildren{count: st.Leaves, window: window}
	hooks := &hooked{}
	return []disturbance{
		{name: "busy", about: "nothing else than 1000 writes a second", often: true, run: rest},
		{name: "expiry", about: fmt.Sprintf("%d children expire within %s", st.Leaves, window), often: true,
			before: due.fill, run: due.await, after: func(ctx context.Context, s *side) error { return s.setRules(ctx, openRules) }},
		{name: "hooks", about: "each write is delivered by one of 50 webhooks", often: true, run: rest,
			before: func(ctx context.Context, s *side) error {
				with, err := hooks.settings("")
				if err != nil {
					return err
				}
				if err := s.restartWith(ctx, with...); err != nil {
					return err
				}
				return hooks.prepare(ctx, s)
			},
			after: func(ctx context.Context, s *side) error {
				hooks.close()
				return s.restartWith(ctx)
			}},
		{name: "archive", about: "the archive cannot be reached", often: true, run: rest, before: loseArchive,
			after: func(ctx context.Context, s *side) error { return s.restartWith(ctx) }},
	}
}

// restartWith restarts the server with other settings.
func (s *side) restartWith(ctx context.Context, with ...string) error {
	s.with = with
	_, err := s.restart(ctx)
	return err
}

// loseArchive gives a server an archive, and puts a file in the place of its directory.
func loseArchive(ctx context.Context, s *side) error {
	with, err := archived{}.settings(filepath.Dir(s.dir))
	if err == nil {
		err = s.restartWith(ctx, with...)
	}
	if err == nil {
		err = archived{}.await(ctx, s, 0)
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(s.dir), "archive")
	return errors.Join(os.Rename(dir, dir+"-lost"), os.WriteFile(dir, nil, 0o600))
}

// dueChildren are children that expire evenly within a window.
type dueChildren struct {
	count  int
	window time.Duration
	begin  time.Time
}

// fill writes the children, and waits until the first is nearly due.
func (c *dueChildren) fill(ctx context.Context, s *side) error {
	if err := s.setRules(ctx, `{"rules":{".read":true,".write":true,"due":{"$of":{".expireOn":"at"}}}}`); err != nil {
		return err
	}
	const atOnce, perChild = 5000, 150 * time.Microsecond
	c.begin = now().Add(time.Duration(c.count)*perChild + 5*time.Second)
	for from := 0; from < c.count; from += atOnce {
		body := []byte{'{'}
		for i := from; i < min(c.count, from+atOnce); i++ {
			if i > from {
				body = append(body, ',')
			}
			// Those of one parent come due at all times.
			at := c.begin.Add(time.Duration(pick(i, int(c.window))))
			body = fmt.Appendf(body, `"child%07d":{"at":%d,"text":"goes away"}`, i, at.UnixMilli())
		}
		if err := s.send(ctx, "PUT", fmt.Sprintf("/due/of%d.json?print=silent", from/atOnce), append(body, '}')); err != nil {
			return err
		}
	}
	left := c.begin.Sub(now())
	if left < 0 {
		return errors.New("children are due before all are written: the machine is too slow for so many --stall-leaves")
	}
	return pause.For(ctx, left)
}

// await returns when all have expired.
func (c *dueChildren) await(ctx context.Context, s *side) error {
	late := now().Add(c.window + 10*time.Minute)
	for {
		left, err := s.fetch(ctx, &request{method: "GET", target: []byte("/due.json?shallow=true")})
		if err != nil || string(left) == "null" {
			return err
		}
		if now().After(late) {
			return errors.New("children stay that have expired")
		}
		if err := pause.For(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
