package outbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// Close ends all clients, spread over some time, and refuses new ones. What is
// left when ctx ends is cut. It returns when none is left.
func (c *Clients) Close(ctx context.Context) {
	c.mu.Lock()
	if !c.shut {
		c.shut = true
		close(c.stop)
		if c.count == 0 {
			close(c.empty)
		}
	}
	c.mu.Unlock()
	c.loop.Wait()
	all := c.all()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	begun := c.opts.Now()
	for i, one := range all {
		// Those that end by themselves meanwhile need not be waited for.
		_ = pause.For(ctx, begun.Add(c.opts.Spread*time.Duration(i)/time.Duration(len(all))).Sub(c.opts.Now()))
		one.End(Draining)
	}
	if !c.awaitEmpty(ctx) {
		for _, one := range c.all() {
			one.Cut()
		}
		<-c.empty
	}
	c.runners.wait()
}

// endTime is what clients get that were told to end when the time is up: those that
// nothing holds up end properly within it.
const endTime = 100 * time.Millisecond

// awaitEmpty reports whether all clients end before ctx does, or a moment later.
func (c *Clients) awaitEmpty(ctx context.Context) bool {
	select {
	case <-c.empty:
		return true
	case <-ctx.Done():
	}
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-c.empty:
		return true
	case <-late.C:
		return false
	}
}

func (c *Clients) all() []*Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Client, 0, c.count)
	for _, slot := range c.slots {
		for one := range slot {
			list = append(list, one)
		}
	}
	return list
}
