package bench

import (
	"context"
	"slices"
	"time"
)

// A round is what one side took in one round, each for one request or, of events,
// for one stream and event.
type round struct {
	cpuMicros, rate      float64
	p50, p99             time.Duration
	allocs, allocBytes   float64
	residentB, peakGrown int64
	idleBytes, idleRSS   float64
	blocks               float64 // that were read from disk, where there are users
}

// round runs one round of one side.
func (c contest) round(ctx context.Context, p *player, requests, first int) (round, error) {
	var all taken
	for pass := range c.passes {
		if err := c.pass(ctx, p, load{requests: requests, first: first + pass*requests, ask: c.sc.ask}, &all); err != nil {
			return round{}, err
		}
	}
	slices.Sort(all.times)
	per := float64(c.passes*requests) * float64(max(1, c.sc.streams))
	r := round{
		cpuMicros:  micros(all.cpu) / per,
		rate:       per / all.took.Seconds(),
		p50:        percentile(all.times, 0.5),
		p99:        percentile(all.times, 0.99),
		allocs:     all.mallocs / per,
		allocBytes: all.bytes / per,
		blocks:     all.missed / per,
	}
	r.residentB, r.peakGrown = p.endPeak()
	return r, nil
}

// taken is what a side took in what is counted of a round.
type taken struct {
	cpu, took              time.Duration
	mallocs, bytes, missed float64
	times                  []time.Duration
}

// pass sends the requests of a round once, and adds what they took.
func (c contest) pass(ctx context.Context, p *player, l load, all *taken) error {
	if err := c.ready(ctx, p); err != nil {
		return err
	}
	missed, err := c.misses(ctx, p)
	if err != nil {
		return err
	}
	before, err := p.begin(ctx)
	if err != nil {
		return err
	}
	v, err := c.volley(ctx, p, l)
	if err != nil {
		return err
	}
	if p.ours && c.sc.extra != nil {
		if err := c.sc.extra.await(ctx, p.side, l.requests); err != nil {
			return err
		}
	}
	after, err := p.end(ctx)
	if err != nil {
		return err
	}
	missedNow, err := c.misses(ctx, p)
	all.cpu += after.cpu - before.cpu
	all.took += v.took
	all.mallocs += max(0, float64(after.Mallocs)-float64(before.Mallocs))
	all.bytes += max(0, float64(after.AllocBytes)-float64(before.AllocBytes))
	all.missed += missedNow - missed
	all.times = append(all.times, v.times...)
	return err
}

// misses returns how many blocks our server has read from disk so far, where that is told.
func (c contest) misses(ctx context.Context, p *player) (float64, error) {
	if c.sc.users == nil || !p.ours {
		return 0, nil
	}
	return p.process.Metric(ctx, cacheMisses)
}

// ready does what a round needs before it is counted.
func (c contest) ready(ctx context.Context, p *player) error {
	if c.sc.sdk != nil {
		if err := c.sc.sdk.ready(ctx, p); err != nil {
			return err
		}
		if c.sc.sdk.returns {
			return nil
		}
	}
	if u := c.sc.users; u != nil && u.fresh != nil && p.ours {
		if err := u.fresh(ctx, p.side); err != nil {
			return err
		}
	}
	return p.connect(ctx, c.sc, c.connections)
}
