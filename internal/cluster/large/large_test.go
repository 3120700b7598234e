package large

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// A desk has clients enter a gate and remembers what each was told.
type desk struct {
	*testing.T
	gate *Gate
}

// entering is a write that has asked to enter.
type entering struct {
	leave  func()
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

func (d *desk) enter(uid string, bytes int64) *entering {
	ctx, cancel := context.WithCancel(d.Context())
	e := &entering{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(e.done)
		e.leave, e.err = d.gate.Enter(ctx, nil, Who{UID: uid}, bytes)
	}()
	synctest.Wait()
	return e
}

// is expects that a write is inside, or that it waits.
func (d *desk) is(e *entering, inside bool) {
	d.Helper()
	synctest.Wait()
	got := false
	select {
	case <-e.done:
		got = e.err == nil
	default:
	}
	if got != inside {
		bytes, waiting := d.gate.Bytes()
		d.Errorf("a write is inside: %v, want %v, with %d bytes inside and %d writes waiting", got, inside, bytes, waiting)
	}
}

// empty expects that the gate remembers nothing.
func (d *desk) empty() {
	d.Helper()
	g := d.gate
	if g.bytes != 0 || g.waiting != 0 || len(g.inside) != 0 || len(g.lines) != 0 || len(g.turns) != 0 {
		d.Errorf("nobody is there, but the gate has %d bytes, %d waiting, inside %v, lines %v, turns %v", g.bytes, g.waiting, g.inside, g.lines, g.turns)
	}
}

func play(t *testing.T, do func(*desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t, New(100, 10)}
		do(d)
		synctest.Wait()
		d.empty()
	})
}

func TestGateIsBounded(t *testing.T) {
	play(t, func(d *desk) {
		ann, ben := d.enter("ann", 60), d.enter("ben", 60)
		d.is(ann, true)
		d.is(ben, false)
		small := d.enter("cyd", 10)
		d.is(small, true)
		ann.leave()
		d.is(ben, true)
		ben.leave()
		ben.leave() // once is enough
	})
}

func TestLargerThanTheGateGoesAlone(t *testing.T) {
	play(t, func(d *desk) {
		ann, ben, cyd := d.enter("ann", 20), d.enter("ben", 500), d.enter("cyd", 20)
		d.is(ann, true)
		d.is(ben, false)
		d.is(cyd, false) // it came after ben, who would wait forever otherwise
		ann.leave()
		d.is(ben, true)
		d.is(cyd, false)
		ben.leave()
		d.is(cyd, true)
		cyd.leave()
	})
}

// TestNoClientShutsOthersOut: a client has half of the gate for several writes, and its line does not stand before that of others.
func TestNoClientShutsOthersOut(t *testing.T) {
	play(t, func(d *desk) {
		var anns []*entering
		for range 4 {
			anns = append(anns, d.enter("ann", 25))
		}
		d.is(anns[1], true)
		d.is(anns[2], false) // she has 50 of 100
		ben := d.enter("ben", 50)
		d.is(ben, true) // he passes her line
		cyd := d.enter("cyd", 50)
		anns[0].leave()
		d.is(anns[2], true)
		d.is(cyd, false)
		anns[1].leave()
		d.is(anns[3], false) // it is the turn of cyd, whom she had before
		anns[2].leave()
		d.is(cyd, true)
		d.is(anns[3], false)
		ben.leave()
		d.is(anns[3], true)
		cyd.leave()
		anns[3].leave()
	})
}

// TestWaitingEnds: a write that is given up leaves its line, and those who waited for its turn go on.
func TestWaitingEnds(t *testing.T) {
	play(t, func(d *desk) {
		ann, ben, cyd := d.enter("ann", 50), d.enter("ben", 90), d.enter("cyd", 20)
		d.is(cyd, false)
		ben.cancel()
		d.is(ben, false)
		d.is(cyd, true)
		if <-ben.done; !errors.Is(ben.err, context.Canceled) {
			d.Errorf("Enter(…) = %v, want that it was canceled", ben.err)
		}
		late := time.NewTimer(time.Minute)
		if _, err := d.gate.Enter(d.Context(), late.C, Who{UID: "dan"}, 90); !errors.Is(err, errLate) {
			d.Errorf("Enter(…) = %v, want %v", err, errLate)
		}
		ann.leave()
		cyd.leave()
	})
}

// TestGateRandom: whatever clients do, no more is inside than may be, everybody gets in who waits, and nothing is left.
func TestGateRandom(t *testing.T) {
	seed := mathrand.Uint64()
	t.Logf("seed %d", seed)
	play(t, func(d *desk) {
		var all sync.WaitGroup
		var mu sync.Mutex
		inside, of, most := int64(0), map[string]int64{}, map[string]int{}
		look := func(uid string, bytes int64) {
			mu.Lock()
			defer mu.Unlock()
			inside += bytes
			of[uid] += bytes
			if most[uid]++; bytes < 0 {
				most[uid] -= 2
			}
			if inside > 100 && inside != of[uid] || of[uid] > 100 && most[uid] > 1 {
				d.Errorf("%d bytes are inside, %d of them of %s in %d writes", inside, of[uid], uid, most[uid])
			}
		}
		for i := range 12 {
			rng := mathrand.New(mathrand.NewPCG(seed, uint64(i)))
			uid := fmt.Sprint(i % 4)
			all.Go(func() {
				for range 200 {
					bytes := 11 + rng.Int64N(140)
					ctx, cancel := context.WithTimeout(d.Context(), time.Duration(rng.IntN(20))*time.Second)
					leave, err := d.gate.Enter(ctx, nil, Who{UID: uid}, bytes)
					if err == nil {
						look(uid, bytes)
						_ = pause.For(d.Context(), time.Duration(rng.IntN(3))*time.Second)
						look(uid, -bytes)
						leave()
					}
					cancel()
				}
			})
		}
		all.Wait()
	})
}
