package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/pause"
)

var (
	seeds = flag.Int("seeds", 40, "how many seeds the simulator runs")
	first = flag.Uint64("seed", 1, "the first seed")
)

// mostSeeds is within how many a planted error must be found.
const mostSeeds = 1000

// A history is what clients asked for and were told.
type history struct {
	mu    sync.Mutex
	clock int
	ops   []*op
}

// An op is a write of a token, or a read of how many tokens a shard has.
type op struct {
	shard      int
	token      string // "" for a read
	count      int
	begun, end int // end is 0 if nobody was told
}

func (h *history) begin(s int, token string) *op {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	o := &op{shard: s, token: token, begun: h.clock}
	h.ops = append(h.ops, o)
	return o
}

func (h *history) done(o *op, count int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	o.end, o.count = h.clock, count
}

// A tally counts what clients asked for, and how much of it they were told.
type tally struct{ writes, written, reads, read int }

func (h *history) count(t *tally) {
	for _, o := range h.ops {
		asked, told := &t.reads, &t.read
		if o.token != "" {
			asked, told = &t.writes, &t.written
		}
		*asked++
		if o.end > 0 {
			*told++
		}
	}
}

// check holds that there is an order of all writes and reads: that of the log.
func (h *history) check(data *lists) error {
	at := map[string]int{} // where each token is, from 1 on
	for _, s := range used {
		for i, token := range data.read(s).tokens {
			if at[token] > 0 {
				return fmt.Errorf("%s was written twice", token)
			}
			at[token] = i + 1
		}
	}
	for _, o := range h.ops {
		if o.token == "" || o.end == 0 {
			continue
		}
		if at[o.token] == 0 {
			return fmt.Errorf("%s was acknowledged, and is lost", o.token)
		}
	}
	for _, a := range h.ops {
		for _, b := range h.ops {
			if a.shard != b.shard || a.end == 0 || a.end > b.begun {
				continue
			}
			// a had ended before b began.
			before, after := a.place(at), b.place(at)
			if b.end == 0 && after == 0 || a.token == "" && b.token != "" && after > before {
				continue
			}
			if before > after || before == after && b.token != "" {
				return fmt.Errorf("%+v had ended before %+v began: %d and %d", *a, *b, before, after)
			}
		}
	}
	return nil
}

// place is how many tokens there were after an op.
func (o *op) place(at map[string]int) int {
	if o.token == "" {
		return o.count
	}
	return at[o.token]
}

// client writes and reads at any node.
func (w *world) client(c int, r *rand.Rand) {
	for i := range 12 {
		s, at := used[r.IntN(len(used))], r.IntN(size)
		if r.IntN(3) == 0 {
			w.get(s, at)
		} else {
			w.put(s, at, fmt.Sprintf("%d.%d", c, i)+long(r))
		}
		_ = pause.For(context.Background(), time.Duration(r.IntN(40))*time.Millisecond)
	}
}

// long makes every fourth token so long that it travels in parts.
func long(r *rand.Rand) string {
	if r.IntN(4) > 0 {
		return ""
	}
	return "." + strings.Repeat("long", partBytes/4+r.IntN(partBytes))
}

// get reads at a node, after a barrier.
func (w *world) get(s, at int) {
	p := w.process(at)
	ctx, cancel := context.WithTimeout(p.ctx, 3*time.Second)
	defer cancel()
	o := w.history.begin(s, "")
	if !w.flaws.skipsBarrier && p.node.Barrier(ctx, s) != nil {
		return
	}
	w.history.done(o, len(p.data.read(s).tokens))
}

// put has the home of a shard write a token, whichever that is. It ends when it was told that it is written, or
// that this is not known.
func (w *world) put(s, at int, token string) {
	o := w.history.begin(s, token)
	for range 200 {
		p := w.process(at)
		if home := p.node.HomeOf(s); home != 0 {
			p = w.process(int(home) - 1)
		}
		count, err := p.write(s, token)
		switch {
		case err == nil:
			w.history.done(o, count)
			return
		case !errors.Is(err, cluster.ErrNever):
			return
		}
		_ = pause.For(context.Background(), 50*time.Millisecond)
		at = (at + 1) % size
	}
}

// write judges and appends, one client after the other.
func (p *process) write(s int, token string) (int, error) {
	ctx, cancel := context.WithTimeout(p.ctx, 3*time.Second)
	defer cancel()
	select {
	case p.writer[s] <- struct{}{}:
	case <-ctx.Done():
		return 0, cluster.ErrNever
	}
	defer func() { <-p.writer[s] }()
	tenure, ok := p.node.Home(s)
	if !ok {
		return 0, cluster.ErrNever
	}
	count := len(p.data.read(s).tokens)
	// Judging takes a while, in which a record of before may be applied.
	_ = pause.For(ctx, time.Duration(min(len(token), 5)*(count%5))*5*time.Millisecond)
	group := record.Group{Database: 1, Base: uint64(count), Commits: []record.Commit{{Effect: []byte(token)}}}
	return count + 1, p.node.AppendGroup(ctx, s, tenure, group)
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	var all tally
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		told, err := play(t, seed, flaws{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all.writes += told.writes
		all.written += told.written
		all.reads += told.reads
		all.read += told.read
	}
	t.Logf("%+v", all)
	if 2*all.written < all.writes || 2*all.read < all.reads {
		t.Errorf("%+v: clients were seldom told anything, so this has shown little", all)
	}
}

// reused answers a question for the heads with an earlier answer, every other time.
type reused struct {
	shard.Log
	mu    sync.Mutex
	heads *shard.Heads
}

func (l *reused) Heads(ctx context.Context) (shard.Heads, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.heads; last != nil {
		l.heads = nil
		return *last, nil
	}
	heads, err := l.Log.Heads(ctx)
	if err == nil {
		l.heads = &heads
	}
	return heads, err
}

// turned turns a bit of each part that is read.
type turned struct{ shard.Log }

func (l turned) Parts(ctx context.Context, id record.TransferID, from uint32) ([][]byte, error) {
	parts, err := l.Log.Parts(ctx, id, from)
	for i := range parts {
		parts[i] = bytes.Clone(parts[i])
		parts[i][len(parts[i])-1] ^= 1
	}
	return parts, err
}

func TestPlantedErrorsAreFound(t *testing.T) {
	t.Parallel()
	planted := map[string]flaws{
		"the log does not compare": {fake: shardtest.Options{NoCompare: true}},
		"serializable heads":       {fake: shardtest.Options{StaleHeads: true}},
		"barrier reused":           {wrap: func(l shard.Log) shard.Log { return &reused{Log: l} }},
		"no barrier":               {skipsBarrier: true},
		"trim beyond a flush":      {trimEarly: true},
		"flush told too early":     {toldEarly: true},
		"two batches for a record": {twoBatches: true},
		"part trimmed too early":   {fake: shardtest.Options{PartsEarly: true}},
		"a bit of a part turned":   {wrap: func(l shard.Log) shard.Log { return turned{l} }},
	}
	for _, flaw := range shardtest.Flaws {
		planted[flaw.Name] = flaws{wrap: flaw.Wrap}
	}
	for name, f := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(mostSeeds) {
				if _, err := play(t, seed+1, f); err != nil {
					t.Logf("seed %d: %v", seed+1, err)
					return
				}
			}
			t.Errorf("not found within %d seeds", mostSeeds)
		})
	}
}
