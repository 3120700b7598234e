package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A load is requests that many connections send, each the next one when it has the
// answer to the last.
type load struct {
	requests int
	first    int // number of the first request
	ask      func(r *request, i int)
}

// A volley is what became of a load. The times are sorted.
type volley struct {
	times []time.Duration
	took  time.Duration
}

// connect opens connections.
func (s *side) connect(ctx context.Context, n int) ([]*conn, error) {
	conns := make([]*conn, 0, n)
	for i := range n {
		c, err := s.open(ctx)
		if err != nil {
			hangUp(conns)
			return nil, err
		}
		c.credential = s.credentialOf(i)
		conns = append(conns, c)
	}
	return conns, nil
}

func hangUp(conns []*conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// fire sends a load over connections that are open. All ends with the first
// request that fails.
func (s *side) fire(ctx context.Context, conns []carrier, l load) (volley, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { hangUpAll(conns) })()
	times := make([]time.Duration, l.requests)
	var next atomic.Int64
	var workers sync.WaitGroup
	began := now()
	deadline := began.Add(requestTime * time.Duration(1+l.requests/1000))
	for who, c := range conns {
		workers.Go(func() {
			r := request{who: who}
			_ = c.SetDeadline(deadline) // a connection that is closed fails below
			for {
				i := int(next.Add(1)) - 1
				if i >= l.requests {
					return
				}
				l.ask(&r, l.first+i)
				sent := now()
				a, err := c.do(s, &r, false)
				times[i] = now().Sub(sent)
				if err == nil {
					err = refused(&r, a)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	v := volley{times: times, took: now().Sub(began)}
	slices.Sort(v.times)
	return v, context.Cause(ctx)
}
