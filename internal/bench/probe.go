package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Each probe sends a request every probeInterval; so many read, and as many write. Where
// they write often, there are more, and each has more time, as with many clients.
const (
	probeInterval = 10 * time.Millisecond
	probeCount    = 4
	probesOften   = 50
	oftenInterval = 50 * time.Millisecond
	// probeApart is how far the numbers of the requests of two probes are apart, so that none asks for the same.
	probeApart = 1_000_003
)

// probes send requests when they are due, whatever became of those before, so that
// one long wait is not counted as one slow request but as all that it held up.
type probes struct {
	side    *side
	conns   []*conn
	ended   chan struct{}
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu            sync.Mutex
	reads, writes []time.Duration
	err           error
}

func startProbes(ctx context.Context, s *side, often bool) (*probes, error) {
	writers, write, interval := probeCount, leafPut, probeInterval
	if often {
		writers, write, interval = probesOften, orderPut, oftenInterval
	}
	conns, err := s.connect(ctx, probeCount+writers)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &probes{side: s, conns: conns, ended: make(chan struct{}), cancel: cancel}
	context.AfterFunc(ctx, func() { hangUp(conns) })
	began := now()
	for i, c := range conns {
		ask, into, every := leafGet, &p.reads, probeInterval
		if i >= probeCount {
			ask, into, every = write, &p.writes, interval
		}
		due := began.Add(every * time.Duration(i) / time.Duration(len(conns)))
		p.workers.Go(func() { p.run(c, ask, i*probeApart, into, due, every) })
	}
	return p, nil
}

// run sends requests, the first with a number.
func (p *probes) run(c *conn, ask func(*request, int), first int, into *[]time.Duration, due time.Time, every time.Duration) {
	var r request
	var times []time.Duration
	var err error
	for i := 0; p.waitUntil(due, i == 0); i++ {
		ask(&r, first+i)
		_ = c.SetDeadline(now().Add(requestTime)) // a closed connection fails below
		var a answer
		if a, err = c.do(p.side, &r, false); err == nil {
			err = refused(&r, a)
		}
		if err != nil {
			break
		}
		times = append(times, now().Sub(due))
		due = due.Add(every)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	*into = append(*into, times...)
	p.err = errors.Join(p.err, err)
}

// waitUntil returns false if the probes are to end. The first request of each is
// sent in any case: what is under way may be over before it is due.
func (p *probes) waitUntil(due time.Time, first bool) bool {
	ended := p.ended
	if first {
		ended = nil
	}
	select {
	case <-ended:
		return false
	case <-time.After(due.Sub(now())):
		return true
	}
}

// stop ends the probes when they have their answers, and returns the times, sorted.
func (p *probes) stop() (reads, writes []time.Duration, err error) {
	close(p.ended)
	p.workers.Wait()
	p.cancel()
	slices.Sort(p.reads)
	slices.Sort(p.writes)
	return p.reads, p.writes, p.err
}
